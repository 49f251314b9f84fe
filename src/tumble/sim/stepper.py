"""One step, top to bottom: predict -> place -> broad -> narrow -> assemble -> solve -> advance.

Bodies drift, are kicked by forces, joints and contacts at one pose, and drift again (`integrators.md`).

Only `advance` writes the State. `Workspace` is scratch: a restart does not need it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from ..backends.base import BODY_BLOCK, KickedArrays, blocks
from ..collide.broadphase import PairSearch
from ..collide.contacts import Contacts
from ..collide.narrowphase import ContactSearch
from ..enums import BodyKind, Integrator
from ..errors import BlowUpError, SceneError, message
from ..options import StepOptions
from ..problem.assemble import Rows
from ..problem.cone_problem import ConeProblem
from ..problem.joints import Joints
from ..problem.operators import contact_arrays
from ..scene import rotation
from ..scene.builder import motion_pose
from ..scene.model import Model, State
from ..scene.presence import Seen
from ..solve.base import LOCAL_TOLERANCE, Solution, Solver
from ..solve.unique_forces import unique_solution
from .flow import FlowStep
from .laws import apply_laws, cohesion_reach, new_stretch
from .mechanism import hold_joints, react
from .moreau import Middle, correct_positions, enter_middle, hold_in_velocity
from .report import StepReport
from .restitution import guess_hits, rebounds

__all__ = ["StepResult", "Workspace", "step"]

LIMIT_ROUNDS = 3
"""Solves again at most so often because a joint limit that was thought far has been passed."""


@dataclass(frozen=True)
class StepResult:
    """A step's report and what it worked with; the arrays are reused by the next step."""

    report: StepReport
    contacts: Contacts
    problem: ConeProblem
    solution: Solution
    """Of the problem, whose impulses are shifted where there is cohesion; with restitution, of the last hits"""
    impulse: np.ndarray
    """(3, cap) impulses of the contacts themselves, rows n, u, w [N s]; with rolling friction (6, cap), then the
    torques about n, u, w [N m s]"""
    dt: float
    """Time over which the impulses acted [s]: the step's, or that of its last part"""
    not_finite: int
    """Bodies whose new state is not finite"""
    travel: float
    """Largest travel of a dynamic body in units of its smallest half-extent"""


class Workspace:
    """Scratch of a model: everything that is recomputed each step."""

    def __init__(self, model: Model, backend: ModuleType) -> None:
        n = model.body_count
        self.backend = backend
        self.seen = Seen(model) if model.flow.changes else None
        whole, model = model, model if self.seen is None else self.seen.model
        self.model = model
        """What the step works with: without the bodies that are absent, where any come or go"""
        self.matrix = np.zeros((n, 9))
        self.inverse_inertia = np.zeros((n, 6))
        self.before = np.zeros((n, 6))
        self.free = np.zeros((n, 6))
        self.velocity = np.zeros((n, 6))
        self.prescribed = np.zeros((n, 6))
        self.held = np.zeros((n, 6))
        """Velocities of jointed bodies at the end of the step"""
        self.force = np.zeros((n, 3))
        self.torque = np.zeros((n, 3))
        self.body_partial = np.zeros((blocks(n, BODY_BLOCK), 8))
        self.pairs = PairSearch(model, backend)
        self.narrow = ContactSearch(model, backend, self.pairs.blocks)
        self.contacts = Contacts()
        has_joints = model.joints.row_count > 0 or len(model.joints.motors) > 0
        self.joints = Joints(model, backend) if has_joints else None
        self.rows = Rows(model, backend, self.joints)
        self.has_kinematic = bool(np.any(model.body_kind == BodyKind.KINEMATIC))
        self.reach = cohesion_reach(model.pair_laws, model.shape_smallest)
        """Largest gap at which cohesion acts [m]; contacts are sought so far at least"""
        self.smallest_margin = 0.05 * float(np.min(model.shape_smallest, initial=np.inf))
        self.flow = FlowStep(whole, self.seen, self.pairs, self.narrow) if whole.flow.columns else None
        self.next_pose: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.middle: Middle | None = None
        """Scratch of Moreau's integrator, made when it is used"""


