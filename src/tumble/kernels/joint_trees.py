"""The system S = G^T M^-1 G + E of a mechanism without loops, by eliminating bodies, leaves first.

A node is a body with all that hangs on it, of inertia I (6 x 6). Its rows G hold it on its parent, whose part of them
is G_p: s = G^T I^-1 G + E, and the parent's inertia grows by G_p s^-1 G_p^T. No row beyond those of one joint ever
meets another, and every sum is one of positive parts.
"""

from __future__ import annotations

from .jit import formula, merged_formula

MOST_ROWS = 12
"""Rows that hold a node at most."""
DROP = 1e-11
"""A pivot below this part of the row's diagonal without locks is zero: the row depends on rows before it, or on locks.
Far above rounding, and far below what bodies of very different masses leave."""


@formula
def _gather_rows(first, end, body, table, b, out):
    """The part of body b in rows of a table (rows, 24) into out (rows, 6)."""
    for r in range(first, end):
        for i in range(6):
            out[r, i] = 0.0
        for s in range(4):
            if body[r, s] == b:
                for i in range(6):
                    out[r, i] += table[r, 6 * s + i]


@formula
def _set_inertia(k, b, inverse_mass, inverse_inertia, inertia):
    """Inertia of body b alone into row k."""
    for i in range(36):
        inertia[k, i] = 0.0
    for i in range(3):
        inertia[k, 7 * i] = 1.0 / inverse_mass[b, i]
    m = inverse_inertia
    xx, yy, zz, xy, xz, yz = m[b, 0], m[b, 1], m[b, 2], m[b, 3], m[b, 4], m[b, 5]
    a, d, e = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    scale = 1.0 / (xx * a + xy * d + xz * e)
    inertia[k, 21], inertia[k, 22], inertia[k, 23] = scale * a, scale * d, scale * e
    inertia[k, 27], inertia[k, 28], inertia[k, 29] = scale * d, scale * (xx * zz - xz * xz), scale * (xy * xz - xx * yz)
    inertia[k, 33], inertia[k, 34], inertia[k, 35] = scale * e, inertia[k, 29], scale * (xx * yy - xy * xy)


@formula
def _factor6(k, inertia):
    """Row k, of which the lower half counts, as L D L^T: L below the diagonal, 1 / D on it. Whether it is positive."""
    for r in range(6):
        for q in range(r):
            for p in range(q):
                inertia[k, 6 * r + q] -= inertia[k, 6 * r + p] * inertia[k, 6 * q + p]
        for q in range(r):
            scaled = inertia[k, 6 * r + q] * inertia[k, 7 * q]
            inertia[k, 7 * r] -= inertia[k, 6 * r + q] * scaled
            inertia[k, 6 * r + q] = scaled
        if not inertia[k, 7 * r] > 0.0:
            return False
        inertia[k, 7 * r] = 1.0 / inertia[k, 7 * r]
    return True


@merged_formula
def _solve6(k, inertia, r, x):
    """x[r] = I^-1 x[r] with the factor in row k. Read, then written."""
    m = inertia
    a, b, c, d, e, f = x[r, 0], x[r, 1], x[r, 2], x[r, 3], x[r, 4], x[r, 5]
    b = b - m[k, 6] * a
    c = c - m[k, 12] * a - m[k, 13] * b
    d = d - m[k, 18] * a - m[k, 19] * b - m[k, 20] * c
    e = e - m[k, 24] * a - m[k, 25] * b - m[k, 26] * c - m[k, 27] * d
    f = f - m[k, 30] * a - m[k, 31] * b - m[k, 32] * c - m[k, 33] * d - m[k, 34] * e
    f = f * m[k, 35]
    e = e * m[k, 28] - m[k, 34] * f
    d = d * m[k, 21] - m[k, 27] * e - m[k, 33] * f
    c = c * m[k, 14] - m[k, 20] * d - m[k, 26] * e - m[k, 32] * f
    b = b * m[k, 7] - m[k, 13] * c - m[k, 19] * d - m[k, 25] * e - m[k, 31] * f
    a = a * m[k, 0] - m[k, 6] * b - m[k, 12] * c - m[k, 18] * d - m[k, 24] * e - m[k, 30] * f
    x[r, 0], x[r, 1], x[r, 2], x[r, 3], x[r, 4], x[r, 5] = a, b, c, d, e, f


