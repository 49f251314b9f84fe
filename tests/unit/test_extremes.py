"""Numbers, files and sizes beyond all bounds end in one line of ours, before anything is allocated."""

from __future__ import annotations

import re
import time
import warnings

import h5py
import numpy as np
import pytest
from scipy.sparse import identity

import tumble as tb
from tumble.errors import (
    FileError,
    MemoryLimitError,
    OptionsError,
    ProblemError,
    SceneError,
    TumbleError,
    TumbleWarning,
)

FORM = re.compile(r"[^\n]+: [^\n]+ \(got [^\n]*\)\. [^\n]+[.?]")
BIG = 10**400
DIGITS = 10**5000
"""More digits than Python prints."""


@pytest.fixture(autouse=True, scope="module")
def warm():
    """What a step compiles is not counted."""
    scene = floor()
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 0.1))
    tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3)).step()


@pytest.fixture(autouse=True)
def quick(warm):
    """Each case answers within five seconds."""
    begin = time.perf_counter()
    yield
    assert time.perf_counter() - begin < 5.0


def floor():
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    return scene


def emitter(count):
    region = tb.DiscRegion(center=(0, 0, 1), radius=1.0)
    return floor().add_emitter(tb.Sphere(0.1), mass=1.0, count=count, rate=1.0, region=region)


NUMBERS = {
    "radius": lambda x: tb.Sphere(x),
    "size": lambda x: tb.Box((1.0, x, 1.0)),
    "hull": lambda x: tb.ConvexHull([[0, 0, 0], [x, 0, 0], [0, x, 0], [0, 0, x]]),
    "position": lambda x: floor().add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, x)),
    "mass": lambda x: floor().add_body(tb.Sphere(0.1), mass=x),
    "masses": lambda x: floor().add_spheres(0.1, mass=[1.0, x], position=[[0, 0, 0], [0, 0, 1]]),
    "radii": lambda x: floor().add_spheres([0.1, x], mass=1.0, position=[[0, 0, 0], [0, 0, 1]]),
    "dt": lambda x: tb.StepOptions(dt=x),
    "gravity": lambda x: tb.SceneBuilder(gravity=(0, 0, x)),
    "friction": lambda x: tb.Material(friction=x),
    "bias": lambda x: tb.ConeProblem.from_matrix(np.eye(3), [x, 0, 0], [0.5]),
    "matrix": lambda x: tb.ConeProblem.from_matrix([[x, 0, 0], [0, x, 0], [0, 0, x]], [1.0, 0, 0], [0.5]),
}


@pytest.mark.parametrize("value", [1e110, 1e308, BIG, DIGITS], ids=["1e110", "1e308", "10^400", "10^5000"])
@pytest.mark.parametrize("make", NUMBERS.values(), ids=list(NUMBERS))
def test_numbers_too_large_are_refused(make, value):
    with pytest.raises(TumbleError, match=FORM):
        make(value)


@pytest.mark.parametrize("name", ["radius", "size", "hull", "mass", "masses", "radii", "dt"])
@pytest.mark.parametrize("value", [1e-110, 1e-300, 5e-324])
def test_sizes_too_small_are_refused(name, value):
    with pytest.raises(TumbleError, match=FORM):
        NUMBERS[name](value)


@pytest.mark.parametrize("value", [BIG, DIGITS, 2**63], ids=["10^400", "10^5000", "2^63"])
@pytest.mark.parametrize(
    "make",
    [
        emitter,
        lambda n: tb.grid_points((n, 1, 1), 1.0),
        lambda n: tb.random_points(n, 0.1, low=(0, 0, 0), high=(1, 1, 1)),
        lambda n: tb.Save(path="a.h5", every=n),
        lambda n: tb.SolverAPGD(max_iterations=n),
        lambda n: floor().add_body(tb.Sphere(0.1), mass=1.0, group=n),
    ],
    ids=["emitter", "grid", "random", "every", "iterations", "group"],
)
def test_integers_beyond_64_bits_are_refused(make, value):
    with pytest.raises(TumbleError, match=FORM):
        make(value)


def test_a_density_that_makes_an_absurd_mass_is_refused():
    with pytest.raises(SceneError, match=r"mass .density times volume.: must be at most 1e\+30"):
        floor().add_body(tb.Sphere(1e15), density=1e3)
    with pytest.raises(SceneError, match=r"mass .density times volume.: must be >= 1e-30"):
        floor().add_spheres([1.0, 1e-20], density=1e3, position=[[0, 0, 0], [0, 0, 3]])


def test_shapes_too_far_apart_for_their_size_have_no_inertia():
    apart = [tb.Placed(tb.Sphere(1e-12), (x, x, 0)) for x in (-1e9, 1e9)]
    with pytest.raises(SceneError, match="principal moments > 0"):
        floor().add_body(apart, mass=1.0)


