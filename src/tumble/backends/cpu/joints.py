"""Joints: coordinates, rows, the factor of their system, and the operator of contacts on jointed bodies.

Equality rows (joints, springs, motors without a limit) are eliminated: between the two halves of a product the bodies'
velocities are corrected by v -= M^-1 G (G^T M^-1 G + E)^+ G^T v. The system falls into mechanisms, each
with a sparse LDL^T whose pattern is known from the model; rows that depend on others get a zero pivot and are dropped.
A body belongs to one mechanism only, so mechanisms can go in parallel.
"""

from __future__ import annotations

from numba import types
from numba.extending import overload

from ...kernels.jit import blockwise, formula, loop
from ...kernels.joint_answers import among_trees, contact_block, contact_mechanisms, row_answer, row_node
from ...kernels.joint_rows import (
    SIDES,
    eliminate_mechanism,
    factor_mechanism,
    own_diagonal,
    push_row,
    row_speed,
    solve_mechanism,
)
from ...kernels.joint_trees import tree_mobility
from ..base import ArticulatedArrays
from .operators import add_compliance, gather, lay_down, product, read_rows

FIXED = 1e-11
"""A bounded row or contact that the joints leave less than this part of its freedom cannot move."""
EXACT_DIAGONAL = 300
"""Up to so many joint rows in a mechanism the diagonal blocks of its contacts take the joints into account."""


@blockwise(256, "body.shape[0]")
def row_speeds(block, body, jacobian, v, out):
    """out = J v for body velocities (bodies, 6)."""
    for r in range(256 * block, min(256 * block + 256, body.shape[0])):
        out[r] = row_speed(body, jacobian, r, v)


@loop
def take_rows(rows, built, state, out):
    """Bounded rows that are kept, closed up (out: bodies, J, M^-1 J, compliance, bias, bound, number); how many."""
    body, jacobian, weighted, compliance, bias, bound, number = out
    count = 0
    for r in range(rows.number.size):
        if state.kept[r]:
            for s in range(SIDES):
                body[count, s] = rows.body[r, s]
            for i in range(6 * SIDES):
                jacobian[count, i], weighted[count, i] = built.jacobian[r, i], built.weighted[r, i]
            compliance[count], bias[count] = built.compliance[r], built.bias[r]
            bound[count], number[count] = state.bound[r], rows.number[r]
            count += 1
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
    l_start, l_row, l_value = factor.l_start, factor.l_row, factor.l_value
    for c in range(factor.mechanism.size - 1):
        if not factor.by_bodies.used[c]:
            for j in range(factor.mechanism[c], factor.mechanism[c + 1]):
                for p in range(l_start[j], l_start[j + 1]):
                    x[l_row[p]] -= l_value[p] * x[j]


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
    for r in range(op.bounded_body.shape[0]):
        push_row(op.bounded_body, op.bounded_weighted, r, x[0, op.contacts.count + r], v)
    eliminate(op, v)


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
    count = op.contacts.count
    for c in range(64 * block, min(64 * block + 64, count + op.bounded_body.shape[0])):
        if c < count:
            first, second = contact_mechanisms(op, c, mechanism_of)
            if among_trees(op, first, second):
                contact_block(c, op, answers, FIXED, diagonal)
        else:
            node = row_node(op, c - count, mechanism_of)
            if node >= 0:
                _set_bounded(op, c - count, row_answer(op, c - count, node, answers), diagonal)


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
            if not (_is_small(op, first) and _is_small(op, second)):
                continue
        else:
            if row_node(op, c - count, mechanism_of) >= 0:
                continue
            for s in range(SIDES):
                b = op.bounded_body[c - count, s]
                if b >= 0 and mechanism_of[b] >= 0:
                    first = mechanism_of[b]
        for k in range(3 if c < count else 1):
            _clear(v, first, mechanism_body_start, mechanism_body)
            _clear(v, second, mechanism_body_start, mechanism_body)
            if c < count:
                _push_contact(contacts, c, k, v)
            else:
                push_row(op.bounded_body, op.bounded_weighted, c - count, 1.0, v)
            _eliminate_one(op, first, v)
            if second != first:
                _eliminate_one(op, second, v)
            if c < count:
                n, u, w = _read_contact(contacts, c, v)
                if k == 0:
                    n = n if n > FIXED * diagonal[0, c] else 0.0
                    diagonal[0, c], diagonal[3, c], diagonal[4, c] = n, u, w
                elif k == 1:
                    diagonal[1, c], diagonal[5, c] = u if u > FIXED * diagonal[1, c] else 0.0, w
                else:
                    diagonal[2, c] = w if w > FIXED * diagonal[2, c] else 0.0
            else:
                _set_bounded(op, c - count, row_speed(op.bounded_body, op.bounded_jacobian, c - count, v), diagonal)
    stuck = 0
    for c in range(count, count + op.bounded_body.shape[0]):
        if diagonal[0, c] <= 0.0:
            stuck += 1
    return stuck


