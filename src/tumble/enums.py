"""Closed sets. The integer values are those in the flat arrays and in files."""

from __future__ import annotations

from enum import IntEnum, IntFlag, StrEnum, auto

__all__ = [
    "BlockKind",
    "BodyKind",
    "Integrator",
    "JointKind",
    "Law",
    "MotorMode",
    "Presence",
    "RowRole",
    "Scaling",
    "ShapeKind",
    "ShapeTrait",
    "Status",
    "Stop",
]


class BodyKind(IntEnum):
    """How a body moves."""

    STATIC = 0
    """Never moves."""
    KINEMATIC = 1
    """Follows a prescribed motion and pushes others."""
    DYNAMIC = 2
    """Obeys the equations of motion."""


class Presence(IntEnum):
    """Whether a body is there, in scenes with emitters or sinks."""

    WAITING = 0
    """Not yet let in by its emitter."""
    PRESENT = 1
    REMOVED = 2
    """Taken away by a sink; it does not come back."""


class ShapeTrait(IntFlag):
    """What code that treats several kinds of shapes asks for."""

    CONVEX = auto()
    CLOSED = auto()
    """The distance of a point from the core is a formula."""
    CURVED = auto()
    """The core has curved faces."""
    REVOLVED = auto()
    """The core is turned about z and has straight sides: `kernels/revolved.py`."""
    FLAT = auto()
    """It has flat faces to lie on."""
    SURFACE = auto()
    """Triangles of a pool."""


_T = ShapeTrait


class ShapeKind(IntEnum):
    """Collision geometry, with its traits."""

    traits: ShapeTrait

    def __new__(cls, value: int, traits: ShapeTrait = _T(0)) -> ShapeKind:  # noqa: B008
        """The number, which carries the traits."""
        kind = int.__new__(cls, value)
        kind._value_, kind.traits = value, traits
        return kind

    SPHERE = 0, _T.CONVEX | _T.CLOSED
    CAPSULE = 1, _T.CONVEX | _T.CLOSED
    BOX = 2, _T.CONVEX | _T.CLOSED | _T.FLAT
    CYLINDER = 3, _T.CONVEX | _T.CLOSED | _T.CURVED | _T.REVOLVED | _T.FLAT
    CONE = 4, _T.CONVEX | _T.CLOSED | _T.CURVED | _T.REVOLVED | _T.FLAT
    ELLIPSOID = 5, _T.CONVEX | _T.CURVED
    HULL = 6, _T.CONVEX | _T.FLAT
    TRIANGLE = 7, _T.CONVEX
    """One triangle of a surface; only inside the narrow phase."""
    MESH = 8, _T.SURFACE | _T.FLAT
    HEIGHT_FIELD = 9, _T.SURFACE
    HALF_SPACE = 10
    FRUSTUM = 11, _T.CONVEX | _T.CLOSED | _T.CURVED | _T.REVOLVED | _T.FLAT

    @property
    def rank(self) -> int:
        """Order in which the shapes of a pair are taken: convex ones first, balls before all."""
        return int(self) + (0 if ShapeTrait.CONVEX in self.traits else 64)

    @classmethod
    def having(cls, traits: ShapeTrait) -> tuple[ShapeKind, ...]:
        """The kinds with all of these traits."""
        return tuple(kind for kind in cls if traits in kind.traits)


class JointKind(StrEnum):
    """What a joint leaves free. The axis is z of its frames; b moves against a."""

    FIXED = "fixed"
    SPHERICAL = "spherical"
    """Turns about the anchor."""
    REVOLUTE = "revolute"
    """Turns about the axis."""
    PRISMATIC = "prismatic"
    """Slides along the axis."""
    CYLINDRICAL = "cylindrical"
    """Turns about and slides along the axis."""
    UNIVERSAL = "universal"
    """Two axes that stay at a right angle: `axis` on a, `second_axis` on b."""
    PLANAR = "planar"
    """b slides and turns in the plane across the axis of a."""
    POINT_ON_PLANE = "point_on_plane"
    """The anchor of b stays in a's plane across the axis."""
    DISTANCE = "distance"
    """The two anchors keep their distance."""


class MotorMode(StrEnum):
    """What a motor prescribes."""

    SPEED = "speed"
    POSITION = "position"
    TORQUE = "torque"