def step(
    model: Model, state: State, options: StepOptions, *, solver: Solver, work: Workspace, divisible: bool = False
) -> StepResult | None:
    """Advance the state by one step and report.

    divisible: give up, with the state as it was, where the joints cannot be closed at the end (see `parts`).
    """
    h = float(options.dt)
    margin = -1.0 if options.margin is None else float(options.margin)
    if work.reach > (work.smallest_margin if margin < 0.0 else margin):
        margin = work.reach
    recovery = -1.0 if options.recovery_speed is None else float(options.recovery_speed)
    moreau = options.integrator == Integrator.MOREAU
    backend, contacts, seconds = work.backend, work.contacts, {}
    model = work.model
    if work.seen is not None:
        work.seen.show(state.presence)

    # Drift for `lead`, kick, drift for `rest`: Euler kicks at the start. Contacts hold until the next kick.
    rest = float(options.theta) * h if moreau else h

    with _Timer(seconds, "predict"):
        _prescribed_motion(model, state, h, work)
        if moreau:
            kick, entry = enter_middle(model, state, work, h, options.theta, predict, divisible)
            if kick is None:
                return None
        else:
            kick, entry = at_start(model, state, work), 0.0
            predict(model, kick, state.velocity, state.time, h, work)
            if work.joints is not None:
                work.joints.prepare(kick, state, h, work.inverse_inertia, work.free)
    with _Timer(seconds, "place"):
        work.pairs.place(kick.position, kick.orientation, work.matrix, work.free, h, margin)
    with _Timer(seconds, "broad"):
        work.pairs.find(work.free, h, margin)
    with _Timer(seconds, "narrow"):
        work.narrow.find(work.pairs, kick.position, work.free, h, margin, contacts)
    with _Timer(seconds, "assemble"):
        problem = work.rows.assemble(
            contacts,
            kick.position,
            work.free,
            work.inverse_inertia,
            h,
            recovery,
            work.before,
            state.memory,
            rest=options.leave_gaps and not moreau,
        )
        if moreau:
            hold_in_velocity(contacts, problem, work.free, h)
        stretch = work.rows.stretch(contacts, state.memory) if model.pair_laws.is_soft else None
        shift, hit = apply_laws(model.pair_laws, contacts, problem, work.before, work.free, h, stretch)
        guess, warm = _first_guess(problem, contacts, state, options, shift, work)
        guess_hits(problem, hit, guess)
    with _Timer(seconds, "solve"):
        problem, solution = _solve(problem, contacts, solver, options, guess, shift, work, h)
        unique = None
        if options.unique_forces:
            solution, unique = unique_solution(problem, solution)
        impulse = _unshifted(solution, contacts, shift)
        problem, solution, impulse = rebounds(
            model.pair_laws, contacts, problem, solution, impulse, hit, work.before, work.free,
            solver=solver, law=options.law, h=h,
        )  # fmt: skip
    with _Timer(seconds, "advance"):
        change = problem.operator.velocity(impulse)
        work_normal, work_friction, work_recovery, work_driven = _contact_work(
            model, contacts, problem, impulse, work, change, h
        )
        if moreau:  # its velocities push nothing apart
            work_normal, work_recovery = work_normal + work_recovery, 0.0
        reaction = None
        if work.joints is not None:
            bounded = impulse[0, contacts.count : problem.count]
            reaction = react(kick, bounded, work, change, h, rest, work.middle.energy if moreau else None)
            if divisible and work.joints.open(state):
                return None
        elastic = 0.0
        if stretch is not None:
            after = problem.vector("x_new")  # as `_contact_work` left it
            if reaction is not None:
                problem.operator.relative(work.velocity, after)
            elastic = new_stretch(model.pair_laws, contacts, impulse, shift, after, work.velocity, h, stretch)
        overlap = max(0.0, -float(contacts.gap[: contacts.count].min())) if contacts.count else 0.0
        if work.flow is not None:
            work.flow.begin(state)
        np.add(work.free, change, out=work.velocity)
        kept = None
        if divisible:
            kept = (state.position.copy(), state.orientation.copy(), state.velocity.copy(), state.spin.copy())
        sums = backend.advance(
            model.body_kind,
            model.body_size,
            model.body_inertia,
            model.body_locked,
            model.body_inverse_mass,
            model.body_mass,
            model.gravity,
            work.matrix,
            kick.position,
            kick.orientation,
            kick.spin,
            work.before,
            work.free,
            change,
            work.force,
            work.torque,
            h,
            rest,
            state.position,
            state.orientation,
            state.velocity,
            state.spin,
            work.body_partial,
        )
        for body, (position, orientation) in work.next_pose.items():
            state.position[body], state.orientation[body] = position, orientation
        work_external, work_joints, work_motors = float(sums[4]), 0.0, 0.0
        lifted = left = 0.0
        if moreau:
            lifted = correct_positions(model, state, contacts, problem, work, options)
            work_recovery += lifted
        if work.joints is not None:
            left, by_motors = hold_joints(model, state, work, h, reaction.wanted)
            if divisible and work.joints.strained and solution.converged:  # else it is the contacts' fault
                state.position, state.orientation, state.velocity, state.spin = kept
                return None
            work_joints = entry + reaction.work + left
            work_recovery += reaction.recovered
            work_motors = reaction.by_motors + by_motors
            work_external -= reaction.crossed
        state.memory = work.rows.remember(contacts, impulse, stretch)
        if work.joints is not None:
            work.joints.finish(state, state.coordinate, work.velocity, h)
        state.step += 1
        state.time += h
        came = work.flow.end(state) if work.flow is not None else (0.0, 0.0)

    r = solution.residuals
    kinetic, potential = float(sums[1]) + left, float(sums[3]) + lifted
    works = work_normal + work_recovery + work_friction + work_driven + work_joints + work_external
    defect = kinetic + potential - sums[0] - sums[2] - works
    report = StepReport(
        step=state.step,
        time=state.time,
        contacts=contacts.count,
        iterations=solution.iterations,
        natural_map=r.natural_map,
        residual_eq25=r.residual_eq25,
        complementarity_error=r.complementarity_error,
        penetration_speed=r.penetration_speed,
        certificate_energy=r.certificate_energy,
        certificate_shift=r.certificate_shift,
        local_error=r.local_error,
        local_shift=r.local_shift,
        missed=0.0 if solution.converged else max(0.0, r.local_shift - LOCAL_TOLERANCE * problem.pace * h),
        objective=r.objective,
        kinetic_energy=kinetic + came[0],
        potential_energy=potential + came[1],
        elastic_energy=elastic,
        work_normal=work_normal,
        work_recovery=work_recovery,
        work_friction=work_friction,
        work_external=work_external,
        work_driven=work_driven,
        work_joints=work_joints,
        motor_power=work_motors / h,
        energy_flow=sum(came),
        energy_defect=float(defect),
        joint_drift=work.joints.drift if work.joints else 0.0,
        joint_drift_before=work.joints.drift_before if work.joints else 0.0,
        redundant_rows=work.joints.redundant if work.joints else 0,
        parts=1,
        largest_overlap=overlap,
        largest_speed=float(sums[5]),
        warm_started=warm,
        products=solution.products,
        converged=solution.converged,
        unique_iterations=unique.iterations if unique else 0,
        unique_error=unique.error if unique else 0.0,
        unique_threshold=unique.threshold if unique else 0.0,
        unique_forces=unique is not None and unique.converged,
        law=solution.law,
        solver=solution.solver,
        status=solution.status,
        seconds=seconds,
        flow=dict(zip(model.flow.columns, state.flow.tolist())),
    )
    return StepResult(report, contacts, problem, solution, impulse, h, int(sums[6]), float(sums[7]))


