"""A cone problem: K ∋ impulse ⊥ N impulse + bias (+ the Coulomb correction) ∈ K*.

It is a value: built from a scene, from a matrix, solved by any solver, measured by one set of formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from .. import backends, checks
from ..enums import BlockKind
from ..errors import ProblemError, message
from ..kernels.cones import bound_of, is_interval
from ..kernels.jit import interpreted
from .operators import DelassusOperator, MatrixOperator, StepOperator

__all__ = ["BlockGroup", "ConeProblem"]

Group = TypeVar("Group", bound=tuple)
Kept = TypeVar("Kept")

LIVELY = 30.0
"""The errors of contacts are compared with g h and with so many times the mean speed of neighbours: where a pile moves,
the error of the scheme is larger by far than what the solver leaves, and nothing waits for an end of it."""


@dataclass
class BlockGroup:
    """Blocks of one kind, component first: row k of every block lies together."""

    kind: BlockKind
    dim: int
    """Rows a block: 3, or 2 in the plane (row 2 then stays zero), or 6 with rolling friction."""
    count: int
    friction: np.ndarray
    """(cap,) the set of each block (`kernels.cones`): mu of a cone, or the interval of a bounded row; with rolling
    friction (3, cap): mu or interval, sigma [m], rho [m]"""


class Weights(NamedTuple):
    """What makes numbers of a problem comparable, all from the diagonal blocks N_ii."""

    diagonal: np.ndarray
    """(6, cap) nn, uu, ww, nu, nw, uw"""
    scale: np.ndarray
    """(2, cap) of normal and tangential rows; (4, cap) with rolling friction"""
    weight: np.ndarray
    """(cap,) w of the natural map; (2, cap) of forces and torques"""
    tangential: np.ndarray
    """(cap,) sqrt(lambda_max(N_TT)); (3, cap) of the blocks that slide, spin and roll"""


@dataclass
class ConeProblem:
    """Blocks, bias r [m/s] as (3 or 6, cap), and the operator N [1/kg]. `h` is the time step it belongs to [s]."""

    group: BlockGroup
    bias: np.ndarray
    operator: DelassusOperator
    h: float = 1.0
    scratch: dict[tuple, tuple] = field(default_factory=dict, repr=False)
    """Arrays that survive from one step to the next; see `scratch_of`."""
    speed: float = 0.0
    """g h, what a step gives a body that nothing holds [m/s]. 0: unknown."""
    motion: float = 0.0
    """Mean relative speed of neighbours before the step [m/s]"""
    gap_shift: float = 0.0
    """The bias was made from gaps that differ from the true ones by at most this [m]."""

    known: dict[int, Weights] = field(default_factory=dict, init=False, repr=False)
    """What `solve.residuals.weigh` has found, by mode: once for a problem, whoever asks."""
    count: int = field(init=False, repr=False)
    """Number of contacts"""
    dim: int = field(init=False, repr=False)
    """Rows a contact"""
    friction: np.ndarray = field(init=False, repr=False)
    """(cap,), or (3, cap) with rolling friction"""
    is_rolling: bool = field(init=False, repr=False)
    """Whether blocks have six rows"""
    backend: ModuleType = field(init=False, repr=False)
    """Where the operator's arrays live"""

    def __post_init__(self) -> None:
        group = self.group
        self.count, self.dim, self.friction = group.count, group.dim, group.friction
        self.is_rolling, self.backend = group.kind == BlockKind.ROLLING, self.operator.backend

    @property
    def pace(self) -> float:
        """Errors of contacts that move less are compared with this speed [m/s]; see `Residuals.local_error`."""
        return self.speed + LIVELY * self.motion

    @property
    def sliding_friction(self) -> np.ndarray:
        """(cap,) mu of each cone, the interval of each bounded row"""
        return self.friction[0] if self.is_rolling else self.friction

    @property
    def bounded(self) -> np.ndarray:
        """(count,) Which blocks are bounded rows of joints: intervals, no cones"""
        return bounded_rows(self.sliding_friction[: self.count])

    @property
    def step_operator(self) -> StepOperator:
        """The operator of a step's problem, which knows bodies and contacts: a matrix does not."""
        assert not isinstance(self.operator, MatrixOperator)
        return cast(StepOperator, self.operator)

    @classmethod
    def from_matrix(
        cls, matrix: Any, bias: Any, friction: Any, *, dim: int = 3, backend: str | ModuleType = "cpu"
    ) -> ConeProblem:
        """From a symmetric matrix (dim n, dim n), a bias (dim n,) and mu (n,), normal row first for each contact."""
        try:
            sparse = sp.csr_matrix(matrix, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as cause:
            raise ProblemError(
                message(
                    "ConeProblem.matrix",
                    "must be a square matrix of numbers",
                    checks.short(matrix),
                    "Give a NumPy array or a SciPy sparse matrix.",
                )
            ) from cause
        operator = MatrixOperator(sparse, dim, backends.choose(backend))
        r = checks.array("ConeProblem.bias", bias, (dim * operator.count,), error=ProblemError)
        mu = checks.array("ConeProblem.friction", friction, (operator.count,), error=ProblemError)
        if np.any(mu < 0.0):
            at = int(np.argmax(mu < 0.0))
            raise ProblemError(
                message(
                    "ConeProblem.friction",
                    "must be >= 0",
                    f"{mu[at]} at index {at}",
                    "Use 0 for a frictionless contact.",
                )
            )
        group = BlockGroup(BlockKind.CONE, dim, operator.count, mu)
        return cls(group, component_first(r, dim), operator)

    def scratch_of(self, group: type[Group], *which: Any, dtype: type = np.float64, **shapes: Any) -> Group:
        """The arrays of a pass, a NamedTuple that nobody else uses, kept between steps; they hold what it left in them.

        which: tells several of one group apart; shapes: of each array."""
        found = self.scratch.get((group, *which))
        if found is None or found[0] != shapes:
            made = group(*(self.backend.zeros(shapes[name], dtype) for name in names_of(group)))
            found = self.scratch[group, *which] = shapes, made
        return found[1]

    def kept(self, make: Callable[[ConeProblem], Kept]) -> Kept:
        """What `make` has made for a problem with buffers like these, kept between steps as `scratch_of` keeps arrays:
        one look instead of one for each group."""
        found = self.scratch.get((make,))
        if found is None or found[0] != self.bias.shape:
            found = self.scratch[make,] = self.bias.shape, make(self)
        return found[1]

    def vectors_of(self, group: type[Group]) -> Group:
        """Such arrays, each of the shape of the bias."""
        shapes: dict[str, Any] = dict.fromkeys(names_of(group), self.bias.shape)
        return self.scratch_of(group, **shapes)

    @property
    def guess(self) -> np.ndarray:
        """Impulses of the shape of the bias that a solver may start from, and overwrites."""
        return self.kept(_guess)

    @property
    def product_room(self) -> np.ndarray:
        """Room for a product N x; who makes one reads it before anybody makes the next."""
        return self.kept(_product_room)


def _guess(problem: ConeProblem) -> np.ndarray:
    return problem.backend.zeros(problem.bias.shape)


def _product_room(problem: ConeProblem) -> np.ndarray:
    return problem.backend.zeros(problem.bias.shape)


def names_of(group: type[tuple]) -> tuple[str, ...]:
    """The names of a NamedTuple."""
    return group._fields  # type: ignore[attr-defined]


def bounded_rows(friction: np.ndarray) -> np.ndarray:
    """Which of these sets are those of bounded rows."""
    return interpreted(is_interval)(friction)


def bounds_of(friction: np.ndarray) -> np.ndarray:
    """The bounds of the sets that are intervals, infinite for cones."""
    return np.where(bounded_rows(friction), interpreted(bound_of)(friction), np.inf)


def component_first(rows: np.ndarray, dim: int) -> np.ndarray:
    """(dim n,) with the rows of a contact together -> (3, n)."""
    n = len(rows) // dim
    out = np.zeros((3, n))
    out[:dim] = np.asarray(rows).reshape(n, dim).T
    return out


def contact_first(x: np.ndarray, dim: int, count: int) -> np.ndarray:
    """The inverse of `component_first`."""
    return np.ascontiguousarray(x[:dim, :count].T).ravel()
