"""Rows of joints: Jacobians, speeds, impulses, and the factor of the system of one mechanism of jointed bodies."""

from __future__ import annotations

from .jit import formula, merged_formula
from .joint_trees import DROP, factor_tree, solve_tree
from .joints import coordinate
from .linalg import add, mat_vec, quat_matrix, quat_multiply, row3, row4

SIDES = 4
"""Bodies that a row touches at most (a gear couples two joints)."""


@merged_formula
def frame_pair(f, frames, position, orientation):
    """The frames of pair f of `FrameArrays` with the bodies at some poses, as `coordinate` takes them."""
    a, b = frames.body[f, 0], frames.body[f, 1]
    qa, qb = row4(orientation, a), row4(orientation, b)
    xa, xb = row3(position, a), row3(position, b)
    p = add(xa, mat_vec(quat_matrix(qa), row3(frames.position, 2 * f)))
    q = add(xb, mat_vec(quat_matrix(qb), row3(frames.position, 2 * f + 1)))
    ma = quat_matrix(quat_multiply(qa, row4(frames.orientation, 2 * f)))
    mb = quat_matrix(quat_multiply(qb, row4(frames.orientation, 2 * f + 1)))
    return p, ma, xa, q, mb, xb


@merged_formula
def coordinate_of(k, frames, pair):
    """`coordinate` k, of this pair of frames."""
    p, ma, xa, q, mb, xb = pair
    return coordinate(frames.kind[k], frames.axis[k, 0], frames.axis[k, 1], p, ma, xa, q, mb, xb)


@merged_formula
def own_row(r, coord, weight, body, coord_jacobian, inverse_mass, inverse_inertia, jacobian, weighted):
    """J and M^-1 J (.., 24) of row r, whose two coordinates have weights."""
    for k in range(2):
        c = coord[r, k]
        for s in range(2):
            at = 12 * k + 6 * s
            b = body[r, 2 * k + s]
            for i in range(6):
                jacobian[r, at + i] = weight[r, k] * coord_jacobian[c, 6 * s + i] if c >= 0 else 0.0
                weighted[r, at + i] = 0.0
            if b >= 0:
                x, y, z = jacobian[r, at + 3], jacobian[r, at + 4], jacobian[r, at + 5]
                for i in range(3):
                    weighted[r, at + i] = inverse_mass[b, i] * jacobian[r, at + i]
                m = inverse_inertia
                weighted[r, at + 3] = m[b, 0] * x + m[b, 3] * y + m[b, 4] * z
                weighted[r, at + 4] = m[b, 3] * x + m[b, 1] * y + m[b, 5] * z
                weighted[r, at + 5] = m[b, 4] * x + m[b, 5] * y + m[b, 2] * z


@formula
def row_speed(body, jacobian, r, v):
    """J v of row r."""
    total = 0.0
    for s in range(SIDES):
        b = body[r, s]
        if b >= 0:
            for i in range(6):
                total += jacobian[r, 6 * s + i] * v[b, i]
    return total


@formula
def push_row(body, weighted, r, x, v):
    """v += M^-1 J^T x of row r. All is read before it is written: a device waits for memory once."""
    for s in range(SIDES):
        b, k = body[r, s], 6 * s
        if b >= 0:
            v0, v1, v2 = v[b, 0], v[b, 1], v[b, 2]
            v3, v4, v5 = v[b, 3], v[b, 4], v[b, 5]
            w0, w1, w2 = weighted[r, k], weighted[r, k + 1], weighted[r, k + 2]
            w3, w4, w5 = weighted[r, k + 3], weighted[r, k + 4], weighted[r, k + 5]
            v[b, 0], v[b, 1], v[b, 2] = v0 + w0 * x, v1 + w1 * x, v2 + w2 * x
            v[b, 3], v[b, 4], v[b, 5] = v3 + w3 * x, v4 + w4 * x, v5 + w5 * x


@formula
def factor_mechanism(c, pattern, system, factor, scratch):
    """LDL^T of the rows of mechanism c, by bodies where it is a tree, else row by row (up-looking). Returns how many
    rows were dropped."""
    tree = factor.tree
    factor.by_bodies.used[c] = tree.start[c] < tree.start[c + 1] and factor_tree(c, system, factor)
    if factor.by_bodies.used[c]:
        return 0
    return _factor_by_rows(factor.mechanism[c], factor.mechanism[c + 1], pattern, system, factor, scratch)


