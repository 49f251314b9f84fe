"""Triangle meshes on the side of the scene: neighbours, trees, mass, files, and what is refused."""

import re
import sys
import time

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from tumble.backends.base import TREE_LEAF
from tumble.enums import ShapeKind
from tumble.errors import FileError, SceneError
from tumble.scene import rotation
from tumble.scene.builder import SceneBuilder
from tumble.scene.files import load_scene
from tumble.scene.hulls import ConvexHull
from tumble.scene.meshes import Mesh
from tumble.scene.shapes import Box, Placed

NAN, INF = float("nan"), float("inf")
FORM = re.compile(r"[^\n]+: [^\n]+ \(got [^\n]*\)\. [^\n]+[.?]")
TETRAHEDRON = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
seeds = st.integers(0, 2**32 - 1)


def plain(mesh):
    return np.array(mesh.vertices), np.array(mesh.faces)


def elbow():
    """A prism over an L of area 4 and height 1: closed and not convex."""
    outline = np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 3), (0, 3)], float)
    lid = np.array([(0, 1, 2), (0, 2, 3), (0, 3, 5), (3, 4, 5)])
    vertices = np.concatenate([np.c_[outline, np.zeros(6)], np.c_[outline, np.ones(6)]])
    sides = [(i, j, 6 + j) for i, j in ((k, (k + 1) % 6) for k in range(6))]
    sides += [(i, 6 + j, 6 + i) for i, j in ((k, (k + 1) % 6) for k in range(6))]
    return vertices, np.concatenate([lid[:, ::-1], lid + 6, sides])


def turn(seed):
    q = np.random.default_rng(seed).normal(size=4)
    return q / np.linalg.norm(q)


def grid(count):
    """An open sheet of 2 (count - 1)^2 triangles."""
    x, y = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    vertices = np.stack([x, y, np.sin(x) * np.cos(y)], axis=-1).reshape(-1, 3).astype(float)
    a = (x * count + y)[:-1, :-1].ravel()
    return vertices, np.concatenate(
        [np.stack([a, a + count, a + count + 1], 1), np.stack([a, a + count + 1, a + 1], 1)]
    )


# ---------------------------------------------------------------------- the surface


def test_equal_and_unused_vertices_vanish():
    vertices, triangles = plain(trimesh.creation.box((1, 2, 3)))
    soup = np.concatenate([vertices[triangles].reshape(-1, 3), [(100, 100, 100)]])
    soup[soup == 0.5] += 0.0
    mesh = Mesh(soup, np.arange(36).reshape(-1, 3))
    assert len(mesh.vertices) == 8 and mesh.watertight and mesh.bound < 2
    assert np.array_equal(mesh.vertices[mesh.triangles], vertices[triangles])
    zero = Mesh([(0.0, 0, 0), (1, 0, 0), (0, 1, 0), (-0.0, 0, 0)], [(0, 1, 2), (3, 2, 1)])
    assert len(zero.vertices) == 3
    assert not mesh.vertices.flags.writeable and not mesh.triangles.flags.writeable


def neighbours(triangles):
    """Third point over each edge, by a dictionary; -1 unless exactly two triangles share the edge properly."""
    users = {}
    for t in triangles.tolist():
        for k in range(3):
            users.setdefault(frozenset((t[k], t[k - 2])), []).append((t[k], t[k - 2], t[k - 1]))
    out = []
    for t in triangles.tolist():
        row = []
        for k in range(3):
            edge = users[frozenset((t[k], t[k - 2]))]
            other = [u for u in edge if u[:2] == (t[k - 2], t[k])]
            row.append(other[0][2] if len(edge) == 2 and len(other) == 1 else -1)
        out.append(row)
    return np.array(out)


FIN = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (2, 2, 0)]
SURFACES = {
    "tetrahedron": (TETRAHEDRON, FACES),
    "elbow": elbow(),
    "ball": plain(trimesh.creation.icosphere(subdivisions=3)),
    "sheet": grid(8),
    "one": (TETRAHEDRON, FACES[:1]),
    "fin": (FIN, [(0, 1, 2), (1, 0, 3), (0, 1, 4)]),
    "twisted": (FIN, [(0, 1, 2), (0, 1, 3), (1, 5, 2)]),
}