@merged_formula
def _dot6(a, i, b, j):
    """a[i] . b[j]"""
    return (
        a[i, 0] * b[j, 0]
        + a[i, 1] * b[j, 1]
        + a[i, 2] * b[j, 2]
        + a[i, 3] * b[j, 3]
        + a[i, 4] * b[j, 4]
        + a[i, 5] * b[j, 5]
    )


@formula
def _factor_rows(first, end, jacobian, own, system, lower, inverse_pivot):
    """s = G^T I^-1 G + E of the rows of a node as L D L^T, own: I^-1 G. False where a row depends on others."""
    for r in range(first, end):
        for q in range(first, r):
            total = _dot6(jacobian, r, own, q)
            for p in range(first, q):
                total -= lower[r, p - first] * lower[q, p - first]
            lower[r, q - first] = total
        pivot = _dot6(jacobian, r, own, r) + system.compliance[r]
        for q in range(first, r):
            scaled = lower[r, q - first] * inverse_pivot[q]
            pivot -= lower[r, q - first] * scaled
            lower[r, q - first] = scaled
        if not pivot > DROP * (system.whole[r] + system.compliance[r]):
            return False
        inverse_pivot[r] = 1.0 / pivot
    return True


@formula
def _solve_rows(first, end, lower, inverse_pivot, x):
    """x = s^-1 x on the rows of a node."""
    for r in range(first + 1, end):
        for q in range(first, r):
            x[r] -= lower[r, q - first] * x[q]
    for r in range(end - 1, first - 1, -1):
        x[r] *= inverse_pivot[r]
        for q in range(r + 1, end):
            x[r] -= lower[q, r - first] * x[q]


@formula
def _forward_rows6(first, end, lower, x):
    """x = L^-1 x for the six columns of x (rows, 6)."""
    for r in range(first + 1, end):
        for q in range(first, r):
            for i in range(6):
                x[r, i] -= lower[r, q - first] * x[q, i]


@formula
def _backward_rows6(first, end, lower, inverse_pivot, x):
    """x = L^-T D^-1 x, likewise."""
    for r in range(end - 1, first - 1, -1):
        for i in range(6):
            x[r, i] *= inverse_pivot[r]
        for q in range(r + 1, end):
            for i in range(6):
                x[r, i] -= lower[q, r - first] * x[q, i]


@formula
def factor_tree(c, system, factor):
    """Eliminate the bodies of mechanism c. False where a row depends on others: its rows are to be eliminated then."""
    tree, by = factor.tree, factor.by_bodies
    inertia, own, held, across = by.inertia, by.own, by.held, by.across
    low, high = tree.start[c], tree.start[c + 1]
    for k in range(low, high):
        if tree.inner[k]:
            _set_inertia(k, tree.body[k], system.inverse_mass, system.inverse_inertia, inertia)
    for k in range(low, high):
        first, end, parent, b = tree.rows[k, 0], tree.rows[k, 1], tree.parent[k], tree.body[k]
        _gather_rows(first, end, system.body, system.jacobian, b, across)
        if tree.inner[k]:
            if not _factor6(k, inertia):
                return False
            for r in range(first, end):
                for i in range(6):
                    own[r, i] = across[r, i]
                _solve6(k, inertia, r, own)
        else:
            _gather_rows(first, end, system.body, system.weighted, b, own)
        if not _factor_rows(first, end, across, own, system, by.lower, factor.inverse_pivot):
            return False
        if parent >= 0:
            _gather_rows(first, end, system.body, system.jacobian, tree.body[parent], held)
            for r in range(first, end):
                for i in range(6):
                    across[r, i] = held[r, i]
            _forward_rows6(first, end, by.lower, across)
            _backward_rows6(first, end, by.lower, factor.inverse_pivot, across)
            for r in range(first, end):
                for i in range(6):
                    for j in range(i + 1):
                        inertia[parent, 6 * i + j] += held[r, i] * across[r, j]
    return True


