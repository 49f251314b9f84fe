"""Joints: coordinates and their Jacobians, the elimination against dense algebra, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tumble as tb
from tests.naive.mechanisms import four_bar, pendulum, rod, simulate
from tumble.errors import OptionsError, ProblemError, SceneError, TumbleWarning
from tumble.scene import rotation
from tumble.solve.barzilai_borwein import SolverBarzilaiBorwein
from tumble.solve.gauss_seidel import SolverGaussSeidel
from tumble.solve.jacobi import SolverJacobi
from tumble.solve.nsgs import SolverNSGS
from tumble.solve.residuals import measure

KINDS = (
    "fixed",
    "spherical",
    "revolute",
    "prismatic",
    "cylindrical",
    "universal",
    "planar",
    "point_on_plane",
    "distance",
)


def two_bodies(kind, seed):
    """Two bodies anywhere, joined."""
    rng = np.random.default_rng(seed)
    scene = tb.SceneBuilder()
    for name in "ab":
        q = rng.normal(size=4)
        scene.add_body(
            None,
            mass=float(rng.uniform(0.5, 2)),
            inertia=rng.uniform(0.2, 0.3, 3),
            position=rng.normal(size=3),
            orientation=q / np.linalg.norm(q),
            velocity=rng.normal(size=3),
            angular_velocity=rng.normal(size=3),
            name=name,
        )
    if kind == "distance":
        scene.add_joint(kind, "a", "b", anchor_a=rng.normal(size=3), anchor_b=rng.normal(size=3), name="joint")
    elif kind == "universal":
        x = rng.normal(size=3)
        y = np.cross(x, rng.normal(size=3))
        scene.add_joint(kind, "a", "b", anchor=rng.normal(size=3), axis=x, second_axis=y, name="joint")
    else:
        scene.add_joint(kind, "a", "b", anchor=rng.normal(size=3), axis=rng.normal(size=3), name="joint")
    return scene


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**31))
def test_jacobians_are_the_derivatives_of_the_coordinates(kind, seed):
    model = two_bodies(kind, seed).build()
    joints = simulate_joints(model)
    state = model.initial.copy()
    rng = np.random.default_rng(seed)
    state.position += 0.1 * rng.normal(size=state.position.shape)
    state.orientation = rotation.turned(state.orientation, 0.1 * rng.normal(size=state.position.shape))
    jacobian = np.zeros((model.joints.coord_count, 12))
    value = joints.coordinates(state, jacobian)
    e = 1e-6
    for body in range(2):
        for k in range(6):
            moved = []
            for sign in (-1, 1):
                other = state.copy()
                if k < 3:
                    other.position[body, k] += sign * e
                else:
                    angle = np.zeros_like(other.position)
                    angle[body, k - 3] = sign * e
                    other.orientation = rotation.turned(other.orientation, angle)
                moved.append(joints.coordinates(other, np.zeros_like(jacobian)))
            rate = (moved[1] - moved[0]) / (2 * e)
            own = jacobian[:, 6 * body + k]
            # An angle's Jacobian is exact only while the joint's axes agree.
            straight = model.joints.coord_kind != 3
            assert own[straight] == pytest.approx(rate[straight], abs=1e-8)
    assert np.all(np.isfinite(value))


def simulate_joints(model):
    from tumble.backends import cpu
    from tumble.problem.joints import Joints

    return Joints(model, cpu)


@pytest.mark.parametrize("kind", KINDS)
def test_a_joint_removes_the_freedoms_it_should(kind):
    """Velocities at the start are made to fit, and the rows are independent of each other."""
    sim = simulate(two_bodies(kind, 3), 1e-3)
    removed = {"fixed": 6, "spherical": 3, "revolute": 5, "prismatic": 5, "cylindrical": 4, "universal": 4, "planar": 3}
    rows = removed.get(kind, 1)
    assert len(sim.model.joints.equality_rows) == rows
    report = sim.step()
    assert report.redundant_rows == 0
    assert report.joint_drift < 1e-12
    # No external force: linear momentum stays, gravity aside.
    m = sim.model.body_mass
    before = simulate(two_bodies(kind, 3), 1e-3)
    p0 = (m[:, None] * before.velocities()).sum(axis=0)
    p1 = (m[:, None] * sim.velocities()).sum(axis=0)
    assert p1 - p0 == pytest.approx([0, 0, -9.81e-3 * m.sum()], abs=1e-12)


def dense(joints, model, inverse_inertia):
    """G (rows, 6 n) and M^-1 of a model's equality rows, in the order of elimination."""
    from tumble.problem.operators import sparse_rows

    n = model.body_count
    g = sparse_rows(joints.exact.body, joints.system.built.jacobian, n).toarray()
    inverse = np.zeros((6 * n, 6 * n))
    for b in range(n):
        inverse[6 * b : 6 * b + 3, 6 * b : 6 * b + 3] = np.diag(model.body_inverse_mass[b])
        xx, yy, zz, xy, xz, yz = inverse_inertia[b]
        inverse[6 * b + 3 : 6 * b + 6, 6 * b + 3 : 6 * b + 6] = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    return g, inverse


