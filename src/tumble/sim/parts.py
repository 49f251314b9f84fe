"""A step, whole or in parts: where its joints cannot be closed it is undone and taken in 2, 4, .. parts.

A step of size h bends joints by about (h omega)^2; from a radian on the way back onto them may not exist. The parts are
steps like any other, with forces, motors' targets, controllers and emitters at their own times.
"""

from __future__ import annotations

from dataclasses import fields, replace

from ..options import StepOptions
from ..scene.model import ContactMemory, State
from ..solve.base import Solver
from .report import StepReport
from .stepper import StepResult, step
from .workspace import Workspace

__all__ = ["step_or_parts"]

MOST_PARTS = 64
"""The last attempt; it stands whether the joints close or not, and `joint_drift` tells."""

SUMS = (
    "iterations", "products", "work_normal", "work_recovery", "work_friction", "work_external", "work_driven",
    "work_joints", "energy_flow", "energy_defect", "parts", "unique_iterations",
)  # fmt: skip
LARGEST = (
    "natural_map", "residual_eq25", "complementarity_error", "penetration_speed", "certificate_energy",
    "certificate_shift", "local_error", "local_shift", "missed", "joint_drift", "joint_drift_before",
    "largest_overlap", "largest_speed", "redundant_rows", "unique_error", "unique_threshold",
)  # fmt: skip


def step_or_parts(state: State, options: StepOptions, *, solver: Solver, work: Workspace) -> StepResult:
    """Advance the state by one step, in parts where it must be, and report on the whole."""
    if work.joints is None:
        return step(state, options, solver=solver, work=work)
    result = step(state, options, solver=solver, work=work, divisible=True)
    parts = 2
    while result is None:
        result = _in_parts(state, options, parts, solver, work)
        parts *= 2
    return result


def _in_parts(state: State, options: StepOptions, parts: int, solver: Solver, work: Workspace) -> StepResult | None:
    """None, and the state as it was, if a part cannot be closed either."""
    before = state.copy()
    part, reports, result = replace(options, dt=options.dt / parts), [], None
    _scale(state, 1.0 / parts)
    for _ in range(parts):
        result = step(state, part, solver=solver, work=work, divisible=parts < MOST_PARTS)
        if result is None:
            for field in fields(State):
                setattr(state, field.name, getattr(before, field.name))
            return None
        reports.append(result.report)
    _scale(state, parts)
    state.time, state.step = before.time + options.dt, before.step + 1
    return replace(result, report=_merged(reports, state, options.dt))


def _scale(state: State, factor: float) -> None:
    """What contacts and joints remember of a step is impulses, in proportion to its length."""
    m = state.memory
    state.memory = ContactMemory(m.uid_a, m.uid_b, m.feature, m.impulse * factor, m.torque * factor, m.stretch)
    state.row_impulse = state.row_impulse * factor


def _merged(reports: list[StepReport], state: State, dt: float) -> StepReport:
    """One report of the whole: sums of works and counts, the largest of errors, the rest as at the end."""
    changes = {name: sum(getattr(r, name) for r in reports) for name in SUMS}
    changes |= {name: max(getattr(r, name) for r in reports) for name in LARGEST}
    worst = next((r for r in reports if not r.converged), reports[-1])
    seconds = {stage: sum(r.seconds.get(stage, 0.0) for r in reports) for stage in reports[-1].seconds}
    return replace(
        reports[-1],
        step=state.step,
        time=state.time,
        motor_power=sum(r.motor_power for r in reports) / len(reports),
        converged=worst.converged,
        unique_forces=all(r.unique_forces for r in reports),
        status=worst.status,
        seconds=seconds,
        **changes,
    )
