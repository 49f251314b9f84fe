"""What experiments share: settings with units and bounds, and simulations that are watched step by step."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .. import checks
from ..enums import BodyKind
from ..errors import ExperimentError, FileError, OptionsError, message
from ..kernels import jit
from ..kernels.contact_rows import overlap_share
from ..scene.model import ContactMemory, Model
from ..sim.report import StepReport
from ..sim.run import RunResult
from ..sim.simulation import Simulation
from ..solve.apgd import SolverAPGD

LAWS = ("coulomb", "relaxed")


# ---------------------------------------------------------------------- settings


class SettingInfo(NamedTuple):
    """One setting of an experiment, for people."""

    name: str
    default: Any
    quick: Any
    """Default of the quick version"""
    unit: str
    text: str


def setting(
    default: Any, text: str, *, unit: str = "", quick: Any = None, choices: tuple[str, ...] = (), **bounds: float
) -> Any:
    """A field of `Settings`. The default's type is the setting's: a float, an int, a text or a tuple of floats.

    quick: default of the quick version, if another. bounds: above, at_least, at_most, as in `checks.number`.
    """
    quick = default if quick is None else quick
    return field(
        default=default, metadata={"text": text, "unit": unit, "quick": quick, "choices": choices, "bounds": bounds}
    )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of all settings."""

    def check(self, where: str) -> None:
        """Rules that concern more than one setting; `where` names the experiment."""

    def at_scale(self, scale: float, where: str) -> Settings:
        """These full settings with `scale` times as many bodies, for `--scale`; large experiments override it."""
        raise ExperimentError(
            message(f"{where}: scale", "this experiment has one size only", scale, "Leave --scale out, or use --quick.")
        )


@dataclass(frozen=True)
class Experiment:
    """An experiment of the registry."""

    name: str

    @property
    def module(self) -> ModuleType:
        """Its file, with `Settings` and `run(settings, job)`."""
        return importlib.import_module("." + self.name.replace("-", "_"), __package__)

    @property
    def summary(self) -> str:
        """One line about it."""
        return (self.module.__doc__ or "").strip().splitlines()[0]

    @property
    def settings(self) -> list[SettingInfo]:
        """What `--set` changes."""
        return [
            SettingInfo(f.name, f.default, f.metadata["quick"], f.metadata["unit"], f.metadata["text"])
            for f in fields(self.module.Settings)
        ]


def make_settings(
    name: str, kind: type[Settings], *, quick: bool, given: Mapping[str, object], scale: float | None = None
) -> Settings:
    """Defaults (of the full version, of the quick one, or at a scale), overridden by what is given, checked."""
    known = {f.name: f for f in fields(kind)}
    for key in given:
        if key not in known:
            raise ExperimentError(
                message(f"experiment {name}", "unknown setting", repr(key), checks.nearest(key, known))
            )
    values = {f.name: f.metadata["quick"] if quick else f.default for f in known.values()}
    if scale is not None:
        where = f"experiment {name}"
        checks.number(f"{where}: scale", scale, above=0.0, error=ExperimentError)
        if quick:
            raise ExperimentError(message(f"{where}: scale", "does not go with --quick", scale, "Give one of the two."))
        sized = kind(**values).at_scale(scale, where)
        values = {key: getattr(sized, key) for key in values}
    for key, value in given.items():
        values[key] = _value(f"experiment {name}: {key}", value, known[key].default, known[key].metadata)
    settings = kind(**values)
    settings.check(f"experiment {name}")
    return settings


def _value(where: str, value: object, default: Any, meta: Mapping[str, Any]) -> Any:
    """A given value in the type of the default."""
    if isinstance(default, str):
        return checks.choice(where, value, meta["choices"], error=ExperimentError)
    if isinstance(default, tuple):
        parts = value.split(",") if isinstance(value, str) else np.atleast_1d(np.asarray(value, object)).tolist()
        return tuple(sorted({_number(where, part, meta) for part in parts}))
    number = _number(where, value, meta)
    if isinstance(default, int):
        return checks.integer(where, int(number) if number.is_integer() else number, at_least=0, error=ExperimentError)
    return number


