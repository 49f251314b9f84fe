"""Many steps: progress, recording, checkpoints, and what to do when a step fails."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import checks
from ..enums import Status
from ..errors import BlowUpError, DeviceError, FileError, NotConvergedError, OptionsError, TumbleWarning, message
from ..interrupts import Asked, deferred
from ..kernels import jit
from ..observe.flow_series import FlowSeries, flow_series
from ..options import Save
from ..showing import ShownResult
from .compiling import announced
from .dump import AUTOMATIC, can_be_dumped, dump_failure, dump_path, dump_problem, small_enough
from .flow_step import blocked, no_room
from .progress import show_progress
from .recording import Recording, open_recording, report_columns
from .report import StepReport, report_row
from .reports import RecentReports, StoredReports

if TYPE_CHECKING:
    from .simulation import Simulation

__all__ = ["RunResult"]


@dataclass(frozen=True, repr=False)
class RunResult(ShownResult):
    """What a run did."""

    steps: int
    time: float
    """Simulated time at the end [s]"""
    seconds: float
    """Wall time without that of compiling [s]"""
    unconverged: int
    """Steps that did not reach the tolerance"""
    reports: Mapping[str, np.ndarray]
    """One array (steps,) for each column of the reports. With a trajectory they are read from it when asked for;
    without, the last 100,000 steps are kept."""
    path: Path | None
    frames: int
    problems: tuple[Path, ...] = ()
    """Files with problems of single steps, for `tumble solve`"""
    not_unique: int = 0
    """Steps whose unique forces were asked for and not found"""
    flow_totals: dict[str, float] = field(default_factory=dict)
    """Of emitters, sinks and measuring planes at the end, see `Simulation.flow`"""
    compiling: float = 0.0
    """Wall time that compiling kernels took [s]"""
    out_of_time: bool = False
    """Whether the wall time was used up before the end"""

    def flow(self, plane: str) -> FlowSeries:
        """What passed a measuring plane, step by step."""
        return flow_series("RunResult.flow", self.reports, plane)

    def summary(self) -> str:
        """A few lines for people."""
        if self.steps == 0:
            return f"0 steps: the state is already at {self.time:g} s"
        r = self.reports
        stages = {c.removeprefix("seconds_"): float(v.sum()) for c, v in r.items() if c.startswith("seconds_")}
        total = sum(stages.values()) or 1.0
        lines = [
            f"{self.steps} steps to t = {self.time:g} s in {self.seconds:.2f} s "
            f"({1e3 * self.seconds / self.steps:.3g} ms a step)",
            f"contacts {int(r['contacts'][-1])} (most {int(r['contacts'].max())}), "
            f"iterations {r['iterations'].mean():.0f} a step, "
            f"largest overlap {r['largest_overlap'].max():.3g} m",
            f"natural map {np.median(r['natural_map']):.2g} (median), {r['natural_map'].max():.2g} (worst); "
            f"certificate: {r['certificate_energy'].max():.2g} J, gaps moved by {r['certificate_shift'].max():.2g} m",
            "time: " + ", ".join(f"{k} {100 * v / total:.0f} %" for k, v in stages.items()),
        ]
        if self.compiling >= 0.5:
            lines.append(f"compiling kernels took another {self.compiling:.1f} s")
        if self.out_of_time:
            lines.append("the wall time is used up: go on with --resume (resume=True)")
        if self.unconverged:
            lines.append(
                f"{self.unconverged} of {self.steps} steps did not reach the tolerance: give the materials "
                "of a pile their compliance, raise max_iterations or loosen the tolerance"
            )
        if self.not_unique:
            lines.append(f"unique forces were not found in {self.not_unique} of {self.steps} steps")
        if self.flow_totals:
            lines.append("flow: " + ", ".join(f"{name} {value:.6g}" for name, value in self.flow_totals.items()))
        if self.path is not None:
            lines.append(f"{self.frames} frames in {self.path}")
        if self.problems:
            lines.append(f"problems of {len(self.problems)} steps: {', '.join(p.name for p in self.problems)}")
        return "\n".join(lines)


def run(
    sim: Simulation,
    *,
    until: float,
    save: Save | None,
    progress: bool | None,
    strict: bool,
    resume: bool,
    accept_changes: bool = False,
    wall_time: float | None = None,
    dump_problems: Sequence[int] = (),
    stop: Callable[[Simulation], bool] | None = None,
) -> RunResult:
    """See `Simulation.run`."""
    clock = _Clock(wall_time)
    _check_arguments(until, save, strict, resume, accept_changes)
    if stop is not None and not callable(stop):
        remedy = "For example stop=lambda sim: sim.time > 1.0."
        raise OptionsError(message("Simulation.run.stop", "must be a function", checks.short(stop), remedy))
    dumps = _Dumps(sim, save, dump_problems)
    sim.prepare()
    with deferred() as asked:
        recording = None
        if save is not None:
            recording = open_recording(sim, save, resume=resume, accept_changes=accept_changes)
        try:
            shown = {"progress": progress, "strict": strict, "stop": stop}
            log = _steps(sim, _target(sim, until), recording, clock, dumps, asked, **shown)
        except BaseException as cause:
            _end_early(sim, recording, cause)
            if isinstance(cause, BlowUpError) and save is not None:
                try:
                    where = f"State and problem are in {dump_failure(sim, Path(save.path))}."
                except FileError as other:
                    where = f"Its state could not be kept: {other}"
                raise BlowUpError(f"{cause} {where}") from cause
            raise
        if recording is not None:
            recording.end(sim, finished=not log.out_of_time)
        asked.obey()  # what came in the last step ends the program, if not the run
    dumps.finish()
    for emitter, placed, waiting in blocked(sim.model, sim.state):
        warnings.warn(no_room(emitter, sim.time, placed, waiting), TumbleWarning, stacklevel=3)
    return RunResult(
        log.steps,
        sim.time,
        clock.seconds,
        log.unconverged,
        log.reports(sim, recording),
        Path(save.path) if save else None,
        recording.writer.frames if recording else 0,
        tuple(dumps.paths),
        log.not_unique,
        sim.flow_totals(),
        clock.compiling,
        log.out_of_time,
    )


def _check_arguments(until: float, save: Save | None, strict: bool, resume: bool, accept_changes: bool) -> None:
    checks.number("Simulation.run.until", until, at_least=0.0, unit="s")
    for name, value in (("strict", strict), ("resume", resume), ("accept_changes", accept_changes)):
        checks.flag(f"Simulation.run.{name}", value)
    if save is not None and not isinstance(save, Save):
        raise OptionsError(
            message("Simulation.run.save", "must be a Save", checks.short(save), "For example Save(path='run.h5').")
        )
    if resume and save is None:
        raise OptionsError(message("Simulation.run.resume", "needs save", None, "Give the file to continue."))
    if accept_changes and not resume:
        remedy = "Leave it out: a new run has nothing to compare with."
        raise OptionsError(message("Simulation.run.accept_changes", "goes with resume", "no resume", remedy))


def _target(sim: Simulation, until: float) -> int:
    """Number of the last step."""
    return sim.state.step + max(0, int(np.ceil((until - sim.time) / sim.options.dt - 1e-6)))


class _Clock:
    """Wall time of a run, without that of compiling, and how much of it is left."""

    def __init__(self, limit: float | None) -> None:
        self._limit = None if limit is None else checks.number("Simulation.run.wall_time", limit, above=0.0, unit="s")
        self._start, self._compiled = time.perf_counter(), jit.compile_log.seconds
        self._looked, self._longest = self._start, 0.0

    @property
    def compiling(self) -> float:
        """Seconds that went into compiling kernels."""
        return jit.compile_log.seconds - self._compiled

    @property
    def seconds(self) -> float:
        """All others."""
        return time.perf_counter() - self._start - self.compiling

    def is_over(self) -> bool:
        """Whether another step, as long as the longest so far, would end too late; asked once a step."""
        if self._limit is None:
            return False
        now = time.perf_counter()
        self._longest, self._looked = max(self._longest, now - self._looked), now
        return now + self._longest - self._start > self._limit


class _Log:
    """What is counted over the steps of a run."""

    def __init__(self, sim: Simulation, recording: Recording | None) -> None:
        self.steps = self.unconverged = self.not_unique = 0
        self.out_of_time = False
        self._first = 0 if recording is None else recording.writer.rows + len(recording.writer.pending)
        self._recent = RecentReports(list(report_columns(sim.model))) if recording is None else None

    def add(self, sim: Simulation, report: StepReport, recording: Recording | None) -> None:
        """One more step."""
        row = report_row(report)
        if recording is not None:
            recording.report(sim, row)
        elif self._recent is not None:
            self._recent.append(row)
        self.steps += 1
        self.unconverged += not report.converged
        self.not_unique += sim.options.unique_forces and not report.unique_forces

    def reports(self, sim: Simulation, recording: Recording | None) -> Mapping[str, np.ndarray]:
        """The columns of the reports, from the file where there is one."""
        if self._recent is not None or recording is None:
            return {} if self._recent is None else self._recent.table()
        rows = self._first, self._first + self.steps
        return StoredReports(recording.writer.path, recording.run_id, list(report_columns(sim.model)), rows)


def _steps(
    sim: Simulation,
    target: int,
    recording: Recording | None,
    clock: _Clock,
    dumps: _Dumps,
    asked: Asked,
    *,
    progress: bool | None,
    strict: bool,
    stop: Callable[[Simulation], bool] | None,
) -> _Log:
    log = _Log(sim, recording)
    with show_progress(progress, target - sim.state.step) as display, announced():
        while sim.state.step < target:
            asked.obey()
            report = sim.step()
            log.add(sim, report, recording)
            log.out_of_time = clock.is_over() and sim.state.step < target
            if (stop is not None and stop(sim)) or log.out_of_time:
                target = sim.state.step
            if recording is not None:
                if sim.state.step % recording.save.every == 0 and sim.state.step != target:
                    recording.frame(sim)
                if asked.take_checkpoint():
                    recording.checkpoint(sim)
            dumped = dumps.after(report)
            display.update(report, log.unconverged)
            if strict and not report.converged:
                raise _not_converged(report, dumped)
    return log


def _not_converged(report: StepReport, dumped: Path | None) -> NotConvergedError:
    if report.status == Status.JOINTS_OPEN:
        got = f"{report.joint_drift:.2g} m or rad after {report.parts} parts"
        return NotConvergedError(
            message(f"step {report.step}", "joints must close", got, f"Status {report.status}: {report.status.advice}.")
        )
    return NotConvergedError(
        message(
            f"step {report.step}",
            f"the {report.solver} solver must reach its tolerance",
            f"natural map {report.natural_map:.2g} after {report.iterations} iterations",
            f"Status {report.status}: {report.status.advice}." + (f" Its problem is in {dumped}." if dumped else ""),
        )
    )


def _end_early(sim: Simulation, recording: Recording | None, cause: BaseException) -> None:
    """Keep what there is: the last frame and checkpoint, or the checkpoint alone where the trajectory is at fault."""
    if recording is None:
        return
    if isinstance(cause, DeviceError):  # the state is out of reach; the last checkpoint holds
        recording.writer.leave()
        return
    at_fault, whole = isinstance(cause, FileError), recording.is_told(sim)
    if whole and not at_fault and recording.writer.is_open:
        recording.end(sim, finished=False)
        return
    if whole and at_fault:
        with suppress(FileError):  # the same disk, mostly; the first error is the one to tell
            recording.rescue(sim)
    recording.writer.leave()  # else interrupted within a frame, or before a report: the last checkpoint holds


class _Dumps:
    """Problems written beside the run file: those asked for, and those of the first steps that did not converge."""

    def __init__(self, sim: Simulation, save: Save | None, steps: Sequence[int]) -> None:
        where = "Simulation.run.dump_problems"
        self._sim, self._save, self.paths = sim, save, []
        try:
            wanted = list(steps)
        except TypeError:
            remedy = "Write [3] for one."
            raise OptionsError(message(where, "must be a list of steps", checks.short(steps), remedy)) from None
        self._wanted = {checks.integer(where, k, at_least=1) for k in wanted}
        if self._wanted and save is None:
            raise OptionsError(message(where, "needs save", None, "The files lie beside the trajectory."))
        if self._wanted and not can_be_dumped(sim.model):
            raise OptionsError(
                message(
                    where,
                    "cannot write rolling friction together with spinning friction or joints",
                    sorted(self._wanted),
                    "FCLIB's problems have five rows a contact; keep checkpoints instead.",
                )
            )
        self._unasked = 0

    def after(self, report: StepReport) -> Path | None:
        """Write the problem of this step if it is due."""
        asked = report.step in self._wanted
        self._wanted.discard(report.step)
        if self._save is None or not (asked or not report.converged):
            return None
        if not asked:
            if self._unasked >= AUTOMATIC or not small_enough(self._sim):
                return None
            self._unasked += 1
        path = dump_path(Path(self._save.path), report.step)
        dump_problem(self._sim, path)
        self.paths.append(path)
        return path

    def finish(self) -> None:
        """Say which steps never came."""
        if self._wanted:
            never = ", ".join(map(str, sorted(self._wanted)[:5]))
            rule = "a step whose problem is wanted must be one of this run"
            remedy = f"It ended with step {self._sim.state.step}."
            warnings.warn(message("dump_problems", rule, never, remedy), TumbleWarning, stacklevel=4)
