"""Vectors, matrices (as 9-tuples, row by row) and quaternions in scalar form."""

from __future__ import annotations

import math

from .jit import exact, formula


@exact
def dot(a, b):
    """a . b"""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@exact
def cross(a, b):
    """a x b"""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@exact
def add(a, b):
    """a + b"""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@exact
def sub(a, b):
    """a - b"""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@exact
def mul(a, b):
    """Component by component."""
    return (a[0] * b[0], a[1] * b[1], a[2] * b[2])


@exact
def axpy(s, a, b):
    """s a + b"""
    return (s * a[0] + b[0], s * a[1] + b[1], s * a[2] + b[2])


@exact
def norm(a):
    """|a|"""
    return math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@exact
def mat_vec(m, v):
    """M v"""
    return (
        m[0] * v[0] + m[1] * v[1] + m[2] * v[2],
        m[3] * v[0] + m[4] * v[1] + m[5] * v[2],
        m[6] * v[0] + m[7] * v[1] + m[8] * v[2],
    )


@exact
def mat_t_vec(m, v):
    """M^T v"""
    return (
        m[0] * v[0] + m[3] * v[1] + m[6] * v[2],
        m[1] * v[0] + m[4] * v[1] + m[7] * v[2],
        m[2] * v[0] + m[5] * v[1] + m[8] * v[2],
    )


@exact
def column(m, j):
    """Column j of M."""
    if j == 0:
        return (m[0], m[3], m[6])
    if j == 1:
        return (m[1], m[4], m[7])
    return (m[2], m[5], m[8])


@exact
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


@exact
def quat_multiply(p, q):
    """p q: first q turns, then p."""
    return (
        p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
        p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
        p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
        p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0],
    )


@exact
def quat_exp(v):
    """Quaternion of the rotation vector v."""
    angle = norm(v)
    half = 0.5 * angle
    # sin(half)/angle, by its series where the quotient would lose digits.
    s = math.sin(half) / angle if angle > 1e-4 else 0.5 - angle * angle / 48.0
    return (math.cos(half), s * v[0], s * v[1], s * v[2])


@exact
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


@exact
def largest_eigenvalue(xx, yy, zz, xy, xz, yz):
    """Largest eigenvalue of a symmetric 3 x 3 matrix (trigonometric form)."""
    off = xy * xy + xz * xz + yz * yz
    mean = (xx + yy + zz) / 3.0
    p2 = (xx - mean) ** 2 + (yy - mean) ** 2 + (zz - mean) ** 2 + 2.0 * off
    if p2 <= 1e-30 * mean * mean:
        return max(xx, max(yy, zz))
    p = math.sqrt(p2 / 6.0)
    a, b, c = (xx - mean) / p, (yy - mean) / p, (zz - mean) / p
    d, e, f = xy / p, xz / p, yz / p
    half_det = 0.5 * (a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e))
    half_det = min(1.0, max(-1.0, half_det))
    return mean + 2.0 * p * math.cos(math.acos(half_det) / 3.0)
