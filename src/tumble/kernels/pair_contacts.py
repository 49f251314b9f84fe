"""Contact points of one pair of convex shapes, from the arrays of a scene."""

from __future__ import annotations

import numpy as np

from .distance import sphere_sphere
from .jit import formula, merged_formula
from .kinds import DYNAMIC, HALF_SPACE, MESH, SPHERE
from .linalg import add, axpy, cross, dot, mat_t_mat, mat_t_vec, mat_vec, norm, row3, row4, row9, sub
from .manifold import WITNESS, manifold, witness
from .pairs import FAST_TRAVEL, ball_meeting, meeting


@formula
def point_velocity(free, b, p, x):
    """Velocity of the point p of body b whose centre is x."""
    w = (free[b, 3], free[b, 4], free[b, 5])
    return add((free[b, 0], free[b, 1], free[b, 2]), cross(w, sub(p, x)))


@formula
def spin_travel(free, b, h, bound):
    """How far turning takes a shape's surface in the step."""
    return h * norm((free[b, 3], free[b, 4], free[b, 5])) * bound


@formula
def write_row(out, row, n, p, gap, name):
    out[row, 0], out[row, 1], out[row, 2] = n
    out[row, 3], out[row, 4], out[row, 5] = p
    out[row, 6] = gap
    out[row, 7] = name


@formula
def step_back(out, row, count, t, v, back):
    """From the time of the first touch to the present: the dynamic body's point, and the gap that shrinks to it."""
    for k in range(row, row + count):
        out[k, 6] -= t * dot(v, (out[k, 0], out[k, 1], out[k, 2]))
        for c in range(3):
            out[k, 3 + c] -= t * back[c]


@formula
def convex_pair(
    i,
    j,
    kind,
    body,
    position,
    matrix,
    parameters,
    entry,
    smallest,
    bound,
    body_kind,
    center,
    free,
    handed_on,
    points,
    face_start,
    face_plane,
    loop_start,
    loop,
    h,
    margin,
    out,
    row,
    scratch,
):
    """Contacts of two convex shapes, or of one with a plane; returns their number (at most MOST)."""
    pa, pb = row3(position, i), row3(position, j)
    ka, kb = np.int64(kind[i]), np.int64(kind[j])
    a, b = body[i], body[j]
    size = min(smallest[i], smallest[j])
    near = 0.05 * size if margin < 0.0 else margin
    va = point_velocity(free, a, pa, row3(center, a))
    vb = point_velocity(free, b, pb if kb < MESH else pa, row3(center, b))  # a plane moves with the point opposite
    v = sub(vb, va)
    if ka != SPHERE:
        near += spin_travel(free, a, h, bound[i])
    if kb != SPHERE and kb != HALF_SPACE:
        near += spin_travel(free, b, h, bound[j])
    ma, mb = row9(matrix, i), row9(matrix, j)
    sa, sb = row4(parameters, i), row4(parameters, j)
    ha, hb = np.int64(entry[i]), np.int64(entry[j])
    turn, shift = mat_t_mat(ma, mb), mat_t_vec(ma, sub(pb, pa))
    fixed_a, fixed_b = body_kind[a] != DYNAMIC, body_kind[b] != DYNAMIC
    local = mat_t_vec(ma, v)
    yes, t, gap, n, point, reach = meeting(
        ka,
        sa,
        ha,
        kb,
        sb,
        hb,
        turn,
        shift,
        points,
        face_start,
        face_plane,
        scratch,
        local,
        h,
        size,
        near,
        max(handed_on[a], handed_on[b]),
        fixed_a or fixed_b,
    )
    if not yes:
        return 0
    count = manifold(
        ka,
        sa,
        ha,
        kb,
        sb,
        hb,
        turn,
        axpy(t, local, shift),
        points,
        face_start,
        face_plane,
        loop_start,
        loop,
        scratch,
        gap,
        n,
        point,
        reach,
        size,
        axpy(t, va, pa),
        ma,
        out,
        row,
    )
    if t > 0.0:
        step_back(out, row, count, t, v, va if fixed_b else vb)
    return count


@merged_formula
def sphere_pair(i, j, parameters, position, smallest, body, center, free, handed_on, h, margin, out, row):
    """The contact of two slow spheres, the most frequent pair; -1 if they are fast."""
    pa, pb = row3(position, i), row3(position, j)
    a, b = body[i], body[j]
    size = min(smallest[i], smallest[j])
    near = 0.05 * size if margin < 0.0 else margin
    v = sub(point_velocity(free, b, pb, row3(center, b)), point_velocity(free, a, pa, row3(center, a)))
    if h * norm(v) > FAST_TRAVEL * size:
        return -1
    gap, n = sphere_sphere(pa, parameters[i, 3], pb, parameters[j, 3])
    if gap > near + h * max(-dot(v, n), max(handed_on[a], handed_on[b])):
        return 0
    write_row(out, row, n, axpy(parameters[i, 3] + 0.5 * gap, n, pa), gap, 0.0)
    return 1


@formula
def ball_pair(
    i, j, kind, body, position, matrix, parameters, smallest, bound, body_kind, center, free, handed_on, h, margin,
    points, faces, planes, out, row, scratch,
):  # fmt: skip
    """The contact of a ball with a shape of closed form, of any speed; the same numbers as `convex_pair`."""
    pa, pb = row3(position, i), row3(position, j)
    kb = np.int64(kind[j])
    a, b = body[i], body[j]
    size = min(smallest[i], smallest[j])
    near = 0.05 * size if margin < 0.0 else margin
    va = point_velocity(free, a, pa, row3(center, a))
    vb = point_velocity(free, b, pb if kb != HALF_SPACE else pa, row3(center, b))
    v = sub(vb, va)
    if kb != SPHERE and kb != HALF_SPACE:
        near += spin_travel(free, b, h, bound[j])
    ma = row9(matrix, i)
    sa, sb = row4(parameters, i), row4(parameters, j)
    fixed_a, fixed_b = body_kind[a] != DYNAMIC, body_kind[b] != DYNAMIC
    local = mat_t_vec(ma, v)
    yes, t, gap, n, _, _ = ball_meeting(
        np.int64(SPHERE), sa, np.int64(0), kb, sb, np.int64(0),
        mat_t_mat(ma, row9(matrix, j)), mat_t_vec(ma, sub(pb, pa)), points, faces, planes, scratch,
        local, h, size, near, max(handed_on[a], handed_on[b]), fixed_a or fixed_b,
    )  # fmt: skip
    if not yes:
        return 0
    gap, middle = witness(gap, sa[3], sb[3])
    p = mat_vec(ma, (middle * n[0], middle * n[1], middle * n[2]))
    write_row(out, row, mat_vec(ma, n), add(p, axpy(t, va, pa)), gap, WITNESS)
    if t > 0.0:
        step_back(out, row, 1, t, v, va if fixed_b else vb)
    return 1


@merged_formula
def ordered(i, j, kind, body):
    """The two shapes of a pair in the order of their kinds, then of their bodies."""
    if kind[j] < kind[i] or (kind[j] == kind[i] and body[j] < body[i]):
        return j, i
    return i, j


@merged_formula
def is_convex_pair(i, j, kind):
    """Two convex shapes, or one with a plane."""
    return kind[i] < MESH and (kind[j] < MESH or kind[j] == HALF_SPACE)
