"""More bodies than memory: refused before anything is made."""

import numpy as np
import pytest

import tumble as tb
from tumble import memory
from tumble.cli import main
from tumble.errors import MemoryLimitError


def test_what_is_available_is_a_sensible_number():
    room = memory.available()
    assert room is None or 2**20 < room < 2**60


def test_a_control_group_bounds_it(monkeypatch):
    monkeypatch.setattr(memory, "_machine", lambda: 8 * 10**9)
    monkeypatch.setattr(memory, "_control_group", lambda: [3 * 10**9, 5 * 10**9])
    assert memory.available() == 3 * 10**9
    monkeypatch.setattr(memory, "_control_group", lambda: [-5])
    assert memory.available() == 0
    monkeypatch.setattr(memory, "_control_group", list)
    monkeypatch.setattr(memory, "_machine", lambda: None)
    assert memory.available() is None
    memory.check("anything", 10**30, "it")  # unknown: nothing is refused


@pytest.mark.parametrize(
    "make",
    [
        lambda s: tb.grid_points((100_000, 100_000, 100_000), 1.0),
        lambda s: tb.lattice_points((100_000, 100_000, 100_000), 1.0),
        lambda s: tb.random_points(10**15, 0.1, low=(0, 0, 0), high=(1, 1, 1)),
        lambda s: s.add_spheres(0.1, mass=1.0, position=np.broadcast_to(np.zeros(3), (10**15, 3))),
        lambda s: s.add_boxes((1, 1, 1), mass=1.0, position=np.broadcast_to(np.zeros(3), (10**15, 3))),
        lambda s: s.add_copies(tb.Sphere(0.1), mass=1.0, position=np.broadcast_to(np.zeros(3), (10**15, 3))),
        lambda s: s.add_emitter(
            tb.Sphere(0.1), mass=1.0, count=10**15, rate=1.0, region=tb.DiscRegion(center=(0, 0, 0), radius=1.0)
        ),
    ],
    ids=["grid", "lattice", "random", "spheres", "boxes", "bodies", "emitter"],
)
def test_absurd_numbers_are_refused_at_once(make):
    with pytest.raises(MemoryLimitError, match=r"needs about .* GB of memory for 10{15} .*got .* available"):
        make(tb.SceneBuilder())


def scene(count):
    out = tb.SceneBuilder()
    out.add_static(tb.HalfSpace())
    out.add_spheres(0.1, mass=1.0, position=np.arange(3.0 * count).reshape(-1, 3))
    return out.build()


def test_a_simulation_that_cannot_fit_is_refused_with_the_numbers(monkeypatch):
    model = scene(1000)
    need = memory.run_bytes(1001, 1001, 6000)
    assert 5e6 < need < 2e7
    monkeypatch.setattr(memory, "available", lambda: need - 1)
    words = (
        r"Simulation: needs about 8\.1 MB of memory for 1001 bodies and about 6000 contacts \(got 8\.1 MB available\)"
    )
    with pytest.raises(MemoryLimitError, match=words):
        tb.Simulation(model, options=tb.StepOptions(dt=1e-3))
    monkeypatch.setattr(memory, "available", lambda: need)
    tb.Simulation(model, options=tb.StepOptions(dt=1e-3))


def test_the_command_line_refuses_with_code_2(monkeypatch, tmp_path, capsys):
    path = tmp_path / "scene.toml"
    path.write_text(
        '[[spheres]]\nradius = 0.1\nmass = 1.0\npacking = {kind = "grid", shape = [10, 10, 10], spacing = 1.0}\n'
        "[step]\ndt = 1e-3\n[run]\nuntil = 0.01\n"
    )
    room = memory.run_bytes(1000, 1000, 6000)
    monkeypatch.setattr(memory, "available", lambda: room)  # the points and bodies besides do not fit
    assert main(["run", str(path), "--out", str(tmp_path / "run.h5"), "--quiet"]) == 2
    assert "spheres[0]: grid_points: needs about 9.15 MB of memory for 1000 bodies" in capsys.readouterr().err
    path.write_text(
        path.read_text() + '[[body]]\nmass = 1.0\nposition = [0, 0, 50]\nshape = {type = "sphere", radius = 1}'
    )
    monkeypatch.setattr(memory, "check_packing", lambda where, count: None)  # a scene of more than its packing
    assert main(["run", str(path), "--out", str(tmp_path / "run.h5"), "--quiet"]) == 2
    assert "1001 bodies and about 6006 contacts (got 8.1 MB available)" in capsys.readouterr().err


def balls(builder):
    points = tb.lattice_points((12, 12, 12), 0.1, origin=(0, 0, 0.05))
    builder.add_spheres(0.05, mass=1.0, position=points)
    return len(points)


def boxes(builder):
    builder.add_boxes((0.1, 0.1, 0.1), mass=1.0, position=tb.grid_points((9, 9, 9), 0.1, origin=(0, 0, 0.05)))
    return 9**3


@pytest.mark.parametrize("fill", [balls, boxes])
def test_the_estimate_covers_the_buffers_of_a_run(fill, monkeypatch):
    """Touching balls, and boxes face to face: what the step's arrays take, against the estimate before the run."""
    builder = tb.SceneBuilder()
    builder.add_static(tb.HalfSpace())
    count = fill(builder)
    asked = []
    monkeypatch.setattr(memory, "check", lambda where, need, what: asked.append(need))
    sim = tb.Simulation(
        builder.build(), options=tb.StepOptions(dt=1e-3), solver=tb.SolverAPGD(max_iterations=5), threads=1
    )
    report = sim.step()
    w = sim._work
    arrays = [v for part in (w, w.pairs, w.narrow, w.rows) for v in vars(part).values() if isinstance(v, np.ndarray)]
    state = (*vars(sim.state).values(), *vars(sim._safe).values())
    scratch = [array for _, group in w.rows._scratch.values() for array in group]
    taken = sum(a.nbytes for a in (*arrays, *scratch, *state) if isinstance(a, np.ndarray))
    taken += w.contacts.nbytes
    assert 0.5 < taken / memory.run_bytes(count, count, report.contacts) < 1.2
    assert 0.5 < taken / asked[0] < 1.2
