"""Joints: coordinates, rows, the factor of their system, and the operator of contacts on jointed bodies.

Equality rows (joints, springs, motors without a limit) are eliminated: between the two halves of a product the bodies'
velocities are corrected by v -= M^-1 G (G^T M^-1 G + E)^+ G^T v. The system falls into mechanisms, each
with a sparse LDL^T whose pattern is known from the model; rows that depend on others get a zero pivot and are dropped.
A body belongs to one mechanism only, so mechanisms can go in parallel.
"""

from __future__ import annotations

from numba import types
from numba.extending import overload

from ...kernels.jit import blockwise, loop
from ...kernels.joint_answers import among_trees, contact_mechanisms, row_node
from ...kernels.joint_blocks import (
    clear,
    eliminate_one,
    is_small,
    push_contact,
    read_contact,
    set_bounded,
    take_answer,
    tree_block,
)
from ...kernels.joint_rows import (
    SIDES,
    answer_mechanism,
    eliminate_mechanism,
    factor_mechanism,
    forward_mechanism,
    push_row,
    row_speed,
    solve_mechanism,
)
from ...kernels.joint_trees import tree_mobility
from ..base import ArticulatedArrays
from .operators import add_compliance, gather, lay_down, product, read_rows


@blockwise(256, "body.shape[0]")
def row_speeds(block, body, jacobian, v, out):
    """out = J v for body velocities (bodies, 6)."""
    for r in range(256 * block, min(256 * block + 256, body.shape[0])):
        out[r] = row_speed(body, jacobian, r, v)


@loop
def take_rows(rows, first, built, state, out):
    """Bounded rows that are kept, closed up (out: bodies, J, M^-1 J, compliance, bias, bound, number, and the first of
    each mechanism); how many. first (mechanisms + 1,): that of all rows."""
    body, jacobian, weighted, compliance, bias, bound, number, start = out
    count = c = 0
    for r in range(rows.number.size):
        while c < first.size and first[c] <= r:
            start[c] = count
            c += 1
        if state.kept[r]:
            for s in range(SIDES):
                body[count, s] = rows.body[r, s]
            for i in range(6 * SIDES):
                jacobian[count, i], weighted[count, i] = built.jacobian[r, i], built.weighted[r, i]
            compliance[count], bias[count] = built.compliance[r], built.bias[r]
            bound[count], number[count] = state.bound[r], rows.number[r]
            count += 1
    start[c:] = count
    return count


@loop
def push_rows(body, weighted, x, v):
    """v += M^-1 J^T x."""
    for r in range(body.shape[0]):
        if x[r] != 0.0:
            push_row(body, weighted, r, x[r], v)


@blockwise(1, "factor.mechanism.size - 1")
def factor_joints(c, pattern, system, factor, scratch):
    """Factor the system of every mechanism; factor.dropped counts the rows that depend on others."""
    factor.dropped[c] = factor_mechanism(c, pattern, system, factor, scratch)


@blockwise(1, "factor.mechanism.size - 1")
def solve_joints(c, factor, x):
    """x = S^+ x for all mechanisms."""
    solve_mechanism(c, factor, x)


@loop
def forward_joints(factor, x):
    """x = L^-1 x where rows were eliminated: what is left at a dropped row is how far it contradicts those before."""
    for c in range(factor.mechanism.size - 1):
        forward_mechanism(c, factor, x)


@blockwise(1, "op.factor.mechanism.size - 1")
def _eliminate_mechanisms(c, op, v):
    eliminate_mechanism(c, op, v)


@loop
def eliminate(op, v):
    """v -= M^-1 G S^+ G^T v; op.reaction keeps S^+ G^T v."""
    mechanisms = op.factor.mechanism.size - 1
    if mechanisms > 4:
        _eliminate_mechanisms(op, v)
    else:
        for c in range(mechanisms):
            eliminate_mechanism(c, op, v)


@loop
def articulated_velocity(op, x):
    """op.contacts.body_velocity = A^-1 P x: contacts and bounded rows, then the joints."""
    a = op.contacts
    lay_down(a.count, a.frame, a.slot_a, a.slot_b, x, a.entry_force)
    gather(a.entry_start, a.entry_arm, a.entry_force, a.inverse_mass, a.inverse_inertia, a.body_velocity)
    push_and_eliminate(op, x)


