"""The arrays that passes of collision share: pools of shapes, where they are, pairs, contact points found.

Groups carry what their passes read and nothing else."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

Part = TypeVar("Part", bound=tuple)


class Geometry(NamedTuple):
    """Polytopes, meshes and height fields of a model, pooled; bodies of the same shape share one entry.

    A shape's entry is `Model.shape_geometry` (-1 for shapes that need none). All in the shape's own frame [m].
    Hulls and meshes number their points in their own pool, from 0 over all entries.
    """

    hull_start: np.ndarray  # (hulls + 1,) int64: first point of each hull
    hull_point: np.ndarray  # (points, 3)
    hull_face_start: np.ndarray  # (hulls + 1,) int64: first face of each hull
    face_plane: np.ndarray  # (faces, 4): outward unit normal and offset, normal . x <= offset inside
    face_loop_start: np.ndarray  # (faces + 1,) int64
    face_loop: np.ndarray  # (corners,) int64: points of each face, counter-clockwise from outside; coplanar ones merged
    mesh_start: np.ndarray  # (meshes + 1,) int64: first triangle of each mesh
    mesh_point: np.ndarray  # (points, 3)
    mesh_triangle: (
        np.ndarray
    )  # (triangles, 3) int64 points, counter-clockwise from outside, sorted along a Morton curve
    mesh_normal: np.ndarray  # (triangles, 3) outward unit normals
    mesh_opposite: np.ndarray  # (triangles, 3) int64: third point of the neighbour over edge k -> k+1, or -1
    ring_start: np.ndarray  # (mesh points + 1,) int64
    ring: np.ndarray  # (..,) int64: points joined to each mesh point by an edge
    tree_start: np.ndarray  # (meshes + 1,) int64: first node of each mesh
    tree_box: np.ndarray  # (nodes, 6) low, high. A heap: node k has children 2k+1, 2k+2 (counted from the first node of
    # the mesh); the last half are leaves of TREE_LEAF triangles in order; unused ones have low = inf, high = -inf
    field_start: np.ndarray  # (fields + 1,) int64: first height of each field
    field_shape: np.ndarray  # (fields, 2) int64: rows along x, columns along y
    field_height: np.ndarray  # (heights,): heights[i, j] of each field, row by row


class HullPool(NamedTuple):
    """Of `Geometry`, what a distance of hulls reads."""

    point: np.ndarray
    face_start: np.ndarray
    face_plane: np.ndarray


class LoopPool(NamedTuple):
    """Of `Geometry`, the corners of the faces of hulls."""

    start: np.ndarray
    point: np.ndarray


class MeshPool(NamedTuple):
    """Of `Geometry`, the triangles of meshes."""

    start: np.ndarray
    point: np.ndarray
    triangle: np.ndarray


class RingPool(NamedTuple):
    """Of `Geometry`, the neighbours of a mesh's triangles and points."""

    opposite: np.ndarray
    start: np.ndarray
    point: np.ndarray


class TreePool(NamedTuple):
    """Of `Geometry`, the boxes around the triangles of meshes."""

    start: np.ndarray
    box: np.ndarray


class FieldPool(NamedTuple):
    """Of `Geometry`, the height fields."""

    start: np.ndarray
    shape: np.ndarray
    height: np.ndarray


class SurfacePools(NamedTuple):
    """What a pair with a mesh or height field reads."""

    hulls: HullPool
    loops: LoopPool
    meshes: MeshPool
    rings: RingPool
    trees: TreePool
    fields: FieldPool


class RayPools(NamedTuple):
    """What a ray reads."""

    hulls: HullPool
    meshes: MeshPool
    trees: TreePool
    fields: FieldPool


class BoxPools(NamedTuple):
    """What the bounding box of a shape is made from."""

    hull_point: np.ndarray
    trees: TreePool
    field_shape: np.ndarray


class Pools(NamedTuple):
    """The groups of a model's `Geometry`, for the passes that read them."""

    hulls: HullPool
    loops: LoopPool
    surfaces: SurfacePools
    rays: RayPools
    boxes: BoxPools


def pools_of(g: Geometry) -> Pools:
    """Group the arrays of a geometry, without copies."""
    hulls = HullPool(g.hull_point, g.hull_face_start, g.face_plane)
    loops = LoopPool(g.face_loop_start, g.face_loop)
    meshes = MeshPool(g.mesh_start, g.mesh_point, g.mesh_triangle)
    rings = RingPool(g.mesh_opposite, g.ring_start, g.ring)
    trees = TreePool(g.tree_start, g.tree_box)
    fields = FieldPool(g.field_start, g.field_shape, g.field_height)
    return Pools(
        hulls,
        loops,
        SurfacePools(hulls, loops, meshes, rings, trees, fields),
        RayPools(hulls, meshes, trees, fields),
        BoxPools(g.hull_point, trees, g.field_shape),
    )


