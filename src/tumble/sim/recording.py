"""The trajectory and the checkpoint of a run: begun, gone on with, resumed."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..errors import FileError, OptionsError, message
from ..files import Lock, check_place, check_readable, is_file
from ..observe import checkpoint as checkpoints
from ..observe import layout
from ..observe.description import Change, Description, changes, to_text
from ..observe.layout import Plan
from ..observe.trajectory import Trajectory, open_readable
from ..observe.writer import TrajectoryWriter
from ..options import Save
from ..scene.model import Model
from ..version import __version__
from .report import REPORT_UNITS

if TYPE_CHECKING:
    from .simulation import Simulation

__all__ = ["Recording", "open_recording", "report_columns"]

FRAMES, SECONDS = 10, 2.0
"""Between two checkpoints at least, where `Save` does not say."""
ANEW = "Choose another name, or start anew with --overwrite (in Python Save(overwrite=True))."


class Recording:
    """Where a run writes its frames and checkpoints."""

    def __init__(self, save: Save, writer: TrajectoryWriter, run_id: str, description: Description) -> None:
        self.save, self.writer, self.run_id, self.description = save, writer, run_id, description
        self._checkpoint = save.checkpoint_path.resolve()  # the program may go to another folder
        self._since, self._at = 0, -math.inf
        """Frames since the last checkpoint, and the time of it [s]"""
        self._told = -1
        """Step up to which there are reports"""

    def begins(self, sim: Simulation) -> None:
        """Reports follow from here on."""
        self._told = sim.state.step

    def report(self, sim: Simulation, row: Sequence[float]) -> None:
        """Record the numbers of a step."""
        self.writer.append_report(row)
        self._told = sim.state.step

    def is_told(self, sim: Simulation) -> bool:
        """Whether nothing came between the last step and its report."""
        return self._told == sim.state.step

    def frame(self, sim: Simulation, *, last: bool = False) -> None:
        """Record the state, and a checkpoint when one is due. The frame comes first: a checkpoint without its frame
        could not be resumed, a frame after the checkpoint is simply computed again."""
        contacts = sim.contact_forces() if "contacts" in self.save.fields and sim.last is not None else None
        joints = sim.joint_reactions() if len(sim.model.joints.elements) else None
        self.writer.append_frame(sim.state, contacts, joints)
        self._since += 1
        if last or self._is_due():
            self.checkpoint(sim)

    def _is_due(self) -> bool:
        frames = self.save.frames_per_checkpoint
        if frames is None:
            return self._since >= FRAMES and time.monotonic() - self._at >= SECONDS
        return self._since >= frames

    def checkpoint(self, sim: Simulation) -> None:
        """Write a checkpoint, once the trajectory is safe; not while old frames are computed again."""
        self.writer.settle()
        if self.writer.caught_up:
            self.rescue(sim)
            self._since, self._at = 0, time.monotonic()

    def rescue(self, sim: Simulation) -> None:
        """Write a checkpoint that goes on behind the frames in the file, whatever became of the writer."""
        writer = self.writer
        sim.save_checkpoint(self._checkpoint, run_id=self.run_id, frames=writer.frames, pending=writer.pending)

    def end(self, sim: Simulation, *, finished: bool) -> None:
        """The last frame and checkpoint of a run. The same simulation may go on later."""
        self.frame(sim, last=True)
        self.writer.mark(finished)
        if self.writer.caught_up:
            self.writer.rest()
        else:
            self.writer.leave()

    def goes_on(self, sim: Simulation, save: Save) -> bool:
        """Whether the simulation's next run with `save` belongs behind the frames that are here."""
        return save == self.save and sim.state.step >= self.writer.last_step and self.writer.wake()

    def broke_off(self, save: Save) -> bool:
        """Whether `save` means this file, which could not be left as it should be: begun anew its frames were lost."""
        if save != self.save or self.writer.is_open or not is_file(self.writer.path):
            return False
        return _run_id(self.writer.path, layout.FORMAT) == self.run_id


def open_recording(sim: Simulation, save: Save, *, resume: bool, accept_changes: bool) -> Recording:
    """Begin a run's files, go on with those of the same simulation, or resume those of another process."""
    before = sim.recording
    if before is not None and not resume and before.goes_on(sim, save):
        if before.description != sim.description:
            before = sim.recording = _with_changes(sim, before)
        before.begins(sim)
        before.writer.mark(finished=False)
        before.frame(sim)
        return before
    if before is not None:
        if not resume and before.broke_off(save):
            got, remedy = "a run that broke off within a step or a frame", "Go on from its checkpoint with resume=True."
            raise FileError(message(str(save.path), "must be whole to go on with", got, remedy))
        before.writer.leave()
    sim.recording = _resumed(sim, save, accept_changes) if resume else _begun(sim, save)
    sim.recording.begins(sim)
    forces = "contacts" in save.fields or len(sim.model.joints.elements)
    if not resume:
        sim.recording.frame(sim, last=True)
    elif sim.state.step % save.every == 0 and not forces:
        sim.recording.frame(sim)  # the one that a full disk had no room for; forces of that step are gone
    return sim.recording


