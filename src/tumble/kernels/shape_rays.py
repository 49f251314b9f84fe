"""Where a ray meets a shape: convex ones, meshes by their trees, height fields cell by cell."""

from __future__ import annotations

import math

import numpy as np

from .convex import Convex, Pair, triangle_normal
from .descent import TREE_LEAF, after, local_box
from .distance import convex_gap
from .jit import formula
from .kinds import CONVEX, MESH, SPHERE, among
from .linalg import axpy, dot, mat_t_vec, mat_vec, row3, row4, row9, sub
from .rays import ray_convex, ray_meets_box, ray_triangle
from .surfaces import TRIANGLE_B, Surface, load_field_triangle, load_mesh_triangle


@formula
def _ray_mesh(entry, origin, direction, best, pools, scratch):
    """First triangle of a mesh on the ray before `best`: distance and normal, in the mesh's frame."""
    meshes, trees = pools.meshes, pools.trees
    first, end = meshes.start[entry], meshes.start[entry + 1]
    root = trees.start[entry]
    leaves = (trees.start[entry + 1] - root + 1) // 2
    normal = (0.0, 0.0, 1.0)
    node = 0
    while True:
        if ray_meets_box(trees.box, root + node, origin, direction, best):
            if node < leaves - 1:
                node = 2 * node + 1
                continue
            start = first + TREE_LEAF * (node - leaves + 1)
            for triangle in range(start, min(end, start + TREE_LEAF)):
                load_mesh_triangle(meshes, triangle, scratch, TRIANGLE_B)
                t = ray_triangle(origin, direction, scratch, TRIANGLE_B)
                if t < best:
                    best, normal = t, triangle_normal(scratch, TRIANGLE_B)
        node = after(node)
        if node == 0:
            break
    return best, normal


@formula
def _span(low, high, o, d, near, far):
    """The part [near, far] of a ray between two coordinates."""
    if d == 0.0:
        return (near, far) if low <= o <= high else (math.inf, -math.inf)
    a, b = (low - o) / d, (high - o) / d
    return max(near, min(a, b)), min(far, max(a, b))


@formula
def _ray_field(surface, origin, direction, best, pools, scratch):
    """First triangle of a height field on the ray before `best`, cell by cell along it."""
    s, entry, fields = surface.s, surface.entry, pools.fields
    rows, columns = fields.shape[entry, 0], fields.shape[entry, 1]
    low, high = local_box(surface, pools.trees, fields.shape)
    near, far = 0.0, best
    near, far = _span(low[0], high[0], origin[0], direction[0], near, far)
    near, far = _span(low[1], high[1], origin[1], direction[1], near, far)
    near, far = _span(low[2], high[2], origin[2], direction[2], near, far)
    normal = (0.0, 0.0, 1.0)
    t = near
    while t <= far:
        x = (origin[0] + t * direction[0] - low[0]) / s[0]
        y = (origin[1] + t * direction[1] - low[1]) / s[1]
        i = min(max(int(math.floor(x)), 0), rows - 2)
        j = min(max(int(math.floor(y)), 0), columns - 2)
        # A ray along a grid line belongs to the cells on both sides.
        for di in range(-1, 2):
            for dj in range(-1, 2):
                ci, cj = i + di, j + dj
                if ci < 0 or cj < 0 or ci > rows - 2 or cj > columns - 2:
                    continue
                if abs(x - ci - 0.5) > 0.5 + 1e-9 and di != 0:
                    continue
                if abs(y - cj - 0.5) > 0.5 + 1e-9 and dj != 0:
                    continue
                for upper in range(2):
                    load_field_triangle(fields, surface, (ci, cj, upper), scratch, TRIANGLE_B)
                    hit = ray_triangle(origin, direction, scratch, TRIANGLE_B)
                    if hit < best:
                        best, normal = hit, triangle_normal(scratch, TRIANGLE_B)
        # To the next grid line, and a little beyond it.
        step = math.inf
        if direction[0] != 0.0:
            edge = low[0] + s[0] * (i + 1 if direction[0] > 0.0 else i)
            step = min(step, max(0.0, (edge - origin[0]) / direction[0] - t))
        if direction[1] != 0.0:
            edge = low[1] + s[1] * (j + 1 if direction[1] > 0.0 else j)
            step = min(step, max(0.0, (edge - origin[1]) / direction[1] - t))
        if best <= t + step:
            break
        t += step + 1e-6 * min(s[0], s[1])
    return best, normal


@formula
def ray_shape(i, origin, direction, best, shapes, pools, scratch):
    """Distance along a ray to shape i and its outward normal there (world); `best` or more if it is not nearer."""
    kind, s, entry = np.int64(shapes.kind[i]), row4(shapes.parameters, i), np.int64(shapes.geometry[i])
    m = row9(shapes.matrix, i)
    o, d = mat_t_vec(m, sub(origin, row3(shapes.position, i))), mat_t_vec(m, direction)
    if among(CONVEX, kind):
        convex = Convex(kind, s, entry)
        t = ray_convex(convex, o, d, best, pools.hulls, scratch)
        if not t < best:
            return math.inf, direction
        n = (-d[0], -d[1], -d[2])
        if t > 0.0:
            identity = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
            x = axpy(t, d, o)
            ball = Convex(np.int64(SPHERE), (0.0, 0.0, 0.0, 0.0), np.int64(0))
            pair = Pair(ball, convex, identity, (-x[0], -x[1], -x[2]))
            _, n, _ = convex_gap(pair, (pools.hulls, scratch), math.inf)
            n = (-n[0], -n[1], -n[2])
        return t, mat_vec(m, n)
    if kind == MESH:
        t, n = _ray_mesh(entry, o, d, best, pools, scratch)
    else:
        t, n = _ray_field(Surface(kind, s, entry), o, d, best, pools, scratch)
    if dot(n, d) > 0.0:
        n = (-n[0], -n[1], -n[2])
    return t, mat_vec(m, n)
