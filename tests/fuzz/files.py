"""Files of every kind that is read, and mutations of them: of bytes, of words, of what an HDF5 file holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import tumble as tb
from tumble.observe.checkpoint import read_checkpoint
from tumble.observe.facts import run_facts

from .judge import finite, finite_state, soon
from .values import EXTREMES, choose

ROBOT = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"><inertial><mass value="3.0"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
    <collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
  <link name="upper"><inertial><origin xyz="0.2 0 0" rpy="0 0 0"/><mass value="1.0"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>
    <collision><origin xyz="0.2 0 0" rpy="0 1.57 0"/><geometry><cylinder radius="0.05" length="0.4"/></geometry>
    </collision></link>
  <link name="hand"><inertial><mass value="0.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
    <collision><geometry><sphere radius="0.08"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.1"/>
    <axis xyz="0 1 0"/><limit lower="-1.5" upper="1.5" effort="20" velocity="3"/><dynamics damping="0.1"/></joint>
  <joint name="wrist" type="prismatic"><parent link="upper"/><child link="hand"/><origin xyz="0.4 0 0"/>
    <axis xyz="1 0 0"/><limit lower="0" upper="0.1" effort="10"/><mimic joint="shoulder" multiplier="0.1"/></joint>
</robot>
"""
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
PLY = """ply
format ascii 1.0
element vertex 4
property float x
property float y
property float z
element face 4
property list uchar int vertex_indices
end_header
0 0 0
1 0 0
0 1 0
0 0 1
3 0 2 1
3 0 1 3
3 1 2 3
3 0 3 2
"""


# ---------------------------------------------------------------------- mutations


def broken_bytes(rng: np.random.Generator, path: Path) -> None:
    """Flip, cut, blank, double or insert some bytes."""
    data = bytearray(path.read_bytes())
    at, length = int(rng.integers(len(data))), int(rng.integers(1, 64))
    kind = int(rng.integers(5))
    if kind == 0:
        for i in rng.integers(len(data), size=int(rng.integers(1, 9))):
            data[int(i)] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del data[at:]
    elif kind == 2:
        data[at : at + length] = bytes(len(data[at : at + length]))
    elif kind == 3:
        data[at:at] = data[at : at + length]
    else:
        data[at:at] = rng.bytes(length)
    path.write_bytes(bytes(data))


def cut_short(rng: np.random.Generator, path: Path) -> None:
    """Drop the end."""
    data = path.read_bytes()
    path.write_bytes(data[: int(rng.integers(len(data)))])


NUMBER = re.compile(r"-?\d+(\.\d+)?")


def broken_words(rng: np.random.Generator, path: Path) -> None:
    """Another number, a line less, a line twice, another word."""
    text = path.read_text()
    lines = text.splitlines()
    line = int(rng.integers(len(lines)))
    kind = int(rng.integers(6))
    if kind <= 2:
        found = choose(rng, list(NUMBER.finditer(text)))
        text = text[: found.start()] + f"{choose(rng, EXTREMES)}" + text[found.end() :]
    elif kind == 3:
        text = "\n".join(lines[:line] + lines[line + 1 :])
    elif kind == 4:
        text = "\n".join(lines[:line] + lines[line : line + 1] * 2 + lines[line + 1 :])
    else:
        words = re.findall(r"[A-Za-z_]+", text)
        text = text.replace(choose(rng, words), choose(rng, words))
    path.write_text(text)


def _strange_array(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """What a dataset or attribute might hold instead."""
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: np.full(shape, choose(rng, (np.nan, np.inf, -1.0, 0.0, 1e308, 1e-310))),
        lambda: np.full(shape, int(choose(rng, (-1, 0, 1, 2**31 - 1, 2**62)))),
        lambda: np.zeros(shape, np.float32),
        lambda: np.zeros(shape, np.int8),
        lambda: np.zeros(shape, bool),
        lambda: np.zeros(shape, complex),
        lambda: np.array("text", "S8"),
        lambda: np.zeros((*shape, 2)),
        lambda: np.zeros(shape[1:]),
        lambda: np.zeros((0, *shape[1:])),
        lambda: np.zeros(tuple(n + 1 for n in shape)),
        lambda: np.zeros(shape, [("a", float), ("b", int)]),
        lambda: h5py.Empty("f8"),
    )
    return choose(rng, kinds)()


