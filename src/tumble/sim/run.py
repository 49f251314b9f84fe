"""Many steps: progress, recording, checkpoints, and what to do when a step fails."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import checks
from ..errors import BlowUpError, FileError, OptionsError, TumbleError, TumbleWarning, message
from ..observe.flow import FlowSeries, flow_series
from ..observe.trajectory import Trajectory, TrajectoryWriter
from ..options import Save
from ..version import __version__
from .dump import AUTOMATIC, can_be_dumped, dump_failure, dump_path, dump_problem, small_enough
from .flow import blocked, no_room
from .progress import show_progress
from .report import REPORT_COLUMNS, StepReport, report_row

if TYPE_CHECKING:
    from .simulation import Simulation

__all__ = ["NotConvergedError", "RunResult"]


class NotConvergedError(TumbleError):
    """A step of a strict run did not reach the tolerance. The command line turns it into exit code 3."""


@dataclass(frozen=True)
class RunResult:
    """What a run did."""

    steps: int
    time: float
    """Simulated time at the end [s]"""
    seconds: float
    """Wall time [s]"""
    unconverged: int
    """Steps that did not reach the tolerance"""
    reports: dict[str, np.ndarray]
    """One array (steps,) for each column of the reports"""
    path: Path | None
    frames: int
    problems: tuple[Path, ...] = ()
    """Files with problems of single steps, for `tumble solve`"""
    not_unique: int = 0
    """Steps whose unique forces were asked for and not found"""
    flow_totals: dict[str, float] = field(default_factory=dict)
    """Of emitters, sinks and measuring planes at the end, see `Simulation.flow`"""

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
        if self.unconverged:
            lines.append(
                f"{self.unconverged} of {self.steps} steps did not reach the tolerance: raise max_iterations, "
                "loosen the tolerance or shorten dt"
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
    dump_problems: Sequence[int] = (),
    stop: Callable[[Simulation], bool] | None = None,
) -> RunResult:
    """See `Simulation.run`."""
    checks.number("Simulation.run.until", until, at_least=0.0, unit="s")
    checks.flag("Simulation.run.strict", strict)
    if save is not None and not isinstance(save, Save):
        raise OptionsError(
            message("Simulation.run.save", "must be a Save", repr(save), "For example Save(path='run.h5').")
        )
    if resume and save is None:
        raise OptionsError(message("Simulation.run.resume", "needs save", None, "Give the file to continue."))
    dumps = _Dumps(sim, save, dump_problems)
    writer = _open(sim, save, resume) if save is not None else None
    dt = sim.options.dt
    target = sim.state.step + max(0, int(np.ceil((until - sim.time) / dt - 1e-6)))
    sim.prepare()
    rows: list[list[float]] = []
    unconverged, not_unique, start = 0, 0, time.perf_counter()
    finished = False
    try:
        with show_progress(progress, target - sim.state.step) as display:
            while sim.state.step < target:
                report = sim.step()
                rows.append(report_row(report))
                unconverged += not report.converged
                not_unique += sim.options.unique_forces and not report.unique_forces
                if stop is not None and stop(sim):
                    target = sim.state.step
                if writer is not None:
                    writer.append_report(rows[-1])
                    if sim.state.step % save.every == 0 or sim.state.step == target:
                        _frame(sim, writer, save, last=sim.state.step == target)
                dumped = dumps.after(report)
                display.update(report, unconverged)
                if strict and not report.converged:
                    raise NotConvergedError(
                        message(
                            f"step {report.step}",
                            f"the {report.solver} solver must reach its tolerance",
                            f"natural map {report.natural_map:.2g} after {report.iterations} iterations",
                            f"Status {report.status}: {report.status.advice}."
                            + (f" Its problem is in {dumped}." if dumped else ""),
                        )
                    )
        finished = True
    except BlowUpError as cause:
        if save is not None:
            path = dump_failure(sim, save.path)
            raise BlowUpError(f"{cause} State and problem are in {path}.") from cause
        raise
    finally:
        if writer is not None:
            if not finished and rows:
                _frame(sim, writer, save, last=True)
            writer.close(finished=finished)
    dumps.finish()
    for emitter, placed, waiting in blocked(sim.model, sim.state):
        warnings.warn(no_room(emitter, sim.time, placed, waiting), TumbleWarning, stacklevel=3)
    columns = (*REPORT_COLUMNS, *sim.model.flow.columns)
    table = np.array(rows).reshape(len(rows), len(columns))
    return RunResult(
        len(rows),
        sim.time,
        time.perf_counter() - start,
        unconverged,
        {c: table[:, i].copy() for i, c in enumerate(columns)},
        save.path if save else None,
        writer.frames if writer else 0,
        tuple(dumps.paths),
        not_unique,
        sim.flow(),
    )


def checkpoint_path(path: Path) -> Path:
    """Where the checkpoint of a run file lies: run.h5 -> run.checkpoint.h5."""
    return path.with_suffix(".checkpoint" + (path.suffix or ".h5"))


def _open(sim: Simulation, save: Save, resume: bool) -> TrajectoryWriter:
    if resume:
        if not checkpoint_path(save.path).exists():
            raise FileError(
                message(
                    str(checkpoint_path(save.path)),
                    "must exist to resume",
                    "no such file",
                    "Run once without --resume.",
                )
            )
        sim.load_checkpoint(checkpoint_path(save.path))
        with Trajectory(save.path) as old:
            if tuple(old.fields) != save.fields:
                raise OptionsError(
                    message(
                        "Save.fields",
                        f"must be {tuple(old.fields)} as when the run began",
                        save.fields,
                        "Leave them as they were to resume.",
                    )
                )
            if old.attributes.get("solver") != sim.solver.name:
                raise OptionsError(
                    message(
                        "Simulation.solver",
                        f"must be '{old.attributes.get('solver')}' as when the run began",
                        repr(sim.solver.name),
                        "Use the same solver to resume.",
                    )
                )
        return TrajectoryWriter.reopen(save.path, model=sim.model, step=sim.state.step)
    options = {
        "step": asdict(sim.options),
        "save": {"every": save.every, "fields": list(save.fields)},
        "solver": {"name": sim.solver.name, **(asdict(sim.solver) if is_dataclass(sim.solver) else {})},
    }
    writer = TrajectoryWriter(
        save.path,
        model=sim.model,
        fields=save.fields,
        report_columns=(*REPORT_COLUMNS, *sim.model.flow.columns),
        attributes={
            "tumble_version": __version__,
            "options": json.dumps(options, default=str),
            "dt": sim.options.dt,
            "law": str(sim.options.law),
            "solver": str(sim.solver.name),
        },
    )
    _frame(sim, writer, save, last=True)
    return writer


def _frame(sim: Simulation, writer: TrajectoryWriter, save: Save, *, last: bool) -> None:
    """Record the state, and a checkpoint when one is due. The frame comes first: a checkpoint without its frame could
    not be resumed, a frame after the checkpoint is simply written again."""
    contacts = None
    if "contacts" in save.fields and sim.last is not None:
        contacts = sim.contact_forces()
    writer.append_frame(sim.state, contacts, sim.joint_reactions() if len(sim.model.joints.elements) else None)
    if last or writer.frames % save.checkpoint_every == 0:
        sim.save_checkpoint(checkpoint_path(save.path))


class _Dumps:
    """Problems written beside the run file: those asked for, and those of the first steps that did not converge."""

    def __init__(self, sim: Simulation, save: Save | None, steps: Sequence[int]) -> None:
        where = "Simulation.run.dump_problems"
        self._sim, self._save, self.paths = sim, save, []
        self._wanted = {checks.integer(where, k, at_least=1) for k in steps}
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
            if self._unasked >= AUTOMATIC or not small_enough(self._sim.last):
                return None
            self._unasked += 1
        path = dump_path(self._save.path, report.step)
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
