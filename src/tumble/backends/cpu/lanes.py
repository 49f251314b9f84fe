"""Two passes an iteration: contacts in blocks of lanes, then bodies; for contacts without joints, in either precision.

All numbers of 16 contacts lie together, component by component, so that a pass over a block is straight vector code at
fixed distances. Contacts leave their world impulse there, bodies leave the velocity of both ends.
"""

from __future__ import annotations

import math

import numpy as np

from ...kernels.cones import coulomb_shift, local_error, natural_map, tangent_residual
from ...kernels.jit import blockwise, formula, loop
from ..base import END_ROWS, LANE_ROWS, LANES
from .measure import RESIDUAL_EQ25, natural_value

PARTS = "(lanes.count + lanes.part - 1) // lanes.part"
BODY_PARTS = "(bodies.inverse.shape[0] + bodies.part - 1) // bodies.part"
WIDE = np.uint64(LANES)
SIZE = np.uint64(LANES * LANE_ROWS)
(
    F0, F1, F2, F3, F4, F5, F6, F7, F8,  # frame: n, u, w
    R0, R1, R2, MU, EN, ET,  # bias, friction, compliance
    X0, X1, X2, D0, D1, D2, O0, O1, O2, S0,  # impulse, its last step, its last velocity N x, correction
    M0, M1, M2, M3, M4,  # what is summed or compared when impulses are measured
    SN, ST, W0, FR,  # scales, weight, friction as it is
) = (np.uint64(LANES * k) for k in range(LANE_ROWS))  # fmt: skip
DD, DH, GD = M0, M1, M2  # sums of the last step
PX, PY, PZ, AX, AY, AZ, BX, BY, BZ = (np.uint64(LANES * k) for k in range(END_ROWS))  # world impulse on B, both ends
ENDS = np.uint64(LANES * END_ROWS)
ONE, SIDE, HALF = np.uint64(1), np.uint64(3 * LANES), np.uint64(2 * LANES)


@formula
def _place(c):
    """Where the first component of contact c is."""
    i = np.uint64(c)
    return i // WIDE * SIZE + i % WIDE


@formula
def _end(c):
    """Where the first component of its world impulse is; the velocities of its two ends follow."""
    i = np.uint64(c)
    return i // WIDE * ENDS + i % WIDE