def _number(where: str, value: object, meta: Mapping[str, Any]) -> float:
    if isinstance(value, str):
        with suppress(ValueError):  # text that is no number is refused by the check
            value = float(value)
    return checks.number(where, value, unit=meta["unit"], error=ExperimentError, **meta["bounds"])


# ---------------------------------------------------------------------- running


MARK = ".tumble-experiment"
"""File that tells a folder of results from any other; holds the id of the run that wrote them."""


def claim(folder: Path, name: str) -> None:
    """Make a folder for the results of an experiment, or take that of an earlier run of it; others are left alone."""
    mark = folder / MARK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        owner = mark.read_text(encoding="utf-8", errors="replace").rpartition("-")[0] if mark.is_file() else ""
        others = any(file.name != MARK for file in folder.iterdir())  # on a full disk the mark may be empty, and alone
        if others and owner != name:
            got = f"those of {owner[:60]}" if owner else "other files"
            remedy = "Its files could be replaced; choose another folder with --out, or empty this one."
            raise ExperimentError(message(str(folder), f"must be empty or hold results of {name}", got, remedy))
        mark.write_text(f"{name}-{uuid.uuid4().hex}\n", encoding="utf-8")
    except OSError as cause:
        got = cause.strerror or cause
        raise FileError(message(str(folder), "must be a folder that can be written", got, "Choose another.")) from cause


Observer = Callable[[Simulation, StepReport], None]


class ObservedSimulation(Simulation):
    """A simulation that shows itself to an observer after every step, and knows how far bodies have overlapped."""

    def __init__(self, model: Model, *, observe: Observer, **rest: Any) -> None:
        super().__init__(model, **rest)
        self._observe, self._sizes = observe, sent_sizes(self)
        self.largest_overlap_ratio = 0.0
        """Largest overlap so far over half-sizes, see `overlap_ratio`"""

    def step(self) -> StepReport:
        """See `Simulation.step`."""
        report = super().step()
        self.largest_overlap_ratio = max(self.largest_overlap_ratio, overlap_ratio(self, self._sizes))
        self._observe(self, report)
        return report


def sent_sizes(sim: Simulation) -> np.ndarray:
    """Smallest half-extents of the bodies that obey forces, infinite of others, where the contacts are."""
    return sim.backend.send(np.where(sim.model.body_kind == BodyKind.DYNAMIC, sim.model.body_size, np.inf))


def overlap_ratio(sim: Simulation, sizes: np.ndarray | None = None) -> float:
    """Largest overlap at the start of the last step over the smallest half-extent of the two bodies, of those that
    obey forces: a thin wall does not count. sizes: see `sent_sizes`."""
    if sim._last is None or sim._last.contacts.count == 0:
        return 0.0
    c, b = sim._last.contacts, sim.backend
    ratio = b.zeros(c.count)
    sizes = sent_sizes(sim) if sizes is None else sizes
    b.over_contacts(overlap_share)(c.count, c.gap, c.body_a, c.body_b, sizes, ratio)
    return float(b.largest(c.count, ratio))


