"""What every backend offers, and the flat arrays that its passes share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..kernels.descent import TREE_LEAF as TREE_LEAF
from ..kernels.jit import BLOCK
from .joint_arrays import FactorArrays

Group = TypeVar("Group")

ARRAYS = ("HOSTED", "FAILURES", "zeros", "send", "fetch")
"""Whether a backend's arrays are NumPy's; the exceptions of a device that fails; how it makes arrays, takes those of
NumPy and gives its own back."""
PASSES: dict[str, tuple[str, ...]] = {
    # Free velocities, the drift, energies of a step
    "bodies": ("predict", "advance", "drift_bodies", "largest_speed"),
    # World poses and bounding boxes
    "shapes": ("place_shapes",),
    # Pairs whose boxes meet: a hierarchical hashed grid
    "broad": ("choose_phase", "cell_keys", "build_grid", "find_pairs", "spread_speed", "most_and_total"),
    # Contact points of the pairs, sorted by key
    "narrow": (
        "find_ball_contacts", "find_convex_contacts", "find_surface_contacts", "sort_contacts", "arrange_contacts",
    ),
    # Formulas run on every contact, body, row or mechanism, and sums
    "items": (
        "over_contacts", "over_bodies", "over_rows", "over_mechanisms", "count_true", "list_true", "total", "largest",
        "largest_vector", "largest_entry",
    ),
    # Questions that users ask: distances, rays
    "queries": ("convex_gaps", "cast_rays"),
    # Frames, arms, bias, memory of the contacts
    "rows": (
        "build_rows", "fill_entries", "match_contacts", "recall", "remember", "rest_gaps", "free_frozen_rows",
        "survey_contacts", "contact_work", "driven_work",
    ),
    # N x and its parts, by kind of operator
    "operator": (
        "product", "contact_product", "read_rows", "lay_down", "gather", "contact_diagonal", "matrix_product",
        "matrix_diagonal", "rolling_product", "rolling_rows", "rolling_velocity", "turn_diagonal",
        "articulated_product", "articulated_diagonal", "articulated_rows", "articulated_velocity",
    ),
    # The problem without units
    "scaling": (
        "weigh", "scale_frame", "scale_rows", "unscale_impulses", "block_steps", "weigh_rolling", "scale_rolling",
        "scale_turns", "unscale_rolling",
    ),
    # Iterations, and how good impulses are
    "cone": (
        "apgd", "nesterov_pass", "apgd_paper", "barzilai_borwein", "gauss_seidel", "nsgs", "face_gradients",
        "measure", "coulomb_shift_bound", "rolling_shift_bound",
    ),
    # Several of these in one call, as the stages of a step need them (`over_passes` makes them of the others)
    "stages": (
        "place_step", "search_pairs", "order_contacts", "assemble_rows", "scale_contacts", "judge_contacts",
        "act_impulses",
    ),
    # The same of jointed bodies
    "joint_stages": (
        "prepare_joints", "look_at_joints", "join_contacts", "scale_articulated", "judge_articulated", "look_out",
        "act_articulated", "react_joints", "place_unmoved", "close_rows", "book_closing", "hold_joints",
        "find_velocities", "rows_at_end", "hold_rows", "still_rows", "keep_velocities", "remember_joints",
    ),
    # The same over contacts in lanes
    "lanes": (
        "apgd_lanes", "apgd_single_lanes", "pack_contacts", "pack_ends", "pack_bodies", "contact_lanes", "body_lanes",
        "sum_lanes", "measure_lanes", "tangent_lanes", "lane_value", "unpack_lanes", "gradient_step",
    ),
    # Rows, elimination, projection and energies of jointed bodies
    "joints": (
        "row_speeds", "push_rows", "factor_joints", "solve_joints", "forward_joints",
        "eliminate", "take_rows", "close_joints", "worst_of", "mechanism_energies", "turn_inertia",
    ),
}  # fmt: skip
"""What every backend offers, in groups, besides its `name`, ARRAYS and SIZES.

