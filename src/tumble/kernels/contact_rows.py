"""Rows of contacts, contact by contact: frames, arms, bias, diagonal blocks, what is remembered.

Vectors have rows n, u, w; gaps are in metres.
"""

from __future__ import annotations

import math

from .jit import formula, merged_formula
from .kinds import KINEMATIC
from .linalg import cross, dot, row3, sub, tangents


@formula
def recovery_speed(recovery, gravity, size):
    """Fastest recovery of an overlap; recovery < 0: the speed that lifts a hundredth of the size under gravity."""
    return recovery if recovery >= 0.0 else math.sqrt(0.02 * gravity * size)


@merged_formula
def contact_row(c, touch, center, free, h, recovery, gravity, rows):
    """Frame, arms and r = b + D^T v_free of contact c."""
    body_a, body_b, slot_a, slot_b, normal, point, gap, size = touch
    frame, arms, entry_arm, bias = rows
    i, j = body_a[c], body_b[c]
    n = (normal[0, c], normal[1, c], normal[2, c])
    u, w = tangents(n)
    p = (point[0, c], point[1, c], point[2, c])
    ra, rb = sub(p, row3(center, i)), sub(p, row3(center, j))
    va = cross((free[i, 3], free[i, 4], free[i, 5]), ra)
    vb = cross((free[j, 3], free[j, 4], free[j, 5]), rb)
    v = (
        free[j, 0] + vb[0] - free[i, 0] - va[0],
        free[j, 1] + vb[1] - free[i, 1] - va[1],
        free[j, 2] + vb[2] - free[i, 2] - va[2],
    )
    for d in range(3):
        frame[d, c], frame[3 + d, c], frame[6 + d, c] = n[d], u[d], w[d]
        arms[d, c], arms[3 + d, c] = ra[d], rb[d]
        entry_arm[slot_a[c], d] = ra[d]
        entry_arm[slot_b[c], d] = rb[d]
    bias[0, c] = max(gap[c] / h, -recovery_speed(recovery, gravity, size[c])) + dot(n, v)
    bias[1, c] = dot(u, v)
    bias[2, c] = dot(w, v)


@formula
def add_side(block, e, arm, inverse_mass, inverse_inertia, b):
    """Add one body's share of N_ii for the three directions e to the six entries (nn, uu, ww, nu, nw, uw)."""
    im = row3(inverse_mass, b)
    s = (
        inverse_inertia[b, 0],
        inverse_inertia[b, 1],
        inverse_inertia[b, 2],
        inverse_inertia[b, 3],
        inverse_inertia[b, 4],
        inverse_inertia[b, 5],
    )
    jn, ju, jw = cross(arm, e[0]), cross(arm, e[1]), cross(arm, e[2])
    out0 = block[0] + _form(e[0], jn, e[0], jn, im, s)
    out1 = block[1] + _form(e[1], ju, e[1], ju, im, s)
    out2 = block[2] + _form(e[2], jw, e[2], jw, im, s)
    out3 = block[3] + _form(e[0], jn, e[1], ju, im, s)
    out4 = block[4] + _form(e[0], jn, e[2], jw, im, s)
    out5 = block[5] + _form(e[1], ju, e[2], jw, im, s)
    return (out0, out1, out2, out3, out4, out5)


@formula
def _form(a, ja, b, jb, im, s):
    """a^T M^-1 b of two generalised directions of one body."""
    x = (
        s[0] * jb[0] + s[3] * jb[1] + s[4] * jb[2],
        s[3] * jb[0] + s[1] * jb[1] + s[5] * jb[2],
        s[4] * jb[0] + s[5] * jb[1] + s[2] * jb[2],
    )
    return im[0] * a[0] * b[0] + im[1] * a[1] * b[1] + im[2] * a[2] * b[2] + dot(ja, x)


