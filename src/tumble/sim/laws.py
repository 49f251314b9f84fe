"""Contact laws beyond plain friction: mu that falls with speed, restitution, cohesion, compliance.

All of them act on the assembled problem.
- Friction: mu + (mu_s - mu) exp(-(v / v_s)^2) with the sliding speed v at the start of the step.
- Restitution: see `restitution`.
- Cohesion c [N]: the cone is shifted, g + s e_n in K, while gap <= range. With g' = g + s e_n this is the plain
  problem with the bias r - N s e_n, so every solver and measure takes it; the shift is taken off after the solve.
  s = h c, less where the pair parts so fast that it leaves the range within the step: then cohesion takes what is
  left of the energy c (range - gap) and no more, whatever the step.
- Compliance c [m/N] with a dashpot d [N s/m]: the force -(gap + h u) / c - d u of the end of the step, so
  u + E g + gap / (h + c d) with E = c / (h (h + c d)) is complementary to g; the overlap is wanted, so its recovery is
  not capped. In the tangent plane the stretch that contacts remember takes the place of the gap, and the dashpot
  follows the stretch: what slides beyond it has friction alone.
Rolling friction has rows of its own (`problem.assemble`).
"""

from __future__ import annotations

import numpy as np

from ..collide.contacts import Contacts
from ..problem.cone_problem import ConeProblem
from ..problem.operators import contact_arrays
from ..scene.materials import PairLaws
from .restitution import hits

__all__ = ["apply_laws", "cohesion_reach", "new_stretch"]

DEFAULT_RANGE = 1e-6
"""Range of cohesion in half-extents of the smaller shape."""