A pass loops over flat arrays: whole buffers and a count, inputs before outputs; what it needs as scratch it is given.
`tests/backends` compares each with a twin in NumPy.
"""
SIZES = (
    "FEW", "LEVELS", "MOST", "PAIR_BLOCK", "SCRATCH", "SORT_BODIES", "SORT_PARTS", "SPENT", "SURFACE_COLUMNS",
    "SURFACE_ROWS",
)  # fmt: skip
"""Sizes of the buffers that callers make for a backend's passes."""
BODY_BLOCK = 256
"""Bodies or shapes in a block."""
STALL_CHECKS = 400
"""Checks without a better iterate after which a run counts as stalled."""
LANES, LANE_ROWS, END_ROWS = 16, 34, 9
"""Contacts that lie together in `LaneArrays`, and the numbers that each has in its two parts."""
LANE_CONTACTS, LANE_BODIES, LANE_FEW = 256, 64, 2048
"""Contacts and bodies in a block of the passes over lanes, small enough for many threads. Up to LANE_FEW are one
block: waking a thread takes longer than its share. All by the count alone, so sums do not depend on threads."""
MEASURES = 18
"""Numbers that one measuring pass gives, see `Measure`."""
MEASURED = 32
"""Contacts whose numbers are laid down beside the sums of a block, before they are summed."""
MEASURE_ROOM = MEASURES + 17 * MEASURED
"""Columns of `partial` of measuring passes."""


class ContactArrays(NamedTuple):
    """The operator N = D^T M^-1 D of contacts without a matrix: one frame and two arms a contact.

    An impulse is turned into world axes and laid down at its two *entries*, which are sorted by body; each body sums
    its own entries in order (no atomics, fixed sums); then each contact reads its two bodies.
    """

    count: int
    body_a: np.ndarray  # (cap,) int32
    body_b: np.ndarray  # (cap,) int32
    frame: np.ndarray  # (9, cap): n, u, w (scaled where the problem is)
    arms: np.ndarray  # (6, cap): from the centres of mass of A and B to the point
    slot_a: np.ndarray  # (cap,) int32: entry of side A; the last entry is a dump for bodies that cannot move
    slot_b: np.ndarray  # (cap,) int32
    entry_start: np.ndarray  # (bodies + 1,) int64
    entry_arm: np.ndarray  # (2 cap + 1, 3)
    entry_force: np.ndarray  # (2 cap + 1, 3) scratch
    inverse_mass: np.ndarray  # (bodies, 3)
    inverse_inertia: np.ndarray  # (bodies, 6): xx, yy, zz, xy, xz, yz in world axes
    body_velocity: np.ndarray  # (bodies, 6) scratch: M^-1 D x
    compliance: np.ndarray  # (2, cap): E of the normal and of the tangential rows [1/kg]; (2, 0) where all are rigid


class TouchArrays(NamedTuple):
    """Where contacts are."""

    body_a: np.ndarray  # (cap,) int32
    body_b: np.ndarray
    slot_a: np.ndarray  # (cap,) int32: entries, see `ContactArrays`
    slot_b: np.ndarray
    normal: np.ndarray  # (3, cap)
    point: np.ndarray  # (3, cap)
    gap: np.ndarray  # (cap,) that the step is to close
    size: np.ndarray  # (cap,) smallest half-extent of the smaller shape


class RowArrays(NamedTuple):
    """Rows of contacts, as in `ContactArrays`."""

    frame: np.ndarray  # (9, cap)
    arms: np.ndarray  # (6, cap)
    entry_arm: np.ndarray  # (2 cap + 1, 3)
    bias: np.ndarray  # (3 or 6, cap)


class GapArrays(NamedTuple):
    """Gaps of contacts that may rest."""

    gap: np.ndarray  # (cap,)
    size: np.ndarray  # (cap,)
    pair: np.ndarray  # (cap,) int32: of materials
    firm: np.ndarray  # (pairs,) bool: whose gap has no meaning of its own


class RestRule(NamedTuple):
    """Which gaps are left as they are (`docs/rest.md`)."""

    least: float  # impulse beyond which a contact counts as loaded [N s]
    band: float  # gaps up to this are left [m]
    share: float  # and up to this part of the smaller shape
    part: float  # of an overlap beyond, so much is taken back


