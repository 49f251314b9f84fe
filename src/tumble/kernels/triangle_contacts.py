"""Contact points of a convex shape, or a triangle of another mesh, with one triangle of a surface."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .convex import Convex, Pair, Pose, separation, shifted, triangle_corner, triangle_normal
from .descent import TREE_LEAF, after, boxes_apart
from .jit import formula, merged_formula
from .kinds import MESH, TRIANGLE
from .linalg import axpy, cross, dot, mat_t_vec, mat_vec, norm, sub
from .manifold import STEEP, manifold
from .pair_contacts import step_back
from .pairs import Limits, Touch, meeting, shallow_meeting
from .surfaces import INNER_EDGE, TRIANGLE_A, TRIANGLE_B, Piece, Surface, mesh_corner, normal_is_real

__all__ = ["Encounter", "shallow_triangle_touch", "triangle_points", "triangle_touch"]

TOUCHES = 1e-7
"""Part of the smaller size within which a core counts as touching a triangle."""
SAME_FACE = 0.999
"""Cosine above which two triangles of meshes count as lying flat on each other."""


class Encounter(NamedTuple):
    """A convex shape, or one triangle of a mesh, that comes near a surface."""

    convex: Convex
    triangle: np.int64  # its number in its mesh, or -1
    pose: Pose
    middle: tuple[float, float, float]  # of the shape, in the surface's frame
    surface: Surface
    turn: tuple[float, ...]  # pose of the surface in the shape's frame
    shift: tuple[float, float, float]
    velocity: tuple[float, float, float]  # of the shape, where it is
    relative: tuple[float, float, float]  # of the surface to it
    local: tuple[float, float, float]  # the same in the shape's frame
    back: tuple[float, float, float]  # velocity of the dynamic one
    limits: Limits


@merged_formula
def _of_triangle(met, side):
    """The shape and the triangle in hand as a pair, in the shape's frame. side: see `_side`."""
    b = Convex(np.int64(TRIANGLE), (float(TRIANGLE_B), side, 0.0, 0.0), np.int64(0))
    return Pair(met.convex, b, met.turn, met.shift)


def _touch_by(meeting: Callable) -> Callable:
    """`triangle_touch` with what says when and where two shapes meet."""

    @merged_formula
    def triangle_touch(met, piece, pools, scratch):
        """Whether, when and where the shape has a contact with the triangle in hand.

        A closed surface is met from outside only, an open one from both sides.
        """
        normal = triangle_normal(scratch, TRIANGLE_B)
        side = _side(met, normal, scratch)
        nowhere = Touch(0.0, normal, normal, 0.0)
        if side == 0.0:
            return False, 0.0, nowhere
        pair = _of_triangle(met, side)
        yes, t, touch = meeting(pair, (pools.hulls, scratch), met.local, met.limits)
        if not yes:
            return False, t, nowhere
        pair = shifted(pair, axpy(t, met.local, met.shift))
        normal = (side * normal[0], side * normal[1], side * normal[2])
        inside = t == 0.0 and touch.gap + met.convex.s[3] <= TOUCHES * met.limits.size
        counts, by_face, over = _verdict(met, piece, pools, scratch, normal, touch.normal, inside)
        if not counts:
            return False, t, nowhere
        if by_face:
            depth, touch = touch.gap, _of_face(pair, touch, normal, pools.hulls.point, scratch)
            if touch.gap > touch.reach:
                return False, t, nowhere
            if over:
                around, n = _out_over_a_rim(met, piece, pair, touch, pools, scratch)
                touch = Touch(depth if around else math.inf, n, touch.point, touch.reach)
        return True, t, touch

    return triangle_touch


@merged_formula
def triangle_points(met, t, touch, pools, scratch, out, row):
    """Contact points of the shape with the triangle in hand, which it touches at the time t; returns their number."""
    pair = _of_triangle(met, _side(met, triangle_normal(scratch, TRIANGLE_B), scratch))
    pair = shifted(pair, axpy(t, met.local, met.shift))
    pose = Pose(axpy(t, met.velocity, met.pose.position), met.pose.matrix)
    count = manifold(pair, pools.hulls, pools.loops, scratch, touch, met.limits.size, pose, out, row)
    if count == 1 and not math.isfinite(out[row, 6]):
        return 0
    if t > 0.0:
        step_back(out, row, count, t, met.relative, met.back)
    return count


@merged_formula
def _side(met, normal, scratch):
    """The side of the triangle that the shape meets: +1 the front, -1 the back; 0 if it lies behind a closed surface.

    A triangle may lie a little behind the other mesh's, a solid may not.
    """
    above = dot(normal, sub(met.middle, triangle_corner(scratch, TRIANGLE_B, 0)))
    two_sided = met.surface.kind == MESH and met.surface.s[0] > 0.0
    if above < (0.0 if met.triangle < 0 else -0.5 * met.limits.size) and not two_sided:
        return 0.0
    return -1.0 if above < 0.0 and two_sided else 1.0