@pytest.mark.parametrize("name", SURFACES)
def test_arrays_of_the_pool(name):
    mesh = Mesh(*SURFACES[name])
    arrays = mesh.geometry
    assert np.array_equal(arrays.point, mesh.vertices)
    key = lambda t: sorted(map(tuple, t.tolist()))  # noqa: E731
    assert key(arrays.triangle) == key(mesh.triangles)
    assert np.array_equal(arrays.opposite, neighbours(arrays.triangle))
    corner = arrays.point[arrays.triangle]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    assert np.allclose(arrays.normal, normal / np.linalg.norm(normal, axis=1)[:, None], atol=1e-14)
    joined = {i: set() for i in range(len(mesh.vertices))}
    for t in arrays.triangle.tolist():
        for k in range(3):
            joined[t[k]] |= {t[k - 1], t[k - 2]}
    for i in range(len(mesh.vertices)):
        ring = arrays.ring[arrays.ring_start[i] : arrays.ring_start[i + 1]]
        assert sorted(joined[i]) == ring.tolist()
    check_tree(arrays)
    edges = mesh.edges
    assert (edges.open, edges.crowded, edges.twisted) == {
        "tetrahedron": (0, 0, 0),
        "elbow": (0, 0, 0),
        "ball": (0, 0, 0),
        "sheet": (28, 0, 0),
        "one": (3, 0, 0),
        "fin": (6, 1, 0),
        "twisted": (5, 0, 1),
    }[name]


