"""Contact points of a convex shape, or a triangle of another mesh, with one triangle of a surface."""

from __future__ import annotations

import math

import numpy as np

from .convex import separation, triangle_corner, triangle_normal
from .jit import formula
from .kinds import MESH, TRIANGLE
from .linalg import axpy, dot, mat_t_vec, mat_vec, sub
from .manifold import STEEP, manifold
from .pair_contacts import step_back
from .pairs import meeting
from .surfaces import TRIANGLE_A, TRIANGLE_B, normal_is_real

__all__ = ["triangle_contacts"]

TOUCHES = 1e-7
"""Part of the smaller size within which a core counts as touching a triangle."""
SAME_FACE = 0.999
"""Cosine above which two triangles of meshes count as lying flat on each other."""


@formula
def triangle_contacts(
    ka,
    sa,
    ha,
    middle,
    pa,
    ma,
    turn,
    shift,
    va,
    v,
    local,
    kind,
    s,
    triangle,
    cell,
    field_first,
    rows,
    columns,
    geometry,
    h,
    size,
    near,
    handed_on,
    swept_normal,
    back,
    out,
    row,
    scratch,
    triangle_a,
):
    """Contacts of a convex shape with the triangle in hand; returns their number.

    triangle_a: if the convex shape is itself a triangle of a mesh its number there, else -1.
    middle: of the shape, in the surface's frame. A closed surface is met from outside only, an open one from both
    sides.
    """
    normal = triangle_normal(scratch, TRIANGLE_B)
    above = dot(normal, sub(middle, triangle_corner(scratch, TRIANGLE_B, 0)))
    two_sided = kind == MESH and s[0] > 0.0
    if above < (0.0 if triangle_a < 0 else -0.5 * size) and not two_sided:
        return 0  # a triangle may lie a little behind the other mesh's, a solid may not
    side = -1.0 if above < 0.0 and two_sided else 1.0
    normal = (side * normal[0], side * normal[1], side * normal[2])
    sb = (float(TRIANGLE_B), side, 0.0, 0.0)
    yes, t, gap, n, point, reach = meeting(
        ka,
        sa,
        ha,
        np.int64(TRIANGLE),
        sb,
        np.int64(0),
        turn,
        shift,
        geometry.hull_point,
        geometry.hull_face_start,
        geometry.face_plane,
        scratch,
        local,
        h,
        size,
        near,
        handed_on,
        swept_normal,
    )
    if not yes:
        return 0
    m = mat_t_vec(turn, (-n[0], -n[1], -n[2]))  # away from the surface, in its frame
    real, face = normal_is_real(
        kind,
        triangle,
        cell,
        field_first,
        rows,
        columns,
        s,
        m,
        scratch,
        TRIANGLE_B,
        geometry.mesh_point,
        geometry.mesh_triangle,
        geometry.mesh_opposite,
        geometry.ring_start,
        geometry.ring,
        geometry.field_height,
    )
    if real and triangle_a >= 0:  # a triangle of a moving mesh has inner edges, too
        real, _ = normal_is_real(
            np.int64(MESH),
            triangle_a,
            (np.int64(0), np.int64(0), np.int64(0)),
            np.int64(0),
            np.int64(0),
            np.int64(0),
            sa,
            n,
            scratch,
            TRIANGLE_A,
            geometry.mesh_point,
            geometry.mesh_triangle,
            geometry.mesh_opposite,
            geometry.ring_start,
            geometry.ring,
            geometry.field_height,
        )
    moved = axpy(t, local, shift)
    inside = t == 0.0 and gap + sa[3] <= TOUCHES * size
    if face and dot(m, normal) < 0.0:
        real, face = False, False
    flipped = False
    if triangle_a >= 0:
        facing = dot(triangle_normal(scratch, TRIANGLE_A), mat_vec(turn, normal))
        flipped = facing < -SAME_FACE and dot(m, normal) < -SAME_FACE  # flat on each other, and a little inside
        if facing > -STEEP and not real:
            return 0  # back to back, or across: another triangle of the first mesh is nearer
    if not real and not inside and not flipped:
        return 0
    if face or not real or flipped:
        # The face's own normal: exact, and the way out where the shape is deeper than the triangle is large. In the
        # latter case only points over the triangle count: the shape's lowest point may lie elsewhere.
        n = mat_vec(turn, (-normal[0], -normal[1], -normal[2]))
        gap, _, _ = separation(ka, sa, TRIANGLE, sb, turn, moved, geometry.hull_point, scratch, n)
        gap -= sa[3]
        if gap > reach:
            return 0
        if not real or flipped:
            gap = math.inf
    count = manifold(
        ka,
        sa,
        ha,
        np.int64(TRIANGLE),
        sb,
        np.int64(0),
        turn,
        moved,
        geometry.hull_point,
        geometry.hull_face_start,
        geometry.face_plane,
        geometry.face_loop_start,
        geometry.face_loop,
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
    if count == 1 and not math.isfinite(out[row, 6]):
        return 0
    if t > 0.0:
        step_back(out, row, count, t, v, back)
    return count
