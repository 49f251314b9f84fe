"""Diagonal blocks of contacts and bounded rows on jointed bodies: by a unit impulse and the answer of a mechanism, or
from the answers of trees (`joint_answers`)."""

from __future__ import annotations

from .jit import formula
from .joint_answers import among_trees, contact_block, contact_mechanisms, contact_side, row_answer, row_node
from .joint_rows import eliminate_mechanism, own_diagonal, push_row, row_speed
from .linalg import cross

FIXED = 1e-11
"""A bounded row or contact that the joints leave less than this part of its freedom cannot move."""
EXACT_DIAGONAL = 300
"""Up to so many joint rows in a mechanism the diagonal blocks of its contacts take the joints into account."""


@formula
def tree_block(c, op, mechanism_of, answers, diagonal):
    """The block of contact or bounded row c, where it lies on trees or on bodies without joints."""
    count = op.contacts.count
    if c < count:
        first, second = contact_mechanisms(op, c, mechanism_of)
        if among_trees(op, first, second):
            contact_block(c, op, answers, FIXED, diagonal)
    else:
        node = row_node(op, c - count, mechanism_of)
        if node >= 0:
            set_bounded(op, c - count, row_answer(op, c - count, node, answers), diagonal)


@formula
def set_bounded(op, r, own, diagonal):
    """The block of bounded row r, whose bodies answer with `own`."""
    if own <= FIXED * own_diagonal(op.bounded_jacobian, op.bounded_weighted, r):
        own = 0.0
    own += op.bounded_compliance[r]
    for i in range(6):
        diagonal[i, op.contacts.count + r] = own if i < 3 else 0.0


@formula
def is_small(op, c):
    """Whether the diagonal blocks of contacts on a mechanism take its joints into account."""
    return c < 0 or op.factor.by_bodies.used[c] or op.factor.mechanism[c + 1] - op.factor.mechanism[c] <= EXACT_DIAGONAL


@formula
def clear(v, c, mechanism_body_start, mechanism_body):
    """No velocities of a mechanism's bodies."""
    if c >= 0:
        for k in range(mechanism_body_start[c], mechanism_body_start[c + 1]):
            for i in range(6):
                v[mechanism_body[k], i] = 0.0


@formula
def eliminate_one(op, c, v):
    """The answer of a mechanism, if it is one."""
    if c >= 0:
        eliminate_mechanism(c, op, v)


@formula
def push_contact(contacts, c, k, v):
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
def read_contact(contacts, c, v):
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


@formula
def note_entry(c, slot_a, slot_b, out):
    """Which contact and side each entry belongs to: twice the contact, and 1 on side B."""
    out[slot_a[c]], out[slot_b[c]] = 2 * c, 2 * c + 1


@formula
def mechanism_blocks(m, op, where, contact_of, sides, diagonal):
    """Blocks that are not read from the answers of trees, of one mechanism m alone: of its bounded rows, of contacts
    within it, and what it adds to blocks of contacts with others, into sides (entries, 6). contact_of: `note_entry`."""
    contacts, v = op.contacts, op.contacts.body_velocity
    for r in range(op.bounded_start[m], op.bounded_start[m + 1]):
        if row_node(op, r, where.mechanism_of) < 0:
            clear(v, m, where.start, where.body)
            push_row(op.bounded_body, op.bounded_weighted, r, 1.0, v)
            eliminate_mechanism(m, op, v)
            set_bounded(op, r, row_speed(op.bounded_body, op.bounded_jacobian, r, v), diagonal)
    if not is_small(op, m):
        return
    by_rows = not op.factor.by_bodies.used[m]
    for i in range(where.start[m], where.start[m + 1]):
        b = where.body[i]
        for e in range(contacts.entry_start[b], contacts.entry_start[b + 1]):
            c, side = contact_of[e] // 2, contact_of[e] % 2
            other = contacts.body_a[c] if side == 1 else contacts.body_b[c]
            if where.mechanism_of[other] == m:
                if side == 0:
                    _inner_block(c, m, op, where, diagonal)
            elif by_rows:
                _side_block(c, side, e, m, op, where, sides)