def check_tree(arrays):
    count = len(arrays.triangle)
    leaves = (len(arrays.tree) + 1) // 2
    assert len(arrays.tree) == 2 * leaves - 1 and leaves & (leaves - 1) == 0
    assert leaves >= -(-count // TREE_LEAF) > leaves // 2
    corner = arrays.point[arrays.triangle]
    for i in range(leaves):
        own = corner[TREE_LEAF * i : TREE_LEAF * (i + 1)].reshape(-1, 3)
        box = arrays.tree[leaves - 1 + i]
        if len(own):
            assert np.array_equal(box, [*own.min(axis=0), *own.max(axis=0)])
        else:
            assert np.all(box[:3] == INF) and np.all(box[3:] == -INF)
    for k in range(leaves - 1):
        left, right = arrays.tree[2 * k + 1], arrays.tree[2 * k + 2]
        assert np.array_equal(arrays.tree[k], [*np.minimum(left, right)[:3], *np.maximum(left, right)[3:]])


def test_triangles_that_are_near_are_neighbours_in_memory():
    mesh = Mesh(*grid(65))
    box = mesh.geometry.tree[len(mesh.geometry.tree) // 2 :]
    box = box[np.isfinite(box[:, 0])]
    assert np.prod(box[:, 3:5] - box[:, :2], axis=1).mean() < 4 * 2  # four triangles lie in two to four cells


def test_pool_of_several_meshes():
    one, two = Mesh(TETRAHEDRON, FACES), Mesh(*elbow())
    scene = SceneBuilder()
    scene.add_body(one, mass=1.0)
    scene.add_body(two, mass=1.0)
    scene.add_copies([one, Placed(two, (0, 0, 5))], position=np.zeros((3, 3)), mass=1.0)
    model = scene.build()
    g = model.geometry
    assert np.array_equal(model.shape_geometry, [0, 1, *(0, 1) * 3])
    assert np.array_equal(model.shape_parameters, np.zeros((8, 4)))
    assert np.array_equal(g.mesh_start, [0, 4, 4 + len(two.triangles)])
    assert np.array_equal(g.mesh_point, np.concatenate([one.vertices, two.vertices]))
    assert np.array_equal(g.mesh_triangle[4:] - 4, two.geometry.triangle)
    assert np.array_equal(g.mesh_opposite[4:] - 4, two.geometry.opposite)
    assert np.array_equal(g.tree_start, [0, len(one.geometry.tree), len(g.tree_box)])
    assert len(g.ring_start) == len(g.mesh_point) + 1 and g.ring_start[-1] == len(g.ring)
    assert np.array_equal(
        g.ring[g.ring_start[4] : g.ring_start[5]] - 4, two.geometry.ring[: two.geometry.ring_start[1]]
    )


def test_a_million_triangles_take_seconds():
    vertices, triangles = grid(708)
    start = time.perf_counter()
    mesh = Mesh(vertices, triangles)
    assert len(mesh.triangles) > 999_000 and not mesh.watertight
    assert len(mesh.geometry.tree) == 2 * 2**18 - 1
    assert time.perf_counter() - start < 60  # about 5 s on one core of 2024


# ---------------------------------------------------------------------- the solid


@pytest.mark.parametrize("name", ["tetrahedron", "elbow", "ball"])
def test_mass_against_trimesh(name):
    vertices, triangles = SURFACES[name]
    mesh = Mesh(np.array(vertices, float) + 3.0, triangles)
    other = trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False)
    assert mesh.watertight and other.is_watertight
    assert mesh.area == pytest.approx(other.area, rel=1e-12)
    assert mesh.volume == pytest.approx(other.volume, rel=1e-11)
    assert np.allclose(mesh.center, other.center_mass, rtol=1e-11)
    assert np.allclose(mesh.unit_inertia * mesh.volume, other.moment_inertia, rtol=1e-8, atol=1e-9)


@given(seeds, st.floats(0.01, 100.0))
@settings(max_examples=30, deadline=None)
def test_mass_moves_with_the_mesh(seed, factor):
    mesh = Mesh(*elbow())
    q, move = turn(seed), np.random.default_rng(seed).normal(size=3)
    other = mesh.transformed(tuple(move), tuple(q)).scaled(factor)
    matrix = rotation.matrix(q)
    assert other.volume == pytest.approx(mesh.volume * factor**3, rel=1e-11)
    assert np.allclose(other.center, factor * (matrix @ mesh.center + move), rtol=1e-10, atol=1e-10 * factor)
    assert np.allclose(other.unit_inertia, factor**2 * matrix @ mesh.unit_inertia @ matrix.T, atol=1e-10 * factor**2)


def test_a_mesh_of_a_box_is_a_box():
    vertices, triangles = plain(trimesh.creation.box((1, 2, 3)))
    mesh, box = Mesh(vertices, triangles), Box((1, 2, 3))
    assert mesh.volume == pytest.approx(6) and np.allclose(mesh.unit_inertia, box.unit_inertia)
    assert (mesh.smallest, mesh.bound) == (box.smallest, box.bound)
    assert np.array_equal(mesh.box, box.box) and mesh.kind == ShapeKind.MESH
    hull = mesh.convex_hull()
    assert isinstance(hull, ConvexHull) and len(hull.faces) == 6
    bodies = []
    for shape in (mesh, box):
        scene = SceneBuilder()
        scene.add_body(shape, density=7.0)
        bodies.append(scene.build())
    assert np.allclose(bodies[0].body_inertia, bodies[1].body_inertia)
    assert bodies[0].body_mass == pytest.approx(bodies[1].body_mass)


def test_open_meshes_have_a_finite_size():
    sheet = Mesh(*grid(5))
    assert sheet.smallest == 2.0 and np.isnan(sheet.volume) and sheet.parameters[0] == 1.0
    wall = Mesh([(0, 0, 0), (0, 3, 0), (0, 0, 9)], [(0, 1, 2)])
    assert wall.smallest == 1.5


def test_cleaned_drops_lines_and_points():
    vertices = [*TETRAHEDRON, (0.5, 0, 0), (0, 0, 0)]
    triangles = [*FACES, (0, 4, 1), (0, 5, 1), (2, 2, 2)]
    with pytest.raises(SceneError, match="3 of 7 without area, the first is number 4"):
        Mesh(vertices, triangles)
    mesh = Mesh.cleaned(vertices, triangles)
    assert mesh.watertight and mesh.volume == pytest.approx(1 / 6)


def test_flipped_and_cavity():
    inside_out = Mesh(TETRAHEDRON, np.array(FACES)[:, ::-1])
    assert inside_out.watertight and inside_out.volume == pytest.approx(-1 / 6)
    for add in ("add_static", "add_kinematic"):
        with pytest.raises(SceneError, match=r"flipped\(\), or .*cavity=True"):
            getattr(SceneBuilder(), add)(inside_out)
    SceneBuilder().add_body(inside_out.flipped(), mass=1.0)
    room = inside_out.flipped().flipped(cavity=True)
    scene = SceneBuilder()
    scene.add_static(room)
    with pytest.raises(SceneError, match=r"Use mesh.flipped\(\)\."):
        scene.add_body(room, mass=1.0)


@pytest.mark.slow
def test_decompose_in_full():
    pytest.importorskip("coacd")
    vertices, triangles = plain(trimesh.creation.annulus(0.5, 1.0, 0.4))
    parts = Mesh(vertices, triangles).decompose(threshold=0.02)
    exact = np.pi * (1 - 0.25) * 0.4
    assert sum(p.shape.volume for p in parts) == pytest.approx(exact, rel=0.1)


def test_decompose():
    pytest.importorskip("coacd")
    parts = Mesh(*elbow()).decompose(max_parts=4)
    assert 2 <= len(parts) <= 4
    assert sum(p.shape.volume for p in parts) == pytest.approx(4.0, rel=0.05)
    scene = SceneBuilder()
    scene.add_body(parts, density=1.0)
    assert scene.build().body_mass[0] == pytest.approx(4.0, rel=0.05)


def test_decompose_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "coacd", None)
    with pytest.raises(SceneError, match=re.escape("pip install 'tumble[coacd]'")) as caught:
        Mesh(*elbow()).decompose()
    assert FORM.fullmatch(str(caught.value))


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "glb", "gltf", "STL"])
def test_files_round_trip(tmp_path, suffix):
    path = tmp_path / f"part.{suffix}"
    solid = trimesh.creation.box((1, 2, 4))
    solid.apply_translation((5, 6, 7))
    solid.export(path, file_type=suffix.lower())
    mesh = Mesh.load(path, unit="mm", scale=2.0)
    assert mesh.watertight and len(mesh.vertices) == 8
    assert mesh.volume == pytest.approx(8 * 2e-3**3, rel=1e-6)
    assert np.allclose(mesh.center, 2e-3 * np.array([5, 6, 7]), rtol=1e-6)