@formula
def _factor_by_rows(first, end, pattern, system, factor, scratch):
    start, column, pair_start, pair, parent = pattern
    jacobian, weighted, compliance, whole = system.jacobian, system.weighted, system.compliance, system.whole
    l_start, l_row, l_value, inverse_pivot = factor.l_start, factor.l_row, factor.l_value, factor.inverse_pivot
    l_used, work, mark, path = scratch
    for k in range(first, end):
        mark[k] = -1
    dropped = 0
    for k in range(first, end):
        work[k] = 0.0
        mark[k] = k
        l_used[k] = 0
        top = end
        own = compliance[k]
        for e in range(start[k], start[k + 1]):  # the entries of row k up to the diagonal
            i = column[e]
            total = 0.0
            for q in range(pair_start[e], pair_start[e + 1]):
                s, t = pair[q, 0], pair[q, 1]
                for c in range(6):
                    total += jacobian[k, 6 * s + c] * weighted[i, 6 * t + c]
            if i == k:
                own += total
                continue
            work[i] = total
            length = first
            while mark[i] != k:
                path[length] = i
                length += 1
                mark[i] = k
                i = parent[i]
            while length > first:
                length -= 1
                top -= 1
                path[top] = path[length]
        pivot = own
        for q in range(top, end):
            i = path[q]
            y = work[i]
            work[i] = 0.0
            at = l_start[i] + l_used[i]
            for p in range(l_start[i], at):
                work[l_row[p]] -= l_value[p] * y
            l = y * inverse_pivot[i]
            pivot -= l * y
            l_row[at], l_value[at] = k, l
            l_used[i] += 1
        if pivot > DROP * (whole[k] + compliance[k]):
            inverse_pivot[k] = 1.0 / pivot
        else:
            inverse_pivot[k] = 0.0
            dropped += 1
    return dropped


@formula
def solve_mechanism(c, factor, x):
    """x = S^+ x on the rows of mechanism c."""
    if factor.by_bodies.used[c]:
        solve_tree(c, factor, x)
    else:
        _solve_by_rows(factor.mechanism[c], factor.mechanism[c + 1], factor, x)


@formula
def _solve_by_rows(first, end, factor, x):
    """x = (L D L^T)^+ x on the rows first .. end."""
    l_start, l_row, l_value, inverse_pivot = factor.l_start, factor.l_row, factor.l_value, factor.inverse_pivot
    for j in range(first, end):
        for p in range(l_start[j], l_start[j + 1]):
            x[l_row[p]] -= l_value[p] * x[j]
    for j in range(first, end):
        x[j] *= inverse_pivot[j]
    for j in range(end - 1, first - 1, -1):
        total = x[j]
        for p in range(l_start[j], l_start[j + 1]):
            total -= l_value[p] * x[l_row[p]]
        x[j] = total


@formula
def forward_mechanism(c, factor, x):
    """x = L^-1 x on mechanism c, where its rows were eliminated."""
    l_start, l_row, l_value = factor.l_start, factor.l_row, factor.l_value
    if not factor.by_bodies.used[c]:
        for j in range(factor.mechanism[c], factor.mechanism[c + 1]):
            for p in range(l_start[j], l_start[j + 1]):
                x[l_row[p]] -= l_value[p] * x[j]


@formula
def eliminate_mechanism(c, op, v):
    """v -= M^-1 G S^+ G^T v on mechanism c of an operator, whose reaction keeps S^+ G^T v."""
    first, end, y = op.factor.mechanism[c], op.factor.mechanism[c + 1], op.reaction
    for r in range(first, end):
        y[r] = row_speed(op.body, op.jacobian, r, v)
    solve_mechanism(c, op.factor, y)
    for r in range(first, end):
        push_row(op.body, op.weighted, r, -y[r], v)


@formula
def answer_mechanism(c, op, x, v):
    """What the impulses of the bounded rows of mechanism c, and its joints, do to velocities."""
    for r in range(op.bounded_start[c], op.bounded_start[c + 1]):
        push_row(op.bounded_body, op.bounded_weighted, r, x[0, op.contacts.count + r], v)
    eliminate_mechanism(c, op, v)


@formula
def own_diagonal(jacobian, weighted, r):
    """J M^-1 J^T of a row whose bodies are all different."""
    total = 0.0
    for i in range(24):
        total += jacobian[r, i] * weighted[r, i]
    return total