@loop
def push_and_eliminate(op, x):
    """Bounded rows, then the joints, onto the velocities that the contacts gave."""
    v = op.contacts.body_velocity
    mechanisms = op.factor.mechanism.size - 1
    for r in range(op.bounded_start[0]):  # on bodies without joints
        push_row(op.bounded_body, op.bounded_weighted, r, x[0, op.contacts.count + r], v)
    if mechanisms > 4:
        _answer_mechanisms(op, x, v)
    else:
        for c in range(mechanisms):
            answer_mechanism(c, op, x, v)


@blockwise(1, "op.factor.mechanism.size - 1")
def _answer_mechanisms(c, op, x, v):
    answer_mechanism(c, op, x, v)


@blockwise(256, "op.bounded_body.shape[0]")
def _bounded_speeds(block, op, v, out):
    for r in range(256 * block, min(256 * block + 256, op.bounded_body.shape[0])):
        c = op.contacts.count + r
        out[0, c], out[1, c], out[2, c] = row_speed(op.bounded_body, op.bounded_jacobian, r, v), 0.0, 0.0


@loop
def articulated_rows(op, v, out):
    """out = P^T v."""
    contacts = op.contacts
    read_rows(contacts.count, contacts.body_a, contacts.body_b, contacts.frame, contacts.arms, v, out)
    if op.bounded_body.shape[0] > 0:
        _bounded_speeds(op, v, out)


@loop
def articulated_product(op, x, out):
    """out = N x, N = P^T A^-1 P + E."""
    articulated_velocity(op, x)
    articulated_rows(op, op.contacts.body_velocity, out)
    add_all_compliance(op, x, out)


@loop
def add_all_compliance(op, x, out):
    """out += E x, of contacts and bounded rows."""
    add_compliance(op.contacts, x, out)
    for r in range(op.bounded_body.shape[0]):
        c = op.contacts.count + r
        out[0, c] += op.bounded_compliance[r] * x[0, c]


@blockwise(1, "op.factor.mechanism.size - 1")
def _mobilities(c, op, answers):
    if op.factor.by_bodies.used[c]:
        tree_mobility(c, op.factor, op.contacts.inverse_mass, op.contacts.inverse_inertia, answers)


@blockwise(64, "op.contacts.count + op.bounded_body.shape[0]")
def _tree_diagonal(block, op, mechanism_of, answers, diagonal):
    for c in range(64 * block, min(64 * block + 64, op.contacts.count + op.bounded_body.shape[0])):
        tree_block(c, op, mechanism_of, answers, diagonal)


@loop
def articulated_diagonal(op, mechanism_of, mechanism_body_start, mechanism_body, answers, diagonal):
    """Diagonal blocks with the joints: of bounded rows, and of contacts on trees and on small mechanisms, where
    `diagonal` has the blocks of M^-1 so far. A body without joints has no mechanism (-1). answers: scratch. Returns
    how many bounded rows the joints leave no freedom."""
    _mobilities(op, answers)
    _tree_diagonal(op, mechanism_of, answers, diagonal)
    contacts = op.contacts
    count, v = contacts.count, contacts.body_velocity
    for c in range(count + op.bounded_body.shape[0]):
        first, second = -1, -1
        if c < count:
            first, second = contact_mechanisms(op, c, mechanism_of)
            if (first < 0 and second < 0) or among_trees(op, first, second):
                continue
            if not (is_small(op, first) and is_small(op, second)):
                continue
        else:
            if row_node(op, c - count, mechanism_of) >= 0:
                continue
            for s in range(SIDES):
                b = op.bounded_body[c - count, s]
                if b >= 0 and mechanism_of[b] >= 0:
                    first = mechanism_of[b]
        for k in range(3 if c < count else 1):
            clear(v, first, mechanism_body_start, mechanism_body)
            clear(v, second, mechanism_body_start, mechanism_body)
            if c < count:
                push_contact(contacts, c, k, v)
            else:
                push_row(op.bounded_body, op.bounded_weighted, c - count, 1.0, v)
            eliminate_one(op, first, v)
            if second != first:
                eliminate_one(op, second, v)
            if c < count:
                take_answer(c, k, read_contact(contacts, c, v), diagonal)
            else:
                set_bounded(op, c - count, row_speed(op.bounded_body, op.bounded_jacobian, c - count, v), diagonal)
    stuck = 0
    for c in range(count, count + op.bounded_body.shape[0]):
        if diagonal[0, c] <= 0.0:
            stuck += 1
    return stuck


@overload(product)
def _articulated(op, x, out):
    if isinstance(op, types.BaseNamedTuple) and op.instance_class is ArticulatedArrays:
        return lambda op, x, out: articulated_product(op, x, out)
    return None