@pytest.mark.parametrize("value", [1e-30, 1e-9, 1e9, 1e30], ids=str)
def test_the_ends_of_the_range_are_simulated(value):
    """A ball of any size on a floor, in units of its own (time is that of a fall by its radius): finite, and at rest
    within its band."""
    scene = tb.SceneBuilder(gravity=(0, 0, -1.0))
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Sphere(value), mass=value, position=(0, 0, value))
    dt = min(max(0.01 * np.sqrt(value), 1e-30), 1e30)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=dt, speed_limit=1e30))
    for _ in range(20):
        report = sim.step()
    assert report.converged and np.isfinite(sim.state.position).all()
    assert abs(sim.state.position[1, 2] - value) < 0.01 * value


@pytest.mark.parametrize(
    "locked",
    [np.ones((2, 6), bool), np.ones(6, bool), [["x"], ["y"]], [1], {"x": 1, 2: 3}, "xy", [None], 3, np.array(1.0)],
    ids=lambda v: repr(v)[:20],
)
def test_locked_of_the_wrong_shape_is_refused(locked):
    with pytest.raises(SceneError, match=FORM):
        floor().add_body(tb.Sphere(0.1), mass=1.0, locked=locked)


def test_limits_that_look_like_degrees_are_asked_about():
    scene = floor()
    body = scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 1))
    options = dict(anchor=(0, 0, 1), axis=(0, 1, 0))
    with pytest.warns(
        TumbleWarning, match=r"limits: are radians .got .-90, 90., up to 14.3 turns.. Write numpy.deg2rad"
    ):
        scene.add_joint("revolute", None, body, limits=(-90, 90), name="hinge", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scene.add_joint("revolute", None, body, limits=(-20 * np.pi, np.inf), **options)
        scene.add_joint("prismatic", None, body, limits=(-90, 90), **options)


# ---------------------------------------------------------------------- files


def scene_file(folder, text):
    path = folder / "scene.toml"
    path.write_text(text)
    return path


DEEP = {
    "lists": "gravity = " + "[" * 3000 + "]" * 3000,
    "tables": "a." * 3000 + "a = 1",
    "header": "[" + "body." * 3000 + "a]",
    "inline": "a = " + "{a = " * 3000 + "1" + "}" * 3000,
    "digits": "gravity = [0, 0, " + "9" * 5000 + "]",
    "400 digits": "gravity = [0, 0, " + "9" * 400 + "]",
    "bits": "[[body]]\nmass = 1.0\ngroup = " + "9" * 400 + "\nshape = {type = 'sphere', radius = 1.0}",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=list(DEEP))
def test_scenes_nested_deep_or_with_endless_numbers_are_refused(tmp_path, text):
    with pytest.raises((FileError, SceneError), match=FORM):
        tb.load_scene(scene_file(tmp_path, text))


@pytest.mark.parametrize("tag", ["origin", "link", "mass"])
def test_robots_nested_deep_are_refused(tmp_path, tag):
    pytest.importorskip("yourdfpy")
    path = tmp_path / "robot.urdf"
    path.write_text(f"<robot name='r'><link name='a'>{f'<{tag}>' * 3000}{f'</{tag}>' * 3000}</link></robot>")
    with pytest.raises(FileError, match="nested so deep"):
        tb.SceneBuilder().add_urdf(path)


PACKINGS = {
    "grid": "shape = [1000000000, 1000000000, 1]\nspacing = 1.0",
    "lattice": "shape = [1000000000, 1000000000, 1]\ndiameter = 1.0",
    "random": "count = 1000000000000000000\nlow = [0, 0, 0]\nhigh = [1, 1, 1]",
}


@pytest.mark.parametrize("kind", PACKINGS)
@pytest.mark.parametrize("radius", ["radius = 0.1", "radius_range = [0.1, 0.2]"])
def test_a_packing_of_10_to_the_18_is_refused_with_the_estimate(tmp_path, kind, radius):
    text = f"[[spheres]]\n{radius}\nmass = 1.0\n[spheres.packing]\nkind = '{kind}'\n{PACKINGS[kind]}"
    with pytest.raises(SceneError, match=r"needs about .* GB of memory for 10{18} bodies \(got .* available\)"):
        tb.load_scene(scene_file(tmp_path, text))


@pytest.mark.parametrize(
    "make",
    [
        lambda: tb.grid_points((5000, 10_000, 1), 1.0),
        lambda: tb.lattice_points((5000, 10_000, 1), 1.0),
        lambda: tb.random_points(50_000_000, 1e-4, low=(0, 0, 0), high=(1, 1, 1)),
    ],
)
def test_fifty_million_bodies_in_a_packing_are_refused_at_once(make, monkeypatch):
    monkeypatch.setattr("tumble.memory.available", lambda: 64 * 10**9)  # which would hold the points alone
    with pytest.raises(MemoryLimitError, match="for 50000000 bodies"):
        make()


def problem_file(folder):
    path = folder / "problem.hdf5"
    tb.write_problem(path, tb.ConeProblem.from_matrix(identity(6).toarray(), [-1.0, 0, 0, -1.0, 0, 0], [0.5, 0.5]))
    return path


def edited(folder, edit):
    path = problem_file(folder)
    with h5py.File(path, "r+") as file:
        edit(file)
    return path


def dataset_for_group(name):
    def edit(file):
        del file[name]
        file[name] = np.arange(3.0)

    return edit


def group_for_dataset(name):
    def edit(file):
        del file[name]
        file.create_group(name)

    return edit


def declared(name, dtype="f8", **options):
    def edit(file):
        del file[name]
        file.create_dataset(name, (10**12,), dtype, **options)

    return edit


def whole(name, value):
    def edit(file):
        file[name][...] = value

    return edit


def wide(name, value):
    def edit(file):
        del file[name]
        file[name] = np.array([value])

    return edit


def triplets(rows):
    def edit(file):
        group = file["fclib_local/W"]
        for name in ("m", "n", "nz"):
            del group[name]
            group[name] = np.array([0 if name == "nz" else rows])

    return edit


EDITS = {
    **{f"dataset for {n}": dataset_for_group(n) for n in ("fclib_local", "fclib_local/W", "fclib_local/vectors")},
    "dataset for tumble": dataset_for_group("tumble"),
    "dataset for info": dataset_for_group("fclib_local/info"),
    **{f"group for {n}": group_for_dataset(n) for n in ("fclib_local/spacedim", "fclib_local/vectors/mu")},
    "huge mu": declared("fclib_local/vectors/mu", chunks=(1024,)),
    "huge q": declared("fclib_local/vectors/q", chunks=(1024,), compression="gzip"),
    "huge x": declared("fclib_local/W/x", chunks=(1024,)),
    "huge p": declared("fclib_local/W/p", "i4", chunks=(1024,)),
    "huge title": declared("fclib_local/info/title", "S8", chunks=(1024,)),
    "unstored mu": declared("fclib_local/vectors/mu"),
    "m": wide("fclib_local/W/m", 10**12),
    "n": wide("fclib_local/W/n", 10**12),
    "triplets": triplets(10**12),
    "nz": wide("fclib_local/W/nz", 10**12),
    "h nan": lambda file: file["tumble"].attrs.__setitem__("h", np.nan),
    "h text": lambda file: file["tumble"].attrs.__setitem__("h", "text"),
    "h 0": lambda file: file["tumble"].attrs.__setitem__("h", 0.0),
    "values": whole("fclib_local/W/x", 1e200),
    "mu 1e308": whole("fclib_local/vectors/mu", 1e308),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=list(EDITS))
def test_problem_files_with_the_wrong_thing_are_refused(tmp_path, edit):
    path = edited(tmp_path, edit)
    with pytest.raises((FileError, ProblemError, MemoryLimitError), match=FORM):
        tb.read_problem(path)


def test_height_images_of_196_megapixels_are_refused_before_they_are_read(tmp_path):
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "ground.png"
    image.MAX_IMAGE_PIXELS, before = None, image.MAX_IMAGE_PIXELS
    try:
        image.new("1", (14_000, 14_000)).save(path)
    finally:
        image.MAX_IMAGE_PIXELS = before
    with pytest.raises(FileError, match=r"at most 89 million pixels \(got .*196000000 pixels"):
        tb.HeightField.from_image(path, (1.0, 1.0), 0.0, 1.0)


# ---------------------------------------------------------------------- solvers


def random_problem(contacts, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(3 * contacts, 3 * contacts))
    return tb.ConeProblem.from_matrix(a @ a.T, rng.normal(size=3 * contacts), np.full(contacts, 0.5))


def test_lemke_refuses_a_table_that_is_too_large():
    n = 1000
    problem = tb.ConeProblem.from_matrix(np.eye(3 * n), np.tile([-1.0, 0.1, 0.0], n), np.full(n, 0.5))
    with pytest.raises(ProblemError, match=r"SolverLemke.*at most .* rows .got 10000"):
        tb.SolverLemke().solve(problem)


def test_lemke_keeps_its_limit_of_time():
    begin = time.perf_counter()
    solution = tb.SolverLemke(seconds=1e-4, facets=16).solve(random_problem(40))
    assert time.perf_counter() - begin < 3.0 and solution.iterations < 20_000
    assert solution.status == "max_iterations"


def test_options_of_lemke_are_checked():
    with pytest.raises(OptionsError, match=r"SolverLemke.seconds"):
        tb.SolverLemke(seconds=0.0)
