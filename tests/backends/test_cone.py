"""How good impulses are (docs/measures.md), and the iterations: their results by optimality, not step by step."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse as sp

import tumble as tb
from tumble.backends.base import MEASURE_ROOM, MEASURES, GaugeArrays, Measure, RollingArrays, blocks
from tumble.backends.cpu.measure import _measure_blocks_plain, measure_in_order
from tumble.enums import BlockKind, Law, Status
from tumble.problem.cone_problem import BlockGroup, ConeProblem
from tumble.problem.operators import ArticulatedOperator, ContactOperator, MatrixOperator, RollingOperator
from tumble.solve.face import SolverFace
from tumble.solve.residuals import measure

from ..naive.problems import project, solve_ccp
from . import data, sets
from .cover import covers
from .data import COUNTS, SPARE, assert_close, spare
from .jointed import jointed

G_D = 1e-6


def random_friction(rng, count, rows):
    """Cones of all widths, some frictionless, some intervals of bounded rows."""
    mu = spare(0, count)
    mu[:count] = rng.uniform(0.1, 1.2, count)
    mu[1:count:7] = 0.0
    mu[2:count:5] = -rng.uniform(0.1, 2.0, len(mu[2:count:5]))
    if rows == 3:
        return mu
    both = spare(3, count)
    both[0], both[1:, :count] = mu, rng.uniform(0.0, 0.3, (2, count))
    both[1:, :count][:, both[0, :count] < 0.0] = 0.0
    return both


@covers("measure", "coulomb_shift_bound", "rolling_shift_bound")
@pytest.mark.parametrize("rows", [3, 6])
@pytest.mark.parametrize("coulomb", [False, True])
@pytest.mark.parametrize("count", COUNTS)
def test_measures_are_those_of_the_document(backend, count, coulomb, rows):
    rng = np.random.default_rng(count + rows)
    kinds = 2 if rows == 3 else 4
    row_of = [0, 1, 1, 2, 3, 3][:rows]
    mu = random_friction(rng, count, rows)
    scale, weight = np.exp(spare(kinds, count, rng)), np.exp(spare(0 if rows == 3 else 2, count, rng))
    s = scale[row_of, :count]
    g, u, r = (rng.normal(size=(rows, count)) for _ in range(3))
    g = sets.project(g, mu[..., :count])
    g[:, ::6] += 0.1  # and some outside of their sets
    bounded = np.atleast_2d(mu)[0, :count] < 0.0
    for rows_of in (g, u, r):
        rows_of[1:, bounded] = 0.0
    x, nx, bias = spare(rows, count), spare(rows, count), spare(rows, count)
    x[:, :count], bias[:, :count], nx[:, :count] = g / s, r * s, (u - r) * s
    u = nx[:, :count] / s + r
    values, speed = np.full(MEASURES, np.nan), 0.7
    partial = np.full((blocks(count + SPARE) + 2, MEASURE_ROOM), np.nan)
    gauge = GaugeArrays(count, bias, mu, scale, weight, coulomb, speed)
    backend.measure(gauge, x, nx, partial, values)

    mu = mu[..., :count]
    w, z = (weight[:count], None) if rows == 3 else (weight[0, :count], weight[1, :count])
    one = np.ones(count)
    rho, all_weights = sets.natural(g, u, mu, w, coulomb, z)
    size = max(np.linalg.norm(v) for v in (r / all_weights, all_weights * g, u / all_weights))
    classic_size = max(np.linalg.norm(v) for v in (r, g, u))
    classic = np.linalg.norm(sets.natural(g, u, mu, one, coulomb, one)[0])
    a = sets.slack(u, mu, coulomb)
    eq25 = np.linalg.norm((g - sets.project(g - G_D * a, mu)) / G_D)
    needed = 0.0 if coulomb else sets.correction(u, mu)
    delta = np.where(bounded, 0.0, np.maximum(0.0, needed - u[0]))
    gap = np.sum(g * a) + np.sum(g[0] * delta) + np.sum(-np.atleast_2d(mu)[0, bounded] * np.abs(u[0, bounded]))
    own = w * np.linalg.norm(rho, axis=0)
    motion = np.maximum(speed, w * np.maximum(*(np.linalg.norm(v / all_weights, axis=0) for v in (r, u))))
    wanted = {
        Measure.NATURAL: np.linalg.norm(rho) / size if size else 0.0,
        Measure.SCALE: size,
        Measure.CLASSIC: classic / classic_size if classic_size else 0.0,
        Measure.CLASSIC_SCALE: classic_size,
        Measure.SHIFT: delta.max(initial=0.0),
        Measure.SHIFT_HAT: (delta / w).max(initial=0.0),
        Measure.COMPLEMENTARITY: np.abs(g[0] * u[0])[~bounded].max(initial=0.0),
        Measure.PENETRATION_SPEED: np.maximum(0.0, -u[0])[~bounded].max(initial=0.0),
        Measure.OBJECTIVE: 0.5 * np.sum(g * (u + r)),
        Measure.LOCAL: (own / motion).max(initial=0.0),
        Measure.LOCAL_SPEED: own.max(initial=0.0),
    }
    total = 1.0 + np.sum(np.abs(g) * (np.abs(u) + np.abs(r))) + np.sum(g[0] * delta)
    for which, number in wanted.items():
        # Hats scale each row by up to exp(4) in w and s: rounding of a difference counts in units of the summands.
        assert_close(values[which], number, total if which == Measure.OBJECTIVE else 1.0 + abs(number), 1e4)
    assert_close(values[Measure.EQ25], eq25, (1.0 + np.linalg.norm(g)) / G_D)  # a difference of impulses over g_d
    assert_close(values[Measure.GAP], max(0.0, gap), total)

    root = 0.3
    if rows == 3:
        tangential = np.abs(spare(0, count, rng))
        bound = backend.coulomb_shift_bound(count, nx / scale[0], bias / scale[0], mu_full(mu, count), tangential, root)
        reach = mu * tangential[:count]
    else:
        tangential = np.abs(spare(3, count, rng))
        bound = backend.rolling_shift_bound(count, nx / scale[0], bias / scale[0], mu_full(mu, count), tangential, root)
        reach = np.sum(mu * tangential[:, :count], axis=0)
    shifts = (np.maximum(0.0, -u[0]) + reach * root)[~bounded]
    assert_close(bound, shifts.max(initial=0.0), 1.0 + shifts.max(initial=0.0))


def mu_full(mu, count):
    """Friction with the columns after the last block."""
    out = np.full((*mu.shape[:-1], count + SPARE), np.nan)
    out[..., :count] = mu
    return out


@pytest.mark.parametrize("coulomb", [False, True])
@pytest.mark.parametrize("count", COUNTS)
def test_sums_of_what_was_laid_down_are_those_in_order(count, coulomb):
    """Bit for bit: what is laid down beside the sums is added contact by contact, as a loop without room would."""
    rng = np.random.default_rng(count)
    x, nx, bias, mu = (*(spare(3, count, rng) for _ in range(3)), random_friction(rng, count, 3))
    scale, weight = np.exp(spare(2, count, rng)), np.exp(spare(0, count, rng))
    gauge, rows = GaugeArrays(count, bias, mu, scale, weight, coulomb, 0.3), blocks(count)
    found, wanted = np.zeros((rows, MEASURE_ROOM)), np.zeros((rows, MEASURES))
    _measure_blocks_plain(gauge, x, nx, found)
    measure_in_order(gauge, x, nx, wanted)
    assert np.array_equal(found[:, :17], wanted[:, :17])


def test_numbers_that_overflow_make_every_measure_infinite(backend):
    """A diverged run never looks good."""
    count = 1500
    rng = np.random.default_rng(0)
    x, nx, bias = (spare(3, count, rng) for _ in range(3))
    x[1, 1400] = 1e200
    values, partial = np.zeros(MEASURES), np.zeros((blocks(count + SPARE) + 2, MEASURE_ROOM))
    ones = np.ones(count + SPARE)
    gauge = GaugeArrays(count, bias, 0.5 * ones, np.ones((2, count + SPARE)), ones, True, 0.0)
    backend.measure(gauge, x, nx, partial, values)
    assert np.all(np.isinf(values[: Measure.LOCAL_SPEED + 1]))


# ---------------------------------------------------------------------- the iterations


def dense(product, rows, count):
    """The matrix of a product, contact by contact."""
    out = np.zeros((rows * count, rows * count))
    for c in range(count):
        for k in range(rows):
            x = np.zeros((rows, count + SPARE))
            x[k, c] = 1.0
            out[:, rows * c + k] = product(x).T.ravel()
    return 0.5 * (out + out.T)


def feasible(rng, read, count, rows, bodies):
    """A bias D^T v + b with gaps b >= 0: v = 0 afterwards is possible, so there is a solution."""
    bias = spare(rows, count)
    bias[:, :count] = read(rng.normal(size=(bodies, 6)))
    bias[0, :count] += rng.uniform(0.0, 0.3, count)
    return bias


def problem_of_contacts(backend, seed, count, *, soft=False, frictionless=True, bodies=14):
    """A problem and its product. frictionless: some contacts are."""
    rng = np.random.default_rng(seed)
    own = data.bodies(seed, bodies)
    op = data.contacts(seed, count, soft=soft, own=own)
    moving = own.movable[:, None]
    bias = feasible(rng, lambda v: data.relative(op, v * moving), count, 3, bodies)
    mu = spare(0, count)
    mu[:count] = rng.uniform(0.2, 0.9, count)
    if frictionless:
        mu[1:count:9] = 0.0
    backend.free_frozen_rows(count, diagonal_of(op), bias)
    group = BlockGroup(BlockKind.CONE, 3, count, mu)
    problem = ConeProblem(group, bias, ContactOperator(op, backend), h=1e-2)
    return problem, lambda x: data.relative(op, data.pushed(op, x)) + data.compliant(op, x)


def diagonal_of(op):
    """N_ii (6, cap), as far as a frozen row needs it."""
    out = spare(6, op.count)
    out[:, : op.count] = 0.0
    for c in range(op.count):
        for k in range(3):
            x = np.zeros((3, op.count + SPARE))
            x[k, c] = 1.0
            out[k, c] = data.relative(op, data.pushed(op, x))[k, c]
    return out


def assert_solved(problem, product, impulse, law, tolerance):
    """The natural map from NumPy."""
    n = problem.count
    g, r = impulse[:, :n], problem.bias[:, :n]
    u = product(impulse) + r
    rows = len(g)
    w, z = weights(product, rows, n)
    value = sets.natural_map(g, u, r, problem.friction[..., :n], w, law == Law.COULOMB, z)
    assert value <= tolerance, f"natural map {value:.3g}"
    return u


def weights(product, rows, n):
    """w and z: roots of the mean diagonal of forces and of torques."""
    diagonal = np.zeros((rows, n))
    for c in range(n):
        for k in range(rows):
            x = np.zeros((rows, n + SPARE))
            x[k, c] = 1.0
            diagonal[k, c] = product(x)[k, c]
    w = np.sqrt(diagonal[:3].mean(axis=0))
    z = np.sqrt(diagonal[3:].mean(axis=0)) if rows == 6 else w
    return np.where(w > 0.0, w, 1.0), np.where(z > 0.0, z, np.where(w > 0.0, w, 1.0))


SOLVERS = {
    "apgd": tb.SolverAPGD,
    "paper": functools.partial(tb.SolverAPGD, variant="paper"),
    "barzilai_borwein": tb.SolverBarzilaiBorwein,
    "gauss_seidel": tb.SolverGaussSeidel,
    "jacobi": tb.SolverJacobi,
    "nsgs": tb.SolverNSGS,
}
TOLERANCE = 1e-8


def options(name):
    """Jacobi's step must be about one over the contacts of a body."""
    out = {"tolerance": TOLERANCE, "stop": "natural_map", "max_iterations": 60000}
    return out | ({"omega": 0.1} if name == "jacobi" else {})