@merged_formula
def diagonal_block(c, a, b, frame, arms, inverse_mass, inverse_inertia, diagonal):
    """N_ii of contact c between the bodies a and b (6, cap): nn, uu, ww, nu, nw, uw."""
    e = (
        (frame[0, c], frame[1, c], frame[2, c]),
        (frame[3, c], frame[4, c], frame[5, c]),
        (frame[6, c], frame[7, c], frame[8, c]),
    )
    block = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    block = add_side(block, e, (arms[0, c], arms[1, c], arms[2, c]), inverse_mass, inverse_inertia, a)
    block = add_side(block, e, (arms[3, c], arms[4, c], arms[5, c]), inverse_mass, inverse_inertia, b)
    for k in range(6):
        diagonal[k, c] = block[k]


@formula
def placed(c, place, body_a, body_b):
    """The two bodies of a contact by their places in the arrays, not by their ranks."""
    body_a[c], body_b[c] = place[body_a[c]], place[body_b[c]]


@formula
def immovable_bias(c, alone, diagonal, part, least, bias):
    """A contact whose two sides joints hold asks for nothing: its impulse would be of rounding alone. alone: the normal
    diagonal (cap,) of the bodies without the joints."""
    if diagonal[0, c] <= part * alone[c]:
        bias[0, c] = max(bias[0, c], least)


@formula
def surface_bias(c, touch, center, surface, bias):
    """A surface that runs takes along and does not push: no part of its velocity (n, 6) along the normal counts."""
    for side in range(2):
        b = touch.body_b[c] if side == 1 else touch.body_a[c]
        speed = 0.0
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            y, z = touch.point[j, c] - center[b, j], touch.point[k, c] - center[b, k]
            speed += touch.normal[i, c] * (surface[b, i] + surface[b, 3 + j] * z - surface[b, 3 + k] * y)
        bias[0, c] += -speed if side == 1 else speed


@formula
def held_bias(c, gap, free, h, bias):
    """Contacts that hold in velocity: an open gap may close, an overlap asks for nothing."""
    bias[0, c] = max(gap[c], 0.0) / h + free[0, c]


@formula
def gap_at_end(c, gap, size, velocity, lead, least, end, deep):
    """Gap after the time `lead`, and whether it is an overlap by more than `least` of the smaller shape."""
    end[c] = gap[c] + lead * velocity[0, c]
    deep[c] = end[c] < -least * size[c]


@formula
def recovery_bias(c, gap, size, h, recovery, gravity, bias):
    """What closes a gap and opens an overlap in a step."""
    bias[0, c] = max(gap[c] / h, -recovery_speed(recovery, gravity, size[c]))


@formula
def taken_turns(c, rows, out):
    """The turns, rows 3 to 5."""
    for row in range(3, 6):
        out[row, c] = rows[row, c]


@formula
def turning_friction(c, pair, spinning, rolling, friction):
    """sigma and rho [m] of a contact that resists turning, into friction (3, cap)."""
    friction[1, c] = spinning[pair[c]]
    friction[2, c] = rolling[pair[c]]


@merged_formula
def recovered_work(c, own, x, after, gap, compliance, h):
    """What of the work of contact c (`own`) pushed an overlap apart, and the most that could have [J]."""
    if gap[c] < 0.0 and x[0, c] > 0.0 and not (compliance.shape[1] > 0 and compliance[0, c] > 0.0):
        pushed = x[0, c] * min(max(after[0, c], 0.0), -gap[c] / h)
        return max(0.0, min(own, pushed)), pushed
    return 0.0, 0.0


