"""Rest with the default solver: users set nothing, and nothing sleeps, is damped or frozen."""

import numpy as np
import pytest

import tumble as tb

DT = 2e-3
FALL = 9.81 * DT
"""What gravity gives in a step [m/s]"""


def stack(count, size=0.1, gravity=(0.0, 0.0, -9.81)):
    """Boxes a little askew, each dropped by a five-hundredth of its size."""
    rng = np.random.default_rng(1)
    scene = tb.SceneBuilder(gravity=gravity)
    scene.add_static(tb.HalfSpace())
    for k in range(count):
        x, y = 0.01 * size * rng.uniform(-1.0, 1.0, 2)
        scene.add_body(tb.Box((size,) * 3), density=1000.0, position=(x, y, size * (k + 0.5 + 0.002 * (k + 1))))
    return scene.build()


def box_on_floor(gravity=(0.0, 0.0, -9.81), size=0.1, **rest):
    scene = tb.SceneBuilder(gravity=gravity)
    wood = scene.add_material(tb.Material(friction=0.5, **rest))
    scene.add_static(tb.HalfSpace(), material=wood)
    scene.add_body(tb.Box((size,) * 3), density=1000.0, position=(0, 0, 0.5 * size), material=wood)
    return scene.build()


def simulate(model, seconds, dt=DT, **rest):
    sim = tb.Simulation(model, options=tb.StepOptions(dt=dt), **rest)
    result = sim.run(until=seconds, progress=False)
    return sim, result


def test_a_stack_of_twenty_rests_bears_its_weight_and_does_not_creep():
    model = stack(20)
    sim, _ = simulate(model, 1.5)
    start, speeds, forces, energy = sim.positions(), [], [], []
    for _ in range(100):
        report = sim.step()
        speeds.append(report.largest_speed)
        energy.append(report.total_energy)
        found = sim.contact_forces()
        floor = found.body_a == 0
        forces.append(found.force[floor].sum(axis=0)[2])
    weight = 9.81 * 20 * 1000.0 * 0.1**3
    assert max(speeds) < 1e-2 * FALL
    assert abs(np.mean(forces)) == pytest.approx(weight, rel=1e-3)
    assert np.abs(sim.positions() - start).max() < 1e-4 * 0.1
    slack = 0.5 * DT * weight * max(speeds)  # the known h/2 m g v_z of the scheme
    assert np.diff(energy).max() <= slack


def test_a_stack_at_rest_costs_little_and_is_still():
    """A slow sway is nothing that first-order steps see: without conjugate gradients 900 iterations a step and more."""
    sim, _ = simulate(stack(40), 1.0)
    late = [sim.step() for _ in range(100)]
    assert np.mean([r.iterations for r in late]) < 200.0
    assert max(r.largest_speed for r in late) < 1e-4 * FALL


def test_iterations_that_are_allowed_are_those_of_all_methods():
    for most in (1, 40, 300):
        sim = tb.Simulation(
            stack(10), options=tb.StepOptions(dt=DT), solver=tb.SolverAuto(steps=True, max_iterations=most)
        )
        assert max(sim.step().iterations for _ in range(150)) <= most


def test_spheres_that_are_held_rest():
    """300 spheres in a box; those with three contacts that bear force are slower than 1e-2 g h."""
    radius = 0.02
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(0.28, 0.28, 1.0)))
    points = tb.grid_points((6, 6, 9), 2.15 * radius, origin=(0, 0, 1.1 * radius), jitter=0.05 * radius)[:300]
    scene.add_spheres(radius, density=2500.0, position=points)
    sim, _ = simulate(scene.build(), 2.0)
    weight = sim.model.body_mass[-1] * 9.81
    worst = 0.0
    for _ in range(50):
        sim.step()
        found = sim.contact_forces()
        loaded = np.linalg.norm(found.force, axis=1) > 1e-3 * weight
        bodies = np.concatenate([found.body_a[loaded], found.body_b[loaded]])
        held = (np.bincount(bodies, minlength=sim.model.body_count) >= 3) & (sim.model.body_kind == 2)
        assert held.sum() > 150
        worst = max(worst, np.linalg.norm(sim.velocities()[held], axis=1).max())
    assert worst < 1e-2 * FALL


