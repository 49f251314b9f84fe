"""The kernels of APGD's iteration for contacts with six rows; they share scalars and last sums with `nesterov`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba.cuda as cuda
import numpy as np

from ...kernels.cones import local_error, project_rolling, rolling_shift
from ..cpu.rolling import _natural, _squares
from .apgd import Run, _kept, _loop
from .launch import Kernel, device_function, pass_over
from .nesterov import SHARED, SHARED_SUMS, TEAM, TEAMS, THREADS, lay_force, relative


class RollingLoop(NamedTuple):
    """As `Loop`, with six rows; `force` has a world torque in its last three columns."""

    size: Any  # (2,) int64: contacts, blocks of them
    body_a: Any  # (cap,) int32
    body_b: Any
    frame: Any  # (9, cap) scaled
    arms: Any  # (6, cap)
    compliance: Any  # (2, cap) scaled, (2, 0) where all are rigid
    bias: Any  # (6, cap) scaled
    friction: Any  # (3, cap) of the scaled sets
    x: Any  # (6, cap)
    d: Any  # (6, cap) the last step
    old: Any  # (6, cap) N x before it
    shift: Any  # (cap,) Coulomb's correction
    force: Any  # (cap, 8) world impulse and, from column 4 on, angular impulse on B
    entry_start: Any  # (bodies + 1,) int64
    entry_contact: Any  # (2 cap + 1,) int32
    entry_arm: Any  # (2 cap + 1, 4): arm, and 1 on side B, -1 on side A
    inverse: Any  # (bodies, 9): inverse masses and inertias
    velocity: Any  # (bodies, 8): of the impulses x
    scalars: Any  # (10,) float64, see `Scalar`
    partial: Any  # (blocks, 5) float64
    turn_frame: Any  # (9, cap) scaled


@device_function
def turning(c, p):
    """The relative angular velocity of contact c about n, u and w."""
    a, b, g, v = p.body_a[c], p.body_b[c], p.turn_frame, p.velocity
    x, y, z = v[b, 3] - v[a, 3], v[b, 4] - v[a, 4], v[b, 5] - v[a, 5]
    s = g[0, c] * x + g[1, c] * y + g[2, c] * z
    q = g[3, c] * x + g[4, c] * y + g[5, c] * z
    r = g[6, c] * x + g[7, c] * y + g[8, c] * z
    return s, q, r


@device_function
def lay_torque(c, p, s, q, r):
    """The world angular impulse of contact c."""
    g = p.turn_frame
    p.force[c, 4] = g[0, c] * s + g[3, c] * q + g[6, c] * r
    p.force[c, 5] = g[1, c] * s + g[4, c] * q + g[7, c] * r
    p.force[c, 6] = g[2, c] * s + g[5, c] * q + g[8, c] * r


def contacts(p):
    """One step of every contact; see `backends.cpu.rolling.nesterov_pass_rolling`."""
    shared = cuda.shared.array(SHARED, np.float64)
    n = cuda.local.array(6, np.float64)
    y = cuda.local.array(6, np.float64)
    t = cuda.threadIdx.x
    c = cuda.grid(1)
    dd, dh, gd = 0.0, 0.0, 0.0
    if c < p.size[0]:
        beta, step, blend = p.scalars[1], 1.0 / p.scalars[0], p.scalars[2]
        n[0], n[1], n[2] = relative(c, p)
        n[3], n[4], n[5] = turning(c, p)
        mu, sigma, rho = p.friction[0, c], p.friction[1, c], p.friction[2, c]
        s = p.shift[c]
        target = rolling_shift(
            n[1] + p.bias[1, c], n[2] + p.bias[2, c], n[3] + p.bias[3, c], n[4] + p.bias[4, c], n[5] + p.bias[5, c],
            mu, sigma, rho,
        )  # fmt: skip
        s = s + blend * (target - s)
        p.shift[c] = s
        for k in range(6):
            g, h, d = n[k] + p.bias[k, c], n[k] - p.old[k, c], p.d[k, c]
            if k == 0:
                g += s
            dd += d * d
            dh += d * h
            gd += d * g
            y[k] = p.x[k, c] + beta * d - step * (g + beta * h)
        z = project_rolling(y[0], y[1], y[2], y[3], y[4], y[5], mu, sigma, rho)
        y[0], y[1], y[2], y[3], y[4], y[5] = z
        for k in range(6):
            p.d[k, c] = y[k] - p.x[k, c]
            p.x[k, c] = y[k]
            p.old[k, c] = n[k]
        lay_force(c, p, y[0], y[1], y[2])
        lay_torque(c, p, y[3], y[4], y[5])
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


def bodies(p):
    """Velocities of all bodies from the world impulses of their contacts, angular ones included."""
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
            tx += y * gz - z * gy + s * p.force[c, 4]
            ty += z * gx - x * gz + s * p.force[c, 5]
            tz += x * gy - y * gx + s * p.force[c, 6]
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
    """The stopping quantities of the impulses: sums and largest of a block; see `measure_blocks_rolling`."""
    shared = cuda.shared.array(SHARED_SUMS, np.float64)
    t = cuda.threadIdx.x
    c = cuda.grid(1)
    one, r2, g2, u2, local = 0.0, 0.0, 0.0, 0.0, 0.0
    if c < p.size[0]:
        n0, n1, n2 = relative(c, p)
        n3, n4, n5 = turning(c, p)
        w, z, f = gauge.weight[0, c], gauge.weight[1, c], gauge.friction
        sn, st = w * gauge.scale[0, c], w * gauge.scale[1, c]
        ss, sr = z * gauge.scale[2, c], z * gauge.scale[3, c]
        gn, gu, gw = sn * p.x[0, c], st * p.x[1, c], st * p.x[2, c]
        gs, gp, gq = ss * p.x[3, c], sr * p.x[4, c], sr * p.x[5, c]
        rn, ru, rw = p.bias[0, c] / sn, p.bias[1, c] / st, p.bias[2, c] / st
        rs, rp, rq = p.bias[3, c] / ss, p.bias[4, c] / sr, p.bias[5, c] / sr
        un, ut, uw = n0 / sn + rn, n1 / st + ru, n2 / st + rw
        us, up, uq = n3 / ss + rs, n4 / sr + rp, n5 / sr + rq
        mu, sigma, rho = f[0, c], f[1, c] * z / w, f[2, c] * z / w
        a = un
        if gauge.coulomb:
            a = un + rolling_shift(ut, uw, us, up, uq, mu, sigma, rho)
        one = _natural((gn, gu, gw, gs, gp, gq), (a, ut, uw, us, up, uq), mu, sigma, rho)
        r2 = _squares(rn, ru, rw, rs, rp, rq, 1.0, 1.0)
        u2 = _squares(un, ut, uw, us, up, uq, 1.0, 1.0)
        g2 = _squares(gn, gu, gw, gs, gp, gq, 1.0, 1.0)
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


def begin(c, p, slot_a, slot_b, arms):
    """Contact c of a run that has not begun: its impulse on its set, its entries."""
    dump = p.entry_start[p.inverse.shape[0]]
    f = p.friction
    z = project_rolling(
        p.x[0, c], p.x[1, c], p.x[2, c], p.x[3, c], p.x[4, c], p.x[5, c], f[0, c], f[1, c], f[2, c]
    )  # fmt: skip
    p.x[0, c], p.x[1, c], p.x[2, c], p.x[3, c], p.x[4, c], p.x[5, c] = z
    lay_force(c, p, z[0], z[1], z[2])
    lay_torque(c, p, z[3], z[4], z[5])
    p.shift[c] = 0.0
    for k in range(6):
        p.d[k, c], p.old[k, c] = 0.0, 0.0
    for side in range(2):
        e = slot_b[c] if side == 1 else slot_a[c]
        if e < dump:
            p.entry_contact[e] = c
            for k in range(3):
                p.entry_arm[e, k] = arms[3 * side + k, c]
            p.entry_arm[e, 3] = 1.0 if side == 1 else -1.0


def descend(c, bias, mu, nx, t, coulomb, x):
    """x <- Pi(x - t (N x + bias + correction)), the correction that of the present velocity."""
    g0, g1, g2 = nx[0, c] + bias[0, c], nx[1, c] + bias[1, c], nx[2, c] + bias[2, c]
    g3, g4, g5 = nx[3, c] + bias[3, c], nx[4, c] + bias[4, c], nx[5, c] + bias[5, c]
    if coulomb:
        g0 += rolling_shift(g1, g2, g3, g4, g5, mu[0, c], mu[1, c], mu[2, c])
    z = project_rolling(
        x[0, c] - t * g0, x[1, c] - t * g1, x[2, c] - t * g2, x[3, c] - t * g3, x[4, c] - t * g4, x[5, c] - t * g5,
        mu[0, c], mu[1, c], mu[2, c],
    )  # fmt: skip
    x[0, c], x[1, c], x[2, c], x[3, c], x[4, c], x[5, c] = z


contacts_rolling, bodies_rolling = Kernel(contacts, THREADS), Kernel(bodies, THREADS)
look_rolling = Kernel(look, THREADS)
begin_rolling, descend_rolling = pass_over(begin), pass_over(descend)


class RollingRun(Run):
    """The loop over one problem with six rows a contact, in one precision."""

    look, bodies = look_rolling, bodies_rolling
    _begin, descend = staticmethod(begin_rolling), staticmethod(descend_rolling)

    def _arrays(self, op: Any, cone: Any, x: Any, dtype: Any, *steps: Any) -> Any:
        """As `_loop` with six rows. The scaled operator is made anew in every step: its frames are copied to one
        place, so that what was recorded stays valid."""
        contacts, n, tag = op.joints.contacts, cone.count, np.dtype(dtype).char
        turn_frame = _kept("turn_frame" + tag, op.turn_frame.shape, dtype)
        frame, compliance = _kept("rolling_frame" + tag, op.turn_frame.shape, dtype), contacts.compliance
        turn_frame[:, :n], frame[:, :n] = op.turn_frame[:, :n], contacts.frame[:, :n]
        if compliance.shape[1] > 0:
            compliance = _kept("rolling_compliance" + tag, compliance.shape, dtype)
            compliance[:, :n] = contacts.compliance[:, :n]
        plain = _loop(contacts._replace(frame=frame, compliance=compliance), cone, x, dtype, *steps)
        return RollingLoop(*plain, turn_frame)

    def _kernel(self, precision: str) -> Kernel:
        return contacts_rolling
