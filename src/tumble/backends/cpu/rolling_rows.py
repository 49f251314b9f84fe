"""Products with six rows a contact, and the scales of such rows. The last three are turns about n, u and w."""

from __future__ import annotations

import math

from numba import types
from numba.extending import overload

from ...kernels.cones import project_rolling, scaled_set
from ...kernels.jit import block_length, blockwise, formula, item_index, loop
from ..base import BLOCK, BODY_BLOCK, RollingArrays
from .joints import add_all_compliance, articulated_rows, push_and_eliminate
from .operators import gather, lay_down, product
from .rows import FROZEN, weigh


@blockwise(BLOCK)
def _lay_torques(block, count, slot_a, slot_b, g, x, torque):
    """World torques of all contacts at their entries."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        s, p, q = x[3, c], x[4, c], x[5, c]
        tx = g[0, c] * s + g[3, c] * p + g[6, c] * q
        ty = g[1, c] * s + g[4, c] * p + g[7, c] * q
        tz = g[2, c] * s + g[5, c] * p + g[8, c] * q
        a, b = slot_a[c], slot_b[c]
        torque[a, 0], torque[a, 1], torque[a, 2] = -tx, -ty, -tz
        torque[b, 0], torque[b, 1], torque[b, 2] = tx, ty, tz


@blockwise(BODY_BLOCK, "ii.shape[0]")
def _gather_torques(block, start, torque, ii, v):
    """body_velocity += M^-1 (sum of the body's torques)."""
    n = ii.shape[0]
    for i in range(block * BODY_BLOCK, min(n, (block + 1) * BODY_BLOCK)):
        tx, ty, tz = 0.0, 0.0, 0.0
        for e in range(start[i], start[i + 1]):
            tx += torque[e, 0]
            ty += torque[e, 1]
            tz += torque[e, 2]
        v[i, 3] += ii[i, 0] * tx + ii[i, 3] * ty + ii[i, 4] * tz
        v[i, 4] += ii[i, 3] * tx + ii[i, 1] * ty + ii[i, 5] * tz
        v[i, 5] += ii[i, 4] * tx + ii[i, 5] * ty + ii[i, 2] * tz


@blockwise(BLOCK)
def _read_turns(block, count, body_a, body_b, g, v, out):
    """Rows 3..5 of out: relative angular velocity about n, u, w."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        i, j = body_a[c], body_b[c]
        x, y, z = v[j, 3] - v[i, 3], v[j, 4] - v[i, 4], v[j, 5] - v[i, 5]
        out[3, c] = g[0, c] * x + g[1, c] * y + g[2, c] * z
        out[4, c] = g[3, c] * x + g[4, c] * y + g[5, c] * z
        out[5, c] = g[6, c] * x + g[7, c] * y + g[8, c] * z


@loop
def rolling_velocity(op, x):
    """body_velocity = A^-1 P x"""
    a = op.joints.contacts
    lay_down(a.count, a.frame, a.slot_a, a.slot_b, x, a.entry_force)
    _lay_torques(a.count, a.slot_a, a.slot_b, op.turn_frame, x, op.entry_torque)
    gather(a.entry_start, a.entry_arm, a.entry_force, a.inverse_mass, a.inverse_inertia, a.body_velocity)
    _gather_torques(a.entry_start, op.entry_torque, a.inverse_inertia, a.body_velocity)
    push_and_eliminate(op.joints, x)


@loop
def rolling_rows(op, v, out):
    """out = P^T v (6, cap)"""
    contacts = op.joints.contacts
    articulated_rows(op.joints, v, out)
    _read_turns(contacts.count, contacts.body_a, contacts.body_b, op.turn_frame, v, out)
    for c in range(contacts.count, contacts.count + op.joints.bounded_body.shape[0]):
        out[3, c], out[4, c], out[5, c] = 0.0, 0.0, 0.0


@loop
def rolling_product(op, x, out):
    """out = N x (6, cap)"""
    rolling_velocity(op, x)
    rolling_rows(op, op.joints.contacts.body_velocity, out)
    add_all_compliance(op.joints, x, out)


@overload(product)
def _rolling(op, x, out):
    if isinstance(op, types.BaseNamedTuple) and op.instance_class is RollingArrays:
        return lambda op, x, out: rolling_product(op, x, out)
    return None


@formula
def _turn_form(ii, b, g, c, k, m):
    """e_k . I^-1 e_m of one body and one contact."""
    x, y, z = g[3 * m, c], g[3 * m + 1, c], g[3 * m + 2, c]
    return (
        g[3 * k, c] * (ii[b, 0] * x + ii[b, 3] * y + ii[b, 4] * z)
        + g[3 * k + 1, c] * (ii[b, 3] * x + ii[b, 1] * y + ii[b, 5] * z)
        + g[3 * k + 2, c] * (ii[b, 4] * x + ii[b, 5] * y + ii[b, 2] * z)
    )


@blockwise(BLOCK, "op.joints.contacts.count + op.joints.bounded_body.shape[0]")
def turn_diagonal(block, op, out):
    """Diagonal of the turns (4, cap): nn, uu, ww, uw, without the joints (an upper bound); 1 for bounded rows."""
    contacts, g = op.joints.contacts, op.turn_frame
    ii = contacts.inverse_inertia
    for item in range(block_length(block, contacts.count + op.joints.bounded_body.shape[0])):
        c = item_index(block, item)
        if c < contacts.count:
            a, b = contacts.body_a[c], contacts.body_b[c]
            for k in range(3):
                out[k, c] = _turn_form(ii, a, g, c, k, k) + _turn_form(ii, b, g, c, k, k)
            out[3, c] = _turn_form(ii, a, g, c, 1, 2) + _turn_form(ii, b, g, c, 1, 2)
        else:
            out[0, c], out[1, c], out[2, c], out[3, c] = 1.0, 1.0, 1.0, 0.0


@loop
def weigh_rolling(count, diagonal, turns, mode, scale, weight, tangential):
    """Scales (4, cap) of n, (u, w), spin and roll, weights (2, cap) of forces and torques in the natural map, and the
    roots of the largest eigenvalues (3, cap) of the blocks that slide, spin and roll. Modes as in `weigh`."""
    weigh(count, 3, diagonal, mode, scale, weight[0], tangential[0])
    weigh_turns(count, turns, mode, scale, weight, tangential)


@blockwise(BLOCK)
def weigh_turns(block, count, turns, mode, scale, weight, tangential):
    """What `weigh_rolling` says of spin and roll, after that of forces."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        ss, pp, qq, pq = turns[0, c], turns[1, c], turns[2, c], turns[3, c]
        mean = (ss + pp + qq) / 3.0
        weight[1, c] = math.sqrt(mean) if mean > 0.0 else weight[0, c]
        tangential[1, c] = math.sqrt(max(0.0, ss))
        tangential[2, c] = math.sqrt(0.5 * (pp + qq) + math.sqrt(0.25 * (pp - qq) * (pp - qq) + pq * pq))
        s, r = 1.0, 1.0
        if mode > 0:
            both = 1.0 / math.sqrt(mean) if mean > 0.0 else scale[0, c]
            s, r = both, both
            if mode == 2 and ss > FROZEN * mean:
                s = 1.0 / math.sqrt(ss)
            if mode == 2 and pp + qq > FROZEN * mean:
                r = 1.0 / math.sqrt(0.5 * (pp + qq))
        scale[2, c], scale[3, c] = s, r


@blockwise(BLOCK)
def scale_rolling(block, count, bias, mu, scale, guess, scaled_bias, scaled_mu, x):
    """Bias, sets and starting impulses of the scaled problem, as in `scale_rows`."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        sn, st, ss, sr = scale[0, c], scale[1, c], scale[2, c], scale[3, c]
        scaled_mu[0, c] = scaled_set(mu[0, c], sn, st)
        scaled_mu[1, c], scaled_mu[2, c] = mu[1, c] * sn / ss, mu[2, c] * sn / sr
        for k in range(6):
            s = sn if k == 0 else st if k < 3 else ss if k == 3 else sr
            scaled_bias[k, c] = s * bias[k, c]
            x[k, c] = guess[k, c] / s


@blockwise(BLOCK)
def unscale_rolling(block, count, scale, mu, x, out):
    """Impulses S x, put back on their sets where rounding of the scales left them outside."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        sn, st, ss, sr = scale[0, c], scale[1, c], scale[2, c], scale[3, c]
        n, u, w, s, p, q = project_rolling(
            sn * x[0, c], st * x[1, c], st * x[2, c], ss * x[3, c], sr * x[4, c], sr * x[5, c],
            mu[0, c], mu[1, c], mu[2, c],
        )  # fmt: skip
        out[0, c], out[1, c], out[2, c], out[3, c], out[4, c], out[5, c] = n, u, w, s, p, q


@blockwise(BLOCK)
def scale_turns(block, count, frame, scale, out):
    """Frames of the turns times their scales."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        for k in range(3):
            out[k, c] = scale[2, c] * frame[k, c]
            out[3 + k, c] = scale[3, c] * frame[3 + k, c]
            out[6 + k, c] = scale[3, c] * frame[6 + k, c]