class ShapeArrays(NamedTuple):
    """Shapes of a model and where they are in this step (m of them)."""

    kind: np.ndarray  # (m,) int8
    parameters: np.ndarray  # (m, 4), see kernels/convex.py
    geometry: np.ndarray  # (m,) int32: entry in Geometry, or -1
    body: np.ndarray  # (m,) int32
    bound: np.ndarray  # (m,) radius of the bounding sphere about the shape's origin
    smallest: np.ndarray  # (m,) smallest half-extent
    position: np.ndarray  # (m, 3) world
    matrix: np.ndarray  # (m, 9) world
    rank: np.ndarray  # (m,) int32: of the body by uid


class PlacedArrays(NamedTuple):
    """Of `ShapeArrays`, what placing them reads and writes."""

    kind: np.ndarray
    parameters: np.ndarray
    geometry: np.ndarray
    body: np.ndarray
    bound: np.ndarray
    smallest: np.ndarray
    position: np.ndarray
    matrix: np.ndarray


class ClosedArrays(NamedTuple):
    """Of `ShapeArrays`, what pairs of a ball and a closed form read."""

    kind: np.ndarray
    parameters: np.ndarray
    body: np.ndarray
    bound: np.ndarray
    smallest: np.ndarray
    position: np.ndarray
    matrix: np.ndarray
    rank: np.ndarray


class SeenArrays(NamedTuple):
    """Of `ShapeArrays`, what rays read."""

    kind: np.ndarray
    parameters: np.ndarray
    geometry: np.ndarray
    position: np.ndarray
    matrix: np.ndarray


def part_of(group: tuple, part: type[Part]) -> Part:
    """The arrays of a group that passes of a narrower one read, without copies."""
    return part(*(getattr(group, name) for name in part._fields))  # type: ignore[attr-defined]


class LocalArrays(NamedTuple):
    """Where shapes are on their bodies (m of them)."""

    position: np.ndarray  # (m, 3)
    orientation: np.ndarray  # (m, 4)


class CarriedArrays(NamedTuple):
    """Bodies that carry shapes through a step (n of them)."""

    position: np.ndarray  # (n, 3)
    orientation: np.ndarray  # (n, 4)
    matrix: np.ndarray  # (n, 9)
    free: np.ndarray  # (n, 6) velocity without contacts, world


class RayArrays(NamedTuple):
    """Rays (k of them)."""

    origin: np.ndarray  # (k, 3)
    direction: np.ndarray  # (k, 3) unit vectors
    limit: np.ndarray  # (k,) how far they go


class ShapeTree(NamedTuple):
    """A heap over the boxes of shapes."""

    box: np.ndarray  # (nodes, 6), as `Geometry.tree_box`
    shape: np.ndarray  # (..,) int64: in the order of the leaves


class FilterArrays(NamedTuple):
    """Which bodies may collide."""

    kind: np.ndarray  # (n,) int8
    group: np.ndarray  # (n,) uint32
    mask: np.ndarray  # (n,) uint32
    excluded: np.ndarray  # (k,) int64, sorted: (smaller << 32) + larger


class BoxedArrays(NamedTuple):
    """Shapes as the broad phase sees them."""

    kind: np.ndarray  # (m,) int8
    body: np.ndarray  # (m,) int32
    box: np.ndarray  # (m, 6) low, high


class PlaneArrays(NamedTuple):
    """Half-spaces, and what their distance from boxes needs."""

    shape: np.ndarray  # (planes,) int32
    position: np.ndarray  # (m, 3) of all shapes
    matrix: np.ndarray  # (m, 9)
    free: np.ndarray  # (n, 6) velocity of bodies


class GridArrays(NamedTuple):
    """The hierarchical hashed grid."""

    level: np.ndarray  # (m,) int64: of a shape
    key: np.ndarray  # (m,) int64: its cell
    level_count: np.ndarray  # (LEVELS,) int64: shapes in a level
    bucket_start: np.ndarray  # (buckets + 2,) int64
    item: np.ndarray  # (m,) int32: shapes bucket by bucket
    single: np.ndarray  # (..,) int32: shapes that are compared with everything
    levels: np.ndarray  # (LEVELS,) int64: those in use