def at_start(model: Model, state: State, work: Workspace) -> KickedArrays:
    """Bodies that are kicked as they stand."""
    return KickedArrays(
        model.body_inertia,
        model.body_locked,
        state.position,
        state.orientation,
        work.matrix,
        state.spin,
        work.before,
    )


def predict(model: Model, kick: KickedArrays, velocity: np.ndarray, time: float, h: float, work: Workspace) -> None:
    """Forces, rotation matrices, inverse inertia, and velocities before and after the forces' kick."""
    _external_forces(model, kick, velocity, time, work)
    work.backend.predict(
        model.body_kind,
        model.body_inverse_mass,
        model.body_inertia,
        model.body_locked,
        model.gravity,
        kick.orientation,
        velocity,
        kick.spin,
        work.force,
        work.torque,
        work.prescribed,
        h,
        work.matrix,
        work.inverse_inertia,
        work.before,
        work.free,
    )


def _external_forces(model: Model, kick: KickedArrays, velocity: np.ndarray, time: float, work: Workspace) -> None:
    """Constant forces and the callbacks, summed into work.force and work.torque (world axes)."""
    work.force[:] = model.body_force
    work.torque[:] = model.body_torque
    if not model.forces:
        return
    position, orientation = model.user_frames(kick.position, kick.orientation)
    spin = rotation.rotate(kick.orientation, kick.spin)
    for callback in model.forces:
        result = callback(time, position, orientation, velocity.copy(), spin)
        try:
            force, torque = (np.asarray(part, float) for part in result)
            if force.shape != work.force.shape or torque.shape != work.torque.shape:
                raise ValueError(f"shapes {force.shape} and {torque.shape}")
        except (TypeError, ValueError) as cause:
            raise SceneError(
                message(
                    f"force callback '{getattr(callback, '__name__', callback)}'",
                    f"must return a force and a torque of shape {work.force.shape}",
                    cause,
                    "Return zeros for the one you do not need.",
                )
            ) from cause
        bad = np.flatnonzero(~np.isfinite(force + torque).all(axis=1))
        if bad.size:
            raise BlowUpError(
                message(
                    f"force callback '{getattr(callback, '__name__', callback)}' at t = {time:g} s",
                    "must return finite forces and torques",
                    f"{force[bad[0]].tolist()} N, {torque[bad[0]].tolist()} N m on '{model.name(int(bad[0]))}'",
                    "Check it for division by zero. The state before this step is kept.",
                )
            )
        work.force += force
        work.torque += torque


