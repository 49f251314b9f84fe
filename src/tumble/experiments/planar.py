"""One body in the plane above a floor, stepped with exactly solved cone problems: shared by `particle`, `painleve`.

The body has coordinates q = (x, y) or (x, y, angle) and one or two points that may touch the floor y = 0. Every point
is a contact at every distance. A step is a planar cone problem of one or two contacts; its modes (each contact open,
sliding to one of two sides, or sticking) are all tried, so the solution is exact up to rounding. `Motion.problem` gives
all steps of a run as one `ConeProblem`, which is how they are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import scipy.sparse as sp

from ..enums import Law
from ..errors import NotConvergedError, message
from ..problem.cone_problem import ConeProblem
from ..solve.residuals import Residuals, measure
from .base import Job

OPEN, RIGHT, LEFT, STICK = range(4)
"""Modes of a contact; right and left: where the body slides."""
ROUNDING = 1e-11
"""A mode holds if no inequality is broken by more, relative to the body's speed."""

Touch = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""q -> gaps (c,) [m] and the rows n, t of every contact in body coordinates (2 c, dof)."""


@dataclass(frozen=True)
class Body:
    """A body in the plane."""

    mass: np.ndarray
    """(dof,) mass, mass [kg] and, if it turns, moment of inertia [kg m^2]"""
    touch: Touch
    friction: float
    gravity: float
    """[m/s^2]"""

    def energy(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Kinetic and potential energy [J] of states (..., dof)."""
        return 0.5 * (v**2) @ self.mass + self.mass[1] * self.gravity * q[..., 1]


