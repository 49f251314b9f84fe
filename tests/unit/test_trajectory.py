"""Trajectories and checkpoints: what is written comes back, also after SIGKILL, damage and resume."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import tumble as tb
from tumble.errors import FileError
from tumble.observe.checkpoint import read_checkpoint, write_checkpoint
from tumble.observe.layout import Plan, difference
from tumble.observe.trajectory import Trajectory
from tumble.observe.writer import TrajectoryWriter
from tumble.scene import rotation
from tumble.scene.builder import SceneBuilder
from tumble.scene.model import ContactMemory, State
from tumble.scene.shapes import Box, HalfSpace, Placed, Sphere

FIELDS = ("position", "orientation", "velocity", "angular_velocity", "contacts")
COLUMNS = {"time": "s", "kinetic_energy": "J"}
PLAN = Plan(fields=FIELDS, columns=COLUMNS)


def scene(spheres=3):
    builder = SceneBuilder()
    builder.add_static(HalfSpace(), name="floor")
    builder.add_body(
        [Placed(Sphere(0.1), (0.3, 0, 0)), Placed(Box((0.1, 0.2, 0.3)))],
        density=10.0,
        name="odd",
        position=(0, 0, 1),
        orientation=rotation.from_axis_angle((1, 2, 3), 0.7),
    )
    builder.add_spheres(0.1, position=np.arange(3.0 * spheres).reshape(-1, 3), density=1.0, name="balls")
    return builder.build()


def state_at(model, step):
    rng = np.random.default_rng(step)
    n = model.body_count
    q = rng.normal(size=(n, 4))
    keys = np.arange(step)
    memory = ContactMemory(keys, keys + 1, 7 * keys, rng.normal(size=(3, step)))
    return State(
        0.1 * step,
        step,
        rng.normal(size=(n, 3)),
        q / np.linalg.norm(q, axis=1, keepdims=True),
        rng.normal(size=(n, 3)),
        rng.normal(size=(n, 3)),
        memory,
    )


def contacts_at(step):
    k = step % 3
    rng = np.random.default_rng(step)
    return {
        "body_a": np.zeros(k, int),
        "body_b": np.arange(k),
        "gap": rng.normal(size=k),
        **{name: rng.normal(size=(k, 3)) for name in ("point", "normal", "force")},
    }


def append(writer, model, step):
    for row in range(2):
        writer.append_report((step + 0.5 * row, 10.0 * step))
    writer.append_frame(state_at(model, step), contacts_at(step))


def check(trajectory, model, steps):
    assert trajectory.frames == len(steps)
    for i, step in enumerate(steps):
        state = state_at(model, step)
        position, orientation = model.user_pose(state)
        assert np.array_equal(trajectory.read("position", i), position)
        assert np.array_equal(trajectory.read("orientation", i), orientation)
        assert np.array_equal(trajectory.read("velocity", i), state.velocity)
        world = np.einsum("nij,nj->ni", rotation.matrix(state.orientation), state.spin)
        assert np.allclose(trajectory.read("angular_velocity", i), world, atol=1e-14)
        for name, value in contacts_at(step).items():
            assert np.array_equal(trajectory.contacts(i)[name], value)
    assert np.array_equal(trajectory.times, [0.1 * s for s in steps])
    assert np.array_equal(trajectory.reports["time"], [s + d for s in steps for d in (0, 0.5)])
    assert trajectory.final_state_sha256 == state_at(model, steps[-1]).sha256()


def make(path, model, steps, finished=True, plan=PLAN):
    writer = TrajectoryWriter(
        path,
        model=model,
        plan=plan,
        attributes={"tumble_version": "0", "dt": 0.1, "seed": 3},
    )
    for step in steps:
        append(writer, model, step)
    writer.close(finished=finished)
    return path


def test_round_trip(tmp_path):
    model = scene()
    with Trajectory(make(tmp_path / "run.h5", model, [0, 5, 10])) as t:
        check(t, model, [0, 5, 10])
        assert t.finished and t.attributes == {"tumble_version": "0", "dt": 0.1, "seed": 3}
        assert t.array("orientation").shape == (3, model.body_count, 4)
        assert np.array_equal(t.read("velocity", -1), state_at(model, 10).velocity)
        assert np.array_equal(t.model.shape_position, model.shape_position) and t.model.names == model.names
        for wrong in (lambda: t.read("positon", 0), lambda: t.read("position", 3)):
            with pytest.raises(FileError, match=r"run\.h5"):
                wrong()


def test_reader_beside_a_writer_and_unfinished_exit(tmp_path):
    model, path = scene(), tmp_path / "run.h5"
    with (
        pytest.raises(KeyboardInterrupt),
        TrajectoryWriter(path, model=model, plan=PLAN, attributes={}) as writer,
    ):
        append(writer, model, 1)
        writer.append_report((99.0, 99.0))
        with Trajectory(path) as t:
            check(t, model, [1])
        raise KeyboardInterrupt
    with Trajectory(path) as t:
        assert not t.finished and t.frames == 1


def test_only_the_chosen_fields(tmp_path):
    model, path = scene(), tmp_path / "run.h5"
    plan = Plan(fields=("position",), columns={})
    with TrajectoryWriter(path, model=model, plan=plan, attributes={}) as writer:
        writer.append_frame(state_at(model, 1))
    with Trajectory(path) as t:
        assert t.fields == ("position",) and t.reports == {}
        with pytest.raises(FileError):
            t.read("velocity", 0)
        with pytest.raises(FileError, match=r"must hold contacts \(got position\)\. .*--contacts"):
            t.contacts(0)


def plain_frames(path):
    """Frames that any program sees, without this package."""
    program = f"import h5py; f = h5py.File({str(path)!r}, 'r'); print(f['committed'][0], len(f['frames/position'][:]))"
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    committed, rows = map(int, done.stdout.split())
    assert rows >= committed
    return committed


def test_what_was_there_stays_until_as_many_frames_are_written_again(tmp_path):
    model = scene()
    path = make(tmp_path / "run.h5", model, [0, 5, 10, 15])
    with TrajectoryWriter.reopen(path, model=model, frames=3) as writer:
        assert writer.frames == 3 and not writer.caught_up
        assert plain_frames(path) == 4
        append(writer, model, 13)
        assert writer.caught_up
        with Trajectory(path) as t:
            check(t, model, [0, 5, 10, 13])
            assert not t.finished
        append(writer, model, 17)
    with Trajectory(path) as t:
        check(t, model, [0, 5, 10, 13, 17])
        assert t.finished and t.attributes["dt"] == 0.1
    with TrajectoryWriter.reopen(path, model=model, frames=2):
        pass  # ends before it has caught up: nothing is lost
    assert plain_frames(path) == 5
    with TrajectoryWriter.reopen(path, model=model, frames=2, keep=False):
        assert plain_frames(path) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]


def test_any_program_reads_a_file_that_is_being_written(tmp_path):
    """Also the writing program itself, which shares HDF5 with the writer."""
    import h5py

    model, path = scene(), tmp_path / "run.h5"
    with TrajectoryWriter(path, model=model, plan=PLAN, attributes={}) as writer:
        assert not path.exists()  # a file without a frame is nothing
        for step in range(1, 30):
            append(writer, model, step)
            with h5py.File(path, "r") as file:
                assert file["committed"][0] == step == len(file["frames/time"])
            assert path.read_bytes()[11] == 0
        assert plain_frames(path) == 29


@pytest.mark.parametrize("place", ["_step_columns", "_check_rows"])
def test_a_reader_that_a_writer_overtakes(tmp_path, monkeypatch, place):
    """Headers that HDF5 remembered from before the last frame looked like a damaged file, one time in twelve."""
    model, path, steps = scene(), tmp_path / "run.h5", iter(range(2, 100))
    with TrajectoryWriter(path, model=model, plan=PLAN, attributes={}) as writer:
        append(writer, model, 1)
        real, calls = getattr(Trajectory, place), []

        def overtaken(self):
            calls.append(1)
            found = real(self)
            append(writer, model, next(steps))
            if place == "_check_rows" and len(calls) < 3:
                raise ValueError("something of which half is old")
            return found

        monkeypatch.setattr(Trajectory, place, overtaken)
        with Trajectory(path) as t:
            check(t, model, list(range(1, len(calls) + 1)))


def test_one_writer_at_a_time(tmp_path):
    model, path = scene(), tmp_path / "run.h5"
    with TrajectoryWriter(path, model=model, plan=PLAN, attributes={}) as writer:
        append(writer, model, 1)
        for second in (lambda: make(path, model, [1]), lambda: TrajectoryWriter.reopen(path, model=model, frames=1)):
            with pytest.raises(FileError, match=rf"one run at a time \(got process {os.getpid()} at work\)"):
                second()
        append(writer, model, 2)
    with Trajectory(path) as t:
        check(t, model, [1, 2])
    make(path, model, [7])
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_a_file_that_is_taken_away_is_noticed(tmp_path, change):
    model, path = scene(), tmp_path / "run.h5"
    with TrajectoryWriter(path, model=model, plan=PLAN, attributes={}) as writer:
        append(writer, model, 1)
        path.unlink()
        if change == "replaced":
            path.write_text("mine")
        append(writer, model, 2)
        with pytest.raises(FileError, match="must stay where it is"):
            writer.settle()
    assert change == "removed" or path.read_text() == "mine"


def test_chosen_bodies_single_precision_packed_and_in_the_background(tmp_path):
    model, path = scene(spheres=300), tmp_path / "run.h5"
    chosen = np.array([1, 5, 200])
    plan = Plan(fields=("position", "velocity"), columns=COLUMNS, bodies=chosen, single=True, compress=True)
    with TrajectoryWriter(path, model=model, plan=plan, attributes={}, background=True) as writer:
        for step in range(1, 40):
            append(writer, model, step)
    with Trajectory(path) as t:
        assert (
            t.frames == 39 and t.finished and t.bodies.tolist() == chosen.tolist() and t.plan.single and t.plan.compress
        )
        for i in (0, 20, 38):
            state = state_at(model, i + 1)
            assert t.read("velocity", i).dtype == np.float64
            assert np.array_equal(t.read("velocity", i), state.velocity[chosen].astype(np.float32))
            assert t.final_state_sha256 == state_at(model, 39).sha256()
        assert len(t.reports["time"]) == 78
    assert np.array_equal(t.model.body_kind, model.body_kind)


def test_what_fails_in_the_background_is_told(tmp_path):
    model = scene()
    writer = TrajectoryWriter(tmp_path / "run.h5", model=model, plan=PLAN, attributes={}, background=True)
    append(writer, model, 1)
    writer.settle()
    writer._committed = None  # the next frame cannot be written
    append(writer, model, 2)
    with pytest.raises((TypeError, AttributeError)):
        writer.settle()
    writer.leave()


def test_every_dataset_has_its_unit_and_bodies_their_uids(tmp_path):
    import h5py

    model = every_kind()
    with h5py.File(make(tmp_path / "run.h5", model, [1]), "r") as file:
        units = {}
        file.visititems(
            lambda name, item: units.update({name: item.attrs.get("unit")}) if hasattr(item, "dtype") else None
        )
        texts = {"history", "model/description", "frames/state_sha256"}
        assert {name for name, unit in units.items() if unit is None} == texts
        assert (units["frames/position"], units["frames/angular_velocity"], units["contacts/force"]) == (
            "m",
            "rad/s",
            "N",
        )
        assert '"kinetic_energy": "J"' in units["steps"]
        assert np.array_equal(file["model/body_uid"], model.body_uid)
        assert (file.attrs["format_version"], file.attrs["part"], file.attrs["parts"]) == (3, 0, 1)


def every_kind(bump=0.0):
    """All kinds of shapes; bump [m] changes one point of the pooled geometry and nothing else."""
    hull = tb.ConvexHull(np.random.default_rng(1).normal(size=(12, 3)))
    builder = SceneBuilder()
    builder.add_static(HalfSpace())
    builder.add_static(tb.HeightField(np.arange(12.0).reshape(3, 4), (2.0, 3.0)))
    builder.add_static(tb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, bump]], [[0, 1, 2]]))
    cube = tb.ConvexHull([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    solids = [Sphere(0.1), tb.Capsule(0.1, 0.2), Box((0.1, 0.2, 0.3)), tb.Cylinder(0.1, 0.2), tb.Cone(0.1, 0.2)]
    solids += [tb.Ellipsoid((0.1, 0.2, 0.3)), hull, hull, tb.Rounded(hull, 0.05), tb.Rounded(Box((1, 1, 1)), 0.1)]
    for shape in [*solids, tb.Mesh(cube.points, cube.triangles)]:
        builder.add_body(shape, density=1.0)
    return builder.build()


def test_the_model_of_a_file_has_all_shapes(tmp_path):
    import h5py

    model = every_kind()
    path = make(tmp_path / "run.h5", model, [0, 5])
    with Trajectory(path) as t:
        check(t, model, [0, 5])
        assert t.model.shape_parameters.shape == (model.shape_count, 4)
        for name in ("shape_kind", "shape_parameters", "shape_geometry"):
            a, b = getattr(t.model, name), getattr(model, name)
            assert np.array_equal(a, b) and a.dtype == b.dtype
        assert type(t.model.geometry) is type(model.geometry)
        for a, b in zip(t.model.geometry, model.geometry):
            assert np.array_equal(a, b) and a.dtype == b.dtype and a.shape == b.shape
        hulls = t.model.shape_geometry[t.model.shape_kind == tb.enums.ShapeKind.HULL]
        assert hulls.tolist() == [0, 0, 0] and len(t.model.geometry.hull_start) == 2  # stored once
        before = t.final_state_sha256
        assert difference(t.model, model) is None
        assert difference(t.model, every_kind(bump=1e-9)) == "geometry.mesh_point"
    with TrajectoryWriter.reopen(path, model=model, frames=2) as writer:
        assert writer.frames == 2
    with Trajectory(path) as t:
        assert t.final_state_sha256 == before
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = 1
    with pytest.raises(FileError, match=r"version of the layout among \(2, 3\) \(got version 1\)"):
        Trajectory(path)


def test_large_geometry_is_packed(tmp_path):
    n = 200
    builder = SceneBuilder()
    x = np.arange(n) / n
    points = np.stack([*np.meshgrid(x, x, indexing="ij"), np.zeros((n, n))], axis=-1).reshape(-1, 3)
    i = np.arange(n * (n - 1))
    i = i[i % n < n - 1]
    mesh = tb.Mesh(points, np.concatenate([np.stack([i, i + n, i + n + 1], 1), np.stack([i, i + n + 1, i + 1], 1)]))
    builder.add_static(mesh)
    builder.add_body(Sphere(0.1), mass=1.0)
    model = builder.build()
    path = make(tmp_path / "run.h5", model, [1])
    assert path.stat().st_size < 0.5 * sum(a.nbytes for a in model.geometry)
    with Trajectory(path) as t:
        assert all(np.array_equal(a, b) for a, b in zip(t.model.geometry, model.geometry))


CHILD = """
import sys
sys.path.insert(0, {folder!r})
from test_trajectory import *
model = scene(spheres=2000)
writer = TrajectoryWriter(sys.argv[1], model=model, plan=PLAN, attributes={{}})
for step in range(1, 100000):
    append(writer, model, step)
    print(step, flush=True)