def broken_content(rng: np.random.Generator, path: Path) -> None:
    """Another thing in the place of a group, dataset or attribute of an HDF5 file."""
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        if rng.random() < 0.2:
            owner = file if rng.random() < 0.5 or not names else file[choose(rng, names)]
            if len(owner.attrs):
                key = choose(rng, sorted(owner.attrs))
                value = owner.attrs[key]
                del owner.attrs[key]
                if rng.random() < 0.7:
                    owner.attrs[key] = _strange_array(rng, np.shape(value))
                return
        name = choose(rng, names)
        found = file[name]
        shape = getattr(found, "shape", None) or ()
        is_group = isinstance(found, h5py.Group)
        del found, file[name]
        kind = int(rng.integers(6))
        if kind == 0:
            return
        if kind == 1 or is_group:
            file[name] = _strange_array(rng, shape) if is_group else np.zeros(0)
        elif kind == 2:
            file.create_group(name)
        elif kind == 3:
            columns = tuple(max(1, n) for n in shape[1:])
            file.create_dataset(name, (10**12, *columns), "f8", chunks=(64, *columns))
        else:
            file[name] = _strange_array(rng, shape)


# ---------------------------------------------------------------------- kinds


@dataclass(frozen=True)
class Kind:
    """A kind of file: how a good one is made, how it is read, what is done to it."""

    name: str
    suffix: str
    make: Callable[[Path, int], None]
    """Writes the good file of a number at a path."""
    read: Callable[[Path], None]
    mutations: tuple[Callable[[np.random.Generator, Path], None], ...]


def _balls() -> tb.SceneBuilder:
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_spheres(0.1, mass=1.0, position=[[0, 0, 0.1], [0.05, 0, 0.3], [0.4, 0, 0.1]], name="balls")
    return scene


def _simulation() -> tb.Simulation:
    return tb.Simulation(_balls().build(), options=tb.StepOptions(dt=1e-3))


def _make_problem(path: Path, number: int) -> None:
    sim = _simulation()
    sim.step()
    if number % 2:
        sim.dump_problem(path)
    else:
        tb.write_problem(path, sim.last.problem, title="three balls")


def _read_problem(path: Path) -> None:
    problem = soon(tb.read_problem, path).problem
    if isinstance(problem, tb.ConeProblem):
        finite("impulse", (tb.SolverAPGD(max_iterations=200).solve(problem).impulse,))


def _make_trajectory(path: Path, number: int) -> None:
    fields = tb.options.SAVE_FIELDS if number % 2 else ("position", "orientation")
    for old in (path, path.with_suffix(".checkpoint.h5")):  # broken ones are not replaced
        old.unlink(missing_ok=True)
    _simulation().run(until=0.02, save=tb.Save(path=path, every=5, fields=fields), progress=False)


def _read_trajectory(path: Path) -> None:
    with soon(tb.Trajectory, path) as run:
        for frame in range(run.frames):
            finite("position", (run.read("position", frame), run.read("orientation", frame)))
        finite("reports", run.reports.values())


def _make_checkpoint(path: Path, number: int) -> None:
    sim = _simulation()
    for _ in range(1 + number % 3):
        sim.step()
    sim.save_checkpoint(path)


def _read_checkpoint(path: Path) -> None:
    finite_state(soon(read_checkpoint, path).state)
    sim = _simulation()
    sim.load_checkpoint(path)
    sim.step()
    finite_state(sim.state)


def _make_mesh(path: Path, number: int) -> None:
    if path.suffix == ".stl":
        mesh = tb.Mesh(*_tetrahedron())
        import trimesh

        trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False).export(path)
    else:
        path.write_text(OBJ if path.suffix == ".obj" else PLY)


def _tetrahedron() -> tuple[list[list[float]], list[list[int]]]:
    return [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]


