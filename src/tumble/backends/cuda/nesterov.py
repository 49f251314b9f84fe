"""The kernels of APGD's iteration, and those that look how good its impulses are (`apgd.py` runs them).

Sums of a block are halved in shared memory, those of all blocks by one block: an order that depends on the number of
contacts alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba.cuda as cuda
import numpy as np

from ...kernels.cones import coulomb_shift, local_error, natural_map, project, weighted_set
from ...kernels.nesterov import next_scalars
from . import provider
from .launch import Kernel, device_function, pass_over

THREADS = 4 if provider.SIMULATED else 256
"""Threads of a block in the loop; a power of two, since sums halve."""
TEAM = 2
"""Threads that sum the entries of a body. On an H200 eight take 2.4 times as long (a pile of a million spheres)."""
TEAMS = THREADS // TEAM
RESIDENT = 3
"""Blocks of contacts on a multiprocessor in single precision; in double they would leave too few registers."""
SHARED, SHARED_SUMS = 3 * THREADS, 5 * THREADS


class Loop(NamedTuple):
    """What the kernels of the loop read and write; numbers of contacts have room for `capacity`."""

    size: Any  # (3,) int64: contacts with bounded rows of joints, blocks of them, contacts alone
    body_a: Any  # (cap,) int32
    body_b: Any
    frame: Any  # (9, cap) scaled
    arms: Any  # (6, cap)
    compliance: Any  # (2, cap) scaled, (2, 0) where all are rigid
    bias: Any  # (3, cap) scaled
    friction: Any  # (cap,) of the scaled cones
    x: Any  # (3, cap)
    d: Any  # (3, cap) the last step
    old: Any  # (3, cap) N x before it
    shift: Any  # (cap,) Coulomb's correction
    force: Any  # (cap, 4) world impulse on B
    entry_start: Any  # (bodies + 1,) int64
    entry_contact: Any  # (2 cap + 1,) int32
    entry_arm: Any  # (2 cap + 1, 4): arm, and 1 on side B, -1 on side A
    inverse: Any  # (bodies, 9): inverse masses and inertias
    velocity: Any  # (bodies, 8): of the impulses x
    scalars: Any  # (10,) float64, see `Scalar`
    partial: Any  # (blocks, 5) float64


class Gauge(NamedTuple):
    """What the looks in between measure with; see `GaugeArrays`."""

    scale: Any
    weight: Any
    friction: Any
    coulomb: int
    speed: float
    values: Any  # (5,) natural map, r^, g^, u^ (squares summed), the largest local error squared


@device_function
def relative(c, p):
    """N x of contact c from the velocities of its bodies."""
    a, b, f, r, v = p.body_a[c], p.body_b[c], p.frame, p.arms, p.velocity
    ux = v[b, 0] - v[a, 0] + (v[b, 4] * r[5, c] - v[b, 5] * r[4, c]) - (v[a, 4] * r[2, c] - v[a, 5] * r[1, c])
    uy = v[b, 1] - v[a, 1] + (v[b, 5] * r[3, c] - v[b, 3] * r[5, c]) - (v[a, 5] * r[0, c] - v[a, 3] * r[2, c])
    uz = v[b, 2] - v[a, 2] + (v[b, 3] * r[4, c] - v[b, 4] * r[3, c]) - (v[a, 3] * r[1, c] - v[a, 4] * r[0, c])
    n = f[0, c] * ux + f[1, c] * uy + f[2, c] * uz
    u = f[3, c] * ux + f[4, c] * uy + f[5, c] * uz
    w = f[6, c] * ux + f[7, c] * uy + f[8, c] * uz
    if p.compliance.shape[1] > 0:
        n += p.compliance[0, c] * p.x[0, c]
        u += p.compliance[1, c] * p.x[1, c]
        w += p.compliance[1, c] * p.x[2, c]
    return n, u, w


@device_function
def lay_force(c, p, n, u, w):
    """The world impulse of contact c."""
    f = p.frame
    p.force[c, 0] = f[0, c] * n + f[3, c] * u + f[6, c] * w
    p.force[c, 1] = f[1, c] * n + f[4, c] * u + f[7, c] * w
    p.force[c, 2] = f[2, c] * n + f[5, c] * u + f[8, c] * w


def contacts(p):
    """One step of every contact; see `backends.cpu.apgd.nesterov_pass`."""
    shared = cuda.shared.array(SHARED, np.float64)
    t = cuda.threadIdx.x
    c = cuda.grid(1)
    dd, dh, gd = 0.0, 0.0, 0.0
    if c < p.size[0]:
        beta, step, blend = p.scalars[1], 1.0 / p.scalars[0], p.scalars[2]
        n0, n1, n2 = relative(c, p)
        g0, g1, g2 = n0 + p.bias[0, c], n1 + p.bias[1, c], n2 + p.bias[2, c]
        mu, s = p.friction[c], p.shift[c]
        s = s + blend * (coulomb_shift(g1, g2, mu) - s)
        g0 = g0 + s
        h0, h1, h2 = n0 - p.old[0, c], n1 - p.old[1, c], n2 - p.old[2, c]
        d0, d1, d2 = p.d[0, c], p.d[1, c], p.d[2, c]
        x0, x1, x2 = p.x[0, c], p.x[1, c], p.x[2, c]
        dd = d0 * d0 + d1 * d1 + d2 * d2
        dh = d0 * h0 + d1 * h1 + d2 * h2
        gd = d0 * g0 + d1 * g1 + d2 * g2
        z0, z1, z2 = project(
            x0 + beta * d0 - step * (g0 + beta * h0),
            x1 + beta * d1 - step * (g1 + beta * h1),
            x2 + beta * d2 - step * (g2 + beta * h2),
            mu,
        )
        p.shift[c] = s
        p.x[0, c], p.x[1, c], p.x[2, c] = z0, z1, z2
        p.d[0, c], p.d[1, c], p.d[2, c] = z0 - x0, z1 - x1, z2 - x2
        p.old[0, c], p.old[1, c], p.old[2, c] = n0, n1, n2
        lay_force(c, p, z0, z1, z2)
    shared[t], shared[t + THREADS], shared[t + 2 * THREADS] = dd, dh, gd
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(3):
                shared[t + k * THREADS] += shared[t + half + k * THREADS]
        half //= 2
    cuda.syncthreads()
    if t < 3:
        p.partial[cuda.blockIdx.x, t] = shared[t * THREADS]


def scalars(p):
    """Sums of all blocks, and the scalars of the next iteration; one block."""
    shared = cuda.shared.array(SHARED, np.float64)
    t = cuda.threadIdx.x
    for k in range(3):
        value = 0.0
        for block in range(t, p.size[1], THREADS):
            value += p.partial[block, k]
        shared[t + k * THREADS] = value
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(3):
                shared[t + k * THREADS] += shared[t + half + k * THREADS]
        half //= 2
    if t == 0:
        next_scalars(shared[0], shared[THREADS], shared[2 * THREADS], p.scalars)


def bodies(p):
    """Velocities of all bodies from the world impulses of their contacts."""
    shared = cuda.shared.array((THREADS, 6), np.float64)
    t = cuda.threadIdx.x
    lane = t % TEAM
    i = cuda.blockIdx.x * TEAMS + t // TEAM
    fx, fy, fz, tx, ty, tz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if i < p.inverse.shape[0]:
        for e in range(p.entry_start[i] + lane, p.entry_start[i + 1], TEAM):
            c, s = p.entry_contact[e], p.entry_arm[e, 3]
            x, y, z = p.entry_arm[e, 0], p.entry_arm[e, 1], p.entry_arm[e, 2]
            gx, gy, gz = s * p.force[c, 0], s * p.force[c, 1], s * p.force[c, 2]
            fx += gx
            fy += gy
            fz += gz
            tx += y * gz - z * gy
            ty += z * gx - x * gz
            tz += x * gy - y * gx
    shared[t, 0], shared[t, 1], shared[t, 2] = fx, fy, fz
    shared[t, 3], shared[t, 4], shared[t, 5] = tx, ty, tz
    half = TEAM // 2
    while half > 0:
        cuda.syncthreads()
        if lane < half:
            for k in range(6):
                shared[t, k] += shared[t + half, k]
        half //= 2
    if lane == 0 and i < p.inverse.shape[0]:
        q = p.inverse
        tx, ty, tz = shared[t, 3], shared[t, 4], shared[t, 5]
        p.velocity[i, 0] = q[i, 0] * shared[t, 0]
        p.velocity[i, 1] = q[i, 1] * shared[t, 1]
        p.velocity[i, 2] = q[i, 2] * shared[t, 2]
        p.velocity[i, 3] = q[i, 3] * tx + q[i, 6] * ty + q[i, 7] * tz
        p.velocity[i, 4] = q[i, 6] * tx + q[i, 4] * ty + q[i, 8] * tz
        p.velocity[i, 5] = q[i, 7] * tx + q[i, 8] * ty + q[i, 5] * tz


def look(p, gauge):
    """The stopping quantities of the impulses: sums and largest of a block."""
    shared = cuda.shared.array(SHARED_SUMS, np.float64)
    t = cuda.threadIdx.x
    c = cuda.grid(1)
    one, r2, g2, u2, local = 0.0, 0.0, 0.0, 0.0, 0.0
    if c < p.size[0]:
        n0, n1, n2 = relative(c, p)
        w, m = gauge.weight[c], gauge.friction[c]
        sn, st = w * gauge.scale[0, c], w * gauge.scale[1, c]
        fn, ft = 1.0 / sn, 1.0 / st
        gn, gu, gw = sn * p.x[0, c], st * p.x[1, c], st * p.x[2, c]
        rn, ru, rw = fn * p.bias[0, c], ft * p.bias[1, c], ft * p.bias[2, c]
        un, ut, uw = fn * n0 + rn, ft * n1 + ru, ft * n2 + rw
        s = coulomb_shift(ut, uw, m) if gauge.coulomb else 0.0
        one = natural_map(gn, gu, gw, un + s, ut, uw, weighted_set(m, w))
        r2, u2 = rn * rn + ru * ru + rw * rw, un * un + ut * ut + uw * uw
        g2 = gn * gn + gu * gu + gw * gw
        local = local_error(one, r2, u2, w, gauge.speed)
    shared[t], shared[t + THREADS], shared[t + 2 * THREADS] = one, r2, g2
    shared[t + 3 * THREADS], shared[t + 4 * THREADS] = u2, local
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(4):
                shared[t + k * THREADS] += shared[t + half + k * THREADS]
            shared[t + 4 * THREADS] = max(shared[t + 4 * THREADS], shared[t + half + 4 * THREADS])
        half //= 2
    cuda.syncthreads()
    for k in range(t, 5, THREADS):
        p.partial[cuda.blockIdx.x, k] = shared[k * THREADS]


def looked(p, gauge):
    """Those of all blocks; one block."""
    shared = cuda.shared.array(SHARED_SUMS, np.float64)
    t = cuda.threadIdx.x
    for k in range(5):
        value = 0.0
        for block in range(t, p.size[1], THREADS):
            value = max(value, p.partial[block, k]) if k == 4 else value + p.partial[block, k]
        shared[t + k * THREADS] = value
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(4):
                shared[t + k * THREADS] += shared[t + half + k * THREADS]
            shared[t + 4 * THREADS] = max(shared[t + 4 * THREADS], shared[t + half + 4 * THREADS])
        half //= 2
    if t == 0:
        for k in range(5):
            gauge.values[k] = shared[k * THREADS]


def sizes(i, count, blocks, alone, first, size, scalars):
    """How many contacts there are, with bounded rows of joints and alone, and scalars of a run that has not begun."""
    size[0], size[1], size[2] = count, blocks, alone
    for k in range(len(first)):
        scalars[k] = first[k]


def begin(c, p, slot_a, slot_b, arms):
    """Contact c of a run that has not begun: its impulse on the cone, its entries."""
    dump = p.entry_start[p.inverse.shape[0]]
    x0, x1, x2 = project(p.x[0, c], p.x[1, c], p.x[2, c], p.friction[c])
    p.x[0, c], p.x[1, c], p.x[2, c] = x0, x1, x2
    lay_force(c, p, x0, x1, x2)
    p.shift[c] = 0.0
    for k in range(3):
        p.d[k, c], p.old[k, c] = 0.0, 0.0
    for side in range(2):
        e = slot_b[c] if side == 1 else slot_a[c]
        if e < dump:
            p.entry_contact[e] = c
            for k in range(3):
                p.entry_arm[e, k] = arms[3 * side + k, c]
            p.entry_arm[e, 3] = 1.0 if side == 1 else -1.0


def lighten(i, inverse_mass, inverse_inertia, inverse):
    """Inverse mass and inertia of body i in the precision of the loop."""
    for k in range(3):
        inverse[i, k] = inverse_mass[i, k]
    for k in range(6):
        inverse[i, 3 + k] = inverse_inertia[i, k]


def descend(c, bias, friction, nx, t, coulomb, x):
    """x <- Pi(x - t (N x + bias + correction)), the correction that of the present velocity."""
    g0, g1, g2 = nx[0, c] + bias[0, c], nx[1, c] + bias[1, c], nx[2, c] + bias[2, c]
    if coulomb:
        g0 += coulomb_shift(g1, g2, friction[c])
    x[0, c], x[1, c], x[2, c] = project(x[0, c] - t * g0, x[1, c] - t * g1, x[2, c] - t * g2, friction[c])


_contacts = {"d": Kernel(contacts, THREADS), "f": Kernel(contacts, THREADS, RESIDENT)}
_scalars, _bodies = Kernel(scalars, THREADS), Kernel(bodies, THREADS)
_look, _looked = Kernel(look, THREADS), Kernel(looked, THREADS)
_begin, _lighten, _descend = pass_over(begin), pass_over(lighten), pass_over(descend)
set_sizes = pass_over(sizes)