def ladder(cells=5):
    """Loops, a hub and redundant rows: two stringers of rods, rungs pinned to both, one end on the ground."""
    scene = tb.SceneBuilder()
    above = [None, None]
    for k in range(cells):
        sides = [rod(scene, (0, y, -k), (0, y, -k - 1)) for y in (0, 1)]
        rung = rod(scene, (0, 0, -k - 1), (0, 1, -k - 1))
        for i, y in enumerate((0, 1)):
            scene.add_joint("revolute", above[i], sides[i], anchor=(0, y, -k), axis=(1, 0, 0))
            scene.add_joint("revolute", sides[i], rung, anchor=(0, y, -k - 1), axis=(1, 0, 0))
        above = sides
    return scene


def test_the_sparse_factor_agrees_with_dense_algebra_where_rows_depend_on_each_other():
    sim = simulate(ladder(), 1e-3)
    joints = sim._work.joints
    rng = np.random.default_rng(0)
    free = rng.normal(size=(sim.model.body_count, 6))
    free[sim.model.body_kind != 2] = 0.0
    g, inverse = dense(joints, sim.model, joints.inverse_inertia(sim.state))
    s = g @ inverse @ g.T
    rank = np.linalg.matrix_rank(s, tol=1e-9 * np.abs(s).max())
    assert 0 < joints.redundant == len(s) - rank
    wanted = free.ravel() - inverse @ g.T @ np.linalg.pinv(s, rcond=1e-11) @ (g @ free.ravel())
    from tumble.backends import cpu
    from tumble.backends.base import ContactArrays

    arrays = joints.operator_arrays(ContactArrays(0, *(np.zeros(0),) * 12, np.zeros((2, 0))))
    out = free.copy()
    cpu.eliminate(arrays, out)
    assert out.ravel() == pytest.approx(wanted, abs=1e-9)
    assert np.abs(g @ out.ravel()).max() < 1e-9