@blockwise(1, PARTS)
def pack_contacts(block, frame, compliance, cone, friction, scale, weight, lanes, x):
    """Lanes of a scaled problem, with impulses x that have made no step yet. Lanes without a contact are zero.

    friction: as it is; scale, weight: what impulses are measured with."""
    b, ends, soft = lanes.block, lanes.ends, compliance.shape[1] > 0
    last = min((cone.count + LANES - 1) // LANES, (block + 1) * (lanes.part // LANES))
    for j in range(block * (lanes.part // LANES), last):
        base, other, first = np.uint64(j) * SIZE, np.uint64(j) * ENDS, np.uint64(j) * WIDE
        width = min(LANES, cone.count - j * LANES)
        for k in range(9):
            for lane in range(width):
                b[base + WIDE * np.uint64(k) + np.uint64(lane)] = frame[k, first + np.uint64(lane)]
        for lane in range(width):
            i, c = base + np.uint64(lane), first + np.uint64(lane)
            b[i + R0], b[i + R1], b[i + R2] = cone.bias[0, c], cone.bias[1, c], cone.bias[2, c]
            b[i + MU], b[i + FR] = cone.friction[c], friction[c]
        for lane in range(width):
            i, c = base + np.uint64(lane), first + np.uint64(lane)
            b[i + SN], b[i + ST], b[i + W0] = scale[0, c], scale[1, c], weight[c]
            b[i + X0], b[i + X1], b[i + X2] = x[0, c], x[1, c], x[2, c]
        for k in (EN, ET, D0, D1, D2, O0, O1, O2, S0):
            for lane in range(width):
                b[base + k + np.uint64(lane)] = 0.0
        if soft:
            for lane in range(width):
                i, c = base + np.uint64(lane), first + np.uint64(lane)
                b[i + EN], b[i + ET] = compliance[0, c], compliance[1, c]
        for axis in range(3):
            row = other + WIDE * np.uint64(axis)
            for lane in range(width):
                c = first + np.uint64(lane)
                ends[row + np.uint64(lane)] = (
                    frame[axis, c] * x[0, c] + frame[3 + axis, c] * x[1, c] + frame[6 + axis, c] * x[2, c]
                )
        for k in (AX, AY, AZ, BX, BY, BZ):
            for lane in range(width):
                ends[other + k + np.uint64(lane)] = 0.0
        for lane in range(width, LANES):
            i, e = base + np.uint64(lane), other + np.uint64(lane)
            for k in range(LANE_ROWS):
                b[i + WIDE * np.uint64(k)] = 0.0
            for k in range(END_ROWS):
                ends[e + WIDE * np.uint64(k)] = 0.0
            b[i + SN], b[i + ST], b[i + W0] = 1.0, 1.0, 1.0


@blockwise(1, "(count + part - 1) // part")
def pack_ends(block, count, part, slot_a, slot_b, arms, start, place, arm):
    """Where the entries of bodies find their contacts."""
    for c in range(block * part, min(count, (block + 1) * part)):
        i = np.uint64(2) * _end(c)
        for side in range(2):
            e = slot_b[c] if side else slot_a[c]
            if e < start[start.size - 1]:  # else of a body that cannot move
                place[e] = i + np.uint64(side)
                for k in range(3):
                    arm[e, k] = arms[3 * side + k, c]
                arm[e, 3] = 1.0 if side else -1.0


@blockwise(1, "(inverse.shape[0] + part - 1) // part")
def pack_bodies(block, part, inverse_mass, inverse_inertia, inverse):
    """Inverse masses and inertias in the precision of the lanes."""
    for i in range(block * part, min(inverse_mass.shape[0], (block + 1) * part)):
        for k in range(3):
            inverse[i, k] = inverse_mass[i, k]
        for k in range(6):
            inverse[i, 3 + k] = inverse_inertia[i, k]


@blockwise(1, BODY_PARTS)
def body_lanes(block, bodies):
    """Velocities of both ends of all contacts from their world impulses: V = M^-1 (sum of the body's entries)."""
    entry_start, b, place, arm, inverse = bodies.start, bodies.ends, bodies.place, bodies.arm, bodies.inverse
    zero = b.dtype.type(0.0)
    for i in range(block * bodies.part, min(inverse.shape[0], (block + 1) * bodies.part)):
        first, end = entry_start[i], entry_start[i + 1]
        fx, fy, fz, tx, ty, tz = zero, zero, zero, zero, zero, zero
        for e in range(first, end):
            p = np.uint64(place[e]) >> ONE
            s, x, y, z = arm[e, 3], arm[e, 0], arm[e, 1], arm[e, 2]
            gx, gy, gz = s * b[p], s * b[p + WIDE], s * b[p + HALF]
            fx += gx
            fy += gy
            fz += gz
            tx += y * gz - z * gy
            ty += z * gx - x * gz
            tz += x * gy - y * gx
        vx, vy, vz = inverse[i, 0] * fx, inverse[i, 1] * fy, inverse[i, 2] * fz
        wx = inverse[i, 3] * tx + inverse[i, 6] * ty + inverse[i, 7] * tz
        wy = inverse[i, 6] * tx + inverse[i, 4] * ty + inverse[i, 8] * tz
        wz = inverse[i, 7] * tx + inverse[i, 8] * ty + inverse[i, 5] * tz
        for e in range(first, end):
            q = np.uint64(place[e])
            p = (q >> ONE) + SIDE * (ONE + (q & ONE))
            x, y, z = arm[e, 0], arm[e, 1], arm[e, 2]
            b[p] = vx + (wy * z - wz * y)
            b[p + WIDE] = vy + (wz * x - wx * z)
            b[p + HALF] = vz + (wx * y - wy * x)


@formula
def _relative(b, i, v, j):
    """N x of one lane: the velocity of B's end against A's, and what the compliance adds."""
    vx, vy, vz = v[j + BX] - v[j + AX], v[j + BY] - v[j + AY], v[j + BZ] - v[j + AZ]
    n0 = b[i + F0] * vx + b[i + F1] * vy + b[i + F2] * vz + b[i + EN] * b[i + X0]
    n1 = b[i + F3] * vx + b[i + F4] * vy + b[i + F5] * vz + b[i + ET] * b[i + X1]
    n2 = b[i + F6] * vx + b[i + F7] * vy + b[i + F8] * vz + b[i + ET] * b[i + X2]
    return n0, n1, n2


@blockwise(1, PARTS)
def contact_lanes(block, lanes, scalars, partial, totals):
    """`nesterov_pass` on lanes, ended by the new world impulses. Per block: the sums d.d, d.h, g.d."""
    b, ends = lanes.block, lanes.ends
    number = b.dtype.type  # literals would make doubles of everything
    zero, one, tiny = number(0.0), number(1.0), number(1e-30)
    beta, t, blend = number(scalars[1]), number(1.0 / scalars[0]), number(scalars[2])
    last = min((lanes.count + LANES - 1) // LANES, (block + 1) * (lanes.part // LANES))
    for k in range(3 * LANES):
        partial[block, k] = zero
    for j in range(block * (lanes.part // LANES), last):
        base, other = np.uint64(j) * SIZE, np.uint64(j) * ENDS
        for lane in range(LANES):
            i, e = base + np.uint64(lane), other + np.uint64(lane)
            mu, s = b[i + MU], b[i + S0]
            x0, x1, x2, d0, d1, d2 = b[i + X0], b[i + X1], b[i + X2], b[i + D0], b[i + D1], b[i + D2]
            n0, n1, n2 = _relative(b, i, ends, e)
            g0, g1, g2 = n0 + b[i + R0], n1 + b[i + R1], n2 + b[i + R2]
            s += blend * (mu * math.sqrt(g1 * g1 + g2 * g2) - s)
            g0 += s
            h0, h1, h2 = n0 - b[i + O0], n1 - b[i + O1], n2 - b[i + O2]
            y0 = x0 + beta * d0 - t * (g0 + beta * h0)
            y1 = x1 + beta * d1 - t * (g1 + beta * h1)
            y2 = x2 + beta * d2 - t * (g2 + beta * h2)
            # The cone alone of `kernels.cones.project`.
            side = math.sqrt(y1 * y1 + y2 * y2)
            outside = max(zero, side - mu * y0)
            z0 = max(zero, y0 + mu * outside / (one + mu * mu))
            part = min(one, mu * z0 / max(side, tiny))
            z1, z2 = part * y1, part * y2
            b[i + S0], b[i + O0], b[i + O1], b[i + O2] = s, n0, n1, n2
            b[i + X0], b[i + X1], b[i + X2] = z0, z1, z2
            b[i + D0], b[i + D1], b[i + D2] = z0 - x0, z1 - x1, z2 - x2
            ends[e + PX] = b[i + F0] * z0 + b[i + F3] * z1 + b[i + F6] * z2
            ends[e + PY] = b[i + F1] * z0 + b[i + F4] * z1 + b[i + F7] * z2
            ends[e + PZ] = b[i + F2] * z0 + b[i + F5] * z1 + b[i + F8] * z2
            b[i + DD] = d0 * d0 + d1 * d1 + d2 * d2
            b[i + DH] = d0 * h0 + d1 * h1 + d2 * h2
            b[i + GD] = d0 * g0 + d1 * g1 + d2 * g2
        for k in range(3 * LANES):
            partial[block, k] += b[base + DD + np.uint64(k)]
    for k in range(3):
        half = LANES // 2
        while half > 0:
            for lane in range(half):
                partial[block, k * LANES + lane] += partial[block, k * LANES + lane + half]
            half //= 2
        totals[block, k] = partial[block, k * LANES]


@loop
def sum_lanes(count, part, totals):
    """Sums of d.d, d.h and g.d over the blocks, in order, in double precision."""
    dd, dh, gd = 0.0, 0.0, 0.0
    for block in range((count + part - 1) // part):
        dd += totals[block, 0]
        dh += totals[block, 1]
        gd += totals[block, 2]
    return dd, dh, gd


@blockwise(1, "(count + part - 1) // part")
def unpack_lanes(block, count, part, b, x):
    """The impulses (3, cap) of all contacts in the lanes b."""
    for c in range(block * part, min(count, (block + 1) * part)):
        i = _place(c)
        x[0, c], x[1, c], x[2, c] = b[i + X0], b[i + X1], b[i + X2]


@blockwise(1, PARTS)
def measure_lanes(block, lanes, coulomb, speed, sums):
    """Per block, into `sums`: the squares of the natural map, r^, g^, u^ and the largest local error."""
    b, ends = lanes.block, lanes.ends
    last = min((lanes.count + LANES - 1) // LANES, (block + 1) * (lanes.part // LANES))
    for k in range(5 * LANES):
        sums[block, k] = 0.0
    for j in range(block * (lanes.part // LANES), last):
        base, other = np.uint64(j) * SIZE, np.uint64(j) * ENDS
        for lane in range(LANES):
            i, e = base + np.uint64(lane), other + np.uint64(lane)
            w, m = float(b[i + W0]), float(b[i + FR])
            sn, st = w * b[i + SN], w * b[i + ST]
            fn, ft = 1.0 / sn, 1.0 / st
            n0, n1, n2 = _relative(b, i, ends, e)
            gn, gu, gw = sn * b[i + X0], st * b[i + X1], st * b[i + X2]
            rn, ru, rw = fn * b[i + R0], ft * b[i + R1], ft * b[i + R2]
            un, ut, uw = fn * n0 + rn, ft * n1 + ru, ft * n2 + rw
            a = un + (coulomb_shift(ut, uw, m) if coulomb else 0.0)
            one = natural_map(gn, gu, gw, a, ut, uw, m)
            r2, u2 = rn * rn + ru * ru + rw * rw, un * un + ut * ut + uw * uw
            b[i + M0], b[i + M1] = one, r2
            b[i + M2], b[i + M3] = gn * gn + gu * gu + gw * gw, u2
            b[i + M4] = local_error(one, r2, u2, w, speed)
        for k in range(4 * LANES):
            sums[block, k] += b[base + M0 + np.uint64(k)]
        for k in range(LANES):
            sums[block, 4 * LANES + k] = max(sums[block, 4 * LANES + k], float(b[base + M4 + np.uint64(k)]))


@blockwise(1, PARTS)
def tangent_lanes(block, lanes, coulomb, sums):
    """Per block, into `sums`: the squared residual of Eq. 25 for a vanishing step."""
    b, ends = lanes.block, lanes.ends
    last = min((lanes.count + LANES - 1) // LANES, (block + 1) * (lanes.part // LANES))
    for k in range(LANES):
        sums[block, k] = 0.0
    for j in range(block * (lanes.part // LANES), last):
        base, other = np.uint64(j) * SIZE, np.uint64(j) * ENDS
        for lane in range(LANES):
            i, e = base + np.uint64(lane), other + np.uint64(lane)
            sn, st, m = float(b[i + SN]), float(b[i + ST]), float(b[i + FR])
            n0, n1, n2 = _relative(b, i, ends, e)
            un, ut, uw = (n0 + b[i + R0]) / sn, (n1 + b[i + R1]) / st, (n2 + b[i + R2]) / st
            a = un + (coulomb_shift(ut, uw, m) if coulomb else 0.0)
            b[i + M0] = tangent_residual(sn * b[i + X0], st * b[i + X1], st * b[i + X2], a, ut, uw, m)
        for k in range(LANES):
            sums[block, k] += b[base + M0 + np.uint64(k)]


@loop
def lane_value(kind, lanes, coulomb, speed, sums):
    """The stopping value of the impulses in the lanes, of which `RESIDUAL_EQ25` is that of a vanishing step."""
    blocks = (lanes.count + lanes.part - 1) // lanes.part
    if kind == RESIDUAL_EQ25:
        tangent_lanes(lanes, coulomb, sums)
        total = 0.0
        for block in range(blocks):
            for lane in range(LANES):
                total += sums[block, lane]
        return math.sqrt(total) / (3 * lanes.count)
    measure_lanes(lanes, coulomb, speed, sums)
    nat, rr, gg, uu, local = 0.0, 0.0, 0.0, 0.0, 0.0
    for block in range(blocks):
        for lane in range(LANES):
            nat += sums[block, lane]
            rr += sums[block, LANES + lane]
            gg += sums[block, 2 * LANES + lane]
            uu += sums[block, 3 * LANES + lane]
            local = max(local, sums[block, 4 * LANES + lane])
    return natural_value(kind, nat, rr, gg, uu, local)