class RowRole(IntEnum):
    """What a scalar row of a mechanism does."""

    RIGID = 0
    """g = 0"""
    SPEED = 1
    """dg/dt = target"""
    SPRING = 2
    """Stiffness and damping, implicit."""
    LOWER = 3
    """g >= 0"""
    UPPER = 4
    """g >= 0 with g = limit - coordinate"""
    BOUNDED_SPEED = 5
    """dg/dt = target with at most so much force."""
    BOUNDED_POSITION = 6
    """g = 0, rigid or with a stiffness, with at most so much force."""
    FRICTION = 7
    """dg/dt = 0 with at most so much force."""

    @property
    def is_eliminated(self) -> bool:
        """Whether the row holds either way and is eliminated; the others are bounded blocks of the cone problem."""
        return self in (RowRole.RIGID, RowRole.SPEED, RowRole.SPRING)


class BlockKind(IntEnum):
    """Set that a block of impulses belongs to."""

    CONE = 0
    """Coulomb's cone |g_T| <= mu g_n."""
    ROLLING = 1
    """|g_T| <= mu g_n, |spin| <= sigma g_n, |roll| <= rho g_n, one g_n for the three."""


class Law(StrEnum):
    """Contact law. A solver never swaps one for the other; the report names the one that was solved."""

    COULOMB = "coulomb"
    """True Coulomb friction (a nonlinear complementarity problem)."""
    RELAXED = "relaxed"
    """Convex relaxation (cone complementarity problem): sliding contacts lift off with u_n = mu |u_T|."""


class Integrator(StrEnum):
    """How a step goes from velocities to positions."""

    EULER = "euler"
    """Half-implicit: positions move with the new velocity, gaps are rows of the problem."""
    MOREAU = "moreau"
    """Moreau-Jean: positions move with theta of the new and 1 - theta of the old velocity, closed contacts are held in
    velocity, overlaps removed by a correction of the positions alone."""


class Scaling(StrEnum):
    """Diagonal preconditioning of a cone problem."""

    NONE = "none"
    SCALAR = "scalar"
    NORMAL_TANGENTIAL = "normal_tangential"


class Variant(StrEnum):
    """Form of a method that comes from a paper."""

    DEFAULT = "default"
    PAPER = "paper"


class Precision(StrEnum):
    """Numbers that iterations work with."""

    AUTO = "auto"
    MIXED = "mixed"
    SINGLE = "single"
    DOUBLE = "double"


class Stop(StrEnum):
    """Quantity a solver drives below its tolerance (definitions: `tumble.solvers.measure`)."""

    NATURAL_MAP = "natural_map"
    RESIDUAL_EQ25 = "residual_eq25"
    CERTIFICATE = "certificate"
    LOCAL = "local"
    """Largest error of a contact against its own motion (`Residuals.local_error`)."""


class Status(StrEnum):
    """How a solve ended."""

    CONVERGED = "converged"
    MAX_ITERATIONS = "max_iterations"
    STALLED = "stalled"
    LIMITED_BY_ROUNDING = "limited_by_rounding"
    """As good as the method gets in double precision, which is short of the tolerance"""
    DIVERGED = "diverged"
    OUT_OF_REACH = "out_of_reach"
    """No solution, or none that does not move everything absurdly fast"""
    JOINTS_OPEN = "joints_open"
    """Of a step: contacts and rows were solved, but joints stay open at its end"""

    @property
    def advice(self) -> str:
        """What the user can do."""
        return {
            Status.CONVERGED: "the stopping quantity is below the tolerance",
            Status.MAX_ITERATIONS: "the best iterate is kept; raise max_iterations, loosen the tolerance or shorten dt",
            Status.STALLED: "rounding or a limit cycle stops the progress; the best iterate is kept; "
            "give the materials of a pile their compliance, or loosen the tolerance",
            Status.LIMITED_BY_ROUNDING: "the method cannot do better in double precision; loosen the tolerance, or "
            "polish with SolverAPGD",
            Status.DIVERGED: "the iterates are not finite; check masses and sizes, or lower the solver's omega",
            Status.OUT_OF_REACH: "joints, static bodies or prescribed motion hold overlapping bodies in each other; "
            "the overlaps are left; start the bodies apart",
            Status.JOINTS_OPEN: "joints contradict each other, their motors or contacts, or dt is far too long "
            "for their motion; `joint_drift` says by how much",
        }[self]
