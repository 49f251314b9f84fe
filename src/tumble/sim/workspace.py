"""Scratch of a step: everything that is recomputed each time, made once for a model."""

from __future__ import annotations

import weakref
from types import ModuleType

import numpy as np

from ..backends.base import BODY_BLOCK, FreeArrays, LoadArrays, MassArrays, WeightArrays, blocks
from ..collide.broadphase import PairSearch
from ..collide.contacts import Contacts
from ..collide.narrowphase import ContactSearch
from ..enums import BodyKind
from ..kernels import motion
from ..kernels.direct import forget
from ..problem.assemble import Rows
from ..problem.joints import Joints
from ..scene.model import Model
from ..scene.motion import Conveyor
from ..scene.presence import Seen
from .books import Bookkeeper
from .flow_step import FlowStep
from .laws import ContactLaws, cohesion_reach
from .moreau import Middle

__all__ = ["Workspace"]


class Workspace:
    """Scratch of a model: everything that is recomputed each step."""

    def __init__(self, model: Model, backend: ModuleType) -> None:
        n, zeros = model.body_count, backend.zeros
        self.backend = backend
        self.seen = Seen(model, backend) if model.flow.changes else None
        whole, model = model, model if self.seen is None else self.seen.model
        self.host = host = model
        """The same with NumPy's arrays"""
        self.model = model = model.sent(backend) if self.seen is None else self.seen.sent
        """What the step works with: without the bodies that are absent, where any come or go"""
        self.matrix = zeros((n, 9))
        self.inverse_inertia = zeros((n, 6))
        self.before = zeros((n, 6))
        self.free = zeros((n, 6))
        self.velocity = zeros((n, 6))
        has_joints = model.joints.row_count > 0 or len(model.joints.motors) > 0
        self.force, self.torque = model.body_force.copy(), model.body_torque.copy()
        """(n, 3) without gravity, world axes"""
        self.applied: np.ndarray | None = None
        """(n, 6) forces and torques that the caller applies in the next step, see `Simulation.apply_force`"""
        self.masses = MassArrays(model.body_kind, model.body_inverse_mass, model.body_inertia, model.body_locked)
        self.weights = WeightArrays(model.body_kind, model.body_size, model.body_mass, model.body_inverse_mass)
        self.loads = LoadArrays(model.gravity, self.force, self.torque)
        self.freed = FreeArrays(self.matrix, self.inverse_inertia, self.before, self.free)
        self.body_partial = zeros((blocks(n, BODY_BLOCK), 8))
        self.pairs = PairSearch(model, backend)
        self.narrow = ContactSearch(model, backend, self.pairs.blocks)
        self.contacts = Contacts(backend.zeros, hosted=backend.HOSTED)
        self.joints = Joints(host, backend) if has_joints else None
        self.held = zeros((n if has_joints else 0, 6))
        """Velocities of jointed bodies at the end of the step"""
        self.laws = ContactLaws(host.pair_laws, backend)
        self.rows = Rows(model, backend, self.joints, self.laws)
        self.bookkeeper = Bookkeeper(backend)
        self.kinematic = backend.send(np.flatnonzero(host.body_kind == BodyKind.KINEMATIC))
        """Bodies of prescribed motion"""
        self.prescribed = zeros((n if self.kinematic.size else 0, 6))
        """Their velocities"""
        self.reach = cohesion_reach(host.pair_laws, host.shape_smallest)
        """Largest gap at which cohesion acts [m]; contacts are sought so far at least"""
        self.smallest_margin = 0.05 * float(np.min(host.shape_smallest, initial=np.inf))
        self.flow = FlowStep(whole, self.seen, self.pairs, self.narrow, backend) if whole.flow.columns else None
        conveys = any(isinstance(motion, Conveyor) for motion in model.motions.values())
        self.surface: np.ndarray | None = zeros((n, 6)) if conveys else None
        """Surface velocities of bodies, at their centres and in world axes; None where no surface runs"""
        self.next_pose: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.middle: Middle | None = None
        """Scratch of Moreau's integrator, made when it is used"""
        weakref.finalize(self, forget).atexit = False
        self._sum = backend.over_bodies(motion.sum_of_velocities)
        self._difference = backend.over_bodies(motion.difference_of_velocities)

    def set_velocity(self, change: np.ndarray) -> None:
        """self.velocity = self.free + change (n, 6)."""
        self._sum(len(self.velocity), self.free, change, self.velocity)

    def keep_change(self, change: np.ndarray) -> None:
        """change (n, 6) = self.velocity - self.free."""
        self._difference(len(self.velocity), self.velocity, self.free, change)

    def let_go(self) -> None:
        """The step that the caller's forces acted in is over."""
        if self.applied is not None:
            self.applied = None
            self.force[:], self.torque[:] = self.model.body_force, self.model.body_torque