class TableArrays(NamedTuple):
    """What assembling knows of bodies and contacts beside the operator."""

    movable: np.ndarray  # (n,) bool
    cursor: np.ndarray  # (n,) int64 scratch
    sides: np.ndarray  # (parts, n) int32 scratch, where several threads number the entries; else (1, 0)
    uid: np.ndarray  # (n,) int64
    feature: np.ndarray  # (cap,) int64
    found: np.ndarray  # (cap,) int64, see `match_contacts`
    gaps: GapArrays
    partial: np.ndarray  # (blocks,)
    parts: np.ndarray  # (64,) scratch
    surveyed: np.ndarray  # (blocks, 2) scratch
    relative: np.ndarray  # (3 or 6, cap): velocities before the step


class MemoryArrays(NamedTuple):
    """k contacts of a step ago."""

    uid_a: np.ndarray  # (k,) int64
    uid_b: np.ndarray  # (k,) int64
    feature: np.ndarray  # (k,) int64
    impulse: np.ndarray  # (3, k) world


class KickArrays(NamedTuple):
    """Bodies where contacts are assembled."""

    center: np.ndarray  # (n, 3)
    free: np.ndarray  # (n, 6)
    before: np.ndarray  # (n, 6)


class AssemblyRule(NamedTuple):
    """Numbers of assembling."""

    h: float
    recovery: float  # fastest recovery of an overlap [m/s], negative: each pair's own
    gravity: float
    noise: float  # part of the largest impulse that is none
    rest: RestRule


class ScaledArrays(NamedTuple):
    """The problem of contacts in scaled impulses."""

    frame: np.ndarray  # (9, cap)
    compliance: np.ndarray  # (2, cap) or (2, 0)
    bias: np.ndarray  # (3, cap)
    friction: np.ndarray  # (cap,)
    x: np.ndarray  # (3, cap)


class ArticulatedArrays(NamedTuple):
    """The operator N = P^T A^-1 P + E of contacts and bounded rows on jointed bodies.

    Equality rows are in the order of elimination, mechanism by mechanism; a row has up to four bodies (-1: none) with
    six numbers each. Bounded rows (limits, motors with a maximum, joint friction) are the blocks after the contacts;
    only their first component is used.
    """

    contacts: ContactArrays
    body: np.ndarray  # (rows, 4) int32
    jacobian: np.ndarray  # (rows, 24)
    weighted: np.ndarray  # (rows, 24): M^-1 J
    factor: FactorArrays
    reaction: np.ndarray  # (rows,) scratch: S^+ G^T v of the last elimination
    bounded_body: np.ndarray  # (bounded, 4) int32
    bounded_jacobian: np.ndarray  # (bounded, 24)
    bounded_weighted: np.ndarray  # (bounded, 24)
    bounded_compliance: np.ndarray  # (bounded,)
    bounded_start: np.ndarray  # (mechanisms + 1,) int64: first bounded row of each


class MassArrays(NamedTuple):
    """How bodies answer to a kick (n of them)."""

    kind: np.ndarray  # (n,) int8
    inverse_mass: np.ndarray  # (n, 3)
    inertia: np.ndarray  # (n, 3)
    locked: np.ndarray  # (n, 6) bool


class LoadArrays(NamedTuple):
    """What pulls at bodies, world axes."""

    gravity: np.ndarray  # (3,)
    force: np.ndarray  # (n, 3)
    torque: np.ndarray  # (n, 3)


class FreeArrays(NamedTuple):
    """Bodies before contacts and joints act, at the pose of the kick."""

    matrix: np.ndarray  # (n, 9)
    inverse_inertia: np.ndarray  # (n, 6) world axes
    before: np.ndarray  # (n, 6) velocity before the kick
    free: np.ndarray  # (n, 6) velocity after that of the forces


class WeightArrays(NamedTuple):
    """What the energies of bodies and their travel are counted with."""

    kind: np.ndarray  # (n,) int8
    size: np.ndarray  # (n,)
    mass: np.ndarray  # (n,)
    inverse_mass: np.ndarray  # (n, 3)