def jointed_contacts():
    """Boxes in a row, joined with limits, friction and a motor, on the ground."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    for k in range(4):
        scene.add_body(tb.Box((0.3, 0.2, 0.1)), density=500.0, position=(0.31 * k, 0, 0.05), name=f"b{k}")
        if k:
            at = (0.31 * k - 0.155, 0, 0.05)
            scene.add_joint(
                "revolute",
                f"b{k - 1}",
                f"b{k}",
                anchor=at,
                axis=(0, 1, 0),
                limits=(-0.01, 0.4),
                friction=0.5,
                name=f"j{k}",
            )
    scene.add_motor("j2", "position", target=0.1, stiffness=200.0, damping=1.0, maximum=30.0, name="m")
    scene.add_motor("j1", "speed", target=0.5, maximum=3.0, name="n")
    return scene


def test_the_operator_agrees_with_its_matrix():
    sim = simulate(jointed_contacts(), 1e-3)
    for _ in range(20):
        sim.step()
    problem = sim.last.problem
    n = problem.count
    assert n > sim.last.contacts.count  # bounded rows are there
    matrix = problem.operator.to_sparse().toarray()
    assert np.linalg.eigvalsh(matrix)[0] > -1e-9
    rng = np.random.default_rng(1)
    x, out = np.zeros_like(problem.bias), np.zeros_like(problem.bias)
    x[:, :n] = rng.normal(size=(3, n))
    x[1:, sim.last.contacts.count :] = 0.0
    problem.operator.product(x, out)
    assert out[:, :n].T.ravel() == pytest.approx(matrix @ x[:, :n].T.ravel(), rel=1e-9, abs=1e-9)
    diagonal = np.zeros((6, problem.bias.shape[1]))
    problem.operator.diagonal_blocks(diagonal)
    contacts = sim.last.contacts.count
    own = np.diag(matrix).reshape(-1, 3)
    assert diagonal[0, :n] == pytest.approx(own[:, 0], rel=1e-9)
    assert pytest.approx(own[:contacts, 1:], rel=1e-9) == diagonal[1:3, :contacts].T


def test_bounded_rows_stay_in_their_bounds_and_two_solvers_agree():
    sim = simulate(jointed_contacts(), 1e-3, law="relaxed")
    for _ in range(20):
        sim.step()
    problem, joints, contacts = sim.last.problem, sim._work.joints, sim.last.contacts.count
    solutions = [
        solver.solve(problem, law="relaxed")
        for solver in (tb.SolverAPGD(tolerance=1e-10), SolverBarzilaiBorwein(tolerance=1e-10))
    ]
    assert all(s.converged for s in solutions)
    a, b = (s.residuals for s in solutions)
    assert a.objective == pytest.approx(b.objective, rel=1e-8)
    assert a.certificate_energy < 1e-9 and b.certificate_energy < 1e-9
    x = solutions[0].impulse[0, contacts : problem.count]
    bound = joints.bounded.bound
    assert np.all(x[bound == 0.0] >= 0.0)
    assert np.all(np.abs(x[bound < 0.0]) <= -bound[bound < 0.0])
    velocity = [problem.operator.velocity(s.impulse).copy() for s in solutions]
    assert velocity[0] == pytest.approx(velocity[1], abs=1e-7)


@given(seed=st.integers(0, 2**31))
def test_the_certificate_bounds_the_error_with_intervals_and_limits(seed):
    """Unconverged impulses: |v - v*| in the energy norm is at most sqrt(gap) where no gap had to be moved."""
    rng = np.random.default_rng(seed)
    n = 6
    a = rng.normal(size=(3 * n, 3 * n))
    a[:, [3 * k + c for k in range(n) for c in (1, 2)]] = 0.0
    matrix = a.T @ a
    bias = np.zeros(3 * n)
    bias[::3] = rng.normal(size=n)
    problem = tb.ConeProblem.from_matrix(matrix, bias, np.zeros(n))
    problem.group.friction[:] = -rng.uniform(0.01, 1.0, n)  # intervals
    exact = tb.SolverAPGD(tolerance=1e-13, max_iterations=20000).solve(problem, law="relaxed")
    rough = tb.SolverAPGD(tolerance=1e-13, max_iterations=int(rng.integers(1, 6))).solve(problem, law="relaxed")
    d = a @ (rough.impulse[:, :n] - exact.impulse[:, :n]).T.ravel()
    gap = measure(problem, rough.impulse, "relaxed").certificate_energy
    assert np.linalg.norm(d) <= np.sqrt(gap) + 1e-6


@pytest.mark.parametrize("solver", [SolverGaussSeidel, SolverJacobi, SolverNSGS])
def test_sweeps_refuse_joints_when_the_simulation_is_made(solver):
    with pytest.raises(OptionsError, match="cannot take scenes with joints"):
        tb.Simulation(jointed_contacts().build(), options=tb.StepOptions(dt=1e-3), solver=solver(tolerance=1e-6))
    sim = simulate(jointed_contacts(), 1e-3)
    sim.solver = solver(tolerance=1e-6)
    with pytest.raises(ProblemError, match="cannot take jointed bodies"):
        sim.step()


# ---------------------------------------------------------------------- assembling


def test_an_open_loop_is_assembled_and_the_distance_said():
    scene = tb.SceneBuilder()
    bars = [rod(scene, p, q, name=n) for n, p, q in (("a", (0, 0, 0), (0, 0, 1)), ("b", (0.01, 0, 1), (1, 0, 1)))]
    scene.add_joint("revolute", None, bars[0], anchor=(0, 0, 0), axis=(0, 1, 0))
    scene.add_joint("revolute", bars[0], bars[1], anchor_a=(0, 0, 0.5), anchor_b=(0, 0, -0.495), axis_a=(0, 1, 0))
    with pytest.warns(TumbleWarning, match="assembled"):
        sim = simulate(scene, 1e-3)
    assert 0.003 < sim.assembly.moved < 0.02
    assert sim.step().joint_drift < 1e-12


def test_velocities_are_assembled():
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_body(None, mass=1.0, inertia=(0.1,) * 3, position=(1, 0, 0), velocity=(1, 2, 0), name="bob")
    scene.add_joint("spherical", None, "bob", anchor=(0, 0, 0))
    sim = simulate(scene, 1e-3)
    assert sim.assembly.speed_changed > 0.5
    v, w = sim.velocities()[0], sim.angular_velocities()[0]
    assert v == pytest.approx(np.cross(w, [1, 0, 0]), abs=1e-12)


def test_joints_that_fight_are_named():
    scene = tb.SceneBuilder()
    scene.add_body(None, mass=1.0, inertia=(0.1,) * 3, position=(1, 0, 0), name="bob")
    scene.add_joint("distance", None, "bob", anchor_a=(0, 0, 0), anchor_b=(0, 0, 0), length=1.0, name="short")
    scene.add_joint("distance", None, "bob", anchor_a=(5, 0, 0), anchor_b=(0, 0, 0), length=1.0, name="far")
    with pytest.raises(SceneError, match=r"'(short|far)', '(short|far)' stay open"):
        simulate(scene, 1e-3)


def test_motors_that_fight_are_named():
    scene = tb.SceneBuilder()
    scene.add_body(None, mass=1.0, inertia=(0.1,) * 3, name="wheel")
    scene.add_joint("revolute", None, "wheel", anchor=(0, 0, 0), axis=(0, 0, 1), name="axle")
    scene.add_motor("axle", "speed", target=1.0, name="slow")
    scene.add_motor("axle", "speed", target=2.0, name="fast")
    with pytest.raises(SceneError, match=r"'slow'.*'fast'|'fast'.*'slow'"):
        simulate(scene, 1e-3)


def test_redundant_joints_are_named():
    assert set(four_bar(1e-3, 0.7, None).assembly.redundant[0]) == {"A", "B", "C", "D"}
    assert pendulum(1e-3).assembly.redundant == ()


# ---------------------------------------------------------------------- bad input


def arm():
    scene = tb.SceneBuilder()
    scene.add_static(tb.Box((1, 1, 1)), name="wall")
    scene.add_static(tb.Box((1, 1, 1)), position=(3, 0, 0), name="post")
    scene.add_body(tb.Box((1, 1, 1)), mass=1.0, position=(1, 0, 0), name="arm")
    scene.add_joint("revolute", "wall", "arm", anchor=(0.5, 0, 0), axis=(0, 0, 1), name="hinge")
    return scene


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda s: s.add_joint("revolute", "arm", "arm", anchor=(0, 0, 0), axis=(0, 0, 1)), "two different bodies"),
        (lambda s: s.add_joint("revolute", "wall", "post", anchor=(0, 0, 0), axis=(0, 0, 1)), "must be dynamic"),
        (lambda s: s.add_joint("revolute", None, "post", anchor=(0, 0, 0), axis=(0, 0, 1)), "must be dynamic"),
        (lambda s: s.add_joint("revolute", "wall", "amr", anchor=(0, 0, 0), axis=(0, 0, 1)), "unknown body.*'arm'"),
        (lambda s: s.add_joint("revolte", "wall", "arm", anchor=(0, 0, 0)), "revolute"),
        (lambda s: s.add_joint("revolute", "wall", "arm", anchor=(0, 0, 0), axis=(0, 0, 0)), "must have a direction"),
        (lambda s: s.add_joint("revolute", "wall", "arm", anchor=(0, 0, 0)), "needs an axis"),
        (lambda s: s.add_joint("revolute", "wall", "arm", axis=(0, 0, 1)), "needs an anchor"),
        (lambda s: s.add_joint("revolute", "wall", "arm", anchor=(0, np.nan, 0), axis=(0, 0, 1)), "finite"),
        (
            lambda s: s.add_joint("revolute", "wall", "arm", anchor=(0, 0, 0), axis=(0, 0, 1), limits=(1, -1)),
            "low < high",
        ),
        (lambda s: s.add_joint("spherical", "wall", "arm", anchor=(0, 0, 0), limits=(0, 1)), "turns or slides"),
        (
            lambda s: s.add_joint("spherical", "wall", "arm", anchor_a=(0.5, 0, 0), anchor_b=(0.5, 0, 0)),
            r"must meet at the start \(got 1 m apart",
        ),
        (
            lambda s: s.add_joint("revolute", "wall", "arm", anchor=(0.5, 0, 0), axis_a=(0, 0, 1), axis_b=(1, 0, 0)),
            "90 degrees apart",
        ),
        (lambda s: s.add_joint("distance", "wall", "arm", anchor=(0, 0, 0)), "two anchors"),
        (
            lambda s: s.add_joint("universal", "wall", "arm", anchor=(0, 0, 0), axis=(1, 0, 0), second_axis=(1, 1, 0)),
            "right angle",
        ),
        (lambda s: s.add_joint("revolute", "wall", "arm", anchor=(0, 0, 0), axis=(0, 0, 1), friction=-1), ">= 0"),
        (lambda s: s.add_joint("spherical", "wall", "arm", anchor=(0, 0, 0), name="hinge"), "unique"),
        (lambda s: s.add_motor("hing", "speed"), "unknown joint.*'hinge'"),
        (lambda s: s.add_motor("hinge", "torqe"), "torque"),
        (lambda s: s.add_motor("hinge", "speed", maximum=0.0), "> 0"),
        (lambda s: s.add_motor("hinge", "speed", stiffness=5.0), "position"),
        (lambda s: s.add_motor("hinge", "torque", maximum=5.0), "speed or position"),
        (lambda s: s.add_gear("hinge", "hinge", 2.0), "two coordinates"),
        (lambda s: s.add_spring("wall", "arm", anchor_b=(1, 0, 0)), "stiffness or a damping"),
        (lambda s: s.add_spring("wall", "arm", stiffness=-1.0), ">= 0"),
        (lambda s: s.add_controller(lambda *_: 0, ["motor"]), "unknown motor"),
        (lambda s: s.add_body(None, mass=1.0), "needs mass and inertia"),
    ],
)
def test_bad_input_is_named(act, words):
    scene = arm()
    with pytest.raises(tb.TumbleError, match=words) as caught:
        act(scene)
    assert "\n" not in str(caught.value)


def test_a_controller_of_the_wrong_shape_is_named():
    scene = arm()
    scene.add_motor("hinge", "speed", name="motor")
    scene.add_controller(lambda *_: np.zeros(3), ["motor"])
    with pytest.raises(SceneError, match="targets of shape"):
        simulate(scene, 1e-3).step()


def test_joined_bodies_collide_only_if_asked():
    def contacts(collide, apart=1.001):
        scene = tb.SceneBuilder(gravity=(0, 0, 0))
        for k in range(2):
            scene.add_body(tb.Box((1, 1, 1)), mass=1.0, position=(apart * k, 0, 0), name=f"b{k}")
        scene.add_joint("spherical", "b0", "b1", anchor=(0.5, 0, 0), collide=collide)
        return simulate(scene, 1e-3).step().contacts

    assert contacts(False) == 0
    assert contacts(True) > 0
    # Faces that overlap all around the joint that holds them together: no impulses part them, and that is said.
    with pytest.warns(tb.TumbleWarning, match="no impulses take all overlaps back"):
        assert contacts(True, apart=0.998) > 0


# ---------------------------------------------------------------------- what a review found


def hinge(**options):
    scene = tb.SceneBuilder()
    scene.add_body(tb.Box((1, 0.1, 0.1)), mass=5.0, position=(0.5, 0, 0), name="arm")
    scene.add_joint("revolute", None, "arm", anchor=(0, 0, 0), axis=(0, 1, 0), name="hinge", **options)
    return scene


def slide(**options):
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_body(tb.Box((0.2, 0.2, 0.2)), mass=1.0, name="cart")
    scene.add_joint("prismatic", None, "cart", anchor=(0, 0, 0), axis=(1, 0, 0), name="slide", **options)
    return scene


@pytest.mark.parametrize(("axis", "locked"), [((0, 1, 0), ("y", "rx", "rz")), ((1, 0, 0), ("x", "ry", "rz"))])
def test_locked_directions_and_joints_agree(axis, locked):
    """Rows that only repeat a lock are dropped, not held by rounding."""
    place = np.cross(axis, (0, 0, 1)) * 0.5
    free, held = (tb.SceneBuilder(), tb.SceneBuilder())
    for scene, locks in ((free, ()), (held, locked)):
        scene.add_body(tb.Box((0.2, 0.2, 0.2)), mass=1.0, position=place, locked=locks, name="b")
        scene.add_joint("revolute", None, "b", anchor=(0, 0, 0), axis=axis, name="j")
    sims = [simulate(scene, 1e-3) for scene in (free, held)]
    for sim in sims:
        sim.run(until=0.3, progress=False)
    assert abs(sims[0].joint_values()["j"]) > 0.5
    assert sims[1].joint_values()["j"] == pytest.approx(sims[0].joint_values()["j"], abs=1e-9)


def test_a_motor_without_a_maximum_drives_past_a_limit_and_it_is_said():
    scene = hinge(limits=(-0.5, 0.5))
    scene.add_motor("hinge", "speed", target=2.0, name="m")
    sim = simulate(scene, 1e-3)
    with pytest.warns(TumbleWarning, match="holds a joint beyond its limit.*'hinge'"):
        sim.run(until=0.4, progress=False)
    assert sim.joint_values()["hinge"] == pytest.approx(0.8, abs=1e-9)


def test_limits_hold_against_contacts_and_strong_motors():
    scene = slide(limits=(-1.0, 0.01))
    scene.add_body(tb.Sphere(0.1), mass=5.0, position=(-0.3, 0, 0), velocity=(50, 0, 0))
    sim = simulate(scene, 1e-3)
    most = 0.0
    for _ in range(40):
        sim.step()
        most = max(most, sim.joint_values()["slide"])
    assert most < 0.01 + 1e-6
    scene = slide(limits=(-1.0, 0.05))
    scene.add_motor("slide", "speed", target=100.0, maximum=1e6)
    sim = simulate(scene, 1e-3)
    for _ in range(3):
        sim.step()
        assert sim.joint_values()["slide"] < 0.05 + 1e-9


def test_a_joint_must_start_within_its_limits():
    with pytest.raises(SceneError, match=r"'hinge': must start above its limit 0\.2"):
        simulate(hinge(limits=(0.2, 1.0)), 1e-3)


def test_fast_shafts_count_their_turns():
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    for k in range(2):
        scene.add_body(tb.Box((0.2, 0.2, 0.2)), mass=1.0, position=(k, 0, 0), name=f"b{k}")
        scene.add_joint("revolute", None, f"b{k}", anchor=(k, 0, 0), axis=(0, 0, 1), name=f"j{k}")
    scene.add_gear("j0", "j1", 50.0)
    scene.add_motor("j0", "speed", target=10.0)
    sim = simulate(scene, 1e-2)  # 5 rad a step on the fast shaft
    sim.run(until=0.5, progress=False)
    assert sim.joint_values()["j1"] == pytest.approx(250.0, rel=1e-9)


def test_controllers_are_called_once_a_step():
    calls = []
    scene = hinge()
    scene.add_motor("hinge", "speed", name="m")
    scene.add_controller(lambda t, *_: calls.append(t) or np.zeros(1), ["m"])
    sim = simulate(scene, 1e-3)
    assert calls == []
    sim.step()
    sim.copy()
    assert calls == [0.0]


def test_targets_set_during_a_run_belong_to_the_state(tmp_path):
    scene = hinge()
    scene.add_motor("hinge", "speed", target=1.0, name="m")
    model = scene.build()
    sims = [tb.Simulation(model, options=tb.StepOptions(dt=1e-3)) for _ in range(2)]
    sims[0].set_target("m", -2.0)
    sims[0].step()
    sims[0].save_checkpoint(tmp_path / "c.h5")
    sims[1].load_checkpoint(tmp_path / "c.h5")
    other = sims[0].copy()
    for sim in (*sims, other):
        sim.step()
    assert len({sim.state.sha256() for sim in (*sims, other)}) == 1
    assert sims[0].joint_reactions()["m"].speed == pytest.approx(-2.0)


def test_reactions_are_zero_before_the_first_step():
    scene = hinge()
    scene.add_motor("hinge", "torque", target=-20.0, name="m")
    sim = simulate(scene, 1e-3)
    assert sim.joint_reactions()["m"].effort == 0.0
    sim.step()
    assert sim.joint_reactions()["m"].effort == pytest.approx(-20.0)


def test_a_failed_call_leaves_nothing_behind():
    scene = hinge()
    scene.add_body(tb.Box((1, 1, 1)), mass=1.0, position=(5, 0, 0), name="other")
    with pytest.raises(SceneError):
        scene.add_joint("revolute", None, "other", anchor=(5, 0, 0), axis=(0, 1, 0), limits=(1, -1), name="x")
    scene.add_joint("revolute", None, "other", anchor=(5, 0, 0), axis=(0, 1, 0), limits=(-1, 1), name="x")
    assert scene.build().joints.names == ["hinge", "x"]


def test_motors_that_begin_to_fight_are_named():
    scene = hinge()
    for name in "mn":
        scene.add_motor("hinge", "speed", target=1.0, name=name)
    sim = simulate(scene, 1e-3)
    sim.step()
    sim.set_target("n", 5.0)
    with pytest.warns(TumbleWarning, match="contradict each other.*'n', 'm'|'m', 'n'"):
        sim.step()


def test_a_state_that_is_set_is_assembled():
    sim = simulate(hinge(), 1e-3)
    k = sim.model.bodies("arm")[0]
    place = sim.positions()
    place[k] = (0.5, 0, 0.01)
    with pytest.warns(TumbleWarning, match="assembled"):
        sim.set_state(position=place)
    assert sim.step().joint_drift < 1e-12


def test_states_of_other_scenes_are_refused():
    plain = tb.SceneBuilder()
    plain.add_body(tb.Sphere(1.0), mass=1.0)
    plain.add_static(tb.Box((1, 1, 1)), position=(5, 0, 0))
    state = tb.Simulation(plain.build(), options=tb.StepOptions(dt=1e-3)).get_state()
    with pytest.raises(tb.TumbleError, match="joint coordinates"):
        simulate(hinge(), 1e-3).set_state(state)


def test_very_different_masses_hold():
    scene = tb.SceneBuilder()
    scene.add_body(tb.Box((0.1, 0.1, 0.1)), mass=1e-5, position=(0.5, 0, 0), name="light")
    scene.add_body(tb.Box((0.5, 0.5, 0.5)), mass=1000.0, position=(1, 0, 0), name="heavy")
    scene.add_joint("fixed", None, "light", anchor=(0.4, 0, 0))
    scene.add_joint("fixed", "light", "heavy", anchor=(0.6, 0, 0))
    sim = simulate(scene, 1e-3)
    sim.run(until=0.1, progress=False)
    assert abs(sim.positions()[sim.model.bodies("heavy")[0]][2]) < 1e-9


def test_joints_to_the_world_leave_the_numbers_of_bodies_alone():
    scene = tb.SceneBuilder()
    first = scene.add_body(tb.Sphere(0.1), mass=1.0, name="first")
    scene.add_joint("spherical", None, first, anchor=(0, 0, 1))
    second = scene.add_body(tb.Sphere(0.1), mass=1.0, position=(1, 0, 0), name="second")
    scene.add_joint("spherical", "ground", second, anchor=(1, 0, 1))
    for _ in range(2):  # building twice gives the same
        model = scene.build()
        assert (first, second) == (0, 1) and [model.bodies(n)[0] for n in ("first", "second", "ground")] == [0, 1, 2]
        assert model.joints.frame_body.tolist() == [[2, 0], [2, 1]]
        assert [e.bodies for e in model.joints.elements] == [(2, 0), (2, 1)]
        assert model.excluded.tolist() == [(0 << 32) + 2, (1 << 32) + 2]
    with pytest.raises(SceneError):
        tb.SceneBuilder().add_joint("spherical", None, None, anchor=(0, 0, 0))
    other = tb.SceneBuilder()
    body = other.add_body(tb.Sphere(0.1), mass=1.0)
    with pytest.raises(SceneError):
        other.add_joint("spherical", None, body)  # no anchor
    assert other.build().body_count == 1  # a joint that failed leaves no ground