def assert_optimal(impulse, matrix, bias, mu):
    """No worse than an interior point's, however far that got on a singular matrix, and with its velocities.

    The objective f is convex in the velocity v with |v - v*|^2 / 2 <= f - f* in the norm of the matrix.
    """

    def objective(x):
        return 0.5 * x @ matrix @ x + bias @ x

    other = project(solve_ccp(matrix, bias, mu).reshape(-1, 3), mu).ravel()
    x, slack = impulse.ravel(), 1e-9 * abs(objective(other))
    worse = objective(other) - objective(x)
    assert worse >= -slack, f"the interior point is better by {-worse:.3g}"
    assert worse <= 1e-5 * abs(objective(other)), "the interior point failed: nothing is compared"
    apart = (x - other) @ matrix @ (x - other)
    assert np.sqrt(max(apart, 0.0)) <= np.sqrt(2.0 * (worse + slack)) + np.sqrt(2.0 * slack)


@covers("apgd", "apgd_lanes", "apgd_paper", "barzilai_borwein", "gauss_seidel", "nsgs")
@pytest.mark.parametrize("law", list(Law))
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("name", SOLVERS)
def test_iterations_end_at_impulses_that_obey_the_law(backend, name, soft, law):
    """And the same as a matrix; the velocities of the relaxed law, which are unique, as an interior point's."""
    # The cones of Clarabel say nothing about the normal impulse of a contact without friction.
    problem, product = problem_of_contacts(backend, 3, 14, soft=soft, frictionless=law == Law.COULOMB)
    solution = SOLVERS[name](**options(name)).solve(problem, law=law)
    assert solution.status == Status.CONVERGED
    assert np.array_equal(solution.impulse[:, 14:], np.zeros((3, SPARE)))
    u = assert_solved(problem, product, solution.impulse, law, 2.0 * TOLERANCE)
    matrix = dense(product, 3, 14)
    if law == Law.RELAXED:
        mu = problem.friction[:14]
        assert_optimal(solution.impulse[:, :14].T, matrix, problem.bias[:, :14].T.ravel(), mu)

    operator = MatrixOperator(sp.csr_matrix(matrix), 3, backend)
    group = BlockGroup(BlockKind.CONE, 3, 14, problem.friction[:14].copy())
    as_matrix = ConeProblem(group, np.ascontiguousarray(problem.bias[:, :14]), operator, h=1e-2)
    other = SOLVERS[name](**options(name)).solve(as_matrix, law=law)
    assert other.status == Status.CONVERGED
    impulse = np.concatenate([other.impulse, np.zeros((3, SPARE))], axis=1)
    v = assert_solved(problem, product, impulse, law, 2.0 * TOLERANCE)
    if law == Law.RELAXED:
        assert_close(v, u, 1e-5 * np.abs(u).max() / data.EPS, 1.0)