class MotionArrays(NamedTuple):
    """Poses and velocities of bodies, as in `State`."""

    position: np.ndarray  # (n, 3)
    orientation: np.ndarray  # (n, 4)
    velocity: np.ndarray  # (n, 3)
    spin: np.ndarray  # (n, 3) body axes


class KickedArrays(NamedTuple):
    """Bodies at the pose at which a step kicks them."""

    inertia: np.ndarray  # (n, 3)
    locked: np.ndarray  # (n, 6) bool
    position: np.ndarray  # (n, 3)
    orientation: np.ndarray  # (n, 4)
    matrix: np.ndarray  # (n, 9)
    spin: np.ndarray  # (n, 3) body axes, before the kick
    before: np.ndarray  # (n, 6) velocity before the kick


class ConeArrays(NamedTuple):
    """Blocks of a problem as the iterations take them: in scaled impulses x, impulse = scale * x."""

    count: int
    bias: np.ndarray  # (rows, cap)
    friction: np.ndarray  # (cap,), or (3, cap) with rolling friction


class GaugeArrays(NamedTuple):
    """What impulses are measured with. x, N x and bias may be scaled, friction is not."""

    count: int
    bias: np.ndarray  # (rows, cap)
    friction: np.ndarray  # (cap,), or (3, cap) with rolling friction
    scale: np.ndarray  # (2, cap), or (4, cap)
    weight: np.ndarray  # (cap,), or (2, cap)
    coulomb: bool
    speed: float  # that small motions are compared with (`ConeProblem.pace`)


class StopRule(NamedTuple):
    """When iterations end."""

    kind: int  # place in `Stop`
    tolerance: float
    limit: int
    check_every: int
    rows: int  # of all blocks, over which the residual of Eq. 25 is spread


class IterationArrays(NamedTuple):
    """What iterations work on: the iterate, the Coulomb correction, the best iterate, scratch of measuring."""

    x: np.ndarray  # (rows, cap)
    nx: np.ndarray  # (rows, cap): N x
    shift: np.ndarray  # (cap,)
    best: np.ndarray  # (rows, cap)
    partial: np.ndarray  # (blocks + 2, MEASURE_ROOM)
    values: np.ndarray  # (MEASURES,)
    history: np.ndarray  # of the stopping quantity


class UnshiftedArrays(NamedTuple):
    """The same for iterations that keep no correction in an array."""

    x: np.ndarray
    nx: np.ndarray
    best: np.ndarray
    partial: np.ndarray
    values: np.ndarray
    history: np.ndarray


class LaneArrays(NamedTuple):
    """Contacts in blocks of `LANES`, single or double precision; see `backends.cpu.lanes`."""

    count: int
    part: int  # contacts in a block of a pass, a multiple of LANES
    block: np.ndarray  # (blocks * LANE_ROWS * LANES,)
    ends: np.ndarray  # (blocks * END_ROWS * LANES,): world impulses, velocities of both ends; small enough for a cache


class LaneSums(NamedTuple):
    """Sums over blocks of lanes."""

    step: np.ndarray  # (blocks of LANE_CONTACTS, 3 LANES): of an iteration, in the precision of the lanes
    error: np.ndarray  # (blocks of LANE_CONTACTS, 5 LANES) float64: of measuring
    totals: np.ndarray  # (blocks of LANE_CONTACTS, 4): the sums of `step`, close to each other


class LaneBodies(NamedTuple):
    """Bodies, which take their impulses from `LaneArrays.ends` and leave their velocities there."""

    part: int  # bodies in a block of a pass
    start: np.ndarray  # (bodies + 1,) int64: entries of each, as in `ContactArrays`
    ends: np.ndarray  # that of the contacts
    place: np.ndarray  # (2 cap + 1,) uint32: of each entry: twice the place of its contact in `ends`, 1 more on side B
    arm: np.ndarray  # (2 cap + 1, 4): of each entry, and 1 on side B, -1 on side A
    inverse: np.ndarray  # (bodies, 9): inverse masses, inverse inertias