def _read_mesh(path: Path) -> None:
    mesh = soon(tb.Mesh.load, path, clean=True)
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(mesh, mass=1.0, position=(0, 0, 0.01))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    for _ in range(3):
        soon(sim.step)
    finite_state(sim.state)


def _make_robot(path: Path, number: int) -> None:
    path.write_text(ROBOT)


def _read_robot(path: Path) -> None:
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), position=(0, 0, -1))
    soon(scene.add_urdf, path, fixed=True, motors="hold")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    for _ in range(3):
        soon(sim.step)
    finite_state(sim.state)


def _make_image(path: Path, number: int) -> None:
    from PIL import Image

    grey = np.random.default_rng(number).integers(0, 256, (6, 5))
    kinds = (grey.astype(np.uint8), (257 * grey).astype(np.uint16), np.stack([grey] * 3, axis=-1).astype(np.uint8))
    Image.fromarray(kinds[number % 3]).save(path)


def _read_image(path: Path) -> None:
    field = soon(tb.HeightField.from_image, path, (2.0, 2.0), 0.0, 0.1)
    finite("heights", (field.heights, field.bound))


CONTENT = (broken_content, broken_content, broken_content, cut_short)
"""No flipped bits: in the tables of an HDF5 file some of them send its library into a loop without end (attributes of
a checkpoint, `broken_bytes` with seed 194), which no reader can leave."""
KINDS = (
    Kind("problem", ".hdf5", _make_problem, _read_problem, CONTENT),
    Kind("trajectory", ".h5", _make_trajectory, _read_trajectory, CONTENT),
    Kind("checkpoint", ".chk", _make_checkpoint, _read_checkpoint, CONTENT),
    Kind("stl", ".stl", _make_mesh, _read_mesh, (broken_bytes,)),
    Kind("obj", ".obj", _make_mesh, _read_mesh, (broken_words, broken_bytes)),
    Kind("ply", ".ply", _make_mesh, _read_mesh, (broken_words, broken_bytes)),
    Kind("robot", ".urdf", _make_robot, _read_robot, (broken_words, broken_words, broken_bytes)),
    Kind("png", ".png", _make_image, _read_image, (broken_bytes,)),
    Kind("tiff", ".tif", _make_image, _read_image, (broken_bytes,)),
)
GOOD = 6
"""Good files of a kind."""


def mutated(kind: Kind, good: list[bytes], seed: int, path: Path) -> None:
    """Write the file of a seed."""
    rng = np.random.default_rng([15, seed])
    path.write_bytes(choose(rng, good))
    choose(rng, kind.mutations)(rng, path)


# ---------------------------------------------------------------------- runs that go on


@dataclass(frozen=True)
class Run:
    """The two files of a good run and what it recorded."""

    trajectory: bytes
    checkpoint: bytes
    fields: tuple[str, ...]


def good_runs(folder: Path) -> list[Run]:
    """One without and one with contacts."""
    found = []
    for number in range(2):
        path = folder / f"good{number}.h5"
        fields = tb.options.SAVE_FIELDS if number else ("position", "orientation")
        _simulation().run(until=0.022, save=tb.Save(path=path, every=5, fields=fields), progress=False)
        found.append(Run(path.read_bytes(), path.with_suffix(".checkpoint.h5").read_bytes(), fields))
    return found


def broken_run(runs: list[Run], seed: int, path: Path) -> tb.Save:
    """Write the two files of a seed, one of them spoilt."""
    rng = np.random.default_rng([17, seed])
    run, other = choose(rng, runs), path.with_suffix(".checkpoint.h5")
    path.write_bytes(run.trajectory)
    other.write_bytes(run.checkpoint)
    choose(rng, CONTENT)(rng, choose(rng, (path, other)))
    return tb.Save(path=path, every=5, fields=run.fields)


def go_on(save: tb.Save) -> None:
    """Tell what is there, resume it, and read what came of it."""
    soon(run_facts, save.path)
    soon(_simulation().run, until=0.03, save=save, resume=True, progress=False)
    with soon(tb.Trajectory, save.path) as run:
        assert run.steps[-1] == 30
    _read_trajectory(save.path)
