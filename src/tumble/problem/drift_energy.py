"""The drift of jointed bodies keeps their kinetic energy, as that of a free body does.

SHAKE and RATTLE are symplectic: their energy swings by O(h^2) and comes back, as long as h is short against every
motion of the mechanism. A light body on a long lever has moments in which it is not, whatever h omega is before and
after, and each leaves its energy changed for good. Ideal joints do no work, so what a drift has changed of the kinetic
energy (velocities along the joints before and after) is given back by scaling the inner motion: all but the motions
that the mechanism makes as one rigid body and its joints to the ground never resist, whose momenta are right already.
"""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType

import numpy as np

from ..backends.base import sent_group
from ..backends.joint_arrays import IdealArrays, KeptEnergy, MechanismArrays, PosedArrays
from ..enums import BodyKind, JointKind
from ..scene import rotation
from ..scene.model import Model
from .joint_system import RowSet

__all__ = ["DriftEnergy", "common_motions", "drift_energy", "locked_twists", "resisted_twists"]

NONE = (("", ""), ("", ""))
COMMON: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    JointKind.SPHERICAL: (("", "xyz"), ("", "xyz")),
    JointKind.REVOLUTE: (("", "z"), ("", "z")),
    JointKind.PRISMATIC: (("z", ""), ("z", "")),
    JointKind.CYLINDRICAL: (("z", "z"), ("z", "z")),
    JointKind.UNIVERSAL: (("", "x"), ("", "y")),
    JointKind.PLANAR: (("xy", "z"), ("xy", "z")),
    JointKind.POINT_ON_PLANE: (("xy", "z"), ("", "xyz")),
    JointKind.DISTANCE: (("", "xyz"), ("", "xyz")),
}
"""What everything on one side may do as one without changing what the joint holds, when a (first) or b is the unmoved
side: slides along and turns about axes of the unmoved frame."""


