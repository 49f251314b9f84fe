"""The planar experiments reach the printed numbers; the solver studies hold in small versions."""

import numpy as np
import pytest

import tumble as tb
from tumble.bench.slab import stored_slab
from tumble.errors import ExperimentError, NotConvergedError
from tumble.experiments import planar, pressure, run_experiment
from tumble.experiments.painleve import PRINTED as ROD
from tumble.experiments.particle import PRINTED as PARTICLE
from tumble.experiments.reference import rank_and_spread

LAWS = ("coulomb", "relaxed")


def run(name, folder, **settings):
    found = run_experiment(name, out=folder, settings=settings, progress=False)
    for figure in (figures := sorted(folder.glob("*.png"))):
        assert figure.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert figures
    return found


# ---------------------------------------------------------------------- one body in the plane


@pytest.fixture(scope="module")
def particle(tmp_path_factory):
    return run("particle", tmp_path_factory.mktemp("particle"))


@pytest.fixture(scope="module")
def painleve(tmp_path_factory):
    return run("painleve", tmp_path_factory.mktemp("painleve"))


@pytest.mark.parametrize("k", range(8))
def test_particle_reaches_the_printed_table(particle, k):
    assert particle[f"difference_k{k}"] == pytest.approx(PARTICLE[k], rel=1e-5)


@pytest.mark.parametrize("k", range(8))
def test_the_engine_reaches_the_printed_table_of_the_particle(particle, k):
    """Collision code, problem in space and solver, not only the stand-alone stepper."""
    assert particle[f"difference_engine_k{k}"] == pytest.approx(PARTICLE[k], rel=1e-5)
    assert particle["engine_unconverged_steps"] == 0


def test_particle_from_contact(particle):
    """The relaxed law throws it up however small the step; the scaled norm falls all the same."""
    exact = (0.3 * 3.0 / 1.09) ** 2 / (2 * 9.81)
    assert particle["lift_height_exact"] == pytest.approx(exact) == pytest.approx(0.034748, abs=1e-6)
    assert particle["lift_height_k7"] == pytest.approx(exact, rel=0.01)
    assert max(particle[f"lift_height_coulomb_k{k}"] for k in range(8)) < 1e-12
    # The error of the height halves with the step.
    errors = [particle[f"lift_height_k{k}"] - exact for k in (5, 6, 7)]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.01) and errors[1] / errors[2] == pytest.approx(2, rel=0.01)
    assert particle["ratio_contact_k7"] == pytest.approx(1.4, abs=0.05)


def test_particle_with_the_values_of_the_text(particle):
    assert particle["difference_text_k0"] == pytest.approx(4.27e-2, rel=2e-3)
    assert particle["difference_text_k7"] == pytest.approx(1.39e-5, rel=5e-3)


@pytest.mark.parametrize("k", range(8))
def test_painleve_is_near_the_printed_table(painleve, k):
    """Our values lie 2.0 to 2.5 % above, for a reason nobody knows."""
    assert painleve[f"difference_k{k}"] == pytest.approx(ROD[k], rel=0.04)


@pytest.mark.parametrize("k", range(8))
def test_the_engine_and_the_printed_table_of_the_rod(painleve, k):
    """The engine's impulses act midway between tip and floor. Nothing else differs: the stand-alone stepper with such
    impulses has the engine's table, which lies 33 to 69 % above the printed one."""
    assert painleve[f"difference_engine_k{k}"] == pytest.approx(painleve[f"difference_midway_k{k}"], rel=1e-4)
    assert 1.3 < painleve[f"difference_engine_k{k}"] / ROD[k] < 1.7


def test_painleve_from_contact(painleve):
    assert painleve["lift_height_k7"] == pytest.approx(0.0299, abs=1e-4)
    # Coulomb's law: the tip leaves the floor by what one explicit rotation misses, O(h^2).
    assert painleve["lift_height_coulomb_k7"] < 1e-6
    assert painleve["lift_height_coulomb_k6"] / painleve["lift_height_coulomb_k7"] == pytest.approx(4.0, rel=0.02)


def test_paradox(painleve):
    """No sliding force exists: the tip is stopped by an impact without a collision, by both laws alike."""
    assert painleve["paradox_slope"] == pytest.approx(-0.9988, abs=1e-4)
    for part, value in {"x": -2.55391, "y": 0.82981, "spin": 2.68534}.items():
        assert painleve[f"first_velocity_{part}_exact"] == pytest.approx(value, abs=1e-5)
        for law in LAWS:
            assert painleve[f"first_velocity_{part}_{law}"] == pytest.approx(value, abs=1e-4)
    for law in LAWS:
        errors = [painleve[f"first_velocity_error_{law}_k{k}"] for k in range(13)]
        assert np.allclose(np.divide(errors[:-1], errors[1:]), 2.0, rtol=1e-6)  # O(h)
    assert painleve["first_velocity_error"] < 1e-4
    assert painleve["energy_gain_first_step"] < 0.0
    assert painleve["energy_gain_paradox"] < 1e-12


