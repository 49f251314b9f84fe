"""What motors want: numbers, functions of time, or what controllers ask for."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from .. import backends, checks
from ..errors import BlowUpError, SceneError, message
from ..kernels import joint_steps as formulas
from ..scene.joint_model import JointModel, Target
from ..scene.model import State

__all__ = ["Targets"]


class Targets:
    """Of the motors of a model, in the present step."""

    def __init__(self, model: JointModel, backend: ModuleType) -> None:
        self._model, self._backend = model, backend
        self._take = backends.choose("cpu").over_rows(formulas.take_target)
        n = len(model.motors)
        self._rate, self.host = np.zeros(n), np.zeros(n)
        """As the host, whose numbers and functions they are, knows them"""
        self.value = self.host if backend.HOSTED else backend.zeros(n)
        """(motors,) where the passes read them"""
        self._sent = [np.zeros(n), self.value], [np.zeros(n), self._rate if backend.HOSTED else backend.zeros(n)]
        self._changing = [k for k, m in enumerate(model.motors) if callable(m.target)]
        self._constant = np.array([0.0 if callable(m.target) else float(m.target) for m in model.motors])
        self.told = {int(k) for controller in model.controllers for k in controller.motors}
        """Motors that controllers tell what to do"""
        self.functions: dict[int, Target] = {}
        """Functions of time set during a run in place of a motor's target"""

    def take(self, state: State, time: float) -> None:
        """Targets that are numbers or functions; `state.target` holds those set during a run (NaN: none)."""
        j = self._model
        for k in self._changing:
            self._constant[k] = _at(j.motors[k].target, time, f"motor '{j.motors[k].name}'")
        self._take(len(self.host), self._constant, state.target, self.host)
        for k, function in self.functions.items():
            self.host[k] = _at(function, time, f"motor '{j.motors[k].name}'")
        self._send(self.host, self._sent[0])

    def ask(self, now: float, value: np.ndarray, velocity: np.ndarray, jacobian: np.ndarray) -> None:
        """Call the controllers with the values (c,) and speeds of now; jacobian: of the coordinates (c, 12)."""
        j = self._model
        for controller in j.controllers:
            c = np.array([j.motors[k].coordinate for k in controller.motors])
            speed = np.einsum("ks,ks->k", jacobian[c], velocity[j.frame_body[j.coord_frame[c]]].reshape(-1, 12))
            try:
                target = np.asarray(controller.callback(now, value[c].copy(), speed), float)
                if target.shape != c.shape:
                    raise ValueError(f"shape {target.shape}")
            except (TypeError, ValueError) as cause:
                raise SceneError(
                    message(
                        f"controller '{getattr(controller.callback, '__name__', 'callback')}'",
                        f"must return targets of shape {c.shape}",
                        cause,
                        "One number for each of its motors.",
                    )
                ) from cause
            if not np.all(np.isfinite(target)):
                name = j.motors[int(controller.motors[int(np.argmax(~np.isfinite(target)))])].name
                raise BlowUpError(
                    message(
                        f"controller at t = {now:g} s",
                        "must return finite targets",
                        f"{target[~np.isfinite(target)][0]} for motor '{name}'",
                        "The state before this step is kept.",
                    )
                )
            self.host[controller.motors] = target
        self._send(self.host, self._sent[0])

    def rates(self, state: State, h: float) -> np.ndarray:
        """(motors,) speeds of the targets at the end of a step of length h; not a number where nobody knows them."""
        self._take(len(self._rate), np.zeros(0), state.target, self._rate)
        for k in (*self._changing, *self.functions):
            if not np.isnan(self._rate[k]):
                self._rate[k] = self.speed(k, state.time + h)
        for k in self.told:
            self._rate[k] = np.nan
        return self._send(self._rate, self._sent[1])

    def _send(self, numbers: np.ndarray, last: list[np.ndarray]) -> np.ndarray:
        """To where passes read them, if they have changed; last: those that are there, on the host and as passes see
        them."""
        if not self._backend.HOSTED and not np.array_equal(numbers, last[0], equal_nan=True):
            last[0][:] = numbers
            last[1][:] = self._backend.send(numbers)
        return last[1]

    def speed(self, motor: int, time: float) -> float:
        """Speed of a motor's target, by differences where it is a function."""
        target = self.functions.get(motor, self._model.motors[motor].target)
        if not callable(target):
            return 0.0
        e = 1e-6
        return (float(target(time + e)) - float(target(time - e))) / (2.0 * e)


def _at(target: Target, time: float, where: str) -> float:
    found = target(time) if callable(target) else target
    try:
        value = float(found)
    except (TypeError, ValueError):
        got, remedy = checks.short(found), "Let its function return a real number."
        raise SceneError(message(where, "its target must be a number", got, remedy)) from None
    if not np.isfinite(value):
        raise BlowUpError(message(where, "its target must be finite", value, f"At t = {time:g} s."))
    return value
