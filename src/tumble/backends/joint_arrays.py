"""The flat arrays that passes of jointed bodies share (the operator's are `base.ArticulatedArrays`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class FrameArrays(NamedTuple):
    """Coordinates between frames on two bodies, as in `JointModel`."""

    body: np.ndarray  # (k, 2) int32
    position: np.ndarray  # (2 k, 3)
    orientation: np.ndarray  # (2 k, 4)
    kind: np.ndarray  # (c,) int64
    frame: np.ndarray  # (c,) int64
    axis: np.ndarray  # (c, 2) int64
    start: np.ndarray  # (k + 1,) int64 into coord
    coord: np.ndarray  # (c,) int64: those of each pair of frames


def frame_arrays(
    body: np.ndarray,
    position: np.ndarray,
    orientation: np.ndarray,
    kind: np.ndarray,
    frame: np.ndarray,
    axis: np.ndarray,
) -> FrameArrays:
    """With the lists of the coordinates of each pair."""
    coord = np.argsort(frame, kind="stable").astype(np.int64)
    start = np.searchsorted(frame[coord], np.arange(len(body) + 1)).astype(np.int64)
    return FrameArrays(body, position, orientation, kind, frame, axis, start, coord)


class JointRows(NamedTuple):
    """Rows of joints, motors and springs (n of them), as in `JointModel`."""

    number: np.ndarray  # (n,) int64: of the row among all
    body: np.ndarray  # (n, 4) int32
    coord: np.ndarray  # (n, 2) int64
    weight: np.ndarray  # (n, 2)
    offset: np.ndarray  # (n,)
    role: np.ndarray  # (n,) int8
    rigid: np.ndarray  # (n,) bool
    motor: np.ndarray  # (n,) int64
    driven: np.ndarray  # (n,) bool: the target of its motor adds to the offset
    stiffness: np.ndarray  # (n,)
    damping: np.ndarray  # (n,)
    most: np.ndarray  # (n,)
    light: np.ndarray  # (n, 4): inverse masses of its bodies, 0 where there is none
    nimble: np.ndarray  # (n, 4): inverse least moments of inertia


class BuiltRows(NamedTuple):
    """Their numbers at one pose."""

    jacobian: np.ndarray  # (n, 24)
    weighted: np.ndarray  # (n, 24): M^-1 J
    whole: np.ndarray  # (n,): the diagonal without locked directions and compliance
    wanted: np.ndarray  # (n,): weight . coordinates of a row that holds
    g: np.ndarray  # (n,): violation
    bias: np.ndarray  # (n,)
    compliance: np.ndarray  # (n,)


class BoundedState(NamedTuple):
    """Of bounded rows in a step (n,)."""

    bound: np.ndarray  # 0 of a limit, minus the largest impulse otherwise
    limit: np.ndarray  # bool
    kept: np.ndarray  # bool: whether it counts
    impulse: np.ndarray  # (r,): of all rows by number, 0 of one before it is solved


class JointedBodies(NamedTuple):
    """Bodies of the mechanisms at one pose."""

    start: np.ndarray  # (mechanisms + 1,) int64 into body
    body: np.ndarray  # int64
    kind: np.ndarray  # (n,) int8
    mass: np.ndarray  # (n,)
    inertia: np.ndarray  # (n, 3)
    orientation: np.ndarray  # (n, 4)


class TreeArrays(NamedTuple):
    """Mechanisms whose bodies are eliminated: bodies as nodes, each after all that hang on it."""

    start: np.ndarray  # (mechanisms + 1,) int64: nodes of each, none where its rows are eliminated
    body: np.ndarray  # (nodes,) int64
    parent: np.ndarray  # (nodes,) int64: a node, -1 of a root
    rows: np.ndarray  # (nodes, 2) int64: rows that hold the node on its parent, or on the ground
    inner: np.ndarray  # (nodes,) bool: whether others hang on it
    node: np.ndarray  # (bodies,) int64: the node of a body, -1


class BodyFactor(NamedTuple):
    """What eliminating bodies leaves; I is the inertia of a node with all that hangs on it."""

    used: np.ndarray  # (mechanisms,) bool: whether it is what counts, and not the factor by rows
    inertia: np.ndarray  # (nodes, 36): I of inner nodes as L D L^T
    own: np.ndarray  # (rows, 6): I^-1 G of the node that the row holds
    held: np.ndarray  # (rows, 6): G of its parent
    across: np.ndarray  # (rows, 6): s^-1 G of its parent, where s = G^T I^-1 G + E of the node's rows
    lower: np.ndarray  # (rows, MOST_ROWS): L of s = L D L^T, D in `inverse_pivot`
    force: np.ndarray  # (nodes, 6) scratch


class FactorArrays(NamedTuple):
    """Its LDL^T mechanism by mechanism: columns as the pattern says, or by bodies."""

    mechanism: np.ndarray  # (mechanisms + 1,) int64: first row of each
    l_start: np.ndarray  # (rows + 1,) int64: columns of L
    l_row: np.ndarray  # (..,) int64
    l_value: np.ndarray  # (..,)
    inverse_pivot: np.ndarray  # (rows,): 0 for a row that depends on others
    dropped: np.ndarray  # (mechanisms,) rows that depend on others
    tree: TreeArrays
    by_bodies: BodyFactor


class EqualityArrays(NamedTuple):
    """Equality rows in the order of elimination with the factor of their system, mechanism by mechanism."""

    mechanism_body_start: np.ndarray  # (mechanisms + 1,) int64
    mechanism_body: np.ndarray  # (..,) int64: the bodies that its rows can move
    body: np.ndarray  # (rows, 4) int32
    weighted: np.ndarray  # (rows, 24): M^-1 J
    factor: FactorArrays
    coord: np.ndarray  # (rows, 2) int64
    weight: np.ndarray  # (rows, 2)
    wanted: np.ndarray  # (rows,): weight . coordinates of a rigid row that holds
    rigid: np.ndarray  # (rows,) bool


class PatternArrays(NamedTuple):
    """Which equality rows touch which, as in `Pattern`."""

    start: np.ndarray  # (rows + 1,) int64: entries of a row up to the diagonal
    column: np.ndarray
    pair_start: np.ndarray  # (entries + 1,)
    pair: np.ndarray  # (.., 2) sides of row and column that share a body
    parent: np.ndarray  # (rows,)


class SystemArrays(NamedTuple):
    """Numbers of the system S = G^T M^-1 G + E."""

    body: np.ndarray  # (rows, 4) int32
    inverse_mass: np.ndarray  # (bodies, 3)
    inverse_inertia: np.ndarray  # (bodies, 6) world axes
    jacobian: np.ndarray  # (rows, 24)
    weighted: np.ndarray  # (rows, 24): M^-1 J
    compliance: np.ndarray  # (rows,)
    whole: np.ndarray  # (rows,): diagonals without locked directions and compliance


class RowSystem(NamedTuple):
    """Equality rows, their numbers at one pose, and the factor of their system."""

    rows: JointRows
    built: BuiltRows
    factor: FactorArrays


class FactorWork(NamedTuple):
    """Scratch of factoring (rows,)."""

    used: np.ndarray
    work: np.ndarray
    mark: np.ndarray
    path: np.ndarray


class MechanismArrays(NamedTuple):
    """Mechanisms of jointed bodies and the motions that each makes as one."""

    start: np.ndarray  # (mechanisms + 1,) into body
    body: np.ndarray
    twist_start: np.ndarray  # (mechanisms + 1,) into twist
    twist: np.ndarray  # (.., 6): linear, angular about the origin


class PosedArrays(NamedTuple):
    """Masses and poses of bodies."""

    mass: np.ndarray  # (n,)
    inertia: np.ndarray  # (n, 3)
    position: np.ndarray  # (n, 3)
    orientation: np.ndarray  # (n, 4)


class EnergyArrays(NamedTuple):
    """Energies of mechanisms (mechanisms,) [J]."""

    kept: np.ndarray  # bool: whether this one's is kept
    wanted: np.ndarray
    rest: np.ndarray  # what counts as rest
    owed: np.ndarray  # what was not given back so far; it is written


class IdealArrays(NamedTuple):
    """Mechanisms whose joints do no work."""

    ideal: np.ndarray  # (mechanisms,) bool: as long as its partners stay where they began
    fall: np.ndarray  # (mechanisms,) energy of a fall from rest over the square of its time
    mass: np.ndarray  # (mechanisms,)
    partner_start: np.ndarray  # (mechanisms + 1,) into partner
    partner: np.ndarray  # bodies of prescribed motion that each is joined to
    position: np.ndarray  # (n, 3) where bodies began
    orientation: np.ndarray  # (n, 4)
    size: np.ndarray  # (n,)


class KeptEnergy(NamedTuple):
    """What keeping energies leaves, and its scratch."""

    kept: np.ndarray  # (mechanisms,) bool
    rest: np.ndarray  # (mechanisms,)
    owed: np.ndarray  # (mechanisms,) what could not be given back
    strained: np.ndarray  # (mechanisms,) bool: the step was too long for the motion
    inner: np.ndarray  # (bodies of mechanisms, 6) scratch
    common: np.ndarray  # (6, bodies of mechanisms, 6) scratch


class ClosingRule(NamedTuple):
    """How joints are closed."""

    rest: float  # time of the drift [s]
    done: float  # violation at which it ends
    rounds: int  # at most; 1 only looks


class CoordinateArrays(NamedTuple):
    """Coordinates at the pose of the kick."""

    value: np.ndarray  # (c,)
    jacobian: np.ndarray  # (c, 12)


class TrialArrays(NamedTuple):
    """Bodies after the drift."""

    velocity: np.ndarray  # (n, 6) that is changed
    position: np.ndarray  # (n, 3) scratch that has the poses of all bodies that no row can move
    orientation: np.ndarray  # (n, 4)


class ClosingWork(NamedTuple):
    """Scratch of closing the joints: rows, or six earlier rounds of them."""

    y: np.ndarray  # (rows,)
    g: np.ndarray
    f: np.ndarray
    best: np.ndarray
    last_g: np.ndarray
    last_x: np.ndarray
    dg: np.ndarray  # (6, rows)
    dx: np.ndarray
    q: np.ndarray
    base: np.ndarray  # (n, 6)
    small: np.ndarray  # (mechanisms, 6, 7)


class MobilityArrays(NamedTuple):
    """How nodes of trees answer to forces: v = mobility f, 6 x 6."""

    mobility: np.ndarray  # (nodes, 36)
    local: np.ndarray  # (nodes, 36): with its parent held
    carried: np.ndarray  # (nodes, 36): its velocity for one of its parent
    root: np.ndarray  # (rows, 6) scratch
    work: np.ndarray  # (nodes, 6) scratch


class StepArrays(NamedTuple):
    """What all joints of a model share in a step: coordinates, targets, impulses by number of row."""

    frames: FrameArrays
    bodies: np.ndarray  # int64: that joints touch
    still: np.ndarray  # int64: of these, those that no joint can move
    value: np.ndarray  # (c,) at the kick
    jacobian: np.ndarray  # (c, 12)
    end_value: np.ndarray  # (c,) at the end of the step
    end_jacobian: np.ndarray  # (c, 12)
    target: np.ndarray  # (motors,)
    role: np.ndarray  # (r,) int8
    impulse: np.ndarray  # (r,) of this step's kick
    end_impulse: np.ndarray  # (r,) of this step besides
    end: np.ndarray  # (r,) what the next step knows
    kick_orientation: np.ndarray  # (n, 4)
    inverse_mass: np.ndarray  # (n, 3)


class MechanismBodies(NamedTuple):
    """Which bodies joints connect."""

    start: np.ndarray  # (mechanisms + 1,) int64 into body
    body: np.ndarray  # int64
    mechanism_of: np.ndarray  # (n,) int64, -1 without joints
    kind: np.ndarray  # (n,) int8
    mass: np.ndarray  # (n,)
    inertia: np.ndarray  # (n, 3)
    locked: np.ndarray  # (n, 6) bool
    moves: np.ndarray  # (n,) bool


class SetArrays(NamedTuple):
    """Equality rows, and scratch of a step (rows,)."""

    system: RowSystem
    pattern: PatternArrays
    work: FactorWork
    exact: np.ndarray  # bool: rows that hold in velocity
    wanted: np.ndarray  # right sides
    y: np.ndarray
    reaction: np.ndarray
    speed: np.ndarray
    closing: ClosingWork
    sums: np.ndarray  # (SUMS, mechanisms)


class TorqueArrays(NamedTuple):
    """Motors that give a torque or force (m,)."""

    rows: JointRows
    built: BuiltRows
    motor: np.ndarray  # int64
    impulse: np.ndarray
    mechanism: np.ndarray  # (mechanisms + 1,) int64: first row of each
    limit: np.ndarray  # bool, none of them
    work: np.ndarray  # (3, m)


class BoundedArrays(NamedTuple):
    """Bounded rows (b,), and those that count, closed up."""

    rows: JointRows
    built: BuiltRows
    state: BoundedState
    slack: np.ndarray  # distance from which on a limit is a row
    first: np.ndarray  # (mechanisms + 1,) int64: first row of each
    active: tuple  # bodies, J, M^-1 J, compliance, bias, bound, number, and the first of each mechanism
    work: np.ndarray  # (3, b)