@covers("apgd", "barzilai_borwein", "gauss_seidel", "nsgs")
@pytest.mark.parametrize("name", SOLVERS)
def test_iterations_over_several_blocks_keep_their_best_iterate(backend, name):
    """Few iterations: the value returned is that of the impulses returned, and the smallest that was seen."""
    count = 2500
    problem, _ = problem_of_contacts_without_matrix(backend, count)
    given = {"precision": "double"} if name == "apgd" else {}
    solver = SOLVERS[name](tolerance=0.0, stop="natural_map", max_iterations=6, check_every=1, record=True, **given)
    solution = solver.solve(problem)
    op = problem.operator.arrays
    g, r = solution.impulse[:, :count], problem.bias[:, :count]
    u = data.relative(op, data.pushed(op, solution.impulse)) + r
    mu = problem.friction[:count]
    blocks_of = np.zeros((3, count))
    e, arm, a, b = data.in_use(op)
    for s, k in enumerate((a, b)):
        turn = np.cross(arm[:, s, None, :], e)
        inertia = data.symmetric(op.inverse_inertia)[k]
        blocks_of += (np.einsum("nij,nj->in", e**2, op.inverse_mass[k])
                      + np.einsum("nij,njl,nil->in", turn, inertia, turn))  # fmt: skip
    w = np.sqrt(blocks_of.mean(axis=0))
    value = sets.natural_map(g, u, r, mu, np.where(w > 0.0, w, 1.0), True)
    assert solution.iterations == 6 and np.all(np.isfinite(solution.history[:7]))
    assert_close(value, np.min(solution.history[:7]), 1.0, 1e4)
    assert value < solution.history[0]
    assert np.all(np.linalg.norm(g[1:], axis=0) <= mu * g[0] * (1.0 + 1e-12))


