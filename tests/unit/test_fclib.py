"""Stored problems: the layout, round trips, what is refused, dumps of steps, and `tumble solve`."""

import json
import re
import warnings

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

import tumble as tb
from tests.naive.problems import random_problem
from tumble.cli import main
from tumble.errors import FileError, OptionsError, ProblemError, TumbleError, TumbleWarning
from tumble.problem.cone_problem import contact_first
from tumble.problem.fclib import GlobalForm, reduce
from tumble.problem.fclib_layout import read_matrix, write_matrix
from tumble.problem.profile import performance_profile
from tumble.problem.rolling import RollingProblem

FORM = re.compile(r"[^\n]+: [^\n]+ \(got [^\n]*\)\. [^\n]+[.?]")


def tumble(capsys, *arguments):
    """Exit code, stdout and stderr."""
    code = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def matrix_problem(seed=0, dim=3, **options):
    matrix, bias, mu, *_ = random_problem(seed, dim=dim, **options)
    return tb.ConeProblem.from_matrix(matrix, bias, mu, dim=dim)


def same(a, b, tolerance=0.0):
    """Two problems agree in everything, relative to their largest entries."""
    assert (a.count, a.dim, type(a)) == (b.count, b.dim, type(b)) and a.h == b.h
    n = a.count
    assert np.array_equal(a.friction[:n], b.friction[:n])
    if isinstance(a, RollingProblem):
        first, second, r, q = a.matrix, b.matrix, a.bias, b.bias
        assert np.array_equal(a.rolling_friction, b.rolling_friction)
    else:
        first, second = a.operator.to_sparse(), b.operator.to_sparse()
        r, q = contact_first(a.bias, a.dim, n), contact_first(b.bias, b.dim, n)
    for one, other in ((first.toarray(), second.toarray()), (r, q)):
        assert np.abs(one - other).max(initial=0.0) <= tolerance * np.abs(one).max(initial=0.0)


# ---------------------------------------------------------------------- layout


@pytest.mark.parametrize("storage", ["rows", "columns", "triplets"])
def test_every_storage_of_a_matrix(tmp_path, storage):
    matrix = sp.random(7, 5, 0.4, format="coo", random_state=np.random.default_rng(3))
    with h5py.File(tmp_path / "m.hdf5", "w") as file:
        write_matrix(file.create_group("W"), matrix, storage)
        nz = int(file["W/nz"][0])
        assert nz == {"rows": -2, "columns": -1, "triplets": matrix.nnz}[storage]
        if storage != "rows":  # unused room at the end is no part of the matrix
            for name in "ix":
                old = file[f"W/{name}"][()]
                del file[f"W/{name}"]
                file[f"W/{name}"] = np.append(old, 99)
        if storage == "triplets":
            p = file["W/p"][()]
            del file["W/p"]
            file["W/p"] = np.append(p, 99)
        assert np.array_equal(read_matrix("m.hdf5", file, "W").toarray(), matrix.toarray())


@pytest.mark.parametrize("dim", [2, 3])
def test_a_cone_problem_comes_back(tmp_path, dim):
    problem = matrix_problem(1, dim)
    tb.write_problem(tmp_path / "p.hdf5", problem, title="eight contacts", description="random")
    found = tb.read_problem(tmp_path / "p.hdf5")
    same(problem, found.problem)
    assert (found.kind, found.dim, found.title, found.description) == ("local", dim, "eight contacts", "random")
    assert found.symmetrised == 0.0 and found.clipped == 0.0 and found.whole is None and found.notes == ()
    assert list(tmp_path.iterdir()) == [tmp_path / "p.hdf5"]


def test_a_rolling_problem_comes_back(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(10, 12))
    problem = RollingProblem(
        sp.csr_matrix(a @ a.T), rng.normal(size=10), np.array([0.3, 0.5]), np.array([0.1, 0.2]), 0.1
    )
    tb.write_problem(tmp_path / "p.hdf5", problem)
    found = tb.read_problem(tmp_path / "p.hdf5")
    same(problem, found.problem, 1e-15)
    assert found.dim == 5
    g = np.arange(10.0)
    for form in (g, g.reshape(2, 5).T):
        assert np.array_equal(found.impulses(form), g)


