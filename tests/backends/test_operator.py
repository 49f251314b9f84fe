"""Products with N and what they are made of, against Jacobians and masses as dense matrices or sums over contacts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tumble.backends.base import MatrixArrays, RollingArrays

from . import data
from .cover import covers
from .data import BODIES, COUNTS, SPARE, assert_close, spare
from .jointed import jointed

SMALL = 24
"""Bodies of operators that are compared with dense matrices"""


@covers("lay_down", "gather")
@pytest.mark.parametrize("count", COUNTS)
def test_impulses_give_bodies_their_change_of_velocity(backend, count):
    op, x = data.contacts(count, count), spare(3, count, np.random.default_rng(1))
    backend.lay_down(op.count, op.frame, op.slot_a, op.slot_b, x, op.entry_force)
    e = op.frame[:, :count].T.reshape(count, 3, 3)
    force = np.einsum("nij,in->nj", e, x[:, :count])
    for slot, sign in ((op.slot_a[:count], -1.0), (op.slot_b[:count], 1.0)):
        used = slot < op.entry_start[-1]
        assert_close(op.entry_force[slot[used]], sign * force[used])
    backend.gather(op.entry_start, op.entry_arm, op.entry_force, op.inverse_mass, op.inverse_inertia, op.body_velocity)
    assert_close(op.body_velocity, data.pushed(op, x))


@covers("read_rows")
@pytest.mark.parametrize("count", COUNTS)
def test_rows_read_the_relative_velocity_of_the_points(backend, count):
    rng = np.random.default_rng(2)
    op, v, out = data.contacts(count, count), rng.normal(size=(BODIES, 6)), spare(3, count)
    backend.read_rows(op.count, op.body_a, op.body_b, op.frame, op.arms, v, out)
    assert_close(out[:, :count], data.relative(op, v))
    assert np.all(np.isnan(out[:, count:]))


@covers("contact_product", "product")
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("count", COUNTS)
def test_product_of_contacts(backend, count, soft):
    op, x = data.contacts(count, count, soft=soft), spare(3, count, np.random.default_rng(3))
    out, again = spare(3, count), spare(3, count)
    backend.contact_product(op, x, out)
    assert_close(out[:, :count], data.relative(op, data.pushed(op, x)) + data.compliant(op, x))
    backend.product(op, x, again)
    assert np.array_equal(out, again, equal_nan=True)


@covers("contact_diagonal")
@pytest.mark.parametrize("count", COUNTS)
def test_diagonal_blocks_of_contacts(backend, count):
    op, out = data.contacts(count, count), spare(6, count)
    backend.contact_diagonal(count, op.body_a, op.body_b, op.frame, op.arms, op.inverse_mass, op.inverse_inertia, out)
    assert_close(out[:, :count], contact_blocks(op))


def contact_blocks(op):
    """N_ii (6, count) from the two blocks of M^-1 of each contact."""
    e, arm, a, b = data.in_use(op)
    block = np.zeros((op.count, 3, 3))
    for s, k in enumerate((a, b)):
        turn = np.cross(arm[:, s, None, :], e)
        block += np.einsum("nij,nj,nkj->nik", e, op.inverse_mass[k], e)
        block += np.einsum("nij,njl,nkl->nik", turn, data.symmetric(op.inverse_inertia)[k], turn)
    return block[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].T


def random_matrix(seed, count, dim):
    """A sparse symmetric matrix of blocks, some of them empty rows, as a pass takes it."""
    rng = np.random.default_rng(seed)
    n = dim * count
    some = sp.random_array((n, n), density=min(1.0, 6.0 / max(1, n)), rng=rng, format="csr")
    whole = sp.csr_array(some + some.T + sp.diags_array((np.arange(n) % 7 > 0) * 1.0))
    whole.eliminate_zeros()
    whole.sort_indices()
    index = whole.indices
    return whole, MatrixArrays(
        count, dim, whole.indptr.astype(np.int64), (index // dim).astype(np.int32), (index % dim).astype(np.int32),
        whole.data.astype(float),
    )  # fmt: skip


@covers("matrix_product", "matrix_diagonal", "product")
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("count", COUNTS)
def test_product_and_diagonal_of_sparse_matrices(backend, count, dim):
    whole, op = random_matrix(count, count, dim)
    x, out, again = spare(3, count, np.random.default_rng(4)), spare(3, count), spare(3, count)
    backend.matrix_product(op, x, out)
    wanted = np.zeros((3, count))
    wanted[:dim] = (whole @ x[:dim, :count].T.ravel()).reshape(count, dim).T
    assert_close(out[:, :count], wanted)
    backend.product(op, x, again)
    assert np.array_equal(out, again, equal_nan=True)
    diagonal = spare(6, count)
    backend.matrix_diagonal(*op, diagonal)
    blocks = np.zeros((count, 3, 3))
    for c in range(min(count, 40)):
        blocks[c, :dim, :dim] = whole[dim * c : dim * c + dim][:, dim * c : dim * c + dim].toarray()
    some = blocks[:40]
    assert_close(diagonal[:, : min(count, 40)], some[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].T, roundings=0.0)
    assert_close(diagonal[0, :count], whole.diagonal()[::dim], roundings=0.0)
    assert np.all(np.isnan(diagonal[:, count:]))


@covers("articulated_velocity", "articulated_rows", "articulated_product", "product")
@pytest.mark.parametrize("mechanisms", [0, 2, 6])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("count", [0, 7, 1024, 1500])
def test_product_with_joints_eliminated(backend, count, soft, mechanisms):
    """N = P^T A^-1 P + E with A^-1 = M^-1 - M^-1 G S^+ G^T M^-1, S = G^T M^-1 G + E."""
    case = jointed(count, count, mechanisms=mechanisms, soft=soft)
    rng, op, total = np.random.default_rng(5), case.arrays, case.total
    x, v = spare(3, total, rng), rng.normal(size=(case.bodies, 6))
    x[1:, count:total] = 0.0
    out, again, rows = spare(3, total), spare(3, total), spare(3, total)
    backend.articulated_velocity(op, x)
    velocity, answer = case.velocity(x)
    assert_close(op.contacts.body_velocity, velocity, case.size(x), 1e4)
    assert_close(op.reaction, answer, np.abs(answer).max(initial=1.0), 1e5)
    backend.articulated_rows(op, v, rows)
    assert_close(rows[:, :total], case.rows(v))
    backend.articulated_product(op, x, out)
    wanted = case.rows(velocity) + case.compliant(x)
    assert_close(out[:, :total], wanted, case.size(x), 1e4)
    backend.product(op, x, again)
    assert np.array_equal(out, again, equal_nan=True)
    assert np.all(np.isnan(out[:, total:]))


@covers("articulated_diagonal")
@pytest.mark.parametrize("mechanisms", [0, 2, 6])
def test_diagonal_blocks_with_joints(backend, mechanisms):
    """Exact blocks: the same product, one unit impulse after the other."""
    count = 30
    case = jointed(6, count, mechanisms=mechanisms, soft=True)
    out = spare(6, case.total)
    out[:, :count] = contact_blocks(case.arrays.contacts)
    rigid = out[:, :count].copy()
    backend.articulated_diagonal(
        case.arrays, case.mechanism_of, case.mechanism_body_start, case.mechanism_body, case.answers, out
    )
    own = np.zeros((case.total, 3, 3))
    for c in range(case.total):
        for k in range(3 if c < count else 1):
            x = np.zeros((3, case.total + SPARE))
            x[k, c] = 1.0
            own[c, :, k] = case.rows(case.velocity(x)[0])[:, c]
    wanted = own[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].T
    bounded = wanted[0, count:] + case.arrays.bounded_compliance
    assert_close(out[:, :count], wanted[:, :count], np.abs(rigid).max(), 1e4)
    assert_close(out[:3, count : case.total], np.tile(bounded, (3, 1)), np.abs(bounded).max(initial=1.0), 1e4)
    assert np.all(out[3:, count : case.total] == 0.0)


def without_joints_on_a_device(backend, mechanisms):
    """Simulations are refused there that have both joints and rolling friction."""
    if mechanisms and not backend.HOSTED:
        pytest.skip("rolling friction on jointed bodies is refused there")


@covers("rolling_velocity", "rolling_rows", "rolling_product", "product", "turn_diagonal")
@pytest.mark.parametrize("mechanisms", [0, 6])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("count", [0, 7, 1024, 1500])
def test_product_with_six_rows(backend, count, soft, mechanisms):
    """The turns are three more rows: their impulse is a torque on b about n, u, w, its opposite on a."""
    without_joints_on_a_device(backend, mechanisms)
    case = jointed(count, count, mechanisms=mechanisms, soft=soft)
    rng, contacts, total = np.random.default_rng(6), case.arrays.contacts, case.total
    turn_frame = data.frames(rng, count + SPARE)[:, : count + SPARE].copy()
    op = RollingArrays(case.arrays, turn_frame, np.full_like(contacts.entry_force, np.nan))
    x, v = spare(6, total, rng), rng.normal(size=(case.bodies, 6))
    x[1:, count:total] = 0.0
    e = turn_frame[:, :count].T.reshape(count, 3, 3)
    a, b = contacts.body_a[:count], contacts.body_b[:count]
    wrench = np.zeros((case.bodies, 6))
    torque = np.einsum("nij,in->nj", e, x[3:, :count])
    np.add.at(wrench[:, 3:], a, -torque)
    np.add.at(wrench[:, 3:], b, torque)
    velocity, _ = case.velocity(x, data.accelerated(contacts, wrench))

    def rows_of(v):
        turns = np.zeros((3, total))
        turns[:, :count] = np.einsum("nij,nj->in", e, v[b, 3:] - v[a, 3:])
        return np.concatenate([case.rows(v), turns])

    out, again, rows = spare(6, total), spare(6, total), spare(6, total)
    size = case.size(x) + np.abs(data.accelerated(contacts, wrench)).max()
    backend.rolling_velocity(op, x)
    assert_close(contacts.body_velocity, velocity, size, 1e4)
    backend.rolling_rows(op, v, rows)
    assert_close(rows[:, :total], rows_of(v))
    backend.rolling_product(op, x, out)
    wanted = rows_of(velocity)
    wanted[:3] += case.compliant(x)
    assert_close(out[:, :total], wanted, size, 1e4)
    backend.product(op, x, again)
    assert np.array_equal(out, again, equal_nan=True)

    diagonal = spare(4, total)
    backend.turn_diagonal(op, diagonal)
    inverse = data.symmetric(contacts.inverse_inertia)
    block = np.einsum("nij,njl,nkl->nik", e, inverse[a] + inverse[b], e)
    assert_close(diagonal[:, :count], block[:, [0, 1, 2, 1], [0, 1, 2, 2]].T)
    assert np.all(diagonal[:, count:total] == np.array([1.0, 1.0, 1.0, 0.0])[:, None])
