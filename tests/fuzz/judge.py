"""What is asked of every mutated input: an answer or one of our errors, soon, and no state that is not finite."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from tumble import State
from tumble.errors import TumbleError
from tumble.kernels.jit import compile_log

Result = TypeVar("Result")
SECONDS = 5.0
"""Processor time of a call (a file that is read, a step), without what it compiles."""


class NotFinite(AssertionError):
    """A state or a measure with NaN or infinity was returned."""


class TooSlow(AssertionError):
    """A call took more than its time."""


def soon(call: Callable[..., Result], *arguments: object, **options: object) -> Result:
    """What a call returns or raises, if it does so in time."""
    begin, compiled = time.process_time(), compile_log.seconds
    try:
        return call(*arguments, **options)
    finally:
        took = time.process_time() - begin - (compile_log.seconds - compiled)
        if took > SECONDS:
            raise TooSlow(f"{took:.1f} s")


@dataclass
class Tally:
    """How many of the inputs were accepted, and what must not happen."""

    accepted: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.accepted + self.refused + len(self.failures)

    def judge(self, label: object, case: Callable[[], object]) -> None:
        """Run one case."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case()
            self.accepted += 1
        except TumbleError as error:
            self.refused += 1
            if "(got " not in str(error):
                self.failures.append(f"{label}: a message without where, rule, value and remedy: {error}")
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = " ".join(str(error).split())[:160]
            self.failures.append(f"{label}: {type(error).__name__} at {place.name}:{place.lineno}: {text}")

    def all_answered(self) -> None:
        """Nothing but answers and our own errors."""
        assert not self.failures, f"{len(self.failures)} of {self.count}:\n" + "\n".join(self.failures[:20])


def finite_state(state: State) -> None:
    """A state's motion is made of numbers."""
    finite("state", (state.time, state.position, state.orientation, state.velocity, state.spin))


def finite(name: str, values: Iterable[object]) -> None:
    """Raise where a number is none."""
    for value in values:
        if isinstance(value, (float, np.ndarray)) and not np.all(np.isfinite(value)):
            raise NotFinite(f"{name}: {value!r}"[:200])
