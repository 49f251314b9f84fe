"""Jointed bodies: rows and their factor, elimination, projection, diagonal blocks; see `backends.cpu.joints`.

A thread does a mechanism. Where rows of many mechanisms are summed, each mechanism sums its own, in their order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...kernels.joint_blocks import add_sides, mechanism_blocks, note_entry, tree_block
from ...kernels.joint_rows import SIDES, forward_mechanism, row_speed
from ...kernels.mechanism_energy import turned_inertia
from ..cpu import joints, mechanisms, projection
from . import provider
from .launch import LONG, item_pass, pass_over
from .rows import _add_compliance, gather, lay_down, read_rows

xp = provider.xp

factor_joints = item_pass(joints.factor_joints, threads=LONG)
solve_joints = item_pass(joints.solve_joints, threads=LONG)
eliminate = item_pass(joints._eliminate_mechanisms, threads=LONG)
close_joints = item_pass(projection.close_joints, threads=LONG)
mechanism_energies = item_pass(mechanisms.mechanism_energies, threads=LONG)
_answer = item_pass(joints._answer_mechanisms, threads=LONG)
_mobilities = item_pass(joints._mobilities, threads=LONG)
_tree_blocks, _note, _add_sides, _turn = map(pass_over, (tree_block, note_entry, add_sides, turned_inertia))
_blocks, _forward = pass_over(mechanism_blocks, LONG), pass_over(forward_mechanism, LONG)
_ROOM: dict[str, Any] = {}


def _room(name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """Scratch of a pass, kept between its calls."""
    found = _ROOM.get(name)
    if found is None or found.shape != shape:
        found = _ROOM[name] = provider.zeros(shape, dtype)
    return found


def speed_across(r, body, jacobian, v, out):
    """J v of row r."""
    out[r] = row_speed(body, jacobian, r, v)


def take_row(r, place, rows, built, state, out):
    """Bounded row r, if it is kept, to its place."""
    body, jacobian, weighted, compliance, bias, bound, number, _ = out
    if state.kept[r]:
        k = place[r]
        for s in range(SIDES):
            body[k, s] = rows.body[r, s]
        for i in range(6 * SIDES):
            jacobian[k, i], weighted[k, i] = built.jacobian[r, i], built.weighted[r, i]
        compliance[k], bias[k] = built.compliance[r], built.bias[r]
        bound[k], number[k] = state.bound[r], rows.number[r]


def bounded_speed(r, op, v, out):
    """The rows of the block of bounded row r, from velocities."""
    c = op.contacts.count + r
    out[0, c], out[1, c], out[2, c] = row_speed(op.bounded_body, op.bounded_jacobian, r, v), 0.0, 0.0


def bounded_soft(r, op, x, out):
    """Compliance of bounded row r."""
    c = op.contacts.count + r
    out[0, c] += op.bounded_compliance[r] * x[0, c]


_speeds, _take, _bounded_speeds, _bounded_soft = map(pass_over, (speed_across, take_row, bounded_speed, bounded_soft))


def row_speeds(body: Any, jacobian: Any, v: Any, out: Any) -> None:
    """out = J v for body velocities (bodies, 6)."""
    _speeds(len(body), body, jacobian, v, out)


def turn_inertia(body: Any, moves: Any, inertia: Any, locked: Any, orientation: Any, out: Any) -> None:
    """World inverse inertia (n, 6) of the bodies listed, zero where they do not move."""
    _turn(len(body), body, moves, inertia, locked, orientation, out)


def forward_joints(factor: Any, x: Any) -> None:
    """See `backends.cpu.joints.forward_joints`."""
    _forward(len(factor.mechanism) - 1, factor, x)


def take_rows(rows: Any, first: Any, built: Any, state: Any, out: Any) -> int:
    """See `backends.cpu.joints.take_rows`."""
    n = rows.number.size
    place = _room("place", (n + 1,), "int64")
    provider.cumulate(state.kept.astype("int64"), place)
    if n > 0:
        _take(n, place, rows, built, state, out)
    out[7][:] = place[first]
    return int(place[n])


def articulated_velocity(op: Any, x: Any) -> None:
    """op.contacts.body_velocity = A^-1 P x: contacts and bounded rows, then the joints."""
    a = op.contacts
    lay_down(a.count, a.frame, a.slot_a, a.slot_b, x, a.entry_force)
    gather(a.entry_start, a.entry_arm, a.entry_force, a.inverse_mass, a.inverse_inertia, a.body_velocity)
    _answer(op, x, a.body_velocity)


def articulated_rows(op: Any, v: Any, out: Any) -> None:
    """out = P^T v."""
    a = op.contacts
    read_rows(a.count, a.body_a, a.body_b, a.frame, a.arms, v, out)
    _bounded_speeds(len(op.bounded_body), op, v, out)


def articulated_product(op: Any, x: Any, out: Any) -> None:
    """out = N x, N = P^T A^-1 P + E."""
    articulated_velocity(op, x)
    articulated_rows(op, op.contacts.body_velocity, out)
    if op.contacts.compliance.shape[1] > 0:
        _add_compliance(op.contacts.count, op.contacts.compliance, x, out)
    _bounded_soft(len(op.bounded_body), op, x, out)


class Where(NamedTuple):
    """Which bodies joints connect."""

    mechanism_of: Any
    start: Any
    body: Any


def articulated_diagonal(op: Any, mechanism_of: Any, start: Any, body: Any, answers: Any, diagonal: Any) -> int:
    """See `backends.cpu.joints.articulated_diagonal`."""
    where = Where(mechanism_of, start, body)
    contacts, active = op.contacts, len(op.bounded_body)
    total, entries = contacts.count + active, contacts.entry_arm.shape[0]
    _mobilities(op, answers)
    _tree_blocks(total, op, where.mechanism_of, answers, diagonal)
    contact_of, sides = _room("contact_of", (entries,), "int64"), _room("sides", (entries, 6), "float64")
    _note(contacts.count, contacts.slot_a, contacts.slot_b, contact_of)
    _blocks(len(where.start) - 1, op, where, contact_of, sides, diagonal)
    _add_sides(contacts.count, op, where.mechanism_of, answers, sides, diagonal)
    return int(xp.count_nonzero(diagonal[0, contacts.count : total] <= 0.0)) if active else 0


def worst_of(found: Any) -> tuple[float, float, int]:
    """The largest violation after closing and before it, over all mechanisms, and the row of the first (0 if none)."""
    if not len(found):
        return 0.0, 0.0, 0
    at = int(xp.argmax(found[:, 0]))  # of one that is not a number, where there is one
    worst, row = provider.fetch(found[at, :3:2]).tolist()
    return worst, float(xp.fmax(found[:, 1], 0.0).max()), int(row)
