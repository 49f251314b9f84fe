"""Vectors, matrices (as 9-tuples, row by row) and quaternions in scalar form."""

from __future__ import annotations

import math

from .jit import formula


@formula
def row3(a, i):
    """Row of an (n, 3) array as a tuple."""
    return (a[i, 0], a[i, 1], a[i, 2])


@formula
def row4(a, i):
    """Row of an (n, 4) array as a tuple."""
    return (a[i, 0], a[i, 1], a[i, 2], a[i, 3])


@formula
def row9(a, i):
    """Row of an (n, 9) array as a tuple."""
    return (a[i, 0], a[i, 1], a[i, 2], a[i, 3], a[i, 4], a[i, 5], a[i, 6], a[i, 7], a[i, 8])


@formula
def dot(a, b):
    """a . b"""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@formula
def cross(a, b):
    """a x b"""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@formula
def add(a, b):
    """a + b"""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@formula
def sub(a, b):
    """a - b"""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@formula
def mul(a, b):
    """Component by component."""
    return (a[0] * b[0], a[1] * b[1], a[2] * b[2])


@formula
def axpy(s, a, b):
    """s a + b"""
    return (s * a[0] + b[0], s * a[1] + b[1], s * a[2] + b[2])


@formula
def norm(a):
    """|a|"""
    return math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@formula
def mat_vec(m, v):
    """M v"""
    return (
        m[0] * v[0] + m[1] * v[1] + m[2] * v[2],
        m[3] * v[0] + m[4] * v[1] + m[5] * v[2],
        m[6] * v[0] + m[7] * v[1] + m[8] * v[2],
    )


@formula
def mat_t_vec(m, v):
    """M^T v"""
    return (
        m[0] * v[0] + m[3] * v[1] + m[6] * v[2],
        m[1] * v[0] + m[4] * v[1] + m[7] * v[2],
        m[2] * v[0] + m[5] * v[1] + m[8] * v[2],
    )


@formula
def mat_t_mat(a, b):
    """A^T B"""
    x, y, z = mat_t_vec(a, (b[0], b[3], b[6])), mat_t_vec(a, (b[1], b[4], b[7])), mat_t_vec(a, (b[2], b[5], b[8]))
    return (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2])


@formula
def column(m, j):
    """Column j of M."""
    if j == 0:
        return (m[0], m[3], m[6])
    if j == 1:
        return (m[1], m[4], m[7])
    return (m[2], m[5], m[8])


@formula
def quat_matrix(q):
    """Rotation matrix of a unit quaternion."""
    w, x, y, z = q
    return (
        1 - 2 * (y * y + z * z),
        2 * (x * y - w * z),
        2 * (x * z + w * y),
        2 * (x * y + w * z),
        1 - 2 * (x * x + z * z),
        2 * (y * z - w * x),
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        1 - 2 * (x * x + y * y),
    )


@formula
def quat_multiply(p, q):
    """p q: first q turns, then p."""
    return (
        p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
        p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
        p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
        p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
    )


@formula
def quat_exp(v):
    """Quaternion of the rotation vector v.

    By its series for at most half a radian, and doubling for more: the library's sine and cosine differ in the last
    bit between freshly compiled and cached kernels, and then a restart would not continue bit for bit.
    """
    angle = norm(v)
    doublings, scale = 0, 1.0
    while angle > 0.5 and doublings < 64:
        angle *= 0.5
        scale *= 0.5
        doublings += 1
    q = 0.25 * angle * angle  # square of the half angle, at most 1/16
    c = 1.0 - q / 2.0 * (1.0 - q / 12.0 * (1.0 - q / 30.0 * (1.0 - q / 56.0 * (1.0 - q / 90.0 * (1.0 - q / 132.0)))))
    s = 1.0 - q / 6.0 * (1.0 - q / 20.0 * (1.0 - q / 42.0 * (1.0 - q / 72.0 * (1.0 - q / 110.0 * (1.0 - q / 156.0)))))
    s *= 0.5 * scale
    x, y, z = s * v[0], s * v[1], s * v[2]
    for _ in range(doublings):
        x, y, z = 2.0 * c * x, 2.0 * c * y, 2.0 * c * z
        c = 2.0 * c * c - 1.0
    return (c, x, y, z)


@formula
def tangents(n):
    """u, w so that (n, u, w) is a right-handed orthonormal frame; continuous but for the sign of n_z."""
    sign = 1.0 if n[2] >= 0.0 else -1.0
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    u = (1.0 + sign * n[0] * n[0] * a, sign * b, -sign * n[0])
    w = (b, sign + n[1] * n[1] * a, -n[1])
    return u, w


@formula
def symmetric_vec(s, v):
    """S v with S = (xx, yy, zz, xy, xz, yz)."""
    return (
        s[0] * v[0] + s[3] * v[1] + s[4] * v[2],
        s[3] * v[0] + s[1] * v[1] + s[5] * v[2],
        s[4] * v[0] + s[5] * v[1] + s[2] * v[2],
    )


@formula
def largest_eigenvalue(xx, yy, zz, xy, xz, yz):
    """Largest eigenvalue of a symmetric positive semidefinite 3 x 3 matrix, never below it.

    Newton's method on the characteristic polynomial from Gershgorin's bound falls monotonically towards it.
    """
    top = max(xx + abs(xy) + abs(xz), max(yy + abs(xy) + abs(yz), zz + abs(xz) + abs(yz)))
    c2 = xx + yy + zz
    c1 = xx * yy + xx * zz + yy * zz - xy * xy - xz * xz - yz * yz
    c0 = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    for _ in range(60):
        slope = (3.0 * top - 2.0 * c2) * top + c1
        if slope <= 1e-7 * top * top:  # two or three eigenvalues in one place: rounding would take over
            break
        step = (((top - c2) * top + c1) * top - c0) / slope
        if step <= 1e-12 * top:
            break
        top -= step
    return top