class PairArrays(NamedTuple):
    """Pairs of shapes, `capacity` places for each block of shapes."""

    pair: np.ndarray  # (blocks * capacity, 2) int32
    capacity: int
    count: np.ndarray  # (blocks,) int64; may exceed the capacity


class SearchRule(NamedTuple):
    """How pairs are sought."""

    h: float
    slack: float  # what a user's margin adds for planes [m]
    quiet: bool  # no neighbour can hand on more than the margin covers
    few: bool  # all are compared with all
    room: float  # by so much boxes are wider for pairs that are kept from step to step [m]; 0: none are
    far: float  # and by the way of a body in this time [s]


class SpreadArrays(NamedTuple):
    """Scratch of the search, and what neighbours could hand on."""

    histogram: np.ndarray  # (8 LEVELS,) int64
    reach: np.ndarray  # (n,) see `spread_speed`
    scratch: np.ndarray  # (n,)


class KeptArrays(NamedTuple):
    """Pairs that serve several steps, and what they hold for (m shapes)."""

    box: np.ndarray  # (m, 6) low, high: wider than the shapes' own were
    kind: np.ndarray  # (m,) int8: of the shapes then
    body_kind: np.ndarray  # (m,) int8: of their bodies then
    pairs: PairArrays
    left: np.ndarray  # (blocks,) int64 scratch
    state: np.ndarray  # (3,) int64, see `kept_pairs_hold`
    no_plane: np.ndarray  # (0,) int32


class RawArrays(NamedTuple):
    """Contacts as they are found, `capacity` places for each block of pairs."""

    row: np.ndarray  # (blocks * capacity, 8): normal from the first to the second shape, point, gap, name
    shapes: np.ndarray  # (blocks * capacity, 2) int32
    capacity: int
    count: np.ndarray  # (blocks,) int64; may exceed the capacity


class FoundRows(NamedTuple):
    """Of `RawArrays`, the contacts."""

    row: np.ndarray
    shapes: np.ndarray


class AxisArrays(NamedTuple):
    """What pairs of convex shapes were last told apart by, at places that follow from their numbers."""

    name: np.ndarray  # (places,) int64: of the pair, a power of two of them; -1: none
    axis: np.ndarray  # (places, 3): from the first to the second, in the frame of the first


class ConvexPools(NamedTuple):
    """What pairs of convex shapes are found with."""

    hulls: HullPool
    loops: LoopPool
    axes: AxisArrays


class LocatedArrays(NamedTuple):
    """Where the shapes of contacts belong."""

    body: np.ndarray  # (m,) int32
    local: np.ndarray  # (m,) number of the shape on its body


class SortedArrays(NamedTuple):
    """Order of the contacts by key."""

    order: np.ndarray  # (cap,) int32: places in the raw rows
    body_b: np.ndarray  # (cap,) int32
    feature: np.ndarray  # (cap,) int64


class OrderArrays(NamedTuple):
    """Scratch of sorting contacts, of n bodies in bins."""

    start: np.ndarray  # (n,) int64
    cursor: np.ndarray  # (n,) int64
    bins: np.ndarray  # (parts, bins) int64
    bin_start: np.ndarray  # (bins + 1,) int64
    low: np.ndarray  # (cap,) int32: first body
    high: np.ndarray  # (cap,) int32
    place: np.ndarray  # (cap,) int32: in the raw rows
    code: np.ndarray  # (cap,) int64: feature


class SideArrays(NamedTuple):
    """What a contact takes from its two shapes (m of them)."""

    body: np.ndarray  # (m,) int32
    material: np.ndarray  # (m,) int32
    smallest: np.ndarray  # (m,)
    friction: np.ndarray  # (materials, materials)


class ArrangedArrays(NamedTuple):
    """Sorted contacts, component first."""

    body_a: np.ndarray  # (cap,) int32
    friction: np.ndarray  # (cap,)
    pair: np.ndarray  # (cap,) int32: of materials, first * k + second
    size: np.ndarray  # (cap,) of the smaller shape
    normal: np.ndarray  # (3, cap)
    point: np.ndarray  # (3, cap)
    gap: np.ndarray  # (cap,)


class BodyArrays(NamedTuple):
    """What the narrow phase needs of bodies (n of them)."""

    kind: np.ndarray  # (n,) int8
    center: np.ndarray  # (n, 3) centres of mass
    free: np.ndarray  # (n, 6) velocity without contacts, world
    handed_on: np.ndarray  # (n,) largest speed that a neighbour could hand on within the step
