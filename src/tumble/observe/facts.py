"""What there is to know about a trajectory or a scene file, as plain values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..enums import BodyKind, ShapeKind
from ..scene.files import LoadedScene, load_scene
from ..scene.model import Model
from ..scene.urdf import RobotPlan
from ..scene.urdf_file import read_urdf
from ..scene.urdf_meshes import MeshFinder
from .trajectory import Trajectory

__all__ = ["facts_of_scene", "robot_facts", "robot_rows", "run_facts", "scene_facts"]

WORST = (
    "natural_map",
    "residual_eq25",
    "complementarity_error",
    "certificate_energy",
    "certificate_shift",
    "largest_overlap",
)


COUNTS: tuple[tuple[str, str, Callable[[np.ndarray], float]], ...] = (
    ("contacts", "contacts", lambda values: int(values[-1])),
    ("unconverged_steps", "converged", lambda values: int((values == 0).sum())),
    ("iterations_mean", "iterations", lambda values: float(values.mean())),
)
"""Facts by the columns that they come from, of which old files lack some."""


def run_facts(path: Path) -> dict[str, Any]:
    """What `tumble info` says about a trajectory."""
    with Trajectory(path) as run, run.reading():
        reports, about = run.reports, dict(run.attributes)
        facts: dict[str, Any] = {
            "kind": "trajectory",
            "run_id": run.run_id,
            "finished": run.finished,
            "frames": run.frames,
            "time": float(run.times[-1]) if run.frames else None,
            "steps": int(run.steps[-1]) if run.frames else None,
            "bodies": {k.name.lower(): int((run.model.body_kind == k).sum()) for k in BodyKind},
            "present": int(run.present(-1).sum()) if run.frames else None,
            "fields": list(run.fields),
            "law": about.pop("law", None),
            "solver": about.pop("solver", None),
            "dt": about.pop("dt", None),
            "tumble_version": about.pop("tumble_version", None),
            "options": run.options,
            "final_state_sha256": run.final_state_sha256,
            "history": run.history,
        }
        about.pop("options", None)
        if len(reports.get("time", ())):
            facts |= {column: float(v[-1]) for column, v in reports.items() if "." in column}
            facts |= {name: count(reports[c]) for name, c, count in COUNTS if c in reports}
            facts["worst"] = {k: float(reports[k].max()) for k in WORST if k in reports}
            facts["seconds"] = {
                k.removeprefix("seconds_"): float(v.sum()) for k, v in reports.items() if k.startswith("seconds_")
            }
    return facts | about


def scene_facts(path: Path) -> dict[str, Any]:
    """What `tumble info` says about a scene file."""
    return facts_of_scene(load_scene(path))


def facts_of_scene(scene: LoadedScene) -> dict[str, Any]:
    """What there is to say about a scene that was read."""
    model = scene.model
    dynamic = model.body_kind == BodyKind.DYNAMIC
    return {
        "kind": "scene",
        "parameters": scene.parameters,
        "bodies": {k.name.lower(): int((model.body_kind == k).sum()) for k in BodyKind},
        "shapes": {ShapeKind(k).name.lower(): int((model.shape_kind == k).sum()) for k in np.unique(model.shape_kind)},
        "materials": {m.name or f"material{i}": m.friction for i, m in enumerate(model.materials)},
        "joints": {kind: sum(e.kind == kind for e in model.joints.elements) for kind in sorted(_kinds(model))},
        "flow": [f"{kind[:-1]} {e['name']}" for kind, elements in model.flow.facts().items() for e in elements],
        "total_mass": float(model.body_mass[dynamic].sum()),
        "gravity": model.gravity.tolist(),
        "step": scene.step,
        "solver": scene.solver,
        "until": scene.until,
        "save_every": scene.save_every,
    }


def _kinds(model: Model) -> set[str]:
    return {e.kind for e in model.joints.elements}


def robot_facts(path: Path) -> dict[str, Any]:
    """What `tumble info` says about a URDF file. Meshes are sought, not opened."""
    robot = read_urdf(path)
    plan = RobotPlan.of(robot, fixed=None)
    finder = MeshFinder(robot.path)
    files = dict.fromkeys(g.file for link in robot.links.values() for g in link.shapes if g.file)
    return {
        "kind": "robot",
        "name": robot.name,
        "root": robot.root,
        "total_mass": sum(link.mass for link in robot.links.values()),
        "bodies": len(plan.groups),
        "links": {
            n: {"mass": link.mass, "body": plan.top[n], "shapes": [g.file or g.kind for g in link.shapes]}
            for n, link in robot.links.items()
        },
        "joints": {
            n: {
                "kind": j.kind,
                "parent": j.parent,
                "child": j.child,
                "limits": [j.lower, j.upper] if j.kind in ("revolute", "prismatic") else None,
                "effort": j.effort,
                "follows": j.mimic[0] if j.mimic else None,
            }
            for n, j in robot.joints.items()
        },
        "meshes": {name: str(finder.find(name) or "not found") for name in files},
        "read": list(plan.read),
        "ignored": list(plan.ignored),
    }


def robot_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts of a robot, a line for each link and joint."""
    rows = [(key, f"{facts[key]:.6g} kg" if key == "total_mass" else str(facts[key])) for key in list(facts)[:5]]
    for name, link in facts["links"].items():
        words = [f"{link['mass']:.6g} kg", *(Path(shape).name for shape in link["shapes"])]
        rows.append((f"link {name}", ", ".join(words) + (f" (part of {link['body']})" if link["body"] != name else "")))
    for name, j in facts["joints"].items():
        words = [f"{j['kind']}, {j['parent']} -> {j['child']}"]
        if j["limits"] is not None:
            unit = "m" if j["kind"] == "prismatic" else "rad"
            words.append(f"{j['limits'][0]:g} to {j['limits'][1]:g} {unit}")
        words += [f"{word} {j[word]}" for word in ("effort", "follows") if j[word] is not None]
        rows.append((f"joint {name}", ", ".join(words)))
    rows += [(f"mesh {Path(name).name}", path) for name, path in facts["meshes"].items()]
    rows += [(key, _shortened(line)) for key in ("read", "ignored") for line in facts[key]]
    return rows


def _shortened(line: str, most: int = 6) -> str:
    """The first few of a long list."""
    parts = line.split(", ")
    return line if len(parts) <= most else ", ".join(parts[:most]) + f" and {len(parts) - most} more"
