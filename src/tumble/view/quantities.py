"""What can be plotted of a run, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..checks import nearest
from ..errors import FileError, OptionsError, message
from .meter import counted
from .panels import Panel

__all__ = ["OVERVIEW", "QUANTITIES", "panels_of", "report_panels"]

FORWARD = ".mass_forward"
Reports = Mapping[str, np.ndarray]
GROUPS: dict[str, tuple[str, bool, dict[str, str]]] = {
    "energy": ("energy [J]", False, {"kinetic_energy": "kinetic", "potential_energy": "potential"}),
    "contacts": ("contacts", False, {"contacts": "contacts"}),
    "iterations": ("iterations", False, {"iterations": "iterations"}),
    "residuals": ("residual", True, {"natural_map": "natural map", "certificate_energy": "certificate [J]"}),
    "overlap": ("largest overlap [m]", False, {"largest_overlap": "largest overlap"}),
    "speed": ("largest speed [m/s]", False, {"largest_speed": "largest speed"}),
    "works": (
        "work of a step [J]",
        False,
        {
            "work_friction": "friction",
            "work_normal": "normal",
            "work_external": "external",
            "work_driven": "driven",
            "work_joints": "joints",
        },
    ),
}
"""Label of the axis, whether it is logarithmic, and columns of the reports with their names in the legend"""
OVERVIEW = ("energy", "contacts", "iterations", "residuals", "overlap", "flow")


def report_panels(reports: Reports, names: Sequence[str] = OVERVIEW) -> list[Panel]:
    """Panels of those names that have columns in the reports."""
    found = []
    for name in names:
        if name in GROUPS:
            label, log, columns = GROUPS[name]
            curves = {n: (reports["time"], reports[c]) for c, n in columns.items() if c in reports}
            panel = Panel(label, curves, log)
        else:
            panel = {"flow": _flow, "time": _stages}[name](reports)
        if panel.curves:
            found.append(panel)
    return found


def _flow(reports: Reports) -> Panel:
    planes = {c.removesuffix(FORWARD): (reports["time"], v) for c, v in reports.items() if c.endswith(FORWARD)}
    return Panel("passed forward [kg]", planes, named=True)


def _stages(reports: Reports) -> Panel:
    prefix = "seconds_"
    stages = {c.removeprefix(prefix): (reports["time"], 1e3 * v) for c, v in reports.items() if c.startswith(prefix)}
    return Panel("wall time of a step [ms]", stages, stacked=True)


def _forces(run: Any, on: str | None, by: str | None, progress: bool | None) -> Panel:
    """Force on bodies of a name, from all others or those of another name."""
    if on is None:
        known = [name for name, _, _ in run.model.names]
        remedy = "Name one with --on (on=). " + nearest("", known)
        raise OptionsError(message("plot", "a force acts on a body", "no body", remedy))
    count = len(run.model.body_kind)
    target, source = np.zeros((2, count), bool)
    target[run.model.bodies(on)] = True
    source[run.model.bodies(by) if by is not None else ~target] = True
    run.contacts(0)  # says how to record them, before a bar appears
    total = np.zeros((run.frames, 3))
    for frame in counted(range(run.frames), run.frames, "contacts of frame", progress):
        c = run.contacts(frame)
        on_b, on_a = target[c["body_b"]] & source[c["body_a"]], target[c["body_a"]] & source[c["body_b"]]
        total[frame] = c["force"][on_b].sum(axis=0) - c["force"][on_a].sum(axis=0)
    curves = {axis: (run.times, total[:, k]) for k, axis in enumerate("xyz")}
    curves["size"] = run.times, np.linalg.norm(total, axis=1)
    return Panel(f"force on {on}" + (f" by {by}" if by else "") + " [N]", curves)


def _joints(run: Any, field: str, label: str, joint: str | None) -> Panel:
    names = list(run.model.joint_names)
    if not names:
        rule, remedy = "must hold joints", "The scene has no joints, motors or springs."
        raise FileError(message(str(run.path), rule, "none", remedy))
    if joint is not None and joint not in names:
        raise OptionsError(message("plot.joint", "unknown joint", repr(joint), nearest(joint, names)))
    values = run.joints(field)
    chosen = [k for k, name in enumerate(names) if joint in (None, name) and np.isfinite(values[:, k]).any()]
    return Panel(label, {names[k]: (run.times, values[:, k]) for k in chosen}, named=True)


JOINTS = {
    "joints": ("joint_value", "joint coordinate [rad or m]"),
    "joint_speeds": ("joint_speed", "joint speed [rad/s or m/s]"),
    "torques": ("joint_effort", "joint effort [N m or N]"),
    "power": ("joint_power", "joint power [W]"),
}
QUANTITIES = (*GROUPS, "time", "force", *JOINTS, "flow")


def panels_of(
    run: Any,
    quantities: Sequence[str],
    *,
    on: str | None = None,
    by: str | None = None,
    joint: str | None = None,
    progress: bool | None = None,
) -> list[Panel]:
    """Panels of a trajectory: QUANTITIES, or any column of its reports; the overview if none is named."""
    reports: Reports = run.reports
    if not quantities and on is None and by is None and joint is None:
        return _some(report_panels(reports), run)
    wanted = list(quantities) or (["joints", "torques"] if joint is not None else ["force"])
    make: dict[str, Callable[[], Panel]] = {"force": lambda: _forces(run, on, by, progress)}
    for name, (field, label) in JOINTS.items():
        make[name] = lambda field=field, label=label: _joints(run, field, label, joint)
    for name in wanted:
        if name not in QUANTITIES and name not in reports:
            raise OptionsError(message("plot", "unknown quantity", repr(name), nearest(name, [*QUANTITIES, *reports])))
    for option, given, needs in (("on", on, ("force",)), ("by", by, ("force",)), ("joint", joint, tuple(JOINTS))):
        if given is not None and not set(needs) & set(wanted):
            rule = "goes with " + " or ".join(needs)
            raise OptionsError(message(f"plot.{option}", rule, " and ".join(wanted), "Leave it out, or name that too."))
    panels = []
    for name in wanted:
        if name in make:
            panels.append(make[name]())
        elif name in (*GROUPS, "time", "flow"):
            panels += _some(report_panels(reports, [name]), run, name)
        else:
            panels.append(Panel(name, {name: (reports["time"], reports[name])}))
    return panels


def _some(panels: list[Panel], run: Any, name: str = "the overview") -> list[Panel]:
    if not panels:
        remedy = "The scene has no measuring planes." if name == "flow" else "Run the scene again."
        raise FileError(message(str(run.path), f"must hold what {name} is made of", "nothing of it", remedy))
    return panels
