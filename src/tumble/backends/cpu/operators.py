"""Products with the operator N, for contacts without a matrix and for sparse matrices."""

from __future__ import annotations

from numba import types
from numba.extending import overload

from ...kernels.jit import block_length, blockwise, item_index, loop
from ..base import BLOCK, BODY_BLOCK, ContactArrays, MatrixArrays


@blockwise(BLOCK)
def lay_down(block, count, frame, slot_a, slot_b, x, entry_force):
    """World impulses of all contacts at their entries."""
    g = frame
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        n, u, w = x[0, c], x[1, c], x[2, c]
        fx = g[0, c] * n + g[3, c] * u + g[6, c] * w
        fy = g[1, c] * n + g[4, c] * u + g[7, c] * w
        fz = g[2, c] * n + g[5, c] * u + g[8, c] * w
        a, b = slot_a[c], slot_b[c]
        f = entry_force
        f[a, 0], f[a, 1], f[a, 2] = -fx, -fy, -fz
        f[b, 0], f[b, 1], f[b, 2] = fx, fy, fz


@blockwise(BODY_BLOCK, "inverse_mass.shape[0]")
def gather(block, start, arm, entry_force, inverse_mass, inverse_inertia, v):
    """v = M^-1 (sum of the body's entries)."""
    im, ii = inverse_mass, inverse_inertia
    n = im.shape[0]
    for i in range(block * BODY_BLOCK, min(n, (block + 1) * BODY_BLOCK)):
        fx, fy, fz, tx, ty, tz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for e in range(start[i], start[i + 1]):
            gx, gy, gz = entry_force[e, 0], entry_force[e, 1], entry_force[e, 2]
            ax, ay, az = arm[e, 0], arm[e, 1], arm[e, 2]
            fx += gx
            fy += gy
            fz += gz
            tx += ay * gz - az * gy
            ty += az * gx - ax * gz
            tz += ax * gy - ay * gx
        v[i, 0], v[i, 1], v[i, 2] = im[i, 0] * fx, im[i, 1] * fy, im[i, 2] * fz
        v[i, 3] = ii[i, 0] * tx + ii[i, 3] * ty + ii[i, 4] * tz
        v[i, 4] = ii[i, 3] * tx + ii[i, 1] * ty + ii[i, 5] * tz
        v[i, 5] = ii[i, 4] * tx + ii[i, 5] * ty + ii[i, 2] * tz


@blockwise(BLOCK)
def read_rows(block, count, body_a, body_b, frame, arms, v, out):
    """out = D^T v for body velocities v (bodies, 6)."""
    g = frame
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        i, j = body_a[c], body_b[c]
        ax, ay, az = arms[0, c], arms[1, c], arms[2, c]
        bx, by, bz = arms[3, c], arms[4, c], arms[5, c]
        vx = v[j, 0] - v[i, 0] + (v[j, 4] * bz - v[j, 5] * by) - (v[i, 4] * az - v[i, 5] * ay)
        vy = v[j, 1] - v[i, 1] + (v[j, 5] * bx - v[j, 3] * bz) - (v[i, 5] * ax - v[i, 3] * az)
        vz = v[j, 2] - v[i, 2] + (v[j, 3] * by - v[j, 4] * bx) - (v[i, 3] * ay - v[i, 4] * ax)
        out[0, c] = g[0, c] * vx + g[1, c] * vy + g[2, c] * vz
        out[1, c] = g[3, c] * vx + g[4, c] * vy + g[5, c] * vz
        out[2, c] = g[6, c] * vx + g[7, c] * vy + g[8, c] * vz


@loop
def contact_product(op, x, out):
    """out = N x in two passes."""
    force, v = op.entry_force, op.body_velocity
    lay_down(op.count, op.frame, op.slot_a, op.slot_b, x, force)
    gather(op.entry_start, op.entry_arm, force, op.inverse_mass, op.inverse_inertia, v)
    read_rows(op.count, op.body_a, op.body_b, op.frame, op.arms, v, out)
    add_compliance(op, x, out)


@loop
def add_compliance(op, x, out):
    """out += E x"""
    if op.compliance.shape[1] > 0:
        _add_compliance(op.count, op.compliance, x, out)


@blockwise(BLOCK)
def _add_compliance(block, count, e, x, out):
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        out[0, c] += e[0, c] * x[0, c]
        out[1, c] += e[1, c] * x[1, c]
        out[2, c] += e[1, c] * x[2, c]


@blockwise(BLOCK, "op.count")
def matrix_product(block, op, x, out):
    """out = W x; rows that do not exist give zero."""
    count, dim, start, contact, component, value = op
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        for k in range(3):
            s = 0.0
            if k < dim:
                for e in range(start[dim * c + k], start[dim * c + k + 1]):
                    s += value[e] * x[component[e], contact[e]]
            out[k, c] = s


def product(op, x, out):
    """out = N x for any operator (plain Python form; compiled code takes the overload below)."""
    if isinstance(op, ContactArrays):
        contact_product(op, x, out)
    elif hasattr(op, "factor"):
        from .joints import articulated_product

        articulated_product(op, x, out)
    elif hasattr(op, "turn_frame"):
        from .rolling_rows import rolling_product

        rolling_product(op, x, out)
    else:
        matrix_product(op, x, out)


@overload(product)
def _product(op, x, out):
    if isinstance(op, types.BaseNamedTuple) and op.instance_class is ContactArrays:
        return lambda op, x, out: contact_product(op, x, out)
    if isinstance(op, types.BaseNamedTuple) and op.instance_class is MatrixArrays:
        return lambda op, x, out: matrix_product(op, x, out)
    return None


@blockwise(BLOCK)
def scale_frame(block, count, frame, scale, out):
    """Frames times the rows' scales."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        sn, st = scale[0, c], scale[1, c]
        for k in range(3):
            out[k, c] = sn * frame[k, c]
            out[3 + k, c] = st * frame[3 + k, c]
            out[6 + k, c] = st * frame[6 + k, c]


@blockwise(BLOCK)
def scale_compliance(block, count, compliance, scale, out):
    """Compliance times the squares of the rows' scales."""
    for item in range(block_length(block, count)):
        c = item_index(block, item)
        for k in range(2):
            out[k, c] = compliance[k, c] * (scale[k, c] * scale[k, c])
