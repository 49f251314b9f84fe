"""The state of a simulation: where the steps work on it, and as users see it.

On a processor both are one. On a device the arrays stay there, and `shown` fetches those that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from .. import backends
from ..backends.base import fetched_group
from ..collide.contacts import Contacts
from ..errors import DeviceError, MemoryLimitError, OptionsError, message
from ..memory import size
from ..problem.cone_problem import ConeProblem
from ..problem.operators import ArticulatedOperator, ContactOperator, RollingOperator, StepOperator
from ..scene.model import ContactMemory, State
from .stepper import StepResult

__all__ = ["Held", "copied", "failures_told", "fetched", "hosted"]

BODIES = ("position", "orientation", "velocity", "spin", "presence", "coordinate", "row_impulse", "energy_owed")


class Held:
    """A state on a backend."""

    def __init__(self, state: State, backend: ModuleType) -> None:
        self._backend = backend
        self.acting = sent(state, backend)
        """What steps read and write"""
        self.shown: State = self.acting if backend.HOSTED else Shown(self)
        """What users read"""

    def replace(self, state: State) -> None:
        """Take another state, of users or one that was `acting`."""
        if self._backend.HOSTED:
            self.acting = self.shown = state
        else:
            self.acting = sent(state, self._backend)
            self.moved()

    def keep(self, safe: State) -> None:
        """Note the acting state, to be put back where a step fails."""
        with failures_told(self._backend):
            safe.take(self.acting)

    def put_back(self, safe: State) -> None:
        """Be as it was; on a device in place, which needs no memory."""
        if self._backend.HOSTED:
            self.replace(safe.copy())
        else:
            self.acting.take(safe)

    def moved(self) -> None:
        """The acting state has changed."""
        if not self._backend.HOSTED:
            vars(self.shown).pop("memory", None)
            for name in BODIES:
                vars(self.shown).pop(name, None)

    def fetch(self, name: str) -> Any:
        """An array of the acting state, or its memory, on the host and closed against writing."""
        value = getattr(self.acting, name)
        with failures_told(self._backend):
            if isinstance(value, ContactMemory):
                return fetched(value, self._backend)
            out = self._backend.fetch(value)
        out.setflags(write=False)
        return out


@contextmanager
def failures_told(backend: ModuleType) -> Iterator[None]:
    """A failure of the device in the block becomes a named error: no memory is left, or it has stopped working."""
    try:
        yield
    except backend.FAILURES as cause:
        where, words = f"backend '{backend.name}'", " ".join(str(cause).split())[:200] or type(cause).__name__
        if backend.is_full(cause):
            free, total = backend.free_memory()
            got = f"{size(free)} free of {size(total)}; {words}"
            remedy = "Use fewer bodies, precision 'double' (one copy of the rows less), or backend='cpu'."
            raise MemoryLimitError(message(where, "the device must have memory for the step", got, remedy)) from cause
        remedy = "What was written is kept: go on with --resume (resume=True), in a new process, here or on the 'cpu'."
        raise DeviceError(message(where, "the device must go on working", words, remedy)) from cause


class Shown(State):
    """A state whose arrays live on a device; those that are read are fetched. Always the present one."""

    def __init__(self, held: Held) -> None:
        vars(self)["_held"] = held

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in (*BODIES, "memory"):
            return getattr(self._held.acting, name)
        value = vars(self)[name] = self._held.fetch(name)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        remedy = "Use Simulation.set_state."
        raise OptionsError(message(f"Simulation.state.{name}", "lives on a device", "an assignment", remedy))

    def __reduce__(self) -> tuple:
        copy = self.copy()
        return State, tuple(vars(copy).values())


def sent(state: State, backend: ModuleType) -> State:
    """The state with the arrays of bodies and contacts where a backend's passes read them."""
    if backend.HOSTED or _is_sent(state):
        return state
    there = state.copy()
    for name in BODIES:
        setattr(there, name, backend.send(getattr(there, name)))
    there.memory = _moved(there.memory, backend.send)
    return there


def fetched(memory: ContactMemory, backend: ModuleType) -> ContactMemory:
    """What contacts remember, on the host."""
    return _moved(memory, backend.fetch)


def _moved(m: ContactMemory, move: Callable[[Any], Any]) -> ContactMemory:
    laws = {name: move(column) for name, column in m.laws.items()}
    return ContactMemory(move(m.uid_a), move(m.uid_b), move(m.feature), move(m.impulse), move(m.torque), laws)


def copied(state: State, backend: ModuleType) -> State:
    """A copy of an acting state on the host."""
    return state.copy() if backend.HOSTED else Held(state, backend).shown.copy()


def hosted(result: StepResult) -> StepResult:
    """A step's contacts, problem and solution as arrays of the host, which any solver takes."""
    problem, table = result.problem, result.contacts
    fetch, cpu = problem.backend.fetch, backends.choose("cpu")
    contacts = Contacts()
    contacts.reserve(table.count)
    contacts.count = n = table.count
    for name, own in vars(contacts).items():
        if isinstance(own, np.ndarray):
            own[..., :n] = fetch(getattr(table, name)[..., :n])
    group = replace(problem.group, friction=fetch(problem.friction))
    operator = _operator(problem, cpu)
    here = ConeProblem(
        group, fetch(problem.bias), operator, problem.h, {}, problem.speed, problem.motion, problem.gap_shift
    )
    solution = replace(result.solution, impulse=fetch(result.solution.impulse))
    return replace(result, contacts=contacts, problem=here, solution=solution, impulse=fetch(result.impulse))


def _operator(problem: ConeProblem, cpu: ModuleType) -> StepOperator:
    """The operator of a device's problem on the host."""
    there, b = problem.operator, problem.backend
    if isinstance(there, ArticulatedOperator):
        return ArticulatedOperator(fetched_group(b, there.arrays), cpu, b.fetch(there.diagonal))
    if not isinstance(there, RollingOperator):
        return ContactOperator(fetched_group(b, problem.step_operator.contacts), cpu)
    arrays, found = fetched_group(b, there.arrays), b.zeros((6, problem.bias.shape[1]))
    there.diagonal_blocks(found)
    return RollingOperator(arrays, cpu, ArticulatedOperator(arrays.joints, cpu, b.fetch(found)))


def _is_sent(state: State) -> bool:
    return not isinstance(state, Shown) and not isinstance(state.position, np.ndarray)