def test_tilted_gravity_acts_in_the_very_next_step():
    """A stack that has rested for a second, then gravity turned by a degree (held) and by 31 degrees (slides at 0.5).

    The band must not hold anything: forces and velocity after one step are those of a converged solve from scratch.
    """
    rested, _ = simulate(box_on_floor(), 1.0)
    for degrees in (1.0, 31.0):
        angle = np.deg2rad(degrees)
        gravity = 9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)])
        sim = tb.Simulation(box_on_floor(tuple(gravity)), options=tb.StepOptions(dt=DT))
        sim.set_state(rested.get_state())
        sim.step()
        force = sim.contact_forces().force.sum(axis=0)
        held = min(gravity[0], -0.5 * gravity[2])
        np.testing.assert_allclose(np.abs(force), np.array([held, 0.0, -gravity[2]]), atol=1e-5 * 9.81)
        assert sim.velocities()[1, 0] == pytest.approx((gravity[0] - held) * DT, abs=1e-5 * FALL)


def test_overlap_does_not_grow_step_by_step():
    """Ten thousand steps under a load that comes and goes: the overlap stays within the band, it does not add up."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    for k in range(3):
        scene.add_body(tb.Box((0.1, 0.1, 0.1)), density=1000.0, position=(0, 0, 0.05 + 0.1 * k))
    scene.add_force(lambda t, x, q, v, w: (np.sin(40.0 * t) * np.array([[0, 0, 0]] * 3 + [[0.5, 0, -5.0]]), 0.0 * x))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=DT))
    worst = max(sim.step().largest_overlap for _ in range(10_000))
    assert worst < 2.0 * min(0.1 * FALL * DT, 1e-4 * 0.05)


def test_a_body_in_the_band_is_lifted_without_resistance():
    """A box that overlaps or hovers within the band, with a memory of force, leaves as if it had just touched."""
    rested, _ = simulate(box_on_floor(), 0.2)
    for offset in (-3e-6, 0.0, 3e-6):
        sim = tb.Simulation(box_on_floor(), options=tb.StepOptions(dt=DT))
        state = rested.get_state()
        state.position[1, 2] += offset
        state.velocity[1, 2] = 1.0
        sim.set_state(state)
        sim.step()
        assert sim.velocities()[1, 2] == pytest.approx(1.0 - FALL, abs=1e-12)
        assert np.all(sim.contact_forces().force == 0.0)


def test_a_first_touch_closes_its_gap_exactly():
    """No memory of force, no band: a ball that arrives stops on the surface, not above it."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Sphere(0.5), mass=1.0, position=(0, 0, 0.5 + 2e-6))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=DT))
    sim.step()
    assert sim.positions()[1, 2] == pytest.approx(0.5, abs=1e-14)


def test_the_certificate_counts_what_the_band_leaves():
    """A box that overlaps by 3 um is not lifted: the certificate says 3 um."""
    rested, _ = simulate(box_on_floor(), 0.2)
    sim = tb.Simulation(box_on_floor(), options=tb.StepOptions(dt=DT))
    state = rested.get_state()
    state.position[1, 2] = 0.05 - 3e-6
    state.velocity[:] = 0.0
    sim.set_state(state)
    report = sim.step()
    assert abs(sim.velocities()[1, 2]) < 1e-5 * FALL
    assert sim.last.problem.gap_shift == pytest.approx(3e-6, rel=1e-9)
    assert report.certificate_shift >= 3e-6


@pytest.mark.parametrize("law", [{"cohesion": 1.0, "cohesion_range": 1e-5}, {"compliance": 1e-6}])
def test_gaps_that_mean_something_are_not_left(law):
    sim, _ = simulate(box_on_floor(**law), 0.2)
    assert sim.last.problem.gap_shift == 0.0


def test_without_gravity_nothing_is_left():
    sim, _ = simulate(box_on_floor(gravity=(0, 0, 0)), 0.1)
    assert sim.last.problem.gap_shift == 0.0


@pytest.mark.parametrize("size, dt", [(1e-4, 5e-5), (1e-4, 2e-4), (10.0, 2e-3), (10.0, 2e-2)])
def test_tiny_and_huge_boxes_rest(size, dt):
    """Five boxes, ten times as long as one needs to fall by its size."""
    _, result = simulate(stack(5, size), 10.0 * np.sqrt(size / 9.81), dt)
    assert result.reports["largest_speed"][-20:].max() < 1e-2 * 9.81 * dt
    assert result.reports["largest_overlap"][-20:].max() <= 1.1e-4 * 0.5 * size


