"""Distances of convex shapes for many poses, and rays through a scene."""

from __future__ import annotations

import math

import numpy as np

from ...kernels.convex import Convex, Pair
from ...kernels.descent import TREE_LEAF, after
from ...kernels.distance import convex_gap
from ...kernels.jit import blockwise
from ...kernels.linalg import axpy, column, mat_t_mat, mat_t_vec, mat_vec, row3, row4, row9, sub
from ...kernels.rays import ray_meets_box, ray_plane
from ...kernels.shape_rays import ray_shape
from ...kernels.team import member

QUERY_BLOCK = 64


@blockwise(QUERY_BLOCK, "pose_a.shape[0]")
def convex_gaps(block, kind, parameters, entry, pose_a, pose_b, hulls, scratch, out):
    """Gap, normal from A to B, and the nearest point of A (world), for n pairs of poses of two shapes.

    kind, parameters, entry: of the two shapes, in the order of their kinds. pose_a, pose_b (n, 12): position and
    matrix. out (n, 7).
    """
    n = pose_a.shape[0]
    work = scratch[member()]
    for k in range(QUERY_BLOCK * block, min(n, QUERY_BLOCK * block + QUERY_BLOCK)):
        ma, mb = row9(pose_a[:, 3:], k), row9(pose_b[:, 3:], k)
        pa, pb = row3(pose_a, k), row3(pose_b, k)
        a = Convex(np.int64(kind[0]), row4(parameters, 0), np.int64(entry[0]))
        b = Convex(np.int64(kind[1]), row4(parameters, 1), np.int64(entry[1]))
        pair = Pair(a, b, mat_t_mat(ma, mb), mat_t_vec(ma, sub(pb, pa)))
        gap, normal, point = convex_gap(pair, (hulls, work), math.inf)
        point = axpy(parameters[0, 3], normal, point)
        normal, point = mat_vec(ma, normal), mat_vec(ma, point)
        out[k, 0] = gap
        for c in range(3):
            out[k, 1 + c], out[k, 4 + c] = normal[c], point[c] + pa[c]


@blockwise(QUERY_BLOCK, "rays.origin.shape[0]")
def cast_rays(block, rays, shapes, pools, tree, planes, scratch, hit, out):
    """The first shape on each ray: its index (or -1) in hit (k,), distance and outward normal in out (k, 4).

    tree: a heap over the boxes of bounded shapes, as in Geometry; planes: the half-spaces.
    """
    origin, direction, limit = rays.origin, rays.direction, rays.limit
    tree_box, tree_shape = tree.box, tree.shape
    leaves = (tree_box.shape[0] + 1) // 2
    work = scratch[member()]
    for k in range(QUERY_BLOCK * block, min(origin.shape[0], QUERY_BLOCK * block + QUERY_BLOCK)):
        o, d = row3(origin, k), row3(direction, k)
        best, who, normal = limit[k], -1, (0.0, 0.0, 0.0)
        for p in planes:
            up = column(row9(shapes.matrix, p), 2)
            t = ray_plane(o, d, row3(shapes.position, p), up)
            if t < best:
                best, who, normal = t, p, up
        node = 0
        while tree_shape.size > 0:
            if ray_meets_box(tree_box, node, o, d, best):
                if node < leaves - 1:
                    node = 2 * node + 1
                    continue
                start = TREE_LEAF * (node - leaves + 1)
                for c in range(start, min(tree_shape.size, start + TREE_LEAF)):
                    t, n = ray_shape(tree_shape[c], o, d, best, shapes, pools, work)
                    if t < best:
                        best, who, normal = t, tree_shape[c], n
            node = after(node)
            if node == 0:
                break
        hit[k] = who
        out[k, 0], out[k, 1], out[k, 2], out[k, 3] = best, normal[0], normal[1], normal[2]
