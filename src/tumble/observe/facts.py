"""What there is to know about a trajectory or a scene file, as plain values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..enums import BodyKind, ShapeKind
from ..scene.files import load_scene
from .trajectory import Trajectory

__all__ = ["run_facts", "scene_facts"]

WORST = (
    "natural_map",
    "residual_eq25",
    "complementarity_error",
    "certificate_energy",
    "certificate_shift",
    "largest_overlap",
)


def run_facts(path: Path) -> dict[str, Any]:
    """What `tumble info` says about a trajectory."""
    with Trajectory(path) as run:
        reports, about = run.reports, dict(run.attributes)
        facts: dict[str, Any] = {
            "kind": "trajectory",
            "finished": run.finished,
            "frames": run.frames,
            "time": float(run.times[-1]) if run.frames else None,
            "steps": int(run.steps[-1]) if run.frames else None,
            "bodies": {k.name.lower(): int((run.model.body_kind == k).sum()) for k in BodyKind},
            "fields": list(run.fields),
            "law": about.pop("law", None),
            "solver": about.pop("solver", None),
            "dt": about.pop("dt", None),
            "tumble_version": about.pop("tumble_version", None),
            "options": json.loads(about.pop("options", "{}")),
            "final_state_sha256": run.final_state_sha256,
        }
    if len(reports.get("time", ())):
        facts["contacts"] = int(reports["contacts"][-1])
        facts["unconverged_steps"] = int((reports["converged"] == 0).sum())
        facts["iterations_mean"] = float(reports["iterations"].mean())
        facts["worst"] = {k: float(reports[k].max()) for k in WORST if k in reports}
        facts["seconds"] = {
            k.removeprefix("seconds_"): float(v.sum()) for k, v in reports.items() if k.startswith("seconds_")
        }
    return facts | about


def scene_facts(path: Path) -> dict[str, Any]:
    """What `tumble info` says about a scene file."""
    scene = load_scene(path)
    model = scene.model
    dynamic = model.body_kind == BodyKind.DYNAMIC
    return {
        "kind": "scene",
        "bodies": {k.name.lower(): int((model.body_kind == k).sum()) for k in BodyKind},
        "shapes": {ShapeKind(k).name.lower(): int((model.shape_kind == k).sum()) for k in np.unique(model.shape_kind)},
        "materials": {m.name or f"material{i}": m.friction for i, m in enumerate(model.materials)},
        "total_mass": float(model.body_mass[dynamic].sum()),
        "gravity": model.gravity.tolist(),
        "step": scene.step,
        "solver": scene.solver,
        "until": scene.until,
        "save_every": scene.save_every,
    }