def problem_of_contacts_without_matrix(backend, count):
    """Many contacts, most bodies with several."""
    rng = np.random.default_rng(count)
    op = data.contacts(count, count)
    own = data.bodies(count)
    bias = feasible(rng, lambda v: data.relative(op, v * own.movable[:, None]), count, 3, data.BODIES)
    mu = spare(0, count)
    mu[:count] = rng.uniform(0.0, 0.9, count)
    return ConeProblem(BlockGroup(BlockKind.CONE, 3, count, mu), bias, ContactOperator(op, backend), h=1e-2), op


@covers("apgd", "barzilai_borwein")
@pytest.mark.parametrize("law", list(Law))
@pytest.mark.parametrize("name", ["apgd", "barzilai_borwein"])
def test_iterations_with_joints_and_bounded_rows(backend, name, law):
    count = 12
    problem, product = jointed_problem(backend, count, rows=3)
    solution = SOLVERS[name](**options(name)).solve(problem, law=law)
    assert solution.status == Status.CONVERGED
    assert_solved(problem, product, solution.impulse, law, 2.0 * TOLERANCE)
    bounds = -problem.friction[count : problem.count]
    assert np.all(np.abs(solution.impulse[0, count : problem.count]) <= bounds)


def near(impulse, mu, count, seed):
    """Impulses in the same face of the cones: scaled as they are on the surface, moved freely inside."""
    rng, out = np.random.default_rng(seed), impulse.copy()
    for c in range(count):
        x, m = impulse[:, c], mu[c]
        if m < 0.0:
            out[0, c] = x[0] + (0.01 * m * rng.uniform(-1.0, 1.0) if abs(x[0]) < -0.9 * m else 0.0)
        elif np.hypot(*x[1:]) < 0.99 * m * x[0]:
            out[:, c] = x + 1e-3 * x[0] * min(1.0, m) * rng.uniform(-1.0, 1.0, 3)
        else:
            out[:, c] = x * rng.uniform(0.99, 1.01)
    return out


