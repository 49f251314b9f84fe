"""A simulation: a model, a state, options and a solver, stepped, recorded and asked for forces."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from .. import backends, checks
from ..enums import BodyKind
from ..errors import DeviceError, OptionsError, TumbleWarning, message
from ..kernels import jit
from ..looking import SimulationLooks
from ..observe.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from ..observe.clusters import Clusters, by_force, find_clusters, only_one
from ..observe.description import Description, changes, describe
from ..options import Save, StepOptions
from ..problem.joints import Joints
from ..scene import rotation
from ..scene.joint_model import Target
from ..scene.model import Model, State
from ..scene.presence import present
from ..showing import ShownSimulation
from ..solve.auto import SolverAuto
from ..solve.base import Solver
from .ahead import prepare
from .arguments import check_arguments, check_backend, check_flow_state, check_joint_state, checked_threads
from .assembly import Assembly, assemble
from .compiling import take_out
from .dump import dump_problem
from .events import TouchEvents, touch_events
from .extending import extended
from .forces import ContactForces, apply_force, contact_forces
from .held import Held, copied, failures_told, fetched, hosted
from .parts import step_or_parts
from .query import GeometryQuestions
from .reactions import JointReactions, joint_reactions
from .recording import Recording
from .report import StepReport
from .run import RunResult, run
from .stepper import StepResult
from .watch import Watch, blow_up
from .workspace import Workspace

__all__ = ["Simulation"]

PARALLEL_FROM = 800
"""Bodies or contacts from which more than one thread pays."""


class Simulation(GeometryQuestions, ShownSimulation, SimulationLooks):
    """Steps a model.

    options: `StepOptions` (at least dt). solver: any `Solver`; `SolverAuto(steps=True)` if left out. threads: None
    takes all that Numba has; results do not depend on it.
    """

    def __init__(
        self,
        model: Model,
        *,
        options: StepOptions,
        solver: Solver | None = None,
        threads: int | None = None,
        backend: str | ModuleType = "cpu",
    ) -> None:
        check_arguments(model, options, solver)
        self.model, self.options, self.backend = model, options, backends.choose(backend)
        check_backend(self.backend, model, options, solver)
        self.solver: Solver = SolverAuto(steps=True) if solver is None else solver
        self.threads = checked_threads(threads)
        with failures_told(self.backend):
            self._held = Held(model.initial.copy(), self.backend)
            self._work = Workspace(model, self.backend)
        self.assembly: Assembly | None = None
        """What closing the joints took before the first step; None without joints"""
        if self._work.joints is not None:
            self.prepare()
            self._assemble()
        self._safe = self._held.acting.copy()
        self._size = model.shape_count
        self._watch = Watch(model, options, self._work.joints)
        self._last: StepResult | None = None
        self._fetched: StepResult | None = None
        self.unconverged = 0
        """Steps so far that did not reach the solver's tolerance"""
        self._described: tuple[tuple, Description] | None = None
        self.recording: Recording | None = None
        """The files of the last run that was saved; a run with the same `Save` goes on with them"""

    # ------------------------------------------------------------------ stepping

    def _assemble(self) -> None:
        joints = self._needs_joints("assemble")
        state = self.state if self.backend.HOSTED else self.state.copy()
        self.assembly = assemble(self.model, joints.host, state, self.options.dt)
        if not self.backend.HOSTED:
            self._held.replace(state)

    def prepare(self) -> None:
        """Compile the kernels, or load them from the cache; the first step does it otherwise."""
        if self.backend.HOSTED:
            prepare(self.solver, self.backend)

    def step(self) -> StepReport:
        """Take one step. A blow-up raises and leaves the state as it was before the step."""
        self.prepare()
        self._held.keep(self._safe)
        before = jit.set_threads(self.threads if self._size >= PARALLEL_FROM else 1)
        kept, compiled = False, jit.compile_log.seconds
        try:
            with failures_told(self.backend):
                result = step_or_parts(self._held.acting, self.options, solver=self.solver, work=self._work)
            kept = True
        except DeviceError:
            kept = True  # on a device that is lost nothing can be put back
            raise
        finally:
            jit.set_threads(before)
            self._work.let_go()
            if not kept:  # an error or an interrupt in the middle of a step: nothing half done stays
                self._held.put_back(self._safe)
            self._held.moved()
        if jit.compile_log.seconds > compiled:
            take_out(result.report.seconds, jit.compile_log.seconds - compiled)
        self.last = result
        self._size = max(self.model.shape_count, result.contacts.count)
        self.unconverged += not result.report.converged
        self._check(result)
        return result.report

    def run(
        self,
        *,
        until: float,
        save: Save | None = None,
        progress: bool | None = None,
        strict: bool = False,
        resume: bool = False,
        accept_changes: bool = False,
        wall_time: float | None = None,
        dump_problems: Sequence[int] = (),
        stop: Callable[[Simulation], bool] | None = None,
    ) -> RunResult:
        """Step to the time `until` [s].

        save: record a trajectory; a second run of this simulation with the same `Save` goes on in the same file.
        progress: show a bar (None: on a terminal, and elsewhere a line a minute). strict: raise at the first step that
        does not converge. resume: go on with the file and checkpoint of `save` instead of starting them anew; the
        model, the options and the solver must be those that the run began with, unless accept_changes records the
        differences in the file's history. wall_time: end, with a checkpoint, before so many seconds have passed.
        dump_problems: numbers of steps (the first is 1) whose problems are written beside the trajectory, as those of
        the first ten steps that do not converge are anyway. stop: asked after every step, true ends the run.
        """
        return run(
            self,
            until=until,
            save=save,
            progress=progress,
            strict=strict,
            resume=resume,
            accept_changes=accept_changes,
            wall_time=wall_time,
            dump_problems=dump_problems,
            stop=stop,
        )

    # ------------------------------------------------------------------ state

    @property
    def last(self) -> StepResult | None:
        """The last step's contacts, problem and solution, valid until the next step."""
        if self._last is None or self.backend.HOSTED:
            return self._last
        if self._fetched is None:
            with failures_told(self.backend):
                self._fetched = hosted(self._last)
        return self._fetched

    @last.setter
    def last(self, result: StepResult | None) -> None:
        self._last, self._fetched = result, None

    @property
    def state(self) -> State:
        """Where everything is. On a device only to be read: `set_state` writes."""
        return self._held.shown

    @state.setter
    def state(self, state: State) -> None:
        self._held.replace(state)

    @property
    def time(self) -> float:
        """[s]"""
        return self.state.time

    def positions(self) -> np.ndarray:
        """(n, 3) positions of the bodies' frames [m]."""
        return self.model.user_pose(self.state)[0]

    def orientations(self) -> np.ndarray:
        """(n, 4) orientations of the bodies' frames (w, x, y, z)."""
        return self.model.user_pose(self.state)[1]

    def velocities(self) -> np.ndarray:
        """(n, 3) velocities of the centres of mass [m/s]."""
        return self.state.velocity.copy()

    def angular_velocities(self) -> np.ndarray:
        """(n, 3) in world axes [rad/s]."""
        return rotation.rotate(self.state.orientation, self.state.spin)

    def present(self) -> np.ndarray:
        """(n,) bool: bodies that are there, that is neither waiting in an emitter nor taken by a sink."""
        return present(self.model, self.state)

    def flow_totals(self) -> dict[str, float]:
        """Totals of emitters, sinks and measuring planes until now: {"NAME.mass_forward": kg, "NAME.placed": ..}."""
        return dict(zip(self.model.flow.columns, self.state.flow.tolist()))

    def get_state(self) -> State:
        """A copy of the whole state; `set_state` brings it back bit for bit."""
        return self.state.copy()

    def set_state(
        self,
        state: State | None = None,
        *,
        position: ArrayLike | None = None,
        orientation: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
        angular_velocity: ArrayLike | None = None,
    ) -> None:
        """Set the whole state, or some of the bodies' frames and velocities (arrays over all bodies).

        Velocities of static bodies are taken as zero. Contact forces are those of the next step. Joints are closed
        again, as at the start, where arrays are given.
        """
        n = self.model.body_count
        if state is not None and not isinstance(state, State):
            raise OptionsError(
                message(
                    "Simulation.set_state.state",
                    "must be a State",
                    repr(state)[:60],
                    "Use get_state(), or give position= and so on.",
                )
            )
        if state is not None:
            for field, width in (("position", 3), ("orientation", 4), ("velocity", 3), ("spin", 3)):
                checks.array(f"set_state.state.{field}", getattr(state, field), (n, width), error=OptionsError)
            check_joint_state("set_state.state", self.model, self._work.joints, state)
            check_flow_state("set_state.state", self.model, state)
            self.state = state.copy()
        now = self.state if self.backend.HOSTED else self.state.copy()
        p, q = self.model.user_pose(now)
        spin = self.angular_velocities()
        if position is not None:
            p = checks.array("set_state.position", position, (n, 3), error=OptionsError)
        if orientation is not None:
            q = checks.quaternions("set_state.orientation", orientation, n, error=OptionsError)
        if position is not None or orientation is not None:
            now.position, now.orientation = self.model.centered_pose(p, q)
        self.last = None
        if velocity is not None:
            now.velocity = checks.array("set_state.velocity", velocity, (n, 3), error=OptionsError)
        if angular_velocity is not None:
            spin = checks.array("set_state.angular_velocity", angular_velocity, (n, 3), error=OptionsError)
        if orientation is not None or angular_velocity is not None:
            now.spin = np.ascontiguousarray(rotation.rotate(rotation.conjugate(now.orientation), spin))
        fixed = self.model.body_kind == BodyKind.STATIC
        now.velocity[fixed] = 0.0
        now.spin[fixed] = 0.0
        self.state = now
        given = (position, orientation, velocity, angular_velocity)
        if self._work.joints is not None and any(value is not None for value in given):
            self._assemble()

    def copy(self) -> Simulation:
        """An independent simulation in the same state; its contact forces come with its first step."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TumbleWarning)  # said when this one was made
            other = Simulation(
                self.model, options=self.options, solver=self.solver, threads=self.threads, backend=self.backend
            )
        other.state = self.state.copy()
        if self._work.joints is not None and other._work.joints is not None:
            other._work.joints.targets.functions.update(self._work.joints.targets.functions)
        other.unconverged = self.unconverged
        other._watch.said = set(self._watch.said)
        other._size = self._size
        return other

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and deepcopy: what cannot be made again. Scratch, files and the last step's forces stay behind."""
        left = ("_work", "_watch", "_described", "_last", "_fetched", "recording", "backend", "_held", "_safe")
        kept = {name: value for name, value in vars(self).items() if name not in left}
        kept |= {"state": self.state.copy(), "safe": copied(self._safe, self.backend)}
        functions = {} if self._work.joints is None else dict(self._work.joints.targets.functions)
        return kept | {"backend": self.backend.name, "said": set(self._watch.said), "functions": functions}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        said, functions, backend = kept.pop("said"), kept.pop("functions"), kept.pop("backend")
        state, safe = kept.pop("state"), kept.pop("safe")
        vars(self).update(kept)
        self.backend = backends.choose(backend)
        self._held, self._safe = Held(state, self.backend), Held(safe, self.backend).acting
        self._work = Workspace(self.model, self.backend)
        if self._work.joints is not None:
            self._work.joints.targets.functions.update(functions)
        self._watch = Watch(self.model, self.options, self._work.joints)
        self._watch.said = said
        self._described = self.last = self.recording = None

    @property
    def description(self) -> Description:
        """Everything that acts, by name: model, step options, solver and the functions of `set_target`."""
        functions = {} if self._work.joints is None else dict(self._work.joints.targets.functions)
        acting = (self.model, self.options, self.solver, *functions, *functions.values())
        before, found = ((), None) if self._described is None else self._described
        if found is None or len(before) != len(acting) or any(a is not b for a, b in zip(before, acting)):
            targets = {f"target of {self.model.joints.motors[k].name}": f for k, f in functions.items()}
            found = describe(model=self.model, step=self.options, solver=self.solver, **targets)
            self._described = acting, found
        return found

    def save_checkpoint(
        self, path: str | Path, *, run_id: str = "", frames: int = 0, pending: np.ndarray | None = None
    ) -> None:
        """Write all that a restart needs; replaces the file at once or not at all.

        run_id, frames, pending: the trajectory that it belongs to, its frames so far and the reports since the last."""
        write_checkpoint(
            path,
            self.state,
            attributes={
                "dt": self.options.dt,
                "law": str(self.options.law),
                "integrator": str(self.options.integrator),
                "bodies": self.model.body_count,
                "unconverged": self.unconverged,
                "run_id": run_id,
                "frames": frames,
            },
            description=self.description,
            pending=pending,
        )

    def load_checkpoint(self, path: str | Path, *, accept_changes: bool = False) -> None:
        """Continue from a checkpoint of the same scene, options and solver, bit for bit.

        accept_changes: go on with others as long as they have the same bodies, joints and emitters."""
        found = read_checkpoint(path)
        self._check_sizes(path, found)
        different = changes(found.description, self.description) if found.description is not None else []
        if different and not checks.flag("load_checkpoint.accept_changes", accept_changes):
            first, more = different[0], len(different) - 1
            rule = f"was written with {first.name} {first.before}"
            got = first.now + (f", and {more} more changes" if more else "")
            remedy = "Use the same scene, options and solver to continue, or accept_changes=True."
            raise OptionsError(message(str(path), rule, got, remedy))
        self.restore(path, found)

    def restore(self, path: str | Path, found: Checkpoint) -> None:
        """Take over the state of a checkpoint that was compared already."""
        self._check_sizes(path, found)
        self.state = found.state
        self.last = None
        self.unconverged = int(found.attributes.get("unconverged", 0))
        self._watch.said.add("overlap")

    def _check_sizes(self, path: str | Path, found: Checkpoint) -> None:
        count = len(found.state.position)
        if count != self.model.body_count:
            rule = f"must be a checkpoint of {self.model.body_count} bodies"
            raise OptionsError(message(str(path), rule, f"{count} bodies", "Use the scene that wrote it."))
        check_joint_state(str(path), self.model, self._work.joints, found.state)
        check_flow_state(str(path), self.model, found.state)

    def extended(self, model: Model) -> Simulation:
        """A simulation with more bodies in this one's state: add them to the same builder, build it again and go on.

        What was there stays as it is, contacts and their impulses too; joints must be the same."""
        return extended(self, model)

    # ------------------------------------------------------------------ forces

    def apply_force(
        self,
        body: int | str,
        force: ArrayLike = (0.0, 0.0, 0.0),
        *,
        torque: ArrayLike = (0.0, 0.0, 0.0),
        point: ArrayLike | None = None,
    ) -> None:
        """Push a body in the next step, and only in that one: call it before each step for as long as it acts.

        force [N] at a point (world; the centre of mass if left out) and torque [N m], world axes; several calls add up.
        A name of many bodies pushes each of them. Beside it `add_force` takes a function that is part of the scene.
        """
        apply_force(self.model, self.state, self._work, body, force, torque, point)

    def contact_forces(self) -> ContactForces:
        """Contacts of the last step with their forces."""
        if self.last is None:
            raise OptionsError(message("Simulation.contact_forces", "needs a step first", "0 steps", "Call step()."))
        return contact_forces(self.model, self.last)

    def clusters(
        self, *, gap: float | None = None, force: float | None = None, through_fixed: bool = False
    ) -> Clusters:
        """Groups of dynamic bodies that are connected, the largest first.

        gap: bodies nearer than this now [m]; or force: bodies that pressed on each other with more than this in the
        last step, all their points together [N]. through_fixed: static and kinematic bodies connect those that touch
        them.
        """
        only_one("Simulation.clusters", gap, force)
        if gap is not None:
            gap = checks.number("Simulation.clusters.gap", gap, at_least=0.0, unit="m")
            found = self.contacts(margin=gap)
            near = found.gap <= gap
            pair = found.body_a[near], found.body_b[near]
        else:
            force = checks.number("Simulation.clusters.force", force, at_least=0.0, unit="N")
            c = self.contact_forces()
            pair = by_force(c.body_a, c.body_b, c.normal, c.force, force)
        through = checks.flag("Simulation.clusters.through_fixed", through_fixed)
        member = (self.model.body_kind == BodyKind.DYNAMIC) & self.present()
        return find_clusters(*pair, member, through_others=through)

    def dump_problem(self, path: str | Path) -> None:
        """Write the problem of the last step, an HDF5 file that `tumble solve` and `read_problem` take."""
        dump_problem(self, path)

    # ------------------------------------------------------------------ joints

    def joint_reactions(self, frame: str = "world") -> JointReactions:
        """Forces of joints, motors and springs in the last step; `reactions["hinge"]` is one of them.

        frame: "world", or "joint" for the axes of the joint (the third is its axis). Zero before the first step and
        after the state was set.
        """
        joints = self._needs_joints("joint_reactions")
        if self.last is None:
            joints.forget()
        dt = self.options.dt if self.last is None else self.last.dt
        return joint_reactions(joints, self.state, dt, frame)

    def joint_values(self) -> dict[str, float]:
        """Turn [rad], slide or length [m] of every joint, motor and spring that has one; zero as the scene began."""
        self._needs_joints("joint_values")
        out = {}
        for e in self.model.joints.elements:
            for suffix, c in (("", e.turn), (".slide" if e.turn >= 0 else "", e.slide)):
                if c >= 0:
                    out[e.name + suffix] = float(self.state.coordinate[c])
        return out

    def set_target(self, motor: str, target: Any) -> None:
        """A new target for a motor: a number, which belongs to the state, or a function of the time, which does not.

        After loading a checkpoint set a function again."""
        functions = self._needs_joints("set_target").targets.functions
        k = self.model.joints.motor(motor)
        if callable(target):
            functions[k] = cast(Target, target)
            return
        functions.pop(k, None)
        acting = self._held.acting
        acting.target = acting.target.copy()
        acting.target[k] = checks.number(f"set_target('{motor}')", target)

    def _needs_joints(self, where: str) -> Joints:
        if self._work.joints is None:
            raise OptionsError(message(where, "needs a scene with joints", "none", "Use SceneBuilder.add_joint."))
        return self._work.joints

    # ------------------------------------------------------------------ geometry

    def events(self) -> TouchEvents:
        """Pairs of bodies whose contact began or ended in the last step."""
        return touch_events(self.model, fetched(self._safe.memory, self.backend), self.state.memory)

    # ------------------------------------------------------------------ helpers

    def _check(self, result: StepResult) -> None:
        report, limit = result.report, self.options.speed_limit
        if result.not_finite or not math.isfinite(report.kinetic_energy) or report.largest_speed > limit:
            failed = self.state.copy()
            self.state = self._safe.copy()
            raise blow_up(self.model, failed, result, limit)
        self._watch.after(result, self.state)