@formula
def _set_bounded(op, r, own, diagonal):
    """The block of bounded row r, whose bodies answer with `own`."""
    if own <= FIXED * own_diagonal(op.bounded_jacobian, op.bounded_weighted, r):
        own = 0.0
    own += op.bounded_compliance[r]
    for i in range(6):
        diagonal[i, op.contacts.count + r] = own if i < 3 else 0.0


@formula
def _is_small(op, c):
    return c < 0 or op.factor.by_bodies.used[c] or op.factor.mechanism[c + 1] - op.factor.mechanism[c] <= EXACT_DIAGONAL


@formula
def _clear(v, c, mechanism_body_start, mechanism_body):
    if c >= 0:
        for k in range(mechanism_body_start[c], mechanism_body_start[c + 1]):
            for i in range(6):
                v[mechanism_body[k], i] = 0.0


@formula
def _eliminate_one(op, c, v):
    if c >= 0:
        eliminate_mechanism(c, op, v)


@formula
def _push_contact(contacts, c, k, v):
    """Set the velocities of a contact's two bodies after a unit impulse along its direction k."""
    f = (contacts.frame[3 * k, c], contacts.frame[3 * k + 1, c], contacts.frame[3 * k + 2, c])
    im, ii, arms = contacts.inverse_mass, contacts.inverse_inertia, contacts.arms
    for side in range(2):
        b = contacts.body_b[c] if side == 1 else contacts.body_a[c]
        sign = 1.0 if side == 1 else -1.0
        x, y, z = arms[3 * side, c], arms[3 * side + 1, c], arms[3 * side + 2, c]
        tx, ty, tz = y * f[2] - z * f[1], z * f[0] - x * f[2], x * f[1] - y * f[0]
        for i in range(3):
            v[b, i] = sign * im[b, i] * f[i]
        v[b, 3] = sign * (ii[b, 0] * tx + ii[b, 3] * ty + ii[b, 4] * tz)
        v[b, 4] = sign * (ii[b, 3] * tx + ii[b, 1] * ty + ii[b, 5] * tz)
        v[b, 5] = sign * (ii[b, 4] * tx + ii[b, 5] * ty + ii[b, 2] * tz)


@formula
def _read_contact(contacts, c, v):
    """Relative velocity of a contact along n, u, w."""
    i, j, arms, g = contacts.body_a[c], contacts.body_b[c], contacts.arms, contacts.frame
    ax, ay, az = arms[0, c], arms[1, c], arms[2, c]
    bx, by, bz = arms[3, c], arms[4, c], arms[5, c]
    x = v[j, 0] - v[i, 0] + (v[j, 4] * bz - v[j, 5] * by) - (v[i, 4] * az - v[i, 5] * ay)
    y = v[j, 1] - v[i, 1] + (v[j, 5] * bx - v[j, 3] * bz) - (v[i, 5] * ax - v[i, 3] * az)
    z = v[j, 2] - v[i, 2] + (v[j, 3] * by - v[j, 4] * bx) - (v[i, 3] * ay - v[i, 4] * ax)
    return (
        g[0, c] * x + g[1, c] * y + g[2, c] * z,
        g[3, c] * x + g[4, c] * y + g[5, c] * z,
        g[6, c] * x + g[7, c] * y + g[8, c] * z,
    )


@overload(product)
def _articulated(op, x, out):
    if isinstance(op, types.BaseNamedTuple) and op.instance_class is ArticulatedArrays:
        return lambda op, x, out: articulated_product(op, x, out)
    return None
