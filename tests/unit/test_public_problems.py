"""Public frictional-contact problems beside the project (skipped where they are absent)."""

import h5py
import numpy as np
import pytest

import tumble as tb
from tests.naive.problems import natural_map
from tumble.problem.cone_problem import contact_first
from tumble.problem.fclib import reduce
from tumble.problem.fclib_layout import read_matrix
from tumble.problem.rolling import RollingProblem

SMALL = [
    "Box_Stacks-i0122-82-5",
    "Capsules-i100-1090",
    "NESpheres_10_1",
    "Rover1041",
    "KaplasTower-i1061-4",
    "spheres-in-a-box-98-i10000-256-10",
    "gfc2d_granularflowonwall_00069_00350",
    "FrictionContactProblem00237",
]


ROLLING = {"Chute-ndof-768-nc-4-3", "RFC3D_cube_1", "RFC3D_sphere_1", "rockfall_14_25792"}
CLIPPED = {  # the files were printed with six or seven digits
    "Confeti-ex13-4contact-Fc3D-SBM",
    "Confeti-ex13-Fc3D-SBM",
    "FrictionContactProblem00237",
    "fc2d_granularflowonwall_02020_00213",
}


def load(path):
    """Problem, matrix, bias, friction, dimension and reference velocity of the relaxed law."""
    stored = tb.read_problem(path)
    problem, dim, n = stored.problem, stored.dim, stored.problem.count
    with h5py.File(path) as file:
        reference = file["reference/ccp_u"][()]
    return problem, problem.operator.matrix, contact_first(problem.bias, dim, n), problem.friction, dim, reference


def test_every_file_is_read_and_relaxed_ones_are_solved(shared_data):
    """All 39 and the pyramid; a first-order method solves the relaxed law of every plane and spatial one."""
    paths = sorted((shared_data / "fclib").glob("*.hdf5"))
    assert len(paths) == 40
    clipped, rolling = set(), set()
    for path in paths:
        stored = tb.read_problem(path)
        assert stored.symmetrised < 2e-3 and stored.clipped < 1e-6 and stored.title
        clipped |= {path.stem} if stored.clipped else set()
        if stored.dim == 5:
            rolling.add(path.stem)
            assert isinstance(stored.problem, RollingProblem)
            continue
        solution = tb.SolverAPGD(tolerance=1e-6).solve(stored.problem, law="relaxed")
        assert solution.converged, path.stem
    assert clipped == CLIPPED and rolling == ROLLING


def test_reductions_agree_with_the_local_problems(shared_data):
    """Files with both forms: M v = H r + f and u = H^T v + w give their W and q."""
    for name in ("Box_Stacks-i0122-82-5", "Chute-ndof-768-nc-4-3", "spheres-in-a-box-98-i10000-256-10"):
        path = shared_data / "fclib" / f"{name}.hdf5"
        matrix, bias = reduce(tb.read_problem(path).whole)
        with h5py.File(path) as file:
            local = read_matrix(path, file["fclib_local"], "W")
            q = file["fclib_local/vectors/q"][()]
        assert abs(matrix - local).max() <= 1e-13 * abs(local).max()
        assert np.abs(bias - q).max() <= 1e-13 * np.abs(q).max()


@pytest.mark.parametrize("name", SMALL)
def test_public_problem(shared_data, name):
    problem, matrix, bias, mu, dim, reference = load(shared_data / "fclib" / f"{name}.hdf5")
    relaxed = tb.SolverAPGD(tolerance=1e-8, max_iterations=20000).solve(problem, law="relaxed")
    assert relaxed.converged
    u = matrix @ contact_first(relaxed.impulse, dim, len(mu)) + bias
    assert np.linalg.norm(u - reference) <= 1e-5 * np.linalg.norm(bias)
    coulomb = tb.SolverAPGD(tolerance=1e-6, max_iterations=20000).solve(problem, law="coulomb")
    assert coulomb.converged and coulomb.law == "coulomb"


def test_the_pyramid_is_not_called_solved(shared_data):
    """No first-order method solves this pile under true Coulomb friction; it must say so."""
    problem, matrix, bias, mu, dim, _ = load(shared_data / "fclib" / "extra_pyramid8.hdf5")
    solution = tb.SolverAPGD(tolerance=1e-6, max_iterations=3000).solve(problem, law="coulomb")
    assert solution.law == "coulomb"
    found = natural_map(matrix.toarray(), bias, contact_first(solution.impulse, dim, len(mu)), mu, "coulomb")
    assert solution.converged == (found <= 1e-6)  # the status agrees with an independent measure
    assert found == pytest.approx(solution.residuals.natural_map, rel=1e-6)
    assert found < 1e-2 and solution.status.advice