def face_of(impulse, mu, count):
    """(3 count, directions) An orthonormal basis of the face."""
    columns = []
    for c in range(count):
        x, m = impulse[:, c], mu[c]
        if m < 0.0:
            moves = np.eye(3)[:1] if abs(x[0]) < -m else []
        elif x[0] <= 0.0:
            moves = []
        elif np.hypot(*x[1:]) < (1.0 - 1e-9) * m * x[0]:
            moves = np.eye(3)
        else:
            moves = [x / np.linalg.norm(x)]
        for move in moves:
            columns.append(np.zeros(3 * count))
            columns[-1][3 * c : 3 * c + 3] = move
    return np.array(columns).T


@covers("face_gradients")
@pytest.mark.parametrize("joints", [False, True])
@pytest.mark.parametrize("law", list(Law))
def test_conjugate_gradients_solve_the_equations_of_the_face(backend, law, joints):
    """Velocities as NumPy's for the face; by Coulomb's law for a problem whose solution holds everything."""
    problem, product = jointed_problem(backend, 12, rows=3) if joints else problem_of_contacts(backend, 3, 14)
    count = problem.count
    mu = problem.friction[:count]
    if law == Law.COULOMB:
        inside = np.zeros_like(problem.bias)
        inside[0, :count] = np.where(mu < 0.0, 0.5 * mu, 1.0)
        inside[1, :count] = 0.5 * np.maximum(mu, 0.0)
        problem.bias[:, :count] = -product(inside)[:, :count]
    else:
        inside = tb.SolverAPGD(**options("apgd") | {"tolerance": 1e-11}).solve(problem, law=law).impulse
    guess = near(inside, mu, count, 5)
    given = {"tolerance": 1e-10, "stop": "natural_map", "scaling": "none", "check_every": 1, "max_iterations": 400}
    found = SolverFace(**given).solve(problem, law=law, guess=guess.copy())
    start = measure(problem, guess, law).natural_map
    assert start > 1e-5, "nothing was asked"
    assert found.status == Status.CONVERGED
    face, matrix = face_of(guess, mu, count), dense(product, 3, count)
    u = matrix @ guess[:, :count].T.ravel() + problem.bias[:, :count].T.ravel()
    wanted = u + matrix @ face @ np.linalg.lstsq(face.T @ matrix @ face, -face.T @ u, rcond=1e-12)[0]
    got = matrix @ found.impulse[:, :count].T.ravel() + problem.bias[:, :count].T.ravel()
    assert np.abs(got - wanted).max() <= 1e-7 * np.abs(u).max()