def apply_laws(
    laws: PairLaws,
    contacts: Contacts,
    problem: ConeProblem,
    before: np.ndarray,
    free: np.ndarray,
    h: float,
    stretch: np.ndarray | None = None,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Change friction and bias of the problem; returns the shift of the normal impulses (count,) [N s], or None without
    cohesion, and which contacts hit (count,), or None without restitution.

    stretch: of the contacts' tangential springs (3, cap) [m], in scenes with compliance.
    """
    n = contacts.count
    if n == 0 or not laws.active:
        return None, None
    pair = contacts.pair[:n]
    old = problem.vector("x_old")
    problem.operator.relative(before, old)
    slide = np.hypot(old[1, :n], old[2, :n])
    static, kinetic = laws.static_friction.ravel()[pair], contacts.friction[:n]
    falling = np.exp(-((slide / laws.friction_speed.ravel()[pair]) ** 2))
    problem.sliding_friction[:n] = kinetic + (static - kinetic) * falling
    hit = hits(laws, contacts, problem, old[0, :n].copy(), free, h)
    if stretch is not None:
        _soften(laws, contacts, problem, free, h, stretch)
    return _shift(laws, contacts, problem, old[0, :n], h), hit


def cohesion_reach(laws: PairLaws, sizes: np.ndarray) -> float:
    """Largest gap at which cohesion acts [m], for shapes of these smallest half-extents."""
    finite = sizes[np.isfinite(sizes)]
    default = DEFAULT_RANGE * float(finite.max(initial=0.0))
    ranges = np.where(laws.cohesion_range < 0.0, default, laws.cohesion_range) + laws.cohesion * laws.compliance
    return float(ranges[laws.cohesion > 0.0].max(initial=0.0))


def _soften(
    laws: PairLaws, contacts: Contacts, problem: ConeProblem, free: np.ndarray, h: float, stretch: np.ndarray
) -> None:
    n = contacts.count
    (c, d), (c_t, d_t) = laws.springs(contacts.pair[:n], contacts.gap[:n])
    new = problem.vector("x_new")
    problem.operator.relative(free, new)
    problem.bias[0, :n] = np.where(c > 0.0, contacts.gap[:n] / (h + c * d) + new[0, :n], problem.bias[0, :n])
    problem.bias[1:3, :n] += np.where(c_t > 0.0, stretch[1:, :n] / (h + c_t * d_t), 0.0)


def new_stretch(
    laws: PairLaws,
    contacts: Contacts,
    impulse: np.ndarray,
    shift: np.ndarray | None,
    after: np.ndarray,
    velocity: np.ndarray,
    h: float,
    stretch: np.ndarray,
) -> float:
    """Stretch of the tangential springs after the step, into (3, cap); returns the energy in all springs [J].

    impulse, after: impulses and relative velocities of the contacts after the step, rows n, u, w; shift: of cohesion;
    velocity: of the bodies (n, 6), with which the stretch turns about the normal. From the force
    -s / c - d (s - s_old) / h, so a contact that slides keeps what its friction can hold.
    """
    n = contacts.count
    if n == 0:
        return 0.0
    (c, d), (c_t, d_t) = laws.springs(contacts.pair[:n], contacts.gap[:n])
    pressed = impulse[0, :n] + (0.0 if shift is None else shift) > 0.0
    old = stretch[1:, :n]
    new = np.where(pressed & (c_t > 0.0), c_t * (d_t * old - impulse[1:3, :n]) / (h + c_t * d_t), 0.0)
    spin = velocity[contacts.body_a[:n], 3:] + velocity[contacts.body_b[:n], 3:]
    angle = 0.5 * h * np.einsum("kn,nk->n", contacts.normal[:, :n], spin)
    cosine, sine = np.cos(angle), np.sin(angle)
    stretch[1, :n], stretch[2, :n] = cosine * new[0] - sine * new[1], sine * new[0] + cosine * new[1]
    # The normal spring's own force: without the dashpot, which rests where cohesion pulls with all it has.
    force = impulse[0, :n] / h + np.where(pressed, d * after[0, :n], 0.0)
    tangential = np.divide((new**2).sum(axis=0), 2.0 * c_t, out=np.zeros(n), where=c_t > 0.0)
    return float((0.5 * c * force**2).sum() + tangential.sum())


def _shift(
    laws: PairLaws, contacts: Contacts, problem: ConeProblem, parting: np.ndarray, h: float
) -> np.ndarray | None:
    n, pair = contacts.count, contacts.pair[: contacts.count]
    cohesion, reach = laws.cohesion.ravel()[pair], laws.cohesion_range.ravel()[pair]
    reach = np.where(reach < 0.0, DEFAULT_RANGE * contacts.size[:n], reach)
    spring = cohesion * laws.compliance.ravel()[pair]  # a compliant contact stretches so far before it lets go
    shift = np.where(contacts.gap[:n] <= reach + spring, h * cohesion, 0.0)
    if not np.any(shift):
        return None
    moving = np.flatnonzero((shift > 0.0) & (parting > 0.0))
    if moving.size:
        diagonal = problem.buffer("diagonal", 6, problem.bias.shape[1])
        problem.operator.diagonal_blocks(diagonal)
        inverse_mass = diagonal[0, moving]
        if problem.operator.is_soft:
            inverse_mass = inverse_mass - contact_arrays(problem.operator).compliance[0, moving]
        opened, spring = np.maximum(contacts.gap[moving], 0.0), spring[moving]
        stretched = np.minimum(opened, spring)  # of the spring, whose force grows to c
        left = cohesion[moving] * (reach[moving] + spring - opened)
        left -= (
            0.5
            * cohesion[moving]
            * np.divide((spring - stretched) ** 2, spring, out=np.zeros(len(spring)), where=spring > 0.0)
        )
        most = _impulse_of_work(left, parting[moving], inverse_mass)
        shift[moving] = np.minimum(shift[moving], most)
    pull, product = problem.vector("x_new"), problem.vector("product")
    pull[:] = 0.0
    pull[0, :n] = shift
    problem.operator.product(pull, product)
    problem.bias[:, : problem.count] -= product[:, : problem.count]
    return shift


def _impulse_of_work(work: np.ndarray, speed: np.ndarray, inverse_mass: np.ndarray) -> np.ndarray:
    """Impulse that takes this work [J] from a pair that parts with a speed, or stops it with at most that work [N s].

    g (v - g / 2m) = W has the solution m (v - sqrt(v^2 - 2 W / m)); a slower pair is stopped, with g v / 2 <= W.
    """
    rest = speed**2 - 2.0 * work * inverse_mass
    parts = rest > 0.0
    taken = 2.0 * work / (speed + np.sqrt(np.where(parts, rest, 0.0)))  # the same, without cancellation
    return np.where(parts, taken, 2.0 * work / speed)
