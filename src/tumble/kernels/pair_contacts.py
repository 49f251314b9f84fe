"""Contact points of one pair of convex shapes, from the arrays of a scene."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .convex import Convex, Pair, Pose, separation, shifted
from .distance import sphere_sphere
from .jit import formula, merged_formula
from .kinds import CONVEX, DYNAMIC, HALF_SPACE, SPHERE, among, turn_of
from .linalg import add, axpy, cross, dot, mat_t_mat, mat_t_vec, mat_vec, norm, row3, row4, row9, sub
from .manifold import WITNESS, manifold, witness
from .pairs import FAST_TRAVEL, Limits, ball_meeting, meeting

CERTAIN = 1e-9
"""Part of the distances in a pair beyond which rounding decides nothing."""


class Moving(NamedTuple):
    """A shape as a pair sees it in this step."""

    convex: Convex
    pose: Pose
    velocity: tuple[float, float, float]  # of the point where the pair meets
    fixed: bool  # its motion is prescribed


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


@merged_formula
def near_gap(shapes, i, j, margin):
    """Size of the smaller shape, and the gap up to which two shapes at rest are a contact."""
    size = min(shapes.smallest[i], shapes.smallest[j])
    return size, 0.05 * size if margin < 0.0 else margin


@merged_formula
def moving(i, shapes, bodies, hull, place):
    """Shape i as a pair sees it, with the velocity of the point `place`."""
    b = shapes.body[i]
    return Moving(
        Convex(np.int64(shapes.kind[i]), row4(shapes.parameters, i), hull),
        Pose(row3(shapes.position, i), row9(shapes.matrix, i)),
        point_velocity(bodies.free, b, place, row3(bodies.center, b)),
        bodies.kind[b] != DYNAMIC,
    )


@merged_formula
def seen_from(a, b):
    """Two shapes as a pair in the frame of the first, and the velocity of the second in it."""
    ma = a.pose.matrix
    turn, shift = mat_t_mat(ma, b.pose.matrix), mat_t_vec(ma, sub(b.pose.position, a.pose.position))
    return Pair(a.convex, b.convex, turn, shift), mat_t_vec(ma, sub(b.velocity, a.velocity))


@merged_formula
def to_present(a, b, t, out, row, count):
    """Take `count` contacts of the time t back to the present."""
    if t > 0.0:
        step_back(out, row, count, t, sub(b.velocity, a.velocity), a.velocity if b.fixed else b.velocity)


@formula
def axis_slot(i, j, axes):
    """Name of a pair of shapes, and where its axis is kept: pairs may share a place, and then one of them has none."""
    name = (int(i) << 32) | int(j)
    return name, (((name ^ (name >> 29)) * 0x1B873593A5F3B20D) >> 24) & (axes.name.size - 1)


@merged_formula
def known_apart(pair, points, scratch, n, limit):
    """Whether the gap along the unit vector n is beyond the limit, by so much that no other way of finding it could say
    otherwise."""
    gap, _, _ = separation(pair, points, scratch, n)
    sizes = pair.a.s[3] + pair.b.s[3]
    return gap - sizes > limit + CERTAIN * (norm(pair.shift) + sizes + limit)


class Step(NamedTuple):
    """Two convex shapes, or one and a plane, in a step."""

    a: Moving
    b: Moving
    pair: Pair
    local: tuple[float, float, float]  # velocity of b to a, in the frame of a
    limits: Limits


@merged_formula
def pair_in_step(i, j, shapes, bodies, times):
    """Shapes i and j as a pair in this step. times: (h, margin)"""
    h, margin = times
    size, near = near_gap(shapes, i, j, margin)
    ka, kb = shapes.kind[i], shapes.kind[j]
    a = moving(i, shapes, bodies, np.int64(shapes.geometry[i]), row3(shapes.position, i))
    place = row3(shapes.position, j) if among(CONVEX, kb) else a.pose.position  # a plane moves with the point opposite
    b = moving(j, shapes, bodies, np.int64(shapes.geometry[j]), place)
    if ka != SPHERE:
        near += spin_travel(bodies.free, shapes.body[i], h, shapes.bound[i])
    if kb != SPHERE and kb != HALF_SPACE:
        near += spin_travel(bodies.free, shapes.body[j], h, shapes.bound[j])
    pair, local = seen_from(a, b)
    handed_on = max(bodies.handed_on[shapes.body[i]], bodies.handed_on[shapes.body[j]])
    return Step(a, b, pair, local, Limits(h, size, near, handed_on, a.fixed or b.fixed))


@merged_formula
def keeps_axis(step):
    """Whether what tells a pair apart is worth keeping: of slow ones."""
    return step.pair.b.kind != HALF_SPACE and step.limits.h * norm(step.local) <= FAST_TRAVEL * step.limits.size


@merged_formula
def still_apart(step, points, scratch, axis):
    """Whether the axis that told a slow pair apart does so in this step."""
    limits = step.limits
    limit = limits.near + max(limits.h * norm(step.local), limits.h * limits.handed_on)
    return known_apart(step.pair, points, scratch, axis, limit)


@merged_formula
def keep_axis(axes, slot, name, axis):
    """Remember what a pair was told apart by."""
    axes.name[slot] = name
    axes.axis[slot, 0], axes.axis[slot, 1], axes.axis[slot, 2] = axis


@merged_formula
def points_of(step, t, touch, hulls, loops, out, row, scratch):
    """Contact points of a pair that meets at the time t; returns their number."""
    a, b = step.a, step.b
    pose = Pose(axpy(t, a.velocity, a.pose.position), a.pose.matrix)
    met = shifted(step.pair, axpy(t, step.local, step.pair.shift))
    count = manifold(met, hulls, loops, scratch, touch, step.limits.size, pose, out, row)
    to_present(a, b, t, out, row, count)
    return count


@merged_formula
def convex_pair(i, j, shapes, bodies, pools, times, out, row, scratch):
    """Contacts of two convex shapes, or of one with a plane; returns their number (at most MOST). times: (h, margin)

    pools.axes: what pairs that were apart were last told apart by, in the frame of the first. Most still are; whether
    the axis is at hand changes what finding that takes, not what is found.
    """
    hulls, loops, axes = pools
    step = pair_in_step(i, j, shapes, bodies, times)
    slow = keeps_axis(step)
    name, slot = axis_slot(i, j, axes)
    if slow and axes.name[slot] == name and still_apart(step, hulls.point, scratch, row3(axes.axis, slot)):
        return 0
    yes, t, touch = meeting(step.pair, (hulls, scratch), step.local, step.limits)
    if not yes:
        if slow:
            keep_axis(axes, slot, name, touch.normal)
        return 0
    return points_of(step, t, touch, hulls, loops, out, row, scratch)


@merged_formula
def sphere_pair(i, j, shapes, bodies, h, margin, out, row):
    """The contact of two slow spheres, the most frequent pair; -1 if they are fast."""
    pa, pb = row3(shapes.position, i), row3(shapes.position, j)
    a, b = shapes.body[i], shapes.body[j]
    center, free, radius = bodies.center, bodies.free, shapes.parameters
    size = min(shapes.smallest[i], shapes.smallest[j])
    near = 0.05 * size if margin < 0.0 else margin
    v = sub(point_velocity(free, b, pb, row3(center, b)), point_velocity(free, a, pa, row3(center, a)))
    if h * norm(v) > FAST_TRAVEL * size:
        return -1
    gap, n = sphere_sphere(pa, radius[i, 3], pb, radius[j, 3])
    if gap > near + h * max(-dot(v, n), max(bodies.handed_on[a], bodies.handed_on[b])):
        return 0
    write_row(out, row, n, axpy(radius[i, 3] + 0.5 * gap, n, pa), gap, 0.0)
    return 1


@formula
def ball_pair(i, j, shapes, bodies, h, margin, out, row, scratch):
    """The contact of a ball with a shape of closed form, of any speed; the same numbers as `convex_pair`."""
    size, near = near_gap(shapes, i, j, margin)
    kb, none = shapes.kind[j], np.int64(0)
    a = moving(i, shapes, bodies, none, row3(shapes.position, i))
    b = moving(j, shapes, bodies, none, row3(shapes.position, j) if kb != HALF_SPACE else a.pose.position)
    if kb != SPHERE and kb != HALF_SPACE:
        near += spin_travel(bodies.free, shapes.body[j], h, shapes.bound[j])
    pair, local = seen_from(a, b)
    handed_on = max(bodies.handed_on[shapes.body[i]], bodies.handed_on[shapes.body[j]])
    yes, t, touch = ball_meeting(pair, scratch, local, Limits(h, size, near, handed_on, a.fixed or b.fixed))
    if not yes:
        return 0
    n = touch.normal
    gap, middle = witness(touch.gap, pair.a.s[3], pair.b.s[3])
    p = mat_vec(a.pose.matrix, (middle * n[0], middle * n[1], middle * n[2]))
    write_row(out, row, mat_vec(a.pose.matrix, n), add(p, axpy(t, a.velocity, a.pose.position)), gap, WITNESS)
    to_present(a, b, t, out, row, 1)
    return 1


@merged_formula
def ordered(i, j, kind, rank):
    """The two shapes of a pair in the order of their kinds, then of their bodies' uid."""
    first, second = turn_of(kind[i]), turn_of(kind[j])
    if second < first or (second == first and rank[j] < rank[i]):
        return j, i
    return i, j


@merged_formula
def is_convex_pair(i, j, kind):
    """Two convex shapes, or one with a plane."""
    return among(CONVEX, kind[i]) and (among(CONVEX, kind[j]) or kind[j] == HALF_SPACE)