def test_a_global_file_by_hand(tmp_path):
    """One block of 2 kg on a floor, pushed sideways: W = H^T M^-1 H, q = w + H^T M^-1 f."""
    with h5py.File(tmp_path / "g.hdf5", "w") as file:
        group = file.create_group("fclib_global")
        group["spacedim"] = [2]
        for name, value in (("M", np.diag([2.0, 2.0])), ("H", np.array([[0.0, 1.0], [1.0, 0.0]]))):
            write_matrix(group.create_group(name), value, "triplets")
        group["vectors/f"], group["vectors/w"], group["vectors/mu"] = [3.0, -4.0], [0.5, 0.0], [0.4]
    found = tb.read_problem(tmp_path / "g.hdf5")
    assert found.kind == "global" and found.title == ""
    assert np.array_equal(found.problem.operator.matrix.toarray(), 0.5 * np.eye(2))
    assert found.problem.bias[:2, 0].tolist() == [0.5 - 2.0, 1.5]
    assert found.whole.mass.shape == (2, 2) and found.whole.force.tolist() == [3.0, -4.0]


def test_the_reduction_of_random_systems():
    matrix, _, _, jacobian, inverse_mass, free = random_problem(5, contacts=100, bodies=60)
    form = GlobalForm(
        sp.diags(1.0 / inverse_mass).tocsr(), sp.csr_matrix(jacobian.T), free / inverse_mass, np.ones(300)
    )
    w, q = reduce(form)
    assert np.allclose(w.toarray(), matrix, rtol=0.0, atol=1e-12 * np.abs(matrix).max())
    assert np.allclose(q, 1.0 + jacobian @ free, rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------------- what is done to a matrix, and what is refused


def stored(tmp_path, matrix, bias=None, mu=None, dim=3):
    """A local file with any matrix."""
    n = np.shape(matrix)[0]
    path = tmp_path / "p.hdf5"
    with h5py.File(path, "w") as file:
        group = file.create_group("fclib_local")
        group["spacedim"] = [dim]
        write_matrix(group.create_group("W"), np.asarray(matrix, float))
        group["vectors/q"] = -np.ones(n) if bias is None else bias
        group["vectors/mu"] = np.full(n // dim, 0.3) if mu is None else mu
    return path


def test_a_slightly_unsymmetric_matrix_is_symmetrised(tmp_path):
    matrix = np.diag([2.0, 1.0, 1.0])
    matrix[0, 1], matrix[1, 0] = 0.10, 0.104
    found = tb.read_problem(stored(tmp_path, matrix))
    assert found.symmetrised == pytest.approx(0.002)
    assert found.problem.operator.matrix[0, 1] == pytest.approx(0.102)
    assert "symmetrised" in found.notes[0]
    matrix[1, 0] = 0.15
    with pytest.raises(ProblemError, match=r"p.hdf5: fclib_local/W: must be symmetric to 0.01 .*0.025"):
        tb.read_problem(stored(tmp_path, matrix))


def test_small_negative_eigenvalues_are_clipped_part_by_part(tmp_path):
    rng = np.random.default_rng(2)
    q, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    part = (q * [1.0, 0.5, 0.2, 0.1, 0.0, -1e-6]) @ q.T
    matrix = np.zeros((9, 9))
    rows = np.array([0, 1, 4, 5, 7, 8])
    matrix[np.ix_(rows, rows)] = part
    matrix[[2, 3, 6], [2, 3, 6]] = [2.0, 0.0, 1.0]
    found = tb.read_problem(stored(tmp_path, matrix))
    w = found.problem.operator.matrix.toarray()
    assert found.clipped == pytest.approx(5e-7, rel=1e-6)
    assert np.linalg.eigvalsh(w)[0] > -1e-15 and np.abs(w - matrix).max() < 2e-6
    assert np.array_equal(w[[2, 3, 6]], matrix[[2, 3, 6]])
    untouched = tb.read_problem(stored(tmp_path, matrix + np.diag(np.full(9, 1e-6))))
    assert untouched.clipped == 0.0


def test_large_parts_are_judged_by_lanczos(tmp_path, monkeypatch):
    from tumble.problem import conditioning

    monkeypatch.setattr(conditioning, "DENSE", 10)
    matrix = random_problem(3, contacts=16)[0]
    found = tb.read_problem(stored(tmp_path, matrix))
    assert found.clipped == 0.0 and found.notes == ()
    value, vector = np.linalg.eigh(matrix)
    lowered = matrix - 1e-4 * value[-1] * np.outer(vector[:, 0], vector[:, 0])
    found = tb.read_problem(stored(tmp_path, lowered))
    assert found.clipped == 0.0 and "down to -0.0001 of the largest, too many rows" in found.notes[-1]
    with pytest.raises(ProblemError, match="eigenvalue"):
        tb.read_problem(stored(tmp_path, matrix - 0.1 * np.linalg.norm(matrix, 2) * np.eye(48)))


def edit(path, name, value=None):
    with h5py.File(path, "a") as file:
        del file[name]
        if value is not None:
            file[name] = value


W = "fclib_local/W"
MISTAKES = {
    "no group": (lambda p: edit(p, "fclib_local"), FileError, "must have a group fclib_local or fclib_global"),
    "no W": (lambda p: edit(p, W), FileError, r"fclib_local/W: this group must exist"),
    "no q": (lambda p: edit(p, "fclib_local/vectors/q"), FileError, r"fclib_local/vectors/q: this dataset must exist"),
    "no mu": (lambda p: edit(p, "fclib_local/vectors/mu"), FileError, r"vectors/mu: this dataset must exist"),
    "no p": (lambda p: edit(p, W + "/p"), FileError, r"W/p: this dataset must exist"),
    "W a dataset": (lambda p: edit(p, W, [1.0]), FileError, r"fclib_local/W: must be a group"),
    "q a text": (lambda p: edit(p, "fclib_local/vectors/q", b"abc"), ProblemError, r"vectors/q: must hold numbers"),
    "spacedim 4": (lambda p: edit(p, "fclib_local/spacedim", [4]), ProblemError, "spacedim: must be 2, 3 or 5"),
    "spacedim 2": (lambda p: edit(p, "fclib_local/spacedim", [2]), ProblemError, "W/m: must be 4"),
    "two spacedims": (lambda p: edit(p, "fclib_local/spacedim", [3, 3]), ProblemError, "must hold one number"),
    "no mu_r": (lambda p: edit(p, "fclib_local/spacedim", [5]), ProblemError, "W/m: must be 10"),
    "NaN in W": (lambda p: edit(p, W + "/x", np.full(6, np.nan)), ProblemError, r"W/x: must be finite"),
    "NaN in q": (lambda p: edit(p, "fclib_local/vectors/q", np.full(6, np.nan)), ProblemError, "vectors/q.*finite"),
    "NaN in mu": (lambda p: edit(p, "fclib_local/vectors/mu", [0.1, np.nan]), ProblemError, "vectors/mu.*finite"),
    "negative mu": (lambda p: edit(p, "fclib_local/vectors/mu", [0.1, -0.2]), ProblemError, r"mu: must be >= 0 .*-0.2"),
    "short q": (
        lambda p: edit(p, "fclib_local/vectors/q", np.ones(5)),
        ProblemError,
        r"vectors/q: must have shape \(6,\)",
    ),
    "short mu": (lambda p: edit(p, "fclib_local/vectors/mu", [0.1]), ProblemError, "W/m: must be 3"),
    "nz -3": (lambda p: edit(p, W + "/nz", [-3]), ProblemError, "W/nz: must be -2"),
    "short p": (lambda p: edit(p, W + "/p", np.arange(3)), ProblemError, "W/p: must have 7 entries"),
    "falling p": (lambda p: edit(p, W + "/p", [0, 2, 1, 3, 4, 5, 6]), ProblemError, "W/p: must start at 0 and never"),
    "short i": (lambda p: edit(p, W + "/i", np.arange(3)), ProblemError, "W/i: must have 6 entries"),
    "short x": (lambda p: edit(p, W + "/x", np.ones(3)), ProblemError, "W/x: must have 6 entries"),
    "far column": (lambda p: edit(p, W + "/i", np.arange(6) + 1), ProblemError, r"W/i: must lie in \[0, 6\)"),
    "real indices": (lambda p: edit(p, W + "/i", np.ones(6)), ProblemError, "W/i: must hold whole numbers"),
    "far triplet": (lambda p: edit(p, W + "/nz", [9]), ProblemError, "W/i: must have 9 entries"),
    "indefinite": (lambda p: edit(p, W + "/x", [1.0, 1, 1, -0.1, 1, 1]), ProblemError, "W: must have no eigenvalue"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_file_is_named_in_one_line(tmp_path, capsys, name):
    path = stored(tmp_path, np.eye(6))
    change, error, words = MISTAKES[name]
    change(path)
    with pytest.raises(error, match=words) as caught:
        tb.read_problem(path)
    assert FORM.fullmatch(str(caught.value)) and "p.hdf5" in str(caught.value)
    code, out, err = tumble(capsys, "solve", path)
    assert (code, out) == (2, "") and len(err.splitlines()) == 1


def test_files_of_other_kinds(tmp_path, capsys):
    whole = stored(tmp_path, np.eye(6)).read_bytes()
    (tmp_path / "cut.hdf5").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.hdf5").write_text("not HDF5")
    for name in ("cut.hdf5", "text.hdf5", "nothing.hdf5"):
        with pytest.raises(FileError, match=name):
            tb.read_problem(tmp_path / name)
        code, _, err = tumble(capsys, "solve", tmp_path / name)
        assert code == 2 and len(err.splitlines()) == 1
    with pytest.raises(FileError, match="folder that exists"):
        tb.write_problem(tmp_path / "no" / "folder.hdf5", matrix_problem())
    with pytest.raises(ProblemError, match="must be a ConeProblem"):
        tb.write_problem(tmp_path / "x.hdf5", None)


def test_mistakes_in_global_files(tmp_path):
    form = GlobalForm(sp.identity(3, format="csr"), sp.identity(3, format="csr"), np.zeros(3), -np.ones(3))
    problem = tb.ConeProblem.from_matrix(np.eye(3), -np.ones(3), [0.5])
    path = tmp_path / "g.hdf5"
    for matrix, rule in (
        (np.diag([1.0, 0, 1]), "fclib_global/M: must be invertible"),
        (np.eye(3)[:2], "M/m: must be 3"),
    ):
        tb.write_problem(path, problem, whole=form, local=False)
        edit(path, "fclib_global/M")
        with h5py.File(path, "a") as file:
            write_matrix(file["fclib_global"].create_group("M"), matrix)
        with pytest.raises(ProblemError, match=rule):
            tb.read_problem(path)
    tb.write_problem(path, problem, whole=form, local=False)
    same(problem, tb.read_problem(path).problem)
    with h5py.File(path, "a") as file:
        write_matrix(file["fclib_global"].create_group("G"), np.ones((3, 1)))
    with pytest.raises(ProblemError, match="no equality rows"):
        tb.read_problem(path)


# ---------------------------------------------------------------------- steps of simulations


def heap(**options):
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_kinematic(tb.Box((1, 1, 0.1)), position=(0, 0, 0.05), velocity=(0.3, 0, 0))
    points = np.array([[x, y, 0.15 + 0.0999 * k] for k, (x, y) in enumerate([(0, 0), (0.02, 0), (0.01, 0.03)])])
    scene.add_spheres(0.05, mass=0.1, position=points)
    scene.add_body(tb.Box((0.1, 0.2, 0.1)), mass=1.0, position=(0.3, 0, 0.15), locked=("y", "rx", "rz"))
    scene.add_body(tb.Box((0.1, 0.2, 0.1)), mass=2.0, position=(-0.3, 0, 0.1501), angular_velocity=(1, 2, 3))
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=2e-3), **options)


def arm():
    """A hinged arm with a limit, a motor with a maximum and friction, falling on a ball on the floor."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Sphere(0.1), mass=0.5, position=(0.9, 0, 0.1))
    bar = scene.add_body(tb.Box((1.0, 0.1, 0.1)), density=500.0, position=(0.5, 0, 0.2501), name="arm")
    scene.add_joint(
        "revolute", None, bar, anchor=(0, 0, 0.25), axis=(0, 1, 0), limits=(-0.5, 0.001), friction=0.2, name="hinge"
    )
    tip = scene.add_body(tb.Box((0.3, 0.1, 0.1)), density=500.0, position=(1.15, 0, 0.2501), name="tip")
    scene.add_joint("revolute", bar, tip, anchor=(1, 0, 0.25), axis=(0, 1, 0), name="wrist")
    scene.add_motor("wrist", "speed", target=1.0, maximum=2.0, name="servo")
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))


def test_a_step_comes_back_from_its_dump(tmp_path):
    sim = heap()
    for _ in range(3):
        sim.step()
    sim.dump_problem(tmp_path / "s.hdf5")
    found = tb.read_problem(tmp_path / "s.hdf5")
    assert found.kind == "global" and found.whole is not None and found.problem.count > 5
    same(sim.last.problem, found.problem, 1e-12)
    k, step = found.problem.count, found.step
    assert step["step"] == 3 and step["law"] == "coulomb" and step["status"] == "converged"
    assert np.array_equal(step["gap"], sim.last.contacts.gap[:k])
    assert np.array_equal(step["feature"], sim.state.memory.feature)
    # The file alone gives the step's velocities: v = M^-1 (H r + f) on the directions of `basis`.
    v = np.linalg.solve(found.whole.mass.toarray(), found.whole.jacobian @ step["impulse"] + found.whole.force)
    velocity = (step["basis"] @ v).reshape(-1, 6)[step["dynamic"]]
    assert velocity[:, :3] == pytest.approx(sim.velocities()[step["dynamic"]], abs=1e-12)
    again = tb.SolverAPGD(tolerance=1e-9).solve(found.problem)
    assert again.converged and again.residuals.natural_map <= 1e-9


def test_a_jointed_step_keeps_its_bounded_rows(tmp_path):
    sim = arm()
    for _ in range(20):
        sim.step()
    problem = sim.last.problem
    k = sim.last.contacts.count
    assert k > 0 and (problem.friction[k : problem.count] < 0.0).sum() == 2  # friction and motor
    assert (problem.friction[k : problem.count] == 0.0).sum() == 1  # the limit
    sim.dump_problem(tmp_path / "j.hdf5")
    found = tb.read_problem(tmp_path / "j.hdf5")
    same(problem, found.problem, 1e-12)
    assert found.kind == "local" and found.whole is None
    one, other = (tb.SolverAPGD(tolerance=1e-9).solve(p) for p in (problem, found.problem))
    assert other.converged and other.impulse[:, : problem.count] == pytest.approx(
        one.impulse[:, : problem.count], abs=1e-8
    )
    with h5py.File(tmp_path / "j.hdf5") as file:  # other readers of the layout see cones only
        assert file["fclib_local/vectors/mu"].shape == (problem.count - 2,)
        assert b"tumble/local" in file["fclib_local/info/description"][()]
    # The rows of the joints and the global form give the same matrix and bias.
    rows = found.step["joints"]
    with h5py.File(tmp_path / "j.hdf5") as file:
        group = file["fclib_global"]
        mass, h = (read_matrix("j", group, name).toarray() for name in "MH")
        force, offset = group["vectors/f"][()], group["vectors/w"][()]
    g, e = rows["equality"].toarray(), rows["equality_compliance"]
    p = np.hstack([h, rows["bounded"].toarray().T])
    saddle = np.block([[mass, -g.T], [g, np.diag(e)]])
    answer = np.linalg.solve(saddle, np.vstack([np.hstack([p, force[:, None]]), np.zeros((len(g), p.shape[1] + 1))]))
    answer[:, -1] += np.linalg.solve(saddle, np.concatenate([np.zeros(len(mass)), -rows["equality_bias"]]))
    v = answer[: len(mass)]
    own = np.concatenate([np.arange(3 * k), np.arange(3 * k, 3 * problem.count, 3)])
    matrix = problem.operator.to_sparse().toarray()[np.ix_(own, own)]
    extra = np.diag(np.concatenate([np.zeros(3 * k), rows["bounded_compliance"]]))
    assert p.T @ v[:, :-1] + extra == pytest.approx(matrix, abs=1e-12 * np.abs(matrix).max())
    bias = p.T @ v[:, -1] + np.concatenate([offset, rows["bounded_bias"]])
    assert bias == pytest.approx(contact_first(problem.bias, 3, problem.count)[own], abs=1e-12)
    bound = np.abs(np.minimum(problem.friction[k : problem.count], 0.0))
    assert np.array_equal(np.where(np.isinf(rows["highest"]), 0.0, rows["highest"]), bound)


def test_a_step_without_contacts(tmp_path):
    scene = tb.SceneBuilder()
    scene.add_body(tb.Sphere(0.1), mass=1.0)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    with pytest.raises(OptionsError, match="needs a step first"):
        sim.dump_problem(tmp_path / "none.hdf5")
    sim.step()
    sim.dump_problem(tmp_path / "none.hdf5")
    found = tb.read_problem(tmp_path / "none.hdf5")
    assert found.problem.count == 0 and tb.SolverAPGD().solve(found.problem).converged


def test_a_run_dumps_what_was_asked_for_and_what_did_not_converge(tmp_path):
    sim = heap(solver=tb.SolverAPGD(tolerance=1e-14, max_iterations=2))
    save = tb.Save(path=tmp_path / "run.h5")
    result = sim.run(until=0.03, save=save, progress=False, dump_problems=[14])
    names = sorted(p.name for p in tmp_path.glob("*.hdf5"))
    assert names == [f"run.step{k:06d}.hdf5" for k in [*range(1, 11), 14]]
    assert result.unconverged == 15 and len(result.problems) == 11
    assert "problems of 11 steps: run.step000001.hdf5" in result.summary()
    found = tb.read_problem(tmp_path / "run.step000014.hdf5")
    assert found.step["step"] == 14 and found.step["status"] == "max_iterations"
    with pytest.raises(TumbleWarning, match="99"), warnings.catch_warnings():
        heap().run(until=0.004, save=tb.Save(path=tmp_path / "two.h5"), progress=False, dump_problems=[99])
    with pytest.raises(OptionsError, match="needs save"):
        heap().run(until=0.004, dump_problems=[1])


# ---------------------------------------------------------------------- the command line

SCENE = """
[[body]]
kind = "static"
shape = {type = "half_space"}
[[spheres]]
radius = 0.05
mass = 0.1
packing = {kind = "grid", shape = [2, 2, 2], spacing = 0.1, origin = [0, 0, 0.05]}
[step]
dt = 2e-3
[run]
until = 0.02
"""


def test_run_dump_solve(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.toml").write_text(SCENE)
    code, out, _ = tumble(capsys, "run", "scene.toml", "--dump-problem", "3", "--dump-problem", "5")
    assert code == 0 and "scene.step000003.hdf5, scene.step000005.hdf5" in out
    code, out, err = tumble(
        capsys, "solve", "scene.step000005.hdf5", "--law", "relaxed", "--solver", "apgd", "--tolerance", "1e-9",
        "--json", "--out", "impulses.npy", "--threads", "1", "--set", "check_every=5",
    )  # fmt: skip
    assert code == 0 and err == ""
    facts = json.loads(out)
    needed = "solver status iterations seconds natural_map residual_eq25 objective certificate_energy"
    assert {*needed.split(), "certificate_shift_velocity", "contacts", "law", "symmetrised", "clipped"} <= set(facts)
    assert facts["status"] == "converged" and facts["natural_map"] <= 1e-9 and facts["law"] == "relaxed"
    found = tb.read_problem("scene.step000005.hdf5")
    g = np.load("impulses.npy")
    assert g.shape == (3 * facts["contacts"],)
    matrix, bias = found.problem.operator.matrix, contact_first(found.problem.bias, 3, found.problem.count)
    assert g @ (0.5 * matrix @ g + bias) == pytest.approx(facts["objective"])
    code, out, _ = tumble(capsys, "solve", "scene.step000005.hdf5")
    assert code == 0 and "natural_map" in out
    assert tumble(capsys, "solve", "scene.step000005.hdf5", "--solver", "apgd", "--set", "max_iterations=1")[0] == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--law", "magic"], "--law"),
        (["--solver", "magic"], "--solver"),
        (["--solver", "apgd,jacobi"], "one name for one problem"),
        (["--tolerance", "x"], "must be a number"),
        (["--set", "magic=1"], "unknown option 'magic'"),
        (["--set", "magic"], "KEY=VALUE"),
        (["--set", "scaling=magic"], "scaling"),
        (["--out", "no/folder.npy"], "folder that exists"),
        (["--out", "run.h5"], "must end in .npy"),
        (["--out", "/dev/full"], "must end in .npy"),
        (["--threads", "0"], "--threads"),
    ],
)
def test_bad_arguments(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    path = stored(tmp_path, np.eye(6))
    code, out, err = tumble(
        capsys, "solve", path, *(arguments if "--solver" in arguments else ["--solver", "apgd", *arguments])
    )
    assert (code, out) == (2, "") and words in err and len(err.splitlines()) == 1


def test_a_folder_gives_a_table_and_a_profile(tmp_path, capsys):
    folder = tmp_path / "problems"
    folder.mkdir()
    for seed in range(3):
        tb.write_problem(folder / f"p{seed}.hdf5", matrix_problem(seed))
    solve = ("solve", folder, "--solver", "apgd,gauss_seidel", "--tolerance", "1e-6", "--law", "relaxed")
    code, out, _ = tumble(capsys, *solve, "--out", tmp_path / "results")
    assert code == 0 and "apgd: 3 of 3 solved" in out
    assert sorted(p.name for p in (tmp_path / "results").iterdir()) == ["profile.csv", "profile.png", "results.csv"]
    rows = (tmp_path / "results" / "results.csv").read_text().splitlines()
    assert len(rows) == 7 and rows[0].startswith("problem,solver,status,iterations,seconds,natural_map")
    profile = np.loadtxt(tmp_path / "results" / "profile.csv", delimiter=",", skiprows=1, ndmin=2)
    assert profile[0, 0] == 1.0 and profile[-1, 1:].tolist() == [1.0, 1.0] and profile[0, 1:].sum() >= 1.0
    # A problem that a solver does not take is a row, a file that is none is an error after all others were solved.
    rolling = RollingProblem(sp.identity(5, format="csr"), -np.ones(5), np.array([0.3]), np.array([0.1]))
    tb.write_problem(folder / "q.hdf5", rolling)
    code, out, _ = tumble(capsys, *solve, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 3 and len(rows) == 8 and [r["status"] for r in rows[-2:]] == ["refused", "refused"]
    (folder / "a.hdf5").write_text("nonsense")
    code, out, err = tumble(capsys, *solve)
    assert code == 2 and "apgd: 3 of 5 solved" in out and "a.hdf5" in err and len(err.splitlines()) == 1
    empty = tmp_path / "empty"
    empty.mkdir()
    assert tumble(capsys, "solve", empty)[0] == 2


def test_performance_profile_by_hand():
    profile = performance_profile([[1.0, 2.0], [4.0, 1.0], [3.0, np.inf], [np.inf, np.nan]])
    assert profile.factor.tolist() == [1.0, 2.0, 4.0]
    assert profile.share.tolist() == [[0.5, 0.5, 0.75], [0.25, 0.5, 0.5]]
    with pytest.raises(TumbleError, match="must be > 0"):
        performance_profile([[0.0, 1.0]])