@formula
def _inner_block(c, m, op, where, diagonal):
    """The block of contact c between two bodies of mechanism m."""
    contacts, v = op.contacts, op.contacts.body_velocity
    for k in range(3):
        clear(v, m, where.start, where.body)
        push_contact(contacts, c, k, v)
        eliminate_mechanism(m, op, v)
        take_answer(c, k, read_contact(contacts, c, v), diagonal)


@formula
def take_answer(c, k, answer, diagonal):
    """What a unit impulse along direction k of contact c does along n, u, w."""
    n, u, w = answer
    if k == 0:
        diagonal[0, c], diagonal[3, c], diagonal[4, c] = n if n > FIXED * diagonal[0, c] else 0.0, u, w
    elif k == 1:
        diagonal[1, c], diagonal[5, c] = u if u > FIXED * diagonal[1, c] else 0.0, w
    else:
        diagonal[2, c] = w if w > FIXED * diagonal[2, c] else 0.0


@formula
def _side_block(c, side, e, m, op, where, sides):
    """What mechanism m on one side of contact c adds to its block."""
    contacts, v = op.contacts, op.contacts.body_velocity
    frame, im, ii = contacts.frame, contacts.inverse_mass, contacts.inverse_inertia
    b = contacts.body_b[c] if side == 1 else contacts.body_a[c]
    arm = (contacts.arms[3 * side, c], contacts.arms[3 * side + 1, c], contacts.arms[3 * side + 2, c])
    for k in range(3):
        clear(v, m, where.start, where.body)
        f = (frame[3 * k, c], frame[3 * k + 1, c], frame[3 * k + 2, c])
        t = cross(arm, f)
        for i in range(3):
            v[b, i] = im[b, i] * f[i]
        v[b, 3] = ii[b, 0] * t[0] + ii[b, 3] * t[1] + ii[b, 4] * t[2]
        v[b, 4] = ii[b, 3] * t[0] + ii[b, 1] * t[1] + ii[b, 5] * t[2]
        v[b, 5] = ii[b, 4] * t[0] + ii[b, 5] * t[1] + ii[b, 2] * t[2]
        eliminate_mechanism(m, op, v)
        turned = cross((v[b, 3], v[b, 4], v[b, 5]), arm)
        x, y, z = v[b, 0] + turned[0], v[b, 1] + turned[1], v[b, 2] + turned[2]
        n = frame[0, c] * x + frame[1, c] * y + frame[2, c] * z
        u = frame[3, c] * x + frame[4, c] * y + frame[5, c] * z
        w = frame[6, c] * x + frame[7, c] * y + frame[8, c] * z
        if k == 0:
            sides[e, 0], sides[e, 3], sides[e, 4] = n, u, w
        elif k == 1:
            sides[e, 1], sides[e, 5] = u, w
        else:
            sides[e, 2] = w


@formula
def add_sides(c, op, mechanism_of, answers, sides, diagonal):
    """The block of contact c between two mechanisms of which the rows of one at least were eliminated."""
    contacts, used = op.contacts, op.factor.by_bodies.used
    first, second = contact_mechanisms(op, c, mechanism_of)
    if first == second or among_trees(op, first, second) or not (is_small(op, first) and is_small(op, second)):
        return
    block = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for side in range(2):
        m = second if side == 1 else first
        if m >= 0 and not used[m]:
            e = contacts.slot_b[c] if side == 1 else contacts.slot_a[c]
            s = (sides[e, 0], sides[e, 1], sides[e, 2], sides[e, 3], sides[e, 4], sides[e, 5])
            block = (
                block[0] + s[0], block[1] + s[1], block[2] + s[2], block[3] + s[3], block[4] + s[4], block[5] + s[5],
            )  # fmt: skip
        else:
            block = contact_side(block, c, side, op, answers)
    for k in range(6):
        fixed_there = k < 3 and not block[k] > FIXED * diagonal[k, c]
        diagonal[k, c] = 0.0 if fixed_there else block[k]