@dataclass(frozen=True)
class Motion:
    """A run: states from the start (row 0) to the end, and the problems that were solved on the way."""

    body: Body
    law: str
    time: np.ndarray
    """(k + 1,) [s]"""
    q: np.ndarray
    """(k + 1, dof) [m, rad]"""
    v: np.ndarray
    """(k + 1, dof) [m/s, rad/s]"""
    matrix: np.ndarray
    """(k, 2 c, 2 c) N of every step"""
    bias: np.ndarray
    """(k, 2 c) r of every step [m/s]"""
    impulse: np.ndarray
    """(k, 2 c) [N s]"""
    ambiguous: int
    """Steps with more than one solution, of which the first in the order of the modes was taken"""

    @property
    def energy(self) -> np.ndarray:
        """(k + 1,) kinetic and potential energy [J]."""
        return self.body.energy(self.q, self.v)

    def problem(self) -> ConeProblem:
        """All steps side by side in one planar cone problem, which knows nothing of modes."""
        steps, contacts = len(self.bias), self.bias.size // 2
        matrix = sp.bsr_matrix((self.matrix, np.arange(steps), np.arange(steps + 1)))
        return ConeProblem.from_matrix(matrix, self.bias.ravel(), np.full(contacts, self.body.friction), dim=2)

    def residuals(self) -> Residuals:
        """How well all steps are solved, measured like any other solution."""
        impulse = np.zeros((3, self.impulse.size // 2))
        impulse[:2] = self.impulse.reshape(-1, 2).T
        return measure(self.problem(), impulse, self.law)


def simulate(body: Body, law: str, *, q: np.ndarray, v: np.ndarray, dt: float, steps: int) -> Motion:
    """Step a body from a state (dof,), by half-implicit Euler: v from the contacts, then q += dt v."""
    fall = np.zeros_like(body.mass)
    fall[1] = -body.gravity * dt
    rows_q, rows_v, matrices, biases, impulses, ambiguous = [q], [v], [], [], [], 0
    for _ in range(steps):
        gap, rows = body.touch(q)
        free = v + fall
        lever = rows / body.mass
        n, r = lever @ rows.T, rows @ free
        r[::2] += gap / dt
        g, unique = solve_modes(n, r, body.friction, law == Law.COULOMB, speed=float(np.abs(free).max()))
        v = free + g @ lever
        q = q + dt * v
        ambiguous += not unique
        for to, value in ((rows_q, q), (rows_v, v), (matrices, n), (biases, r), (impulses, g)):
            to.append(value)
    return Motion(
        body,
        law,
        dt * np.arange(steps + 1),
        np.array(rows_q),
        np.array(rows_v),
        np.array(matrices),
        np.array(biases),
        np.array(impulses),
        ambiguous,
    )


def solve_modes(n: np.ndarray, r: np.ndarray, mu: float, coulomb: bool, *, speed: float) -> tuple[np.ndarray, bool]:
    """Impulses (2 c,) of a planar cone problem of one or two contacts, and whether there is only one solution.

    n (2 c, 2 c), r (2 c,) with the rows normal, tangential of each contact. speed: of the body [m/s]. Contacts too far
    to be reached at twice that speed are taken as open first; if the others' solution keeps them open, it is the
    solution (others in which a far contact carries an impulse are not looked for).
    """
    slop = ROUNDING * max(1.0, speed)
    near = np.flatnonzero(r[::2] <= 2.0 * speed)
    if len(near) < 2:
        g, unique = np.zeros_like(r), True
        if len(near):
            k = 2 * near[0]
            nn, nt, tt = float(n[k, k]), float(n[k, k + 1]), float(n[k + 1, k + 1])
            g[k], g[k + 1], unique = _one_contact(nn, nt, tt, float(r[k]), float(r[k + 1]), mu, coulomb, slop)
        u = n @ g + r
        far = np.ones(len(r) // 2, bool)
        far[near] = False
        if np.all((u[::2] >= (0.0 if coulomb else mu) * np.abs(u[1::2]))[far]):
            return g, unique
    return _all_modes(n, r, mu, coulomb, slop)


def _one_contact(
    a: float, b: float, c: float, p: float, q: float, mu: float, coulomb: bool, slop: float
) -> tuple[float, float, bool]:
    """Normal and tangential impulse of one contact, N = ((a, b), (b, c)), r = (p, q), and whether they are unique."""
    lift = 0.0 if coulomb else mu
    tries = [(0.0, 0.0, 0.0)]
    for side in (1.0, -1.0):  # slides right, left: g_t = -side mu g_n and u_n = lift side u_t
        below = a - mu * side * b - lift * side * (b - mu * side * c)
        if below != 0.0:
            normal = -(p - lift * side * q) / below
            tries.append((normal, -side * mu * normal, side))
    det = a * c - b * b
    if det > 0.0:
        tries.append(((b * q - c * p) / det, (b * p - a * q) / det, 2.0))
    best, first, unique = np.inf, (0.0, 0.0), True
    found: tuple[float, float] | None = None
    for normal, tangential, mode in tries:
        un, ut = a * normal + b * tangential + p, b * normal + c * tangential + q
        broken = max(-a * normal, a * (abs(tangential) - mu * normal))
        if mode != 2.0:
            broken = max(broken, lift * abs(ut) - un, -mode * ut)
        if broken <= slop:
            if found is None:
                found, first = (un, ut), (normal, tangential)
            elif max(abs(un - found[0]), abs(ut - found[1])) > 1e3 * slop:
                unique = False
        elif found is None and broken < best:
            best, first = broken, (normal, tangential)
    normal = max(first[0], 0.0)
    return normal, min(max(first[1], -mu * normal), mu * normal), unique


def _all_modes(n: np.ndarray, r: np.ndarray, mu: float, coulomb: bool, slop: float) -> tuple[np.ndarray, bool]:
    """Every mode of every contact at once."""
    on_velocity, on_impulse, sign, sticks = _modes(len(r) // 2, mu, coulomb)
    system = on_velocity @ n + on_impulse
    known = -(on_velocity @ r)
    try:
        g = np.linalg.solve(system, known[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:  # a mode without a unique solution: drop those
        g = np.full(known.shape, np.nan)
        for k in range(len(g)):
            if np.linalg.matrix_rank(system[k]) == len(r):
                g[k] = np.linalg.solve(system[k], known[k])
    u = g @ n + r
    gn, gt, un, ut = g[:, ::2], g[:, 1::2], u[:, ::2], u[:, 1::2]
    size = n.diagonal()[::2]
    raised = un if coulomb else un - mu * np.abs(ut)
    broken = np.maximum.reduce(
        [-gn * size, (np.abs(gt) - mu * gn) * size, np.where(sticks, 0.0, -raised), -sign * ut]
    ).max(axis=1)
    broken = np.where(np.isfinite(broken), broken, np.inf)
    valid = np.flatnonzero(broken <= slop)
    first = int(valid[0]) if valid.size else int(np.argmin(broken))
    unique = bool(np.all(np.abs(u[valid] - u[first]) <= 1e3 * slop))
    best = g[first].copy()
    best[::2] = np.maximum(best[::2], 0.0)
    best[1::2] = np.clip(best[1::2], -mu * best[::2], mu * best[::2])
    return best, unique


@cache
def _modes(contacts: int, mu: float, coulomb: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Every mode as A u + B g = 0: A and B (m, 2 c, 2 c), the side each contact slides to (m, c), who sticks (m, c).

    Two sticking contacts of one rigid body leave its impulses open along their common line. That mode is left out: it
    contains a solution with one impulse on the edge of its cone, which is that of another mode.
    """
    raise_by = 0.0 if coulomb else mu  # the relaxed law lifts sliding contacts: u_n = mu |u_t|
    velocity = {
        OPEN: ((0.0, 0.0), (0.0, 0.0)),
        RIGHT: ((1.0, -raise_by), (0.0, 0.0)),
        LEFT: ((1.0, raise_by), (0.0, 0.0)),
        STICK: ((1.0, 0.0), (0.0, 1.0)),
    }
    impulse = {
        OPEN: ((1.0, 0.0), (0.0, 1.0)),
        RIGHT: ((0.0, 0.0), (mu, 1.0)),
        LEFT: ((0.0, 0.0), (-mu, 1.0)),
        STICK: ((0.0, 0.0), (0.0, 0.0)),
    }
    modes = [m for m in product(range(4), repeat=contacts) if m != (STICK, STICK)]
    a, b = np.zeros((2, len(modes), 2 * contacts, 2 * contacts))
    sign, sticks = np.zeros((len(modes), contacts)), np.zeros((len(modes), contacts), bool)
    for k, mode in enumerate(modes):
        for i, m in enumerate(mode):
            block = (k, slice(2 * i, 2 * i + 2), slice(2 * i, 2 * i + 2))
            a[block], b[block] = velocity[m], impulse[m]
            sign[k, i] = {RIGHT: 1.0, LEFT: -1.0}.get(m, 0.0)
            sticks[k, i] = m == STICK
    return a, b, sign, sticks


def check_solved(where: str, job: Job, motion: Motion, tolerance: float) -> float:
    """The natural map of a run's steps together; a strict job raises above the tolerance."""
    found = motion.residuals()
    if job.strict and not found.natural_map <= tolerance:
        raise NotConvergedError(
            message(
                f"experiment {where} ({motion.law})",
                f"the steps must be solved to a natural map of {tolerance:g}",
                found.natural_map,
                "Go back towards the default settings.",
            )
        )
    return found.natural_map


def difference(a: Motion, b: Motion, k: int) -> float:
    """2-norm of the difference of two runs over all steps and coordinates, divided by 2^k."""
    return float(np.linalg.norm(a.q - b.q)) / 2**k