@dataclass(frozen=True)
class Job:
    """Where an experiment writes and how its simulations run."""

    out: Path
    threads: int | None
    progress: bool | None
    strict: bool
    backend: str = "cpu"
    """Where steps are computed"""
    precision: str | None = None
    """Of the iterations of the experiment's own solver, where it is `SolverAPGD`"""

    def runs_on(self, **rest: Any) -> dict[str, Any]:
        """The arguments of a simulation, with where and how precisely it is to compute."""
        solver = rest.get("solver")
        if self.precision is not None:
            if not isinstance(solver, SolverAPGD):
                name = "SolverAuto" if solver is None else type(solver).__name__
                remedy = "Leave --precision out, or set the experiment's solver to apgd where it has that setting."
                raise OptionsError(message("--precision", "is an option of SolverAPGD", name, remedy))
            rest["solver"] = replace(solver, precision=self.precision)
        return rest | {"threads": self.threads, "backend": self.backend}

    def simulate(
        self,
        model: Model,
        *,
        until: float,
        observe: Observer,
        stop: Callable[[Simulation], bool] | None = None,
        memory: ContactMemory | None = None,
        **rest: Any,
    ) -> tuple[ObservedSimulation, RunResult]:
        """Run a model to the time `until` [s]; the observer is called after every step.

        stop: asked after every step; the run ends where it says so. memory: of contacts that are there already.
        rest: options and solver.
        """
        sim = ObservedSimulation(model, observe=observe, **self.runs_on(**rest))
        if memory is not None:
            state = sim.get_state()
            state.memory = memory
            sim.set_state(state)
        return sim, sim.run(until=until, progress=self.progress, strict=self.strict, stop=stop)

    def lenient(self) -> Job:
        """This job where steps may be cut short: for experiments that cap the iterations on purpose and count them."""
        return replace(self, strict=False)

    @contextmanager
    def threaded(self) -> Iterator[None]:
        """Solve problems outside a simulation with the job's number of threads."""
        before = jit.set_threads(self.threads) if self.threads is not None else None
        try:
            yield
        finally:
            if before is not None:
                jit.set_threads(before)


@dataclass(frozen=True)
class Track:
    """Motion of one body, from the start (row 0) to the end (row k - 1)."""

    time: np.ndarray
    """(k,) [s]"""
    position: np.ndarray
    """(k, 3) [m]"""
    velocity: np.ndarray
    """(k, 3) [m/s]"""
    spin: np.ndarray
    """(k, 3) [rad/s], world axes"""
    unconverged: int
    """Steps that did not reach the tolerance"""


def track_body(job: Job, model: Model, body: int, *, until: float, **rest: Any) -> Track:
    """Run a model to the time `until` [s] and follow a body."""
    rows = []

    def observe(sim: Simulation, _: StepReport | None) -> None:
        rows.append([sim.time, *sim.positions()[body], *sim.velocities()[body], *sim.angular_velocities()[body]])

    observe(Simulation(model, **rest), None)
    _, result = job.simulate(model, until=until, observe=observe, **rest)
    table = np.array(rows)
    return Track(table[:, 0], table[:, 1:4], table[:, 4:7], table[:, 7:10], result.unconverged)


# ---------------------------------------------------------------------- metrics


OK = "_ok"
"""Ending of metrics that are 1 where an expectation is met and 0 where it is missed."""


def expect(**met: bool) -> dict[str, float]:
    """Expectations as metrics: `expect(rises=True)` gives {"rises_ok": 1.0}."""
    return {name + OK: float(value) for name, value in met.items()}


LARGEST_OVERLAP = 0.05
"""Bodies that overlap by more of their half-size are no result."""


def overlap_metrics(ratios: Iterable[float]) -> dict[str, float]:
    """The largest overlap of some runs over half-sizes, and that it must be small."""
    largest = max(ratios)
    return {"largest_overlap_ratio": largest} | expect(overlap=largest < LARGEST_OVERLAP)


def lasting(condition: np.ndarray) -> int | None:
    """First index from which a condition (k,) holds to the end, or None."""
    broken = np.flatnonzero(~condition)
    first = int(broken[-1]) + 1 if broken.size else 0
    return first if first < len(condition) else None


def slope(x: np.ndarray, y: np.ndarray) -> float | None:
    """Slope of log y over log x, positive values (k,); None with fewer than two different x."""
    if len(set(np.asarray(x).tolist())) < 2:
        return None
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def by_step_size(values: Mapping[float, Mapping[str, float]]) -> dict[str, float]:
    """Metrics of each step size [s] with the suffix _h0.01 and so on; those of the finest also without."""
    finest = values[min(values)]
    return {**finest, **{f"{key}_h{dt:g}": value for dt, found in values.items() for key, value in found.items()}}