def test_planar_steps_are_solved_exactly(particle, painleve):
    for found in (particle, painleve):
        assert found["natural_map"] < 1e-12
        assert found["ambiguous_steps"] == 0


def test_strict_planar_runs(tmp_path):
    for name in ("particle", "painleve"):
        with pytest.raises(NotConvergedError):
            run_experiment(name, out=tmp_path / name, settings={"tolerance": 0.0, "halvings": 1}, strict=True)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("contacts", [1, 2])
def test_modes_agree_with_the_solver(law, contacts):
    """The enumeration of modes against APGD on random bodies in the plane; velocities are compared."""
    rng, compared = np.random.default_rng(contacts), 0
    for _ in range(20):
        rows = np.stack(
            [[0.0, 1.0, x] if i % 2 == 0 else [1.0, 0.0, x] for i, x in enumerate(rng.normal(size=2 * contacts))]
        )
        mass = np.array([1.0, 1.0, rng.uniform(0.5, 2.0)])
        matrix, bias, mu = (rows / mass) @ rows.T, rng.normal(size=2 * contacts), rng.uniform(0.05, 0.4)
        g, unique = planar.solve_modes(matrix, bias, mu, law == "coulomb", speed=1.0)
        problem = tb.ConeProblem.from_matrix(matrix, bias, np.full(contacts, mu), dim=2)
        impulse = np.zeros((3, contacts))
        impulse[:2] = g.reshape(contacts, 2).T
        assert tb.solvers.measure(problem, impulse, law).natural_map < 1e-11
        found = tb.SolverAPGD(tolerance=1e-12, max_iterations=20000).solve(problem, law=law)
        if unique and found.converged:
            other = found.impulse[:2].T.ravel()
            assert matrix @ g == pytest.approx(matrix @ other, abs=1e-8)
            compared += 1
    assert compared > 15


@pytest.mark.parametrize("seed", range(3))
def test_particle_follows_its_settings(tmp_path, seed):
    rng = np.random.default_rng(seed)
    mu, v, g = rng.uniform(0.05, 0.5), rng.uniform(1.0, 5.0), rng.uniform(5.0, 20.0)
    found = run(
        "particle", tmp_path, text_friction=mu, speed=v, text_gravity=g, halvings=5, mass=10 ** rng.uniform(-2, 2)
    )
    exact = (mu * v / (1 + mu**2)) ** 2 / (2 * g)
    assert found["lift_height_exact"] == pytest.approx(exact)
    # One step too much of the first speed: h v_y / 2 and less.
    assert 0.0 <= found["lift_height_k5"] - exact < 0.1 / 2**5 * mu * v


# ---------------------------------------------------------------------- solver studies


def test_fill_scaling(tmp_path):
    found = run("fill-scaling", tmp_path, spheres="10,30,60", duration=1.0, fit_from=10)
    for count in (30, 60):
        error = {law: found[f"max_complementarity_error_{law}_n{count}"] for law in LAWS}
        assert 0.0 < error["coulomb"] < error["relaxed"]
    assert found["mean_contacts_coulomb_n60"] > found["mean_contacts_coulomb_n10"] > 0
    assert np.isfinite(found["time_contacts_slope"])
    assert found["unconverged_steps_coulomb_n60"] == 0


def test_convergence(tmp_path):
    found = run("convergence", tmp_path, spheres=30, side=7.0, settling=1.5, dt=0.002)
    for state in ("thorough", "poor"):
        assert found[f"objective_relative_difference_{state}"] < 1e-5
        assert found[f"objective_interior_point_{state}"] < 0.0
        assert 1 <= found[f"iterations_apgd_{state}"] <= found[f"iterations_to_tolerance_apgd_{state}"]
        # The interior point ends on its duality gap; its forces may be a little worse than APGD's own.
        assert found[f"natural_map_interior_point_{state}"] < 1e-4
        assert found[f"natural_map_apgd_{state}"] < 1e-6
        assert found[f"matrix_rank_{state}"] <= min(found[f"matrix_rows_{state}"], 6 * 30)
        assert found[f"eigenvalue_ratio_{state}"] > 1.0
    assert found["largest_overlap_poor"] > found["largest_overlap_thorough"]
    assert found["kinetic_energy_thorough"] < 0.0215  # settled and stopped until it is


