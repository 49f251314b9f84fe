"""Steps of our own scenes as files: interior point and first-order iterations agree on them."""

from __future__ import annotations

import numpy as np
import pytest

import tumble as tb
from tests.naive.mechanisms import simulate
from tumble import SolverInteriorPoint, SolverNCPInteriorPoint

REACHED = 7.0 * np.sqrt(np.finfo(float).eps)
"""What an interior point reaches on every machine, 1e-7. It ends where the products x o z are lost in rounding, at eps;
a contact that neither opens nor carries has both at their root, 1.5e-8. Below, processor and BLAS decide."""


def fill():
    """Spheres that fall into a box."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.open_box(inner=(1.0, 1.0, 3.0), thickness=0.2))
    points = tb.grid_points((4, 4, 4), 0.22, origin=(0, 0, 0.12), jitter=0.005)
    scene.add_spheres(0.1, density=1000.0, position=points)
    return scene, 0.6


def compact():
    """The same under a heavy slab."""
    scene, until = fill()
    scene.add_body(tb.Box((0.98, 0.98, 0.1)), mass=500.0, position=(0, 0, 1.1), name="slab")
    return scene, until


def joints():
    """A chain of boxes with limits and friction that falls on the floor."""
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    for k in range(8):
        at = (0.31 * k, 0, 0.2 + 0.03 * k)
        scene.add_body(tb.Box((0.3, 0.2, 0.1)), density=500.0, position=at, name=f"b{k}")
        if k:
            anchor = np.subtract(at, (0.155, 0, 0.015))
            scene.add_joint(
                "revolute", f"b{k - 1}", f"b{k}", anchor=anchor, axis=(0, 1, 0), limits=(-0.5, 0.5), friction=0.1
            )
    return scene, 0.5


@pytest.mark.parametrize("make", [fill, compact, joints])
def test_interior_point_and_apgd_agree_on_dumped_steps(make, tmp_path):
    scene, until = make()
    # A chain that rests within the band is degenerate: contacts and joint friction share what each could carry alone,
    # and APGD's forces stall at 2e-7. Here the methods are compared, so gaps are closed.
    sim = simulate(scene, 5e-3, leave_gaps=False)
    sim.run(until=until, progress=False)
    sim.dump_problem(tmp_path / "step.hdf5")
    problem = tb.read_problem(tmp_path / "step.hdf5").problem
    assert problem.count > 10
    exact = SolverInteriorPoint(tolerance=REACHED).solve(problem, law="relaxed")
    first_order = tb.SolverAPGD(tolerance=1e-8, max_iterations=100_000).solve(problem, law="relaxed")
    assert exact.converged and first_order.converged
    assert first_order.residuals.objective == pytest.approx(exact.residuals.objective, rel=1e-6)
    u = [np.zeros_like(problem.bias) for _ in range(2)]
    for solution, out in zip((exact, first_order), u):
        problem.operator.product(solution.impulse, out)
    assert np.abs(u[0] - u[1]).max() < 1e-5 * np.abs(problem.bias).max()


def test_an_interior_point_that_lacks_digits_says_so(tmp_path):
    scene, until = fill()
    sim = simulate(scene, 5e-3, leave_gaps=False)
    sim.run(until=until, progress=False)
    problem = sim.last.problem
    short = SolverInteriorPoint(tolerance=1e-15).solve(problem, law="relaxed")
    assert short.status == "limited_by_rounding" and short.residuals.natural_map < REACHED
    assert "double precision" in short.status.advice
    assert SolverInteriorPoint(tolerance=1e-15, max_iterations=3, polish=0).solve(problem, law="relaxed").status == (
        "max_iterations"
    )
    path = SolverNCPInteriorPoint(tolerance=1e-16, polish=0).solve(problem, law="relaxed")
    assert path.status == "limited_by_rounding" and path.residuals.natural_map < REACHED
