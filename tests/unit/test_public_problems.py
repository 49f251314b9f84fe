"""Public frictional-contact problems beside the project (skipped where they are absent)."""

import numpy as np
import pytest
import scipy.sparse as sp

import tumble as tb
from tests.naive.problems import natural_map
from tumble.problem.cone_problem import contact_first

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


def load(path):
    """Matrix (symmetrised), bias, friction, dimension and reference velocity of the relaxed law."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path) as file:
        g = file["fclib_local"]
        w = g["W"]
        m, n, nz = (int(w[k][0]) for k in ("m", "n", "nz"))
        p, i, x = w["p"][()], w["i"][()], w["x"][()]
        if nz == -2:
            matrix = sp.csr_matrix((x, i, p), shape=(m, n))
        elif nz == -1:
            matrix = sp.csc_matrix((x, i, p), shape=(m, n)).tocsr()
        else:
            matrix = sp.coo_matrix((x[:nz], (i[:nz], p[:nz])), shape=(m, n)).tocsr()
        return (
            (matrix + matrix.T) * 0.5,
            g["vectors/q"][()],
            g["vectors/mu"][()],
            int(g["spacedim"][0]),
            file["reference/ccp_u"][()],
        )


@pytest.mark.parametrize("name", SMALL)
def test_public_problem(shared_data, name):
    matrix, bias, mu, dim, reference = load(shared_data / "fclib" / f"{name}.hdf5")
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu, dim=dim)
    relaxed = tb.SolverAPGD(tolerance=1e-8, max_iterations=20000).solve(problem, law="relaxed")
    assert relaxed.converged
    u = matrix @ contact_first(relaxed.impulse, dim, len(mu)) + bias
    assert np.linalg.norm(u - reference) <= 1e-5 * np.linalg.norm(bias)
    coulomb = tb.SolverAPGD(tolerance=1e-6, max_iterations=20000).solve(problem, law="coulomb")
    assert coulomb.converged and coulomb.law == "coulomb"


def test_the_pyramid_is_not_called_solved(shared_data):
    """No first-order method solves this pile under true Coulomb friction; it must say so."""
    matrix, bias, mu, dim, _ = load(shared_data / "fclib" / "extra_pyramid8.hdf5")
    problem = tb.ConeProblem.from_matrix(matrix, bias, mu, dim=dim)
    solution = tb.SolverAPGD(tolerance=1e-6, max_iterations=3000).solve(problem, law="coulomb")
    assert solution.law == "coulomb"
    found = natural_map(matrix.toarray(), bias, contact_first(solution.impulse, dim, len(mu)), mu, "coulomb")
    assert solution.converged == (found <= 1e-6)  # the status agrees with an independent measure
    assert found == pytest.approx(solution.residuals.natural_map, rel=1e-6)
    assert found < 1e-2 and solution.status.advice
