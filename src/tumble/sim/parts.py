"""A step, whole or in parts: where its joints cannot be closed it is undone and halved, and so is each half.

A step of size h bends joints by about (h omega)^2; from a radian on the way back onto them may not exist. The parts are
steps like any other, with forces, motors' targets, controllers and emitters at their own times. Only the moments that
need it are divided: a light body that whips round does so in a small part of a step.
"""

from __future__ import annotations

from dataclasses import fields, replace

from ..options import StepOptions
from ..scene.model import State
from ..solve.base import Solver
from .report import StepReport
from .stepper import StepResult, step
from .workspace import Workspace

__all__ = ["step_or_parts"]

SHORTEST = 2.0**-12
"""Of a step: a part that is not divided any more."""
MOST_PARTS = 512
"""Of a step, those that were tried in vain included. Where they do not do, joints and contacts contradict each other:
the step is taken as a whole and stands with its joints open, and `joint_drift` and `converged` tell."""

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
        result = step(state, options, solver=solver, work=work)
        assert result is not None
        return result
    result = step(state, options, solver=solver, work=work, divisible=True)
    if result is None:
        result = _in_parts(state, options, solver, work)
    if result is None:
        result = step(state, options, solver=solver, work=work)
    assert result is not None  # only a step that may be divided gives up
    return result


def _in_parts(state: State, options: StepOptions, solver: Solver, work: Workspace) -> StepResult | None:
    """None, and the state as it was, if parts do not close the joints either."""
    before, reports, lengths, tried = state.copy(), [], [], 1
    result = None
    todo, length = [0.5, 0.5], 1.0  # the last is next; the length that the remembered impulses belong to
    while todo:
        part = todo.pop()
        _scale(state, part / length)
        length = part
        result = step(state, replace(options, dt=options.dt * part), solver=solver, work=work, divisible=True)
        tried += 1
        if result is not None:
            reports.append(result.report)
            lengths.append(part)
        elif part > SHORTEST and tried < MOST_PARTS:
            todo += [0.5 * part, 0.5 * part]
        else:
            for field in fields(State):
                setattr(state, field.name, getattr(before, field.name))
            return None
    assert result is not None
    _scale(state, 1.0 / length)
    state.time, state.step = before.time + options.dt, before.step + 1
    return replace(result, report=_merged(reports, lengths, state))


def _scale(state: State, factor: float) -> None:
    """What contacts and joints remember of a step is impulses, in proportion to its length."""
    if factor == 1.0:
        return
    m = state.memory
    state.memory = replace(m, impulse=m.impulse * factor, torque=m.torque * factor)
    state.row_impulse = state.row_impulse * factor


def _merged(reports: list[StepReport], lengths: list[float], state: State) -> StepReport:
    """One report of the whole: sums of works and counts, the largest of errors, the rest as at the end.

    lengths: of the parts, 1 together.
    """
    changes = {name: sum(getattr(r, name) for r in reports) for name in SUMS}
    changes |= {name: max(getattr(r, name) for r in reports) for name in LARGEST}
    worst = next((r for r in reports if not r.converged), reports[-1])
    seconds = {stage: sum(r.seconds.get(stage, 0.0) for r in reports) for stage in reports[-1].seconds}
    return replace(
        reports[-1],
        step=state.step,
        time=state.time,
        motor_power=sum(part * r.motor_power for part, r in zip(lengths, reports)),
        converged=worst.converged,
        unique_forces=all(r.unique_forces for r in reports),
        status=worst.status,
        seconds=seconds,
        **changes,
    )