"""


@pytest.mark.parametrize("delay", [0.05, 0.11, 0.23])
def test_killed_writer(tmp_path, delay):
    path = tmp_path / "run.h5"
    program = CHILD.format(folder=os.path.dirname(__file__))
    child = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    first = child.stdout.readline()
    time.sleep(delay)
    child.send_signal(signal.SIGKILL)
    written = [int(line) for line in (first + child.stdout.read()).split()]
    child.wait()
    child.stdout.close()
    model = scene(spheres=2000)
    assert len(written) >= 2
    with Trajectory(path) as t:
        assert t.frames in (len(written), len(written) + 1) and not t.finished
        check(t, model, list(range(1, t.frames + 1)))
    data = path.read_bytes()
    (tmp_path / "cut.h5").write_bytes(data[: len(data) // 2])
    with pytest.raises(FileError):
        Trajectory(tmp_path / "cut.h5")
    last = written[-2]
    with TrajectoryWriter.reopen(path, model=model, frames=last, keep=False) as writer:
        append(writer, model, last + 1)
    with Trajectory(path) as t:
        check(t, model, list(range(1, last + 2)))
        assert t.finished


def test_missing_foreign_and_truncated_files(tmp_path):
    import h5py

    model = scene()
    with pytest.raises(FileError, match="no such file"):
        Trajectory(tmp_path / "none.h5")
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(FileError, match=r"text\.h5: must be a whole HDF5 file"):
        Trajectory(tmp_path / "text.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(FileError, match="tumble trajectory"):
        Trajectory(tmp_path / "other.h5")
    data = make(tmp_path / "run.h5", model, [1, 2, 3]).read_bytes()
    for size in (10, 1000, len(data) // 2, len(data) - 1):
        (tmp_path / "cut.h5").write_bytes(data[:size])
        with pytest.raises(FileError, match=r"cut\.h5"):
            Trajectory(tmp_path / "cut.h5")
    with pytest.raises(FileError, match="folder"):
        make(tmp_path / "no" / "run.h5", model, [])


def test_checkpoint_is_exact_and_atomic(tmp_path):
    model, path = scene(), tmp_path / "run.checkpoint"
    for step in (0, 4):
        state = state_at(model, step)
        write_checkpoint(path, state, attributes={"scene": "a.toml", "dt": 0.1, "n": 2})
        back, attributes, *_ = read_checkpoint(path)
        assert attributes == {"scene": "a.toml", "dt": 0.1, "n": 2} and type(attributes["n"]) is int
        assert (back.time, back.step, back.sha256()) == (state.time, state.step, state.sha256())
        for name in ("uid_a", "uid_b", "feature", "impulse"):
            a, b = getattr(back.memory, name), getattr(state.memory, name)
            assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    with pytest.raises(TypeError):
        write_checkpoint(path, state_at(model, 9), attributes={"bad": object()})
    assert read_checkpoint(path)[0].step == 4
    assert [p.name for p in tmp_path.iterdir()] == ["run.checkpoint"]


def test_checkpoints_whose_velocities_mean_something_else_are_refused(tmp_path):
    import h5py

    path = tmp_path / "run.checkpoint"
    write_checkpoint(path, state_at(scene(), 4), attributes={})
    with h5py.File(path, "r+") as file:
        file.attrs["format_version"] = 2  # spins of the kick, before there was a drift
    with pytest.raises(FileError, match=r"must be of version 4 .* \(got version 2\)\. .*start the run again"):
        read_checkpoint(path)


def test_damaged_checkpoints(tmp_path):
    model, path = scene(), tmp_path / "run.checkpoint"
    with pytest.raises(FileError, match="no such file"):
        read_checkpoint(path)
    state = state_at(model, 2)
    write_checkpoint(path, state, attributes={})
    data = path.read_bytes()
    spot = data.index(state.position.tobytes()) + 3
    path.write_bytes(data[:spot] + bytes([data[spot] ^ 1]) + data[spot + 1 :])
    with pytest.raises(FileError, match="hash"):
        read_checkpoint(path)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileError, match="whole checkpoint"):
        read_checkpoint(path)
    with pytest.raises(FileError, match="tumble checkpoint"):
        read_checkpoint(make(tmp_path / "run.h5", model, [1]))


def test_a_run_that_ends_early_records_its_last_state(tmp_path):
    sim = tb.Simulation(scene(), options=tb.StepOptions(dt=0.01), threads=1)
    save = tb.Save(path=tmp_path / "run.h5", every=10)
    result = sim.run(until=1.0, save=save, progress=False, stop=lambda sim: sim.time > 0.125)
    assert result.steps == 13 and result.time == pytest.approx(0.13)
    with Trajectory(save.path) as run:
        assert run.times[-1] == pytest.approx(0.13) and np.array_equal(run.read("position", -1), sim.positions())