def test_text_stl_and_units(tmp_path):
    path = tmp_path / "text.stl"
    path.write_text(trimesh.creation.box((1, 1, 1)).export(file_type="stl_ascii"))
    for unit, metres in (("m", 1), ("cm", 1e-2), ("inch", 0.0254), ("foot", 0.3048), (None, 1)):
        assert Mesh.load(str(path), unit=unit).volume == pytest.approx(metres**3)


def test_a_scene_is_merged_with_its_transforms(tmp_path):
    scene = trimesh.Scene()
    for size, place, angle in (((1, 1, 1), (1, 2, 3), 0.0), ((1, 2, 1), (10, 0, 0), 0.5)):
        pose = trimesh.transformations.rotation_matrix(angle, (0, 0, 1))
        pose[:3, 3] = place
        scene.add_geometry(trimesh.creation.box(size), transform=pose)
    scene.export(tmp_path / "two.glb")
    mesh = Mesh.load(tmp_path / "two.glb")
    assert mesh.watertight and mesh.volume == pytest.approx(3, rel=1e-6)
    assert np.allclose(mesh.center, (np.array([1, 2, 3]) + 2 * np.array([10, 0, 0])) / 3, rtol=1e-6)


def test_damaged_files(tmp_path):
    solid = trimesh.creation.box((1, 2, 3))
    (tmp_path / "empty.stl").touch()
    (tmp_path / "junk.glb").write_bytes(b"hello world" * 30)
    (tmp_path / "junk.obj").write_bytes(b"hello world" * 30)
    (tmp_path / "words.stl").write_bytes(b"solid nothing\nendsolid")
    (tmp_path / "part.step").write_bytes(b"x")
    names = ["none.stl", "empty.stl", "junk.glb", "junk.obj", "words.stl", "part.step"]
    for suffix in ("stl", "ply", "glb"):
        solid.export(tmp_path / f"whole.{suffix}")
        data = (tmp_path / f"whole.{suffix}").read_bytes()
        for part in (0.1, 0.5, 0.95):
            names.append(f"cut{part}.{suffix}")
            (tmp_path / names[-1]).write_bytes(data[: int(part * len(data))])
    text = solid.export(file_type="stl_ascii")
    (tmp_path / "cut.stl").write_text(text[: len(text) // 2])
    for name in [*names, "cut.stl", "."]:
        with pytest.raises(FileError) as caught:
            Mesh.load(tmp_path / name)
        assert FORM.fullmatch(str(caught.value)) and str(tmp_path / name) in str(caught.value)


def test_a_file_with_flat_triangles(tmp_path):
    path = tmp_path / "flat.obj"
    corners = "".join(f"v {x} {y} {z}\n" for x, y, z in [*TETRAHEDRON, (0.5, 0, 0)])
    path.write_text(corners + "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in [*FACES, (0, 4, 1)]))
    with pytest.raises(SceneError, match="clean=True") as caught:
        Mesh.load(path)
    assert FORM.fullmatch(str(caught.value)) and str(caught.value).startswith(str(path))
    assert Mesh.load(path, clean=True).watertight


def test_meshes_in_scene_files(tmp_path):
    (tmp_path / "parts").mkdir()
    trimesh.creation.box((100, 200, 400)).export(tmp_path / "parts" / "block.stl")
    path = tmp_path / "scene.toml"
    path.write_text("""
        [[body]]
        density = 1000
        shape = {type = "mesh", file = "parts/block.stl", unit = "mm", position = [0, 0, 1]}
        [[body]]
        density = 1000
        shape = {type = "mesh", file = "parts/block.stl", unit = "mm", convex = true}
        [[body]]
        kind = "static"
        shape = {type = "mesh", vertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0]], triangles = [[0, 1, 2]]}
        [[copies]]
        mass = 2
        shape = {type = "mesh", file = "parts/block.stl", unit = "mm"}
        packing = {kind = "random", count = 3, low = [0, 0, 0], high = [3, 3, 3]}
    """)
    model = load_scene(path).model
    assert [ShapeKind(k) for k in model.shape_kind] == [ShapeKind.MESH, ShapeKind.HULL, *(ShapeKind.MESH,) * 4]
    assert np.array_equal(model.shape_geometry, [0, 0, 1, 0, 0, 0])  # the file is read into one entry
    assert np.allclose(model.body_mass[:2], 8.0, rtol=1e-6)
    assert np.array_equal(model.shape_parameters[1, :2], [0, 8])


# ---------------------------------------------------------------------- bad input


def dynamic(*arrays):
    return SceneBuilder().add_body(Mesh(*arrays), mass=1.0)


def cases():
    def rows(make, values, *words):
        for value in values:
            yield (lambda value=value: make(value)), words

    yield from rows(
        lambda v: Mesh(v, FACES),
        (None, 3, "abc", [], [1, 2, 3], [[1, 2]], [*TETRAHEDRON[:3], (NAN, 0, 0)], [*TETRAHEDRON[:3], (0, INF, 0)]),
        "Mesh.",
    )
    yield from rows(lambda v: Mesh(TETRAHEDRON, v), (None, 3, "abc", [1, 2, 3], [[0, 1]], [[0, NAN, 1]]), "triangles")
    yield from rows(lambda v: Mesh(TETRAHEDRON, v), ([], np.zeros((0, 3), int)), "Mesh.triangles")
    bad = ([(0, 1, 2), (0, 1, 4)], [(0, 1, 2), (0, 1, -1)], [(0, 1, 2), (0, 1, 1.5)], [(0, 1, 2), (0, 1, 1e300)])
    yield from rows(lambda v: Mesh(TETRAHEDRON, v), bad, "Mesh.triangles", "from 0 to 3", "at index 1")
    yield from rows(lambda v: Mesh(TETRAHEDRON, FACES, v), (1, "yes", None), "Mesh.cavity")
    yield from rows(lambda v: Mesh(TETRAHEDRON, [*FACES, v]), ((0, 1, 1),), "area above 0", "1 of 5", "Mesh.cleaned")
    yield from rows(lambda v: Mesh.cleaned(TETRAHEDRON, v), ([(0, 1, 1)],), "at least one triangle")
    for name in ("add_body", "add_copies"):
        more = {"position": [[0, 0, 0]]} if name == "add_copies" else {}
        yield from rows(
            lambda v, name=name, more=more: getattr(SceneBuilder(), name)(Mesh(TETRAHEDRON, v), mass=1.0, **more),
            (FACES[:3],),
            name,
            "3 open edges",
            "convex_hull()",
            "decompose()",
            "close",
        )
    yield from rows(lambda v: dynamic(*SURFACES[v]), ("fin",), "share an edge", "1 edges", "convex_hull()")
    yield from rows(lambda v: dynamic(*SURFACES[v]), ("twisted",), "opposite directions", "1 edges", "fix_winding")
    yield from rows(lambda v: dynamic(TETRAHEDRON, np.array(FACES)[:, v]), ([2, 1, 0],), "point outwards", "-0.16")
    yield from rows(lambda v: dynamic(TETRAHEDRON, v), ([(0, 1, 2), (0, 2, 1)],), "enclose a volume", "thickness")
    mesh = Mesh(TETRAHEDRON, FACES)
    yield from rows(mesh.scaled, (NAN, 0, -1, "1", None, True), "Mesh.scaled.factor")
    yield from rows(mesh.transformed, ((1, 2), "abc", None, (NAN, 0, 0)), "Mesh.transformed.position")
    yield from rows(
        lambda v: mesh.transformed(orientation=v), ((2, 0, 0, 0), "no", (1, 0)), "Mesh.transformed.orientation"
    )
    yield from rows(lambda v: mesh.decompose(threshold=v), (NAN, 0, 2, "1", None), "Mesh.decompose.threshold")
    yield from rows(lambda v: mesh.decompose(max_parts=v), (0, 1.5, "1"), "Mesh.decompose.max_parts")
    yield from rows(lambda v: mesh.decompose(seed=v), (-1, 1.5, None), "Mesh.decompose.seed")
    yield from rows(lambda v: Mesh.load("a.stl", scale=v), (NAN, 0, -1, "1", None), "Mesh.load.scale")
    yield from rows(lambda v: Mesh.load("a.stl", unit=v), ("mmm",), "Mesh.load.unit", "Did you mean 'mm'?")
    yield from rows(lambda v: Mesh.load("a.stl", unit=v), (3, ["mm"]), "Mesh.load.unit")
    yield from rows(lambda v: Mesh.load("a.stl", clean=v), (1, None), "Mesh.load.clean")


CASES = list(cases())


@pytest.mark.parametrize("call, words", CASES)
def test_refused_with_place_rule_value_and_remedy(call, words):
    with pytest.raises(SceneError) as caught:
        call()
    text = str(caught.value)
    assert FORM.fullmatch(text), text
    for word in words:
        assert word in text


def test_names_of_files_must_be_texts():
    for wrong in (None, 3):
        with pytest.raises(FileError, match=r"Mesh\.load\.path"):
            Mesh.load(wrong)


def test_surfaces_with_odd_edges_may_be_static():
    for name in ("fin", "twisted", "sheet"):
        scene = SceneBuilder()
        scene.add_static(Mesh(*SURFACES[name]))
        geometry = scene.build().geometry
        assert (geometry.mesh_opposite == -1).sum() > 0