class DriftEnergy:
    """Of the mechanisms: start (mechanisms + 1,) into body; kept (mechanisms,): those whose joints are
    ideal; motions: of each the common ones (t, 6), see `common_motions`; partners: bodies of prescribed motion that
    each is joined to."""

    def __init__(
        self,
        model: Model,
        backend: ModuleType,
        start: np.ndarray,
        body: np.ndarray,
        kept: np.ndarray,
        motions: list[np.ndarray],
        partners: list[np.ndarray],
    ) -> None:
        self._backend, send, zeros = backend, backend.send, backend.zeros
        twist_start = np.cumsum([0] + [len(m) for m in motions]).astype(np.int64)
        twists = np.concatenate([*motions, np.zeros((0, 6))])
        self._mechanisms = sent_group(backend, MechanismArrays(start, body, twist_start, twists))
        mass = np.array([model.body_mass[body[first:end]].sum() for first, end in pairwise(start)])
        self._ideal = sent_group(backend, IdealArrays(
            kept, 0.5 * float(model.gravity @ model.gravity) * mass, mass,
            np.cumsum([0] + [len(p) for p in partners]).astype(np.int64),
            np.concatenate([*partners, np.zeros(0, np.int64)]).astype(np.int64),
            model.initial.position, model.initial.orientation, model.body_size,
        ))  # fmt: skip
        n = len(kept)
        self._work = KeptEnergy(
            zeros(n, bool), zeros(n), zeros(n), zeros(n, bool), zeros((len(body), 6)), zeros((6, len(body), 6))
        )
        self._mass, self._inertia = send(model.body_mass), send(model.body_inertia)
        self._last: tuple | None = None

    def of(self, orientation: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """(mechanisms,) kinetic energies with velocities (n, 6) in world axes [J]."""
        own = self._mechanisms
        out = self._backend.zeros(len(own.start) - 1)
        self._backend.mechanism_energies(own.start, own.body, self._mass, self._inertia, orientation, velocity, out)
        return out

    def groups(self, position: np.ndarray, orientation: np.ndarray, keeps: bool) -> tuple:
        """What `joint_stages.keep_velocities` keeps energies with, at these poses; keeps: whether it does.

        Velocities, which obey the joints and will still, are changed to the energies wanted. What could not be given
        back is `owed`. Mechanisms whose freedoms (of bodies less rigid rows, and rows dropped) are all common motions
        move as a rigid body: they have no inner motion, and the drift, symplectic, keeps their energy to what swings
        with it.
        """
        last = self._last
        if (
            last is None
            or last[1].position is not position
            or last[1].orientation is not orientation
            or last[4] != keeps
        ):
            posed = PosedArrays(self._mass, self._inertia, position, orientation)
            self._last = last = (self._mechanisms, posed, self._ideal, self._work, keeps)
        return last

    @property
    def owed(self) -> np.ndarray:
        """(mechanisms,) what could not be given back [J]"""
        return self._work.owed


def resisted_twists(kind: str, side: int, place: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Rows (k, 6) that vanish for the twists in `COMMON` of a joint whose side `side` is an unmoved frame at a place,
    with axes (3, 3) as columns. Of anything else than a joint: all."""
    slides, turns = COMMON.get(kind, NONE)[side]
    rows = [(*e, *np.cross(place, e)) for name, e in zip("xyz", axes.T) if name not in slides]
    rows += [(0.0, 0.0, 0.0, *e) for name, e in zip("xyz", axes.T) if name not in turns]
    return np.array(rows).reshape(-1, 6)


def locked_twists(locked: np.ndarray) -> np.ndarray:
    """Rows (k, 6) that vanish for the twists of a mechanism some of whose bodies are locked (6,): a place that must not
    move along an axis, wherever it is in the plane across, forbids turns about axes in that plane too."""
    forbidden = locked.copy()
    for k in np.flatnonzero(locked[:3]):
        forbidden[3:] |= np.arange(3) != k
    return np.eye(6)[forbidden]


def common_motions(resisted: np.ndarray) -> np.ndarray:
    """Twists (t, 6) (linear, angular about the origin) for which all rows `resisted` (r, 6) vanish.

    By elimination with complete pivots, so that the numbers do not depend on a linear algebra library.
    """
    left, free, taken = resisted.copy(), list(range(6)), []
    least = 1e-9 * np.abs(left).max(initial=0.0)
    while len(left) and free:
        row, column = np.unravel_index(int(np.argmax(np.abs(left[:, free]))), (len(left), len(free)))
        column = free[column]
        if np.abs(left[row, column]) <= least:
            break
        pivot = left[row] / left[row, column]
        taken = [(c, p - p[column] * pivot) for c, p in taken] + [(column, pivot)]
        left = np.delete(left, row, axis=0)
        left = left - left[:, [column]] * pivot
        free.remove(column)
    out = np.zeros((len(free), 6))
    for k, column in enumerate(free):
        out[k, column] = 1.0
        for c, p in taken:
            out[k, c] = -p[column]
    return out


def drift_energy(model: Model, backend: ModuleType, rows: RowSet, start: np.ndarray, body: np.ndarray) -> DriftEnergy:
    """Kept where nothing is driven: by motors, or joints to bodies of prescribed motion that have moved.

    start (mechanisms + 1,) into body: of the mechanisms.
    """
    driven = rows.speed | (rows.rigid & (rows.motor >= 0))
    kept, motions, partners = [], [], []
    for c, (first, end) in enumerate(pairwise(rows.pattern.mechanism)):
        own, sides = body[start[c] : start[c + 1]], np.unique(rows.body[first:end])
        sides = sides[sides >= 0]
        kept.append(not driven[first:end].any())
        partners.append(sides[model.body_kind[sides] == BodyKind.KINEMATIC])
        resisted = _resisted(model, rows, np.flatnonzero(rows.rigid[first:end]) + first)
        locked = locked_twists(np.any(model.body_locked[own], axis=0))
        motions.append(common_motions(np.concatenate([resisted, locked])))
    return DriftEnergy(model, backend, start, body, np.array(kept, bool), motions, partners)


def _resisted(model: Model, rows: RowSet, some: np.ndarray) -> np.ndarray:
    """Rows (k, 6) that vanish for twists of a whole mechanism that its joints (some rows) to unmoved bodies never
    resist."""
    j, start, out = model.joints, model.initial, [np.zeros((0, 6))]
    for element in np.unique(j.row_element[rows.rows[some]]):
        e = j.elements[element]
        for side in range(2):
            body = j.frame_body[e.frame, side]
            if rows.pattern.mechanism_of[body] < 0:
                k, q = 2 * e.frame + side, start.orientation[body]
                place = start.position[body] + rotation.rotate(q, j.frame_position[k])
                axes = rotation.matrix(rotation.multiply(q, j.frame_orientation[k]))
                out.append(resisted_twists(e.kind, side, place, axes))
    return np.concatenate(out)
