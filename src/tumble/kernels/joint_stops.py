"""Limits that are stood on: while they push they are closed and held like joints (`problem.joint_stops`).

pressed (r,): of all rows by number, which of them are such limits.
"""

from __future__ import annotations

from .jit import formula
from .joint_steps import HUGE, LIMIT_RECOVERY

NO_IMPULSE = -1e-300
"""The interval of a row that cannot move anything."""


@formula
def stood_on(i, rows, built, state, near, stop, stuck, pressed):
    """Whether bounded row i is a limit that is reached or passed at the kick and can do something about it. near:
    distance that counts as reached; stop, stuck (r,): rows of joints that hold something besides, and rows that
    nothing moves."""
    r = rows.number[i]
    pressed[r] = stop[r] and state.limit[i] and state.kept[i] and built.g[i] <= near[i] and not stuck[r]


@formula
def note_stuck(i, place, number, diagonal, bias, bound, stuck):
    """The active bounded row i, whose block is at `place` + i: where the joints leave it no freedom it does nothing."""
    if diagonal[0, place + int(i)] <= 0.0:
        bias[i], bound[i] = 0.0, NO_IMPULSE
        stuck[number[i]] = True


@formula
def take_compliance(r, number, compliance, out):
    """That of row r, by its number."""
    out[number[r]] = compliance[r]


@formula
def stop_compliance(r, number, own, stop, pressed, compliance):
    """That of the joints (own, by number), none of a limit that is stood on; other limits do not count."""
    k = number[r]
    compliance[r] = own[k]
    if stop[k]:
        compliance[r] = 0.0 if pressed[k] else HUGE


@formula
def leave_dependent(r, rows, mechanism, dropped, dropped_without, pressed, left):
    """Limits of a mechanism in which rows depend on others only since its limits count are left to the solver."""
    k = rows.number[r]
    left[r] = pressed[k] and dropped[mechanism[r]] > dropped_without[mechanism[r]]
    if left[r]:
        pressed[k] = False


@formula
def close_stop(r, rows, start, h, pressed, wanted, closed):
    """Which rows are closed: the rigid ones, and limits that are stood on; those that were passed to a little less.
    start: coordinates at the start of the step."""
    k = rows.number[r]
    closed[r] = rows.rigid[r] or pressed[k]
    if pressed[k]:
        g = rows.weight[r, 0] * start[rows.coord[r, 0]] - wanted[r]
        if rows.coord[r, 1] >= 0:
            g += rows.weight[r, 1] * start[rows.coord[r, 1]]
        wanted[r] += max(0.0, 1.0 - LIMIT_RECOVERY * h) * min(g, 0.0)


@formula
def let_go(r, rows, base, y, pressed, left):
    """A limit that would pull (base, by number, and y) is left."""
    k = rows.number[r]
    left[r] = pressed[k] and base[k] + y[r] < 0.0
    if left[r]:
        pressed[k] = False


@formula
def hold_stop(r, rows, exact, pressed, held):
    """Rows that are held in velocity: exact ones and limits that are stood on."""
    held[r] = exact[r] or pressed[rows.number[r]]


@formula
def add_held(r, rows, pressed, end, impulse):
    """What held such a limit at the end of the step belongs to its impulse."""
    k = rows.number[r]
    if pressed[k]:
        impulse[k] += end[k]


@formula
def restore(i, some, base, velocity):
    """Velocities of body some[i] as they were before the joints were closed."""
    for k in range(6):
        velocity[some[i], k] = base[some[i], k]


@formula
def freedoms_left(c, mechanism, number, rigid, pressed, freedoms, out):
    """Freedoms of the bodies of mechanism c less its rigid rows and the limits that are stood on."""
    out[c] = freedoms[c]
    for r in range(mechanism[c], mechanism[c + 1]):
        if rigid[r] or pressed[number[r]]:
            out[c] -= 1
