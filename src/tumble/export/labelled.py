"""A run as an xarray dataset: arrays with named axes and units."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..observe.layout import BODY_FIELDS, JOINT_FIELDS, UNITS
from ..observe.trajectory import Trajectory
from .source import needed

__all__ = ["to_xarray"]

PARTS = {3: ("axis", list("xyz")), 4: ("component", list("wxyz"))}


def to_xarray(run: Trajectory) -> Any:
    """All frames but contacts, of which each frame has another number; bodies that are absent are NaN. See
    docs/export.md."""
    xarray = needed("xarray", "xarray", "xarray")
    coordinates: dict[str, Any] = {
        "time": ("time", run.times, {"units": "s"}),
        "frame": ("time", np.arange(run.frames)),
        "body": ("body", run.bodies),
        "name": ("body", np.array([run.model.name(int(body)) for body in run.bodies], str)),
    }
    coordinates |= dict(PARTS.values())
    present = np.array([run.present(i)[run.bodies] for i in range(run.frames)], bool).reshape(run.frames, -1)
    found: dict[str, Any] = {}
    for field in run.fields:
        if field in BODY_FIELDS:
            values = run.array(field)
            values[~present] = np.nan
            axes = ("time", "body", PARTS[BODY_FIELDS[field]][0])
            found[field] = axes, values, {"units": UNITS[field]}
    if not present.all():
        found["present"] = ("time", "body"), present
    if run.model.joint_names:
        coordinates["joint"] = "joint", list(run.model.joint_names)
        for name, shape in JOINT_FIELDS.items():
            found[name] = ("time", "joint", *(("axis",) if shape else ())), run.joints(name), {"units": UNITS[name]}
    units, reports = run.units("steps"), dict(run.reports)
    if "step" in reports:
        coordinates["step"] = "step", reports.pop("step").astype(np.int64)
    if "time" in reports:
        coordinates["step_time"] = "step", reports.pop("time"), {"units": "s"}
    found |= {name: ("step", values, {"units": units.get(name, "1")}) for name, values in reports.items()}
    return xarray.Dataset(found, coordinates, {"run_id": run.run_id, "path": str(run.path)})
