"""How scenes, runs and results show themselves: in a line where they are printed, as a small table in a notebook."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from .enums import BodyKind, ShapeKind

__all__ = [
    "ReportTable",
    "Shown",
    "ShownBuilder",
    "ShownForces",
    "ShownModel",
    "ShownReport",
    "ShownResult",
    "ShownSimulation",
    "ShownTrajectory",
    "report_html",
]

LINE, ROWS, WORDS = 240, 24, 60
"""Characters of a line, rows of a table, characters of a value"""


class Shown:
    """Shows what `_facts` says of it; that is, if nothing else is said, its fields."""

    def _facts(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in fields(self)} if is_dataclass(self) else vars(self)
        return {name: value for name, value in values.items() if not name.startswith("_")}

    def __repr__(self) -> str:
        words = ", ".join(f"{name}={short(value)}" for name, value in self._facts().items())
        text = f"{type(self).__name__}({words})"
        return text if len(text) <= LINE else text[: LINE - 5].rpartition(", ")[0] + ", ..)"

    def _repr_html_(self) -> str:
        return table(type(self).__name__, self._facts())


def short(value: Any) -> str:
    """A value in a few characters."""
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"array {value.shape}"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)) and len(value) > 6:
        return f"{len(value)} entries"
    if isinstance(value, (list, tuple)):
        text = "(" + ", ".join(short(v) for v in value) + ")"
    elif isinstance(value, Mapping):
        text = ", ".join(f"{k} {short(v)}" for k, v in list(value.items())[:6])
    else:
        text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= WORDS else text[: WORDS - 2] + ".."


def table(title: str, facts: Mapping[str, Any]) -> str:
    """A small table in HTML; every text is escaped."""
    rows = [
        f"<tr><td>{html.escape(str(name).replace('_', ' '))}</td><td>{html.escape(short(value))}</td></tr>"
        for name, value in list(facts.items())[:ROWS]
    ]
    if len(facts) > ROWS:
        rows.append(f"<tr><td colspan=2>and {len(facts) - ROWS} more</td></tr>")
    return f"<table><tr><th colspan=2>{html.escape(title)}</th></tr>{''.join(rows)}</table>"


def counts(kinds: Any, names: Any) -> dict[str, int]:
    """How many there are of each kind."""
    found, count = np.unique(np.asarray(kinds), return_counts=True)
    return {names(int(kind)).name.lower(): int(n) for kind, n in zip(found, count)}


class ShownModel(Shown):
    """For `Model` and `StoredModel`."""

    def _facts(self) -> dict[str, Any]:
        model: Any = self
        dynamic = np.asarray(model.body_kind) == BodyKind.DYNAMIC
        joints = getattr(model, "joints", None)
        flow = model.flow if isinstance(model.flow, str) else json.dumps(model.flow.facts())
        facts = {
            "bodies": counts(model.body_kind, BodyKind),
            "shapes": counts(model.shape_kind, ShapeKind),
            "mass": f"{float(np.asarray(model.body_mass)[dynamic].sum()):.6g} kg",
            "materials": ", ".join(getattr(m, "name", m) or f"material{i}" for i, m in enumerate(model.materials)),
            "joints": len(joints.elements) if joints is not None else len(model.joint_names),
            "names": ", ".join(name for name, _, _ in model.names[:6]) + (", .." if len(model.names) > 6 else ""),
        }
        flows = {kind: len(found) for kind, found in json.loads(flow or "{}").items() if found}
        return facts | flows


class ShownBuilder(Shown):
    """For `SceneBuilder`."""

    def _facts(self) -> dict[str, Any]:
        builder: Any = self
        return {
            "bodies": builder._count,
            "joints": len(list(builder._elements)),
            "names": ", ".join(list(builder._names)[:6]),
            "gravity": builder._gravity,
        }


class ShownSimulation(Shown):
    """For `Simulation`."""

    def _facts(self) -> dict[str, Any]:
        sim: Any = self
        contacts = sim.last.report.contacts if sim.last is not None else "none yet"
        return {
            "time": f"{sim.time:.6g} s",
            "step": sim.state.step,
            "dt": f"{sim.options.dt:g} s",
            "bodies": counts(sim.model.body_kind, BodyKind),
            "contacts": contacts,
            "law": str(sim.options.law),
            "solver": type(sim.solver).__name__,
            "unconverged": sim.unconverged,
        }


class ShownTrajectory(Shown):
    """For `Trajectory`."""

    def _facts(self) -> dict[str, Any]:
        run: Any = self
        facts: dict[str, Any] = {"path": str(run.path), "frames": run.frames, "finished": run.finished}
        if run.frames:
            facts["time"] = f"{run.times[0]:g} to {run.times[-1]:g} s"
        return facts | {"bodies": counts(run.model.body_kind, BodyKind), "fields": ", ".join(run.fields)}


class ShownResult(Shown):
    """For `RunResult`."""

    def _facts(self) -> dict[str, Any]:
        run: Any = self
        facts: dict[str, Any] = {
            "steps": run.steps,
            "time": f"{run.time:g} s",
            "seconds": f"{run.seconds:.3g} s",
            "unconverged": run.unconverged,
        }
        if run.path is not None:
            facts |= {"path": str(run.path), "frames": run.frames}
        if run.flow_totals:
            facts["flow"] = run.flow_totals
        return facts | ({"problems": len(run.problems)} if run.problems else {})

    def _repr_html_(self) -> str:
        run: Any = self
        try:
            words = f"<pre>{html.escape(run.summary())}</pre>"
        except Exception:  # the file was replaced since
            words = ""
        return table(type(self).__name__, self._facts()) + words


class ShownForces(Shown):
    """For `ContactForces`."""

    def _facts(self) -> dict[str, Any]:
        forces: Any = self
        size = np.linalg.norm(forces.force, axis=1)
        facts: dict[str, Any] = {"contacts": len(size), "carrying": int((size > 0.0).sum())}
        if len(size):
            facts |= {"largest": f"{size.max():.4g} N", "mean": f"{size.mean():.4g} N"}
            facts["bodies"] = len(np.union1d(forces.body_a, forces.body_b))
        return facts


class ShownReport(Shown):
    """For `StepReport`: in a line what one looks at first."""

    def __repr__(self) -> str:
        r: Any = self
        return (
            f"StepReport(step={r.step}, time={r.time:.6g}, contacts={r.contacts}, iterations={r.iterations}, "
            f"natural_map={r.natural_map:.3g}, certificate_energy={r.certificate_energy:.3g}, solver={r.solver}, "
            f"status={r.status})"
        )


class ReportTable(dict[str, np.ndarray]):
    """Columns of reports, which are not written out where they are printed."""

    def __repr__(self) -> str:
        rows = len(next(iter(self.values()))) if self else 0
        return f"ReportTable({len(self)} columns of {rows} steps: {', '.join(list(self)[:6])}, ..)"

    def _repr_html_(self) -> str:
        return report_html(self)


def report_html(reports: Mapping[str, np.ndarray]) -> str:
    """Columns of reports with their least, mean, largest and last values."""
    rows = []
    for name in reports:
        values = np.asarray(reports[name], float)
        if len(values):
            cells = (values.min(), values.mean(), values.max(), values[-1])
            rows.append(f"<tr><td>{html.escape(name)}</td>" + "".join(f"<td>{c:.4g}</td>" for c in cells) + "</tr>")
    head = "".join(f"<th>{word}</th>" for word in ("column", "least", "mean", "largest", "last"))
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"