def test_a_step_that_misses_says_by_how_much():
    sim = tb.Simulation(
        stack(20), options=tb.StepOptions(dt=DT), solver=tb.SolverAPGD(stop="local", tolerance=1e-9, max_iterations=20)
    )
    reports = [sim.step() for _ in range(40)]
    late = [r for r in reports if not r.converged and r.contacts > 60]
    assert late and all(r.local_shift >= r.missed >= 0.0 for r in late)
    assert max(r.missed for r in late) > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, 40, 60])
def test_stacks_rest(count):
    sim, _ = simulate(stack(count), 4.0)
    start = sim.positions()
    assert max(sim.step().largest_speed for _ in range(200)) < 1e-2 * FALL
    assert np.abs(sim.positions() - start).max() < 1e-3 * 0.05


def fill(count, iterations):
    """Spheres of 1 m above the floor of a box of 20 m; steps of 10 ms of so many iterations."""
    scene = tb.SceneBuilder()
    grain = scene.add_material(tb.Material(friction=0.5))
    scene.add_static(tb.open_box(inner=(20.0, 20.0, 40.0)), material=grain)
    points = tb.grid_points((9, 9, -(-count // 81)), 2.05, origin=(0, 0, 1.05), jitter=0.02)[:count]
    scene.add_spheres(1.0, mass=1.0, material=grain, position=points)
    solver = tb.SolverAPGD(tolerance=0.0, max_iterations=iterations)
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-2), solver=solver)


def test_a_pile_of_few_iterations_is_calm():
    """Four iterations a step solve no step of 1000 spheres, and yet what they leave dies out instead of being stirred.

    A fifth of each overlap taken back whatever the solver does keeps 90 to 160 J here for ever.
    """
    sim, kinetic = fill(1000, 4), []
    for _ in range(800):
        report = sim.step()
        speed = np.linalg.norm(sim.velocities()[1:], axis=1)
        kinetic.append(0.5 * float(speed @ speed))
    assert not report.converged and sim.state.recovers < 0.2
    assert np.mean(kinetic[-50:]) < 1.0
    assert report.largest_overlap < 0.02


def test_slow_motions_of_a_pile_need_a_slow_recovery():
    """A motion of which a step solves the part a swings with its own impulses where more than about a of its overlap is
    to be taken back in a step; the velocity v, impulse y and overlap p (per step) of it, by the scheme itself."""

    def growth(part, recovers):
        v, y, p = np.eye(3)
        impulse = y - part * (v + y + recovers * p)
        after = v + impulse
        return np.abs(np.linalg.eigvals(np.array([after, impulse, p + after]))).max()

    for part in (0.01, 0.03, 0.1):
        assert growth(part, 0.2) > 1.01
        assert growth(part, 0.4 * part) < 1.0
    for part in (0.25, 0.5, 1.0):
        assert growth(part, 0.2) < 1.0


def test_a_restart_takes_back_the_same_part(tmp_path):
    sim, path = fill(200, 3), tmp_path / "state.h5"
    for _ in range(90):
        sim.step()
    assert sim.state.recovers < 0.2
    sim.save_checkpoint(path)
    again = fill(200, 3)
    again.load_checkpoint(path)
    assert again.state.recovers == sim.state.recovers
    for _ in range(20):
        sim.step()
        again.step()
    assert sim.state.sha256() == again.state.sha256()


def test_more_bodies_leave_the_part_that_is_taken_back():
    """Of a pile that is too large for its iterations; with one body more far away it goes on the same."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_boxes((0.2, 0.2, 0.2), mass=1.0, position=[(0, 0, 0.1 + 0.2001 * k) for k in range(12)])
    solver = tb.SolverAPGD(tolerance=0.0, max_iterations=6)
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), solver=solver)
    for _ in range(20):
        sim.step()
    assert sim.state.recovers < 0.2
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(50.0, 0, 5.0))
    more = sim.extended(scene.build())
    assert more.state.recovers == sim.state.recovers
    sim.step()
    more.step()
    assert np.array_equal(more.state.position[: len(sim.state.position)], sim.state.position)