@merged_formula
def _verdict(met, piece, pools, scratch, normal, n, inside):
    """Whether the contact along n belongs to this triangle, whether the face's own normal takes the place of n, and
    whether then only points over the triangle count.

    The face's own normal is exact, and the way out where the shape is deeper than the triangle is large. In the latter
    case the shape's lowest point may lie elsewhere. inside: the core touches the triangle.
    """
    meshes, rings, fields = pools.meshes, pools.rings, pools.fields
    m = mat_t_vec(met.turn, (-n[0], -n[1], -n[2]))  # away from the surface, in its frame
    real, face = normal_is_real(met.surface, piece, m, meshes, rings, fields, scratch, TRIANGLE_B)
    if real and met.triangle >= 0:  # a triangle of a moving mesh has inner edges, too
        none = np.int64(0)
        mesh = Surface(np.int64(MESH), met.convex.s, none)
        own = Piece(met.triangle, (none, none, none))
        real, _ = normal_is_real(mesh, own, n, meshes, rings, fields, scratch, TRIANGLE_A)
    if face and dot(m, normal) < 0.0:
        real, face = False, False
    flipped = False
    if met.triangle >= 0:
        facing = dot(triangle_normal(scratch, TRIANGLE_A), mat_vec(met.turn, normal))
        flipped = facing < -SAME_FACE and dot(m, normal) < -SAME_FACE  # flat on each other, and a little inside
        if facing > -STEEP and not real:
            return False, False, False  # back to back, or across: another triangle of the first mesh is nearer
    if not real and not inside and not flipped:
        return False, False, False
    return True, face or not real or flipped, not real or flipped


@formula
def _out_over_a_rim(met, piece, pair, touch, pools, scratch):
    """Whether a face that shares a corner with the triangle, which lies behind it, is less than half as deep as the
    triangle's own; and the normal of the least deep one.

    A convex shape a little inside a rim crosses the walls below it, too, and may reach far behind them.
    """
    best, n, found = 0.5 * touch.gap, touch.normal, False
    if met.triangle >= 0 or met.surface.kind != MESH or met.surface.s[0] > 0.0:
        return found, n
    meshes, trees, entry = pools.meshes, pools.trees, met.surface.entry
    p, q = triangle_corner(scratch, TRIANGLE_B, 0), triangle_corner(scratch, TRIANGLE_B, 1)
    r = triangle_corner(scratch, TRIANGLE_B, 2)
    low = (min(p[0], q[0], r[0]), min(p[1], q[1], r[1]), min(p[2], q[2], r[2]))
    high = (max(p[0], q[0], r[0]), max(p[1], q[1], r[1]), max(p[2], q[2], r[2]))
    first, end = meshes.start[entry], meshes.start[entry + 1]
    root = trees.start[entry]
    leaves = (trees.start[entry + 1] - root + 1) // 2
    node = 0
    while True:
        if not boxes_apart(trees.box, root + node, low, high):
            if node < leaves - 1:
                node = 2 * node + 1
                continue
            start = first + TREE_LEAF * (node - leaves + 1)
            for other in range(start, min(end, start + TREE_LEAF)):
                above, normal = _face_above(meshes, piece.triangle, other)
                if above:
                    out = mat_vec(pair.turn, (-normal[0], -normal[1], -normal[2]))
                    gap, _, _ = separation(pair, pools.hulls.point, scratch, out)
                    if gap - pair.a.s[3] > best:
                        found, best, n = True, gap - pair.a.s[3], out
        node = after(node)
        if node == 0:
            break
    return found, n


@formula
def _face_above(meshes, triangle, other):
    """Whether another triangle of a mesh shares a corner with one that lies behind it, and its normal."""
    here, shared = mesh_corner(meshes.point, meshes.triangle[other, 0]), False
    for k in range(3):
        for c in range(3):
            if meshes.triangle[triangle, k] == meshes.triangle[other, c]:
                shared = True
    a = sub(mesh_corner(meshes.point, meshes.triangle[other, 1]), here)
    b = sub(mesh_corner(meshes.point, meshes.triangle[other, 2]), here)
    n = cross(a, b)
    length = norm(n)
    if not shared or triangle == other or length == 0.0:
        return False, n
    n = (n[0] / length, n[1] / length, n[2] / length)
    for k in range(3):
        d = sub(mesh_corner(meshes.point, meshes.triangle[triangle, k]), here)
        if dot(n, d) > INNER_EDGE * norm(d):
            return False, n
    return True, n


@merged_formula
def _of_face(pair, touch, normal, points, scratch):
    """The touch with the normal of the triangle's face."""
    n = mat_vec(pair.turn, (-normal[0], -normal[1], -normal[2]))
    gap, _, _ = separation(pair, points, scratch, n)
    return Touch(gap - pair.a.s[3], n, touch.point, touch.reach)


triangle_touch = _touch_by(meeting)
shallow_triangle_touch = _touch_by(shallow_meeting)
