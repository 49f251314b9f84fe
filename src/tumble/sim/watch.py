"""What a simulation says about its steps while it runs: overlaps at the start, travel, joints, forces not found."""

from __future__ import annotations

import warnings

import numpy as np

from ..enums import BodyKind, Status
from ..errors import BlowUpError, TumbleWarning, message
from ..options import StepOptions
from ..problem.joints import CLOSED, Joints
from ..scene.model import Model, State
from .report import StepReport
from .stepper import StepResult

__all__ = ["Watch", "blow_up"]

DEEP = 0.01
"""An overlap at the start beyond this part of the smaller shape is warned about."""


class Watch:
    """Warns, once for each kind of trouble."""

    def __init__(self, model: Model, options: StepOptions, joints: Joints | None) -> None:
        self._model, self._options, self._joints = model, options, joints
        self.said: set[str] = set()
        """Kinds that were said, or are not to be said"""

    def after(self, result: StepResult, state: State) -> None:
        """Look at a step and the state after it."""
        report = result.report
        if "overlap" not in self.said:
            self.said.add("overlap")
            self._warn_overlap(result)
        if result.travel > 2.0 and "travel" not in self.said:
            self.said.add("travel")
            self._warn_travel(state.velocity)
        if not report.converged and report.status == Status.OUT_OF_REACH and "out of reach" not in self.said:
            self.said.add("out of reach")
            rule, got = "no impulses take all overlaps back", f"largest overlap {report.largest_overlap:.3g} m"
            remedy = f"In such steps {Status.OUT_OF_REACH.advice}. This is said once."
            warnings.warn(message(f"step {report.step}", rule, got, remedy), TumbleWarning, stacklevel=4)
        if self._joints is not None:
            self._warn_joints(self._joints, report)
        if self._options.unique_forces and not report.unique_forces and "unique" not in self.said:
            self.said.add("unique")
            rule, got = "the unique forces were not found", f"change of the motion {report.unique_error:.2g}"
            remedy = (
                f"The natural map of the step is {report.natural_map:.2g}; its forces are the solver's. "
                "A solver with a tighter tolerance, or a shorter dt, helps. This is said once."
            )
            warnings.warn(message(f"step {report.step}", rule, got, remedy), TumbleWarning, stacklevel=4)

    def _warn_joints(self, joints: Joints, report: StepReport) -> None:
        """What is wrong with the joints in this step; each kind is said once."""
        remedy = "Remove one of them, or give a motor a maximum or a stiffness. This is said once."
        found = {}
        if report.joint_drift > CLOSED * joints.size:
            found["open joints"] = (
                "the joints could not be closed again",
                f"'{joints.worst_joint()}' stays open by {report.joint_drift:.3g} m or rad",
                "Joints fight each other here, dt is too long for the motion, or masses differ by more than 1e8.",
            )
        if joints.fighting:
            names = ", ".join(repr(n) for n in joints.fighting)
            found["fight"] = ("joints and motors must not contradict each other", names, remedy)
        if joints.stuck:
            names = ", ".join(repr(n) for n in dict.fromkeys(joints.stuck))
            found["stuck"] = ("something exact holds a joint beyond its limit", names, remedy)
        for kind, (rule, got, what) in found.items():
            if kind not in self.said:
                self.said.add(kind)
                warnings.warn(message(f"step {report.step}", rule, got, what), TumbleWarning, stacklevel=5)

    def _warn_overlap(self, result: StepResult) -> None:
        c = result.contacts
        fetch = result.problem.backend.fetch
        depth, size, pair = -fetch(c.gap[: c.count]), fetch(c.size[: c.count]), fetch(c.pair[: c.count])
        rigid = self._model.pair_laws.compliance.ravel()[pair] == 0.0
        deep = rigid & (depth > DEEP * size)
        if np.any(deep):
            worst = int(np.argmax(np.where(deep, depth, -np.inf)))
            names = self._model.name(int(c.body_a[worst])), self._model.name(int(c.body_b[worst]))
            warnings.warn(
                message(
                    "Simulation",
                    f"{int(deep.sum())} contacts start overlapping by more than 1 % of a body",
                    f"deepest {depth[worst]:.3g} m between '{names[0]}' and '{names[1]}'",
                    "They are pushed apart gently (StepOptions.recovery_speed); start the bodies apart to avoid it.",
                ),
                TumbleWarning,
                stacklevel=5,
            )

    def _warn_travel(self, velocity: np.ndarray) -> None:
        m, v = self._model, velocity
        travel = np.where(m.body_kind == BodyKind.DYNAMIC, np.linalg.norm(v, axis=1) / m.body_size, 0.0)
        body = int(np.argmax(travel))
        speed, diameter = float(np.linalg.norm(v[body])), 2.0 * float(m.body_size[body])
        if speed == 0.0:
            return
        warnings.warn(
            message(
                "Simulation",
                "a body moves more than its size in a step",
                f"'{m.name(body)}' at {speed:.3g} m/s moves {self._options.dt * speed / diameter:.3g} diameters",
                f"It will not pass through others, but shorten dt below {diameter / speed:.2g} s for accuracy. "
                "This is said once.",
            ),
            TumbleWarning,
            stacklevel=5,
        )


def blow_up(model: Model, failed: State, result: StepResult, limit: float) -> BlowUpError:
    """The error for a state that left every bound, naming the worst body."""
    finite = (
        np.all(np.isfinite(failed.position), axis=1)
        & np.all(np.isfinite(failed.velocity), axis=1)
        & np.all(np.isfinite(failed.spin), axis=1)
    )
    speed = np.where(finite, np.linalg.norm(np.where(finite[:, None], failed.velocity, 0.0), axis=1), np.inf)
    worst = int(np.argmax(np.where(model.body_kind == BodyKind.DYNAMIC, speed, -1.0)))
    rule = f"every body must stay finite and slower than {limit:g} m/s"
    value = f"'{model.name(worst)}' at speed {speed[worst]:g} m/s"
    return BlowUpError(
        message(
            f"step {result.report.step} (t = {result.report.time:g} s)",
            rule,
            value,
            "Check forces, masses and overlaps, or shorten dt. The state before this step is kept.",
        )
    )