class FaceArrays(NamedTuple):
    """Scratch of conjugate gradients in a face of the cones."""

    kind: np.ndarray  # (cap,) which case a contact is
    d: np.ndarray  # (3, cap) direction
    nd: np.ndarray  # its product
    moved: np.ndarray  # sum of the steps
    left: np.ndarray  # what is left of the equations
    trial: np.ndarray


class PaperArrays(NamedTuple):
    """The last iterates (rows, cap) of the published method and their products, which change places."""

    x: np.ndarray
    x_old: np.ndarray
    x_new: np.ndarray
    nx: np.ndarray
    nx_old: np.ndarray
    nx_new: np.ndarray


class RollingArrays(NamedTuple):
    """The operator of contacts with six rows: n, u, w, then the turns about the same axes (spin, roll u, roll w)."""

    joints: ArticulatedArrays  # without any equality where there is no joint
    turn_frame: np.ndarray  # (9, cap): n, u, w (scaled where the problem is)
    entry_torque: np.ndarray  # (2 cap + 1, 3) scratch


class MatrixArrays(NamedTuple):
    """The operator as a sparse matrix. Rows are grouped by contact: row = dim * contact + component."""

    count: int
    dim: int
    start: np.ndarray  # (dim * count + 1,) int64
    contact: np.ndarray  # (nz,) int32: contact of the column
    component: np.ndarray  # (nz,) int32: its component
    value: np.ndarray  # (nz,)


class Measure(IntEnum):
    """Places in the result of a measuring pass (`backends.cpu.measure`)."""

    NATURAL = 0
    SCALE = 1
    EQ25 = 2
    CLASSIC = 3
    CLASSIC_SCALE = 4
    GAP = 5
    SHIFT = 6
    SHIFT_HAT = 7
    COMPLEMENTARITY = 8
    PENETRATION_SPEED = 9
    OBJECTIVE = 10
    LOCAL = 11
    LOCAL_SPEED = 12


def over_passes(stage: Callable, passes: Mapping[str, Callable]) -> Callable:
    """A pass of `stages` in plain Python, which calls these passes instead of those of the processor."""
    plain = getattr(stage, "py_func", stage)
    return FunctionType(plain.__code__, {**plain.__globals__, **passes}, plain.__name__)


def stages_over(module: ModuleType, passes: Mapping[str, Callable]) -> dict[str, Callable]:
    """All stages of a module in plain Python, which call these passes, and each other, instead of those of the
    processor; passes of formulas are made by these `over_rows` and its sisters."""
    own = {name: value for name, value in vars(module).items() if callable(value) and not isinstance(value, type)}
    names = vars(module) | passes
    names |= {name: passes[value.over](value.formula) for name, value in own.items() if hasattr(value, "over")}
    plain = {name: getattr(value, "py_func", getattr(value, "__wrapped__", value)) for name, value in own.items()}
    found = {
        name: FunctionType(value.__code__, names, name)
        for name, value in plain.items()
        if getattr(value, "__module__", "") == module.__name__ and hasattr(value, "__code__")
    }
    names |= found
    return found


def sent_group(backend: Any, group: Group) -> Group:
    """A group of NumPy's arrays as arrays of a backend, in any depth; numbers stay."""
    if isinstance(group, tuple):
        parts = [sent_group(backend, part) for part in group]
        return type(group)._make(parts) if hasattr(group, "_make") else type(group)(parts)  # type: ignore[attr-defined]
    return backend.send(group) if isinstance(group, np.ndarray) else group


def fetched_group(backend: Any, group: Any) -> Any:
    """A group of a backend's arrays as NumPy's, in any depth; numbers stay."""
    if isinstance(group, tuple):
        parts = [fetched_group(backend, part) for part in group]
        return type(group)._make(parts) if hasattr(group, "_make") else type(group)(parts)
    return backend.fetch(group) if hasattr(group, "dtype") else group


def blocks(count: int, block: int = BLOCK) -> int:
    """Number of blocks for so many items, at least one."""
    return max(1, -(-count // block))
