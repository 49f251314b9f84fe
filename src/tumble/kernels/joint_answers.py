"""Diagonal blocks of contacts and bounded rows on mechanisms whose bodies were eliminated: read from how their nodes
answer to forces (`joint_trees.tree_mobility`)."""

from __future__ import annotations

from .contact_rows import add_side
from .jit import formula
from .joint_rows import SIDES
from .linalg import cross


@formula
def contact_mechanisms(op, c, mechanism_of):
    """Mechanisms of the two bodies of a contact, -1 without joints."""
    return mechanism_of[op.contacts.body_a[c]], mechanism_of[op.contacts.body_b[c]]


@formula
def among_trees(op, first, second):
    """Whether a contact between these mechanisms can be read from the answers of its two bodies, each alone."""
    used = op.factor.by_bodies.used
    if first == second:
        return False
    return (first < 0 or used[first]) and (second < 0 or used[second])


@formula
def _form(a, mobility, k, b):
    """a . (mobility of node k) b"""
    total = 0.0
    for i in range(6):
        part = 0.0
        for j in range(6):
            part += mobility[k, 6 * i + j] * b[j]
        total += a[i] * part
    return total


@formula
def _node_side(block, e, arm, mobility, k):
    """Add the share of node k, as `contact_rows.add_side` does that of a body without joints."""
    jn, ju, jw = cross(arm, e[0]), cross(arm, e[1]), cross(arm, e[2])
    n = (e[0][0], e[0][1], e[0][2], jn[0], jn[1], jn[2])
    u = (e[1][0], e[1][1], e[1][2], ju[0], ju[1], ju[2])
    w = (e[2][0], e[2][1], e[2][2], jw[0], jw[1], jw[2])
    return (
        block[0] + _form(n, mobility, k, n),
        block[1] + _form(u, mobility, k, u),
        block[2] + _form(w, mobility, k, w),
        block[3] + _form(u, mobility, k, n),
        block[4] + _form(w, mobility, k, n),
        block[5] + _form(w, mobility, k, u),
    )


@formula
def contact_side(block, c, side, op, answers):
    """Add the share of one side of contact c, a node of a tree or a body without joints."""
    contacts, frame, arms = op.contacts, op.contacts.frame, op.contacts.arms
    e = (
        (frame[0, c], frame[1, c], frame[2, c]),
        (frame[3, c], frame[4, c], frame[5, c]),
        (frame[6, c], frame[7, c], frame[8, c]),
    )
    b = contacts.body_b[c] if side == 1 else contacts.body_a[c]
    arm = (arms[3 * side, c], arms[3 * side + 1, c], arms[3 * side + 2, c])
    k = op.factor.tree.node[b]
    if k >= 0:
        return _node_side(block, e, arm, answers.mobility, k)
    return add_side(block, e, arm, contacts.inverse_mass, contacts.inverse_inertia, b)


@formula
def contact_block(c, op, answers, fixed, diagonal):
    """N_ii of contact c on trees; `diagonal` has that without the joints, `fixed` of which counts as nothing."""
    block = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for side in range(2):
        block = contact_side(block, c, side, op, answers)
    for k in range(6):
        fixed_there = k < 3 and not block[k] > fixed * diagonal[k, c]
        diagonal[k, c] = 0.0 if fixed_there else block[k]


@formula
def row_node(op, r, mechanism_of):
    """The node that bounded row r turns or moves against its parent or what does not move, -1 if it is another row."""
    tree, node, other = op.factor.tree, -1, -1
    for s in range(SIDES):
        b = op.bounded_body[r, s]
        if b < 0 or mechanism_of[b] < 0:
            continue
        k = tree.node[b] if op.factor.by_bodies.used[mechanism_of[b]] else -1
        if k < 0 or (node >= 0 and other >= 0 and k != node and k != other):
            return -1
        if node < 0:
            node = k
        elif k != node:
            other = k
    if other < 0 or (node >= 0 and tree.parent[node] == other):
        return node
    return other if tree.parent[other] == node else -1


@formula
def row_answer(op, r, k, answers):
    """J A^-1 J^T of bounded row r between node k and its parent: what the node does with its parent held, and what both
    do together (nothing along a joint's own coordinate)."""
    tree, jacobian = op.factor.tree, op.bounded_jacobian
    parent = tree.parent[k]
    own = _row_part(op.bounded_body, jacobian, r, tree.body[k])
    if parent < 0:
        return _form(own, answers.mobility, k, own)
    above = _row_part(op.bounded_body, jacobian, r, tree.body[parent])
    x = answers.carried
    both = (
        above[0] + _column(own, x, k, 0),
        above[1] + _column(own, x, k, 1),
        above[2] + _column(own, x, k, 2),
        above[3] + _column(own, x, k, 3),
        above[4] + _column(own, x, k, 4),
        above[5] + _column(own, x, k, 5),
    )
    return _form(own, answers.local, k, own) + _form(both, answers.mobility, parent, both)


@formula
def _column(a, matrix, k, j):
    """a . column j of matrix k"""
    return (
        a[0] * matrix[k, j]
        + a[1] * matrix[k, 6 + j]
        + a[2] * matrix[k, 12 + j]
        + a[3] * matrix[k, 18 + j]
        + a[4] * matrix[k, 24 + j]
        + a[5] * matrix[k, 30 + j]
    )


@formula
def _row_part(body, jacobian, r, b):
    """What row r has on body b."""
    x = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for s in range(SIDES):
        if body[r, s] == b:
            a = 6 * s
            x = (
                x[0] + jacobian[r, a],
                x[1] + jacobian[r, a + 1],
                x[2] + jacobian[r, a + 2],
                x[3] + jacobian[r, a + 3],
                x[4] + jacobian[r, a + 4],
                x[5] + jacobian[r, a + 5],
            )
    return x