def test_rank_and_spread_of_a_problem():
    """Against the eigenvalues of the matrix itself."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_spheres(1.0, mass=1.0, position=[(0, 0, 1.0), (2.0, 0, 1.0), (1.0, 0.0, 1.0 + np.sqrt(3.0))])
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=0.01), solver=tb.SolverAPGD())
    sim.step()
    problem = sim.last.problem
    values = np.linalg.eigvalsh(problem.operator.to_sparse().toarray())
    values = values[values > 1e-10 * values[-1]]
    rank, spread = rank_and_spread(problem)
    assert rank == len(values) < 3 * problem.count
    assert spread == pytest.approx(values[-1] / values[0], rel=1e-8)


def test_solver_scaling(tmp_path):
    found = run(
        "solver-scaling",
        tmp_path,
        spheres="10,40",
        settling=1.0,
        dt=0.002,
        repeats=1,
        tolerance=1e-5,
        pivoting_limit=50,
    )
    published = ("apgd_paper", "gauss_seidel_paper", "jacobi_paper")
    solvers = ("apgd", "barzilai_borwein", "gauss_seidel", "jacobi", "interior_point", *published)
    for name in solvers:
        assert found[f"unsolved_{name}"] == 0, name
        assert np.isfinite(found[f"time_contacts_slope_{name}"])
        assert found[f"seconds_{name}_n40"] > 0.0
    assert found["time_contacts_slope"] == found["time_contacts_slope_apgd"]
    assert found["natural_map_lemke_n10"] < 1e-6
    assert "seconds_lemke_n40" not in found


def test_pressure(tmp_path):
    found = run(
        "pressure",
        tmp_path,
        spheres=60,
        side=1.0,
        settling=1.5,
        masses="100,1000",
        iterations=300,
        max_iterations=20000,
    )
    for suffix in ("", "_1000kg"):
        residual = {n: found[f"residual_{n}_300{suffix}"] for n in ("jacobi", "gauss_seidel", "apgd", "default")}
        assert max(residual["apgd"], residual["default"]) < min(residual["jacobi"], residual["gauss_seidel"])
        assert found[f"iterations_apgd{suffix}"] <= found[f"iterations_apgd_1e-6{suffix}"]
        assert found[f"iterations_apgd_1e-6{suffix}"] <= found[f"iterations_gauss_seidel_1e-6{suffix}"] / 2
    assert found["objective_apgd_300"] < found["objective_jacobi_300"] < 0.0


def test_pressure_on_the_stored_state(shared_data):
    """The same state as another engine settled it: the plain methods rank as published."""
    path = shared_data / "bench" / "slab_state.npz"
    if not path.is_file():
        pytest.skip("slab_state.npz is absent")
    problem = stored_slab(np.load(path))
    found = {}
    for name, solver in pressure.solvers(pressure.Settings()).items():
        s = pressure.Settings(iterations=200, max_iterations=600 if name in ("apgd", "default") else 200)
        found[name] = pressure.study(s, problem, solver, detailed=False).metrics
    # An independent prototype of the published methods took 18, 24 and 100 iterations to 7e-6, and APGD 460 to 1e-6.
    assert found["apgd"]["iterations"] == pytest.approx(18, abs=1)
    assert found["gauss_seidel"]["iterations"] == pytest.approx(24, abs=1)
    assert found["jacobi"]["iterations"] == pytest.approx(100, rel=0.05)
    assert found["apgd"]["iterations_1e-6"] == pytest.approx(460, rel=0.05)
    assert all(found[name]["seconds"] > 0.0 for name in found)
    assert found["default"]["iterations_1e-6"] < found["apgd"]["iterations_1e-6"]
    residual = [found[name]["residual_200"] for name in ("jacobi", "gauss_seidel", "apgd")]
    assert residual == sorted(residual, reverse=True)


@pytest.mark.parametrize(
    "name, settings, text",
    [
        ("painleve", {"paradox_inertia": 1.0}, "paradox_inertia: must be so small that"),
        ("fill-scaling", {"spheres": "10,20.5"}, "spheres: must be whole numbers (got 20.5)"),
        ("solver-scaling", {"spheres": 1.5}, "spheres: must be whole numbers (got 1.5)"),
        ("solver-scaling", {"side": 1.0}, "side: must be >= 3.591 m"),
        ("pressure", {"side": 0.2}, "side: must be > 0.315 m"),
        ("pressure", {"loose_tolerance": 1e-9}, "loose_tolerance: must be >= tolerance"),
        ("convergence", {"settling_law": "coulom"}, "Did you mean 'coulomb'?"),
        ("particle", {"halvings": 30}, "halvings: must be <= 14"),
    ],
)
def test_wrong_input_is_refused(tmp_path, name, settings, text):
    with pytest.raises(ExperimentError) as caught:
        run_experiment(name, out=tmp_path / "out", settings=settings)
    assert text in str(caught.value)
    assert not (tmp_path / "out").exists()