def report_columns(model: Model) -> dict[str, str]:
    """Names and units of the numbers of a report."""
    return REPORT_UNITS | {name: "kg" if "mass" in name.rpartition(".")[2] else "1" for name in model.flow.columns}


# ---------------------------------------------------------------------- a new run


def _begun(sim: Simulation, save: Save) -> Recording:
    _check_new(save)
    run_id = (save.label + "-" if save.label else "") + uuid.uuid4().hex
    options = {
        "step": asdict(sim.options),
        "save": {"every": save.every, "fields": list(save.fields)},
        "solver": {"name": sim.solver.name, **(asdict(sim.solver) if is_dataclass(sim.solver) else {})},
    }
    writer = TrajectoryWriter(
        save.path,
        model=sim.model,
        plan=_plan(sim.model, save),
        attributes={
            "run_id": run_id,
            "tumble_version": __version__,
            "options": json.dumps(options, default=str),
            "dt": sim.options.dt,
            "law": str(sim.options.law),
            "solver": str(sim.solver.name),
            **_place(sim),
        },
        history=json.dumps([_event("begun", sim)]),
        description=to_text(sim.description),
        background=save.background,
    )
    return Recording(save, writer, run_id, sim.description)


def _plan(model: Model, save: Save) -> Plan:
    return Plan(
        fields=save.fields,
        columns=report_columns(model),
        bodies=None if save.bodies is None else _chosen(model, save.bodies),
        single=save.precision == "single",
        compress=save.compress,
    )


def _chosen(model: Model, bodies: Sequence[str | int]) -> np.ndarray:
    """Indices of bodies given by names or indices, each once and in order."""
    found: set[int] = set()
    for body in bodies:
        if isinstance(body, str):
            found.update(model.bodies(body).tolist())
        else:
            found.add(checks.integer("Save.bodies", body, at_least=0, at_most=model.body_count - 1))
    return np.array(sorted(found), np.int64)


def _check_new(save: Save) -> None:
    """Refuse to replace what is not a run, and runs unless that is wanted."""
    check_places(save)
    kinds = {Path(save.path): layout.FORMAT, save.checkpoint_path: checkpoints.FORMAT}
    for path, kind in kinds.items():
        if not path.exists():
            continue
        run_id = _run_id(path, kind)
        if run_id is None:
            remedy = "Choose another name; only runs are ever replaced."
            raise FileError(message(str(path), f"must be a new file or a {kind}", "another file", remedy))
        if not save.overwrite:
            what = "a run" if path == save.path else "the checkpoint of a run"
            remedy = f"{ANEW[:-1]}, or go on with it with --resume (resume=True)." if Path(save.path).exists() else ANEW
            raise FileError(message(str(path), "must be a new file", f"{what} that is there", remedy))
        if save.label and not run_id.startswith(save.label + "-"):
            remedy = "Move it away or choose another place."
            raise FileError(message(str(path), f"must be new or a run of '{save.label}'", "another run", remedy))


def check_places(save: Save) -> None:
    """Refuse what cannot be the two files of a run, before anything is computed."""
    for path in (Path(save.path), save.checkpoint_path):
        check_place(path)
    if Path(save.path).resolve() == save.checkpoint_path.resolve():
        remedy = "Leave it out, or choose another name."
        raise FileError(message("Save.checkpoint", "must be another file than the trajectory", save.path, remedy))


def _run_id(path: Path, kind: str) -> str | None:
    """The run id of a trajectory or checkpoint (empty in old ones), None of other files."""
    check_readable(path)
    try:
        with open_readable(path) as file:
            attributes = file.attrs if kind == layout.FORMAT else file["attributes"].attrs
            return str(attributes.get("run_id", "")) if file.attrs.get("format") == kind else None
    except checkpoints.UNREADABLE:
        return None


# ---------------------------------------------------------------------- an old run


def _resumed(sim: Simulation, save: Save, accept_changes: bool) -> Recording:
    check_places(save)
    Lock(Path(save.path).resolve()).release()  # a run at work is told first: its files may disagree for a moment
    with Trajectory(save.path) as old:
        old.check_appendable()
        _check_plan(old, save, sim.model)
        different = changes(old.description, sim.description)
        if different:
            _check_changes(old, sim.model, different, accept_changes)
        frames, pending = _restart(sim, save, old)
        run_id, history = old.run_id, old.history
    writer = _reopened(sim, save, frames, history, different)
    for row in pending:
        writer.append_report(row)
    return Recording(save, writer, run_id, sim.description)