@merged_formula
def work_of_driven(c, b, sign, arm, work, kind, frame, arms, x, velocity):
    """`work` and what body b of contact c puts in if its motion is prescribed [J]. sign: of the impulses on it; arm:
    first row of its arm."""
    if kind[b] != KINEMATIC:
        return work
    for row in range(3):
        ax, ay, az = arms[arm, c], arms[1 + arm, c], arms[2 + arm, c]
        vx = velocity[b, 0] + velocity[b, 4] * az - velocity[b, 5] * ay
        vy = velocity[b, 1] + velocity[b, 5] * ax - velocity[b, 3] * az
        vz = velocity[b, 2] + velocity[b, 3] * ay - velocity[b, 4] * ax
        along = frame[3 * row, c] * vx + frame[3 * row + 1, c] * vy + frame[3 * row + 2, c] * vz
        work -= sign * x[row, c] * along
        if x.shape[0] == 6:  # torques about the same axes
            vx, vy, vz = velocity[b, 3], velocity[b, 4], velocity[b, 5]
            turn = frame[3 * row, c] * vx + frame[3 * row + 1, c] * vy + frame[3 * row + 2, c] * vz
            work -= sign * x[3 + row, c] * turn
    return work


@merged_formula
def recalled_vector(c, found, kin, frame, column, out):
    """A world vector that contact c remembered (3, k), in its frame; zero where there is none (see `recall`)."""
    k = found[c]
    if k < -1 and kin:
        k = -2 - k
    for row in range(3):
        out[row, c] = 0.0
        if k >= 0:
            out[row, c] = (
                frame[3 * row, c] * column[0, k]
                + frame[3 * row + 1, c] * column[1, k]
                + frame[3 * row + 2, c] * column[2, k]
            )


@merged_formula
def world_vector(c, frame, x, out):
    """A vector n, u, w of contact c in world axes."""
    for d in range(3):
        out[d, c] = frame[d, c] * x[0, c] + frame[3 + d, c] * x[1, c] + frame[6 + d, c] * x[2, c]


@formula
def rest_gap(gap, band, carries, part):
    """The gap that a step is to close. A contact that carried force keeps its gap within the band, one that did not
    closes all of it. An overlap within the band is left, of more `part` is taken back."""
    if gap >= 0.0:
        return max(0.0, gap - band) if carries else gap
    return part * (gap + band) if gap < -band else 0.0


@merged_formula
def gap_to_close(c, gaps, found, impulse, rule, out):
    """`rest_gap` of contact c into out; returns the shift of a gap within the band [m]."""
    gap, size, pair, firm = gaps
    least, step, share, part = rule
    k = found[c] if found[c] >= -1 else -2 - found[c]
    x, y, z = (impulse[0, k], impulse[1, k], impulse[2, k]) if k >= 0 else (0.0, 0.0, 0.0)
    carries = x * x + y * y + z * z > least * least
    band = min(step, share * size[c]) if firm[pair[c]] else 0.0
    out[c] = rest_gap(gap[c], band, carries, part) if band > 0.0 else gap[c]
    if gap[c] > -band:
        return abs(gap[c] - out[c])
    return band  # the slow return from deeper is the rule of recovery, as its highest speed is


@formula
def match_pair(begin, end, first, last, feature, old_feature, found):
    """Where the contacts begin .. end - 1 of two bodies stood among the same bodies' contacts first .. last - 1 of a
    step ago; see `match_contacts`. Returns how many are the same."""
    i, hits = first, 0
    for e in range(begin, end):
        while i < last and old_feature[i] < feature[e]:
            i += 1
        found[e] = -1
        if i < last and old_feature[i] == feature[e]:
            found[e] = i
            hits += 1
    i, known = first, begin  # the old contacts that nobody is, in order
    for e in range(begin, end):
        if found[e] >= 0:
            continue
        while i < last:
            while known < end and (found[known] < 0 or found[known] < i):
                known += 1
            if known == end or found[known] != i:
                break
            i += 1
        if i < last:
            found[e] = -2 - i
            i += 1
    return hits


@formula
def recalled_numbers(c, found, column, out):
    """Numbers (rows, k) that contacts remembered, zero for new contacts (found: see `match_contacts`)."""
    k = found[c]
    for row in range(out.shape[0]):
        out[row, c] = column[row, k] if k >= 0 else 0.0


@formula
def overlap_share(c, gap, body_a, body_b, size, out):
    """The overlap of contact c in units of the smaller of its bodies; negative where there is a gap."""
    out[c] = -gap[c] / min(size[body_a[c]], size[body_b[c]])