def _prescribed_motion(model: Model, state: State, h: float, work: Workspace) -> None:
    """Velocities of kinematic bodies: constant, or the mean velocity between two poses of a motion."""
    if not work.has_kinematic:
        return
    kinematic = np.flatnonzero(model.body_kind == BodyKind.KINEMATIC)
    work.prescribed[kinematic, :3] = state.velocity[kinematic]
    work.prescribed[kinematic, 3:] = rotation.rotate(state.orientation[kinematic], state.spin[kinematic])
    for body, motion in model.motions.items():
        where = f"body '{model.name(body)}'"
        position, orientation = motion_pose(where, motion, state.time + h)
        turn = rotation.multiply(orientation, rotation.conjugate(state.orientation[body]))
        turn = turn if turn[0] >= 0.0 else -turn
        sine = float(np.linalg.norm(turn[1:]))
        angle = 2.0 * np.arctan2(sine, turn[0])
        work.prescribed[body, :3] = (position - state.position[body]) / h
        work.prescribed[body, 3:] = turn[1:] * (angle / (sine * h)) if sine > 0.0 else 0.0
        work.next_pose[body] = (position, orientation)


def _first_guess(
    problem: ConeProblem,
    contacts: Contacts,
    state: State,
    options: StepOptions,
    shift: np.ndarray | None,
    work: Workspace,
) -> tuple[np.ndarray, int]:
    """Impulses that the solver starts from, those remembered where there are any, and how many contacts had some."""
    guess, warm = problem.vector("x"), 0
    if options.warm_start:
        warm = work.rows.warm_start(contacts, state.memory, guess)
    else:
        guess[:] = 0.0
    if work.joints is not None:
        bounded = slice(contacts.count, problem.count)
        guess[:, bounded] = 0.0
        if options.warm_start:
            guess[0, bounded] = state.row_impulse[work.joints.active]
    if shift is not None:
        guess[0, : contacts.count] += shift
    return guess, warm


def _solve(
    problem: ConeProblem,
    contacts: Contacts,
    solver: Solver,
    options: StepOptions,
    guess: np.ndarray,
    shift: np.ndarray | None,
    work: Workspace,
    h: float,
) -> tuple[ConeProblem, Solution]:
    """Solve, and again with more rows while a joint passes a limit that was thought far; the last problem with it."""
    solution = solver.solve(problem, law=options.law, guess=guess)
    for _ in range(LIMIT_ROUNDS if work.joints is not None else 0):
        np.add(work.free, problem.operator.velocity(_unshifted(solution, contacts, shift)), out=work.velocity)
        if not work.joints.catch_limits(work.velocity, h):
            break
        problem = work.rows.with_new_bounds(contacts, h, shift)
        guess[:, : contacts.count] = solution.impulse[:, : contacts.count]
        guess[:, contacts.count : problem.count] = 0.0
        solution = solver.solve(problem, law=options.law, guess=guess)
    return problem, solution


def _unshifted(solution: Solution, contacts: Contacts, shift: np.ndarray | None) -> np.ndarray:
    """Impulses of the contacts themselves: without what cohesion shifted."""
    if shift is None:
        return solution.impulse
    impulse = solution.impulse.copy()
    impulse[0, : contacts.count] -= shift
    return impulse


def _contact_work(
    model: Model,
    contacts: Contacts,
    problem: ConeProblem,
    impulse: np.ndarray,
    work: Workspace,
    change: np.ndarray,
    h: float,
) -> tuple[float, float, float, float]:
    """Works of normal and tangential impulses, of the recovery of overlaps, and of prescribed motion [J]."""
    if contacts.count == 0:
        return 0.0, 0.0, 0.0, 0.0
    before, after = problem.vector("x_old"), problem.vector("x_new")
    problem.operator.relative(work.before, before)
    np.add(work.free, change, out=work.velocity)
    problem.operator.relative(work.velocity, after)
    arrays = contact_arrays(problem.operator)
    normal, friction, recovery = work.backend.contact_work(
        contacts.count, impulse, after, before, contacts.gap, arrays.compliance, h
    )
    driven = 0.0
    if work.has_kinematic:
        driven = work.backend.driven_work(
            contacts.count,
            model.body_kind,
            contacts.body_a,
            contacts.body_b,
            arrays.frame,
            arrays.arms,
            impulse,
            work.free,
        )
    return float(normal), float(friction), float(recovery), float(driven)


class _Timer:
    """Stopwatch for one stage."""

    __slots__ = ("_seconds", "_stage", "_start")

    def __init__(self, seconds: dict[str, float], stage: str) -> None:
        self._seconds, self._stage = seconds, stage

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._stage] = time.perf_counter() - self._start