@covers("apgd")
@pytest.mark.parametrize("law", list(Law))
@pytest.mark.parametrize("mechanisms", [0, 2])
def test_iterations_with_rolling_friction(backend, mechanisms, law):
    problem, product = jointed_problem(backend, 12, rows=6, mechanisms=mechanisms)
    solution = tb.SolverAPGD(**options("apgd")).solve(problem, law=law)
    assert solution.status == Status.CONVERGED
    assert_solved_rolling(problem, product, solution.impulse, law, 2.0 * TOLERANCE)


def assert_solved_rolling(problem, product, impulse, law, tolerance):
    """The torques' weight takes no joints into account (`turn_diagonal`), so it is the backend's own."""
    n = problem.count
    turns, diagonal = spare(4, n), np.zeros((6, problem.bias.shape[1]))
    problem.operator.turn_diagonal(turns)
    problem.operator.diagonal_blocks(diagonal)
    w, z = np.sqrt(diagonal[:3, :n].mean(axis=0)), np.sqrt(turns[:3, :n].mean(axis=0))
    w = np.where(w > 0.0, w, 1.0)
    g, r = impulse[:, :n], problem.bias[:, :n]
    u = product(impulse) + r
    value = sets.natural_map(g, u, r, problem.friction[:, :n], w, law == Law.COULOMB, np.where(z > 0.0, z, w))
    assert value <= tolerance, f"natural map {value:.3g}"


def jointed_problem(backend, count, rows, mechanisms=2):
    """Contacts with three or six rows, and bounded rows, on bodies of which some are joined."""
    case = jointed(count, count, mechanisms=mechanisms)
    rng, total, contacts = np.random.default_rng(8), case.total, case.arrays.contacts
    own = data.bodies(count, case.bodies)
    free = rng.normal(size=(case.bodies, 6)) * own.movable[:, None]
    free[own.locked] = 0.0
    y = case.answer @ (case.equality @ free.ravel())
    free = (free.ravel() - case.inverse_mass @ (case.equality.T @ y)).reshape(-1, 6)
    diagonal = np.zeros((6, total + SPARE))
    backend.contact_diagonal(
        count, contacts.body_a, contacts.body_b, contacts.frame, contacts.arms, contacts.inverse_mass,
        contacts.inverse_inertia, diagonal,
    )  # fmt: skip
    backend.articulated_diagonal(
        case.arrays, case.mechanism_of, case.mechanism_body_start, case.mechanism_body, case.answers, diagonal
    )
    operator = ArticulatedOperator(case.arrays, backend, diagonal)
    e = contacts.frame[:, :count].T.reshape(count, 3, 3)
    a, b = contacts.body_a[:count], contacts.body_b[:count]
    bias, mu = spare(rows, total), spare(0, total)
    bias[:, :total] = 0.0
    bias[:3, :total] = case.rows(free)
    bias[0, :count] += rng.uniform(0.0, 0.3, count)
    mu[:count], mu[count:total] = rng.uniform(0.2, 0.9, count), -rng.uniform(0.01, 1.0, total - count)
    if rows == 3:
        backend.free_frozen_rows(total, diagonal, bias)
        group = BlockGroup(BlockKind.CONE, 3, total, mu)
        problem = ConeProblem(group, bias, operator, h=1e-2)
        return problem, lambda x: case.rows(case.velocity(x)[0]) + case.compliant(x)

    def turns(v):
        out = np.zeros((3, total))
        out[:, :count] = np.einsum("nij,nj->in", e, v[b, 3:] - v[a, 3:])
        return out

    def product(x):
        wrench = np.zeros((case.bodies, 6))
        torque = np.einsum("nij,in->nj", e, x[3:, :count])
        np.add.at(wrench[:, 3:], a, -torque)
        np.add.at(wrench[:, 3:], b, torque)
        v, _ = case.velocity(x, data.accelerated(contacts, wrench))
        return np.concatenate([case.rows(v) + case.compliant(x), turns(v)])

    bias[3:, :total] = turns(free)
    friction = spare(3, total)
    friction[0] = mu
    friction[1:, :total] = np.where(mu[:total] < 0.0, 0.0, rng.uniform(0.01, 0.2, (2, total)))
    backend.free_frozen_rows(total, diagonal, bias)
    whole = RollingArrays(case.arrays, contacts.frame, np.zeros_like(contacts.entry_force))
    group = BlockGroup(BlockKind.ROLLING, 6, total, friction)
    return ConeProblem(group, bias, RollingOperator(whole, backend, operator), h=1e-2), product