def _with_changes(sim: Simulation, before: Recording) -> Recording:
    """Go on in the file of the same simulation, in which something that acts was changed since: the file says so."""
    before.writer.leave()
    with Trajectory(before.writer.path) as old:
        different, history, frames = changes(old.description, sim.description), old.history, old.frames
        _check_changes(old, sim.model, different, accepted=True)
    writer = _reopened(sim, before.save, frames, history, different)
    return Recording(before.save, writer, before.run_id, sim.description)


def _reopened(sim: Simulation, save: Save, frames: int, history: list, different: list[Change]) -> TrajectoryWriter:
    history.append(_event("changed" if different else "resumed", sim, different))
    return TrajectoryWriter.reopen(
        save.path,
        model=sim.model,
        frames=frames,
        history=json.dumps(history),
        description=to_text(sim.description),
        keep=not different,
        background=save.background,
    )


def _restart(sim: Simulation, save: Save, old: Trajectory) -> tuple[int, np.ndarray]:
    """Bring the simulation to its checkpoint; returns the frames up to it and the reports since the last of them."""
    path = save.checkpoint_path
    found = checkpoints.read_checkpoint(path) if path.exists() else None
    owner = "" if found is None else str(found.attributes.get("run_id", ""))
    if found is None or owner != old.run_id:
        if old.frames == 1 and old.final_state_sha256 == sim.state.sha256():
            return 1, np.zeros((0, 0))  # killed before its first checkpoint: at the start nothing else is needed
        if found is None:
            raise FileError(message(str(path), "must exist to resume", "no such file", ANEW))
        remedy = f"Put the checkpoint of that run beside it. {ANEW}"
        rule = f"must be the checkpoint of {old.path.name} (run {old.run_id[-8:]})"
        raise FileError(message(str(path), rule, f"that of run {owner[-8:] or 'without an id'}", remedy))
    frames = int(found.attributes.get("frames", 0))
    if not (1 <= frames <= old.frames and old.steps[frames - 1] + len(found.pending) == found.state.step):
        rule = f"must follow on frame {frames} of {old.path.name}, or the steps between would be missing"
        got = f"step {found.state.step} and a trajectory of {old.frames} frames to step {old.steps[-1:]}"
        raise FileError(message(str(path), rule, got, f"Put back the trajectory that it belongs to. {ANEW}"))
    sim.restore(path, found)
    return frames, found.pending


def _check_plan(old: Trajectory, save: Save, model: Model) -> None:
    """What is recorded cannot change within a file."""
    plan, began = _plan(model, save), old.plan
    bodies = np.arange(model.body_count) if plan.bodies is None else plan.bodies
    pairs = {
        "fields": (tuple(began.fields), tuple(plan.fields)),
        "bodies": (old.bodies.tolist(), bodies.tolist()),
        "precision": ("single" if began.single else "double", save.precision),
        "compress": (began.compress, plan.compress),
    }
    for name, (before, now) in pairs.items():
        if before != now:
            remedy = "Leave them as they were to resume."
            shown = [str(value)[:80] for value in (before, now)]
            raise OptionsError(message(f"Save.{name}", f"must be {shown[0]} as when the run began", shown[1], remedy))
    if tuple(began.columns) != tuple(plan.columns):
        raise FileError(message(str(old.path), "must have the columns of the reports", "others", ANEW))


def _check_changes(old: Trajectory, model: Model, different: list[Change], accepted: bool) -> None:
    """Changes are refused, or accepted where the file can hold them."""
    stored = layout.difference(old.model, model)
    if stored is not None:
        first = next((c for c in different if stored in c.name), different[0])
        fixed = "bodies, shapes, masses and emitters cannot change within a file"
        rule = f"must be {first.before} as when the run began: {fixed}"
        got, remedy = first.now, f"Resume with the old scene. {ANEW}"
        raise FileError(message(f"{old.path}: {first.name}", rule, got, remedy))
    if not accepted:
        first, more = different[0], len(different) - 1
        rule = f"must be {first.before} as when the run began"
        got = first.now + (f", and {more} more changes" if more else "")
        remedy = (
            "Resume with what the run began with, or record the change with --accept-changes (accept_changes=True)."
        )
        raise OptionsError(message(f"{old.path}: {first.name}", rule, got, remedy))


def _place(sim: Simulation) -> dict[str, str]:
    """Where a run is computed, and the precision of its iterations."""
    precision = str(getattr(sim.solver, "precision", "auto"))
    if sim.backend.HOSTED:
        return {"backend": sim.backend.name, "precision": precision}
    precision = "double" if precision == "auto" else precision  # what it means there
    return {"backend": sim.backend.name, "device": sim.backend.device_name(), "precision": precision}


def _event(event: str, sim: Simulation, different: Sequence[Change] = ()) -> dict[str, Any]:
    """An entry of the history."""
    return {
        "event": event,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "step": sim.state.step,
        "tumble_version": __version__,
        **_place(sim),
        **({"changes": [change._asdict() for change in different]} if different else {}),
    }