@merged_formula
def _add_rows6(first, end, table, x, out, k):
    """out[k] += the rows of a table (rows, 6) times x. Read, then written."""
    a, b, c, d, e, f = out[k, 0], out[k, 1], out[k, 2], out[k, 3], out[k, 4], out[k, 5]
    for r in range(first, end):
        y = x[r]
        a, b, c = a + table[r, 0] * y, b + table[r, 1] * y, c + table[r, 2] * y
        d, e, f = d + table[r, 3] * y, e + table[r, 4] * y, f + table[r, 5] * y
    out[k, 0], out[k, 1], out[k, 2], out[k, 3], out[k, 4], out[k, 5] = a, b, c, d, e, f


@formula
def solve_tree(c, factor, x):
    """x = S^-1 x on the rows of mechanism c."""
    tree, by = factor.tree, factor.by_bodies
    own, held, across, force = by.own, by.held, by.across, by.force
    low, high = tree.start[c], tree.start[c + 1]
    for k in range(low, high):
        if tree.inner[k]:
            for i in range(6):
                force[k, i] = 0.0
    for k in range(low, high):
        first, end, parent = tree.rows[k, 0], tree.rows[k, 1], tree.parent[k]
        if tree.inner[k]:
            for r in range(first, end):
                x[r] -= _dot6(own, r, force, k)
        _solve_rows(first, end, by.lower, factor.inverse_pivot, x)
        if parent >= 0:
            _add_rows6(first, end, held, x, force, parent)
    for k in range(high - 1, low - 1, -1):
        first, end, parent = tree.rows[k, 0], tree.rows[k, 1], tree.parent[k]
        if parent >= 0:
            for r in range(first, end):
                x[r] -= _dot6(across, r, force, parent)
        if tree.inner[k]:  # from here on its velocity
            _solve6(k, by.inertia, k, force)
            _add_rows6(first, end, own, x, force, k)


@formula
def tree_mobility(c, factor, inverse_mass, inverse_inertia, out):
    """How the nodes of mechanism c answer to forces, joints and all, the root first (out: `MobilityArrays`)."""
    tree, by = factor.tree, factor.by_bodies
    mobility, local, carried, root, work = out
    for k in range(tree.start[c + 1] - 1, tree.start[c] - 1, -1):
        first, end, parent, b = tree.rows[k, 0], tree.rows[k, 1], tree.parent[k], tree.body[k]
        for i in range(36):
            local[k, i] = carried[k, i] = 0.0
        if tree.inner[k]:
            for j in range(6):
                for i in range(6):
                    work[k, i] = 1.0 if i == j else 0.0
                _solve6(k, by.inertia, k, work)
                for i in range(6):
                    local[k, 6 * i + j] = work[k, i]
        else:
            m = inverse_inertia
            for i in range(3):
                local[k, 7 * i], local[k, 21 + 7 * i] = inverse_mass[b, i], m[b, i]
            local[k, 22], local[k, 23], local[k, 29] = m[b, 3], m[b, 4], m[b, 5]
            local[k, 27], local[k, 33], local[k, 34] = m[b, 3], m[b, 4], m[b, 5]
        for r in range(first, end):
            for i in range(6):
                root[r, i] = by.own[r, i]
        _forward_rows6(first, end, by.lower, root)
        for r in range(first, end):
            for i in range(6):
                scaled = root[r, i] * factor.inverse_pivot[r]
                for j in range(6):
                    local[k, 6 * i + j] -= scaled * root[r, j]
                    carried[k, 6 * i + j] -= by.own[r, i] * by.across[r, j]
        for i in range(36):
            mobility[k, i] = local[k, i]
        if parent >= 0:
            for i in range(6):
                for j in range(6):
                    total = 0.0
                    for p in range(6):
                        total += carried[k, 6 * i + p] * mobility[parent, 6 * p + j]
                    work[k, j] = total
                for j in range(6):
                    for p in range(6):
                        mobility[k, 6 * i + j] += work[k, p] * carried[k, 6 * j + p]
