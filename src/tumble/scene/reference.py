"""The reference of scene files, made from the models that read them: docs/scene_reference.md and the JSON schema."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any

from ..described import field_docs
from ..options import Save, StepOptions
from . import fill
from .builder import SceneBuilder
from .key_words import KEYS, RANGES, TABLES
from .materials import Material
from .motion import Oscillation, SurfaceVelocity
from .primitives import drum, funnel, hopper, screw
from .regions import BoxRegion, DiscRegion
from .schema import schema
from .shapes import PLAIN, Box, open_box

__all__ = ["json_schema", "reference", "sections"]

SOURCES: dict[str, tuple[Any, ...]] = {
    "Material": (Material,),
    "Pair": (Material,),
    "Step": (StepOptions,),
    "Save": (Save,),
    "Body": (SceneBuilder.add_body, SceneBuilder.add_kinematic),
    "Container": (open_box, SceneBuilder.add_body),
    "Spheres": (SceneBuilder.add_spheres,),
    "Boxes": (SceneBuilder.add_boxes,),
    "Copies": (SceneBuilder.add_copies,),
    "Bodies": (SceneBuilder.add_bodies,),
    "Replicate": (SceneBuilder.replicate,),
    "Emitter": (SceneBuilder.add_emitter,),
    "Sink": (SceneBuilder.add_sink,),
    "MeasuringPlane": (SceneBuilder.add_measuring_plane,),
    "Joint": (SceneBuilder.add_joint,),
    "Gear": (SceneBuilder.add_gear,),
    "Motor": (SceneBuilder.add_motor,),
    "Spring": (SceneBuilder.add_spring,),
    "JointSpring": (SceneBuilder.add_joint_spring,),
    "Bushing": (SceneBuilder.add_bushing,),
    "Robot": (SceneBuilder.add_urdf,),
    "Grid": (fill.grid_points,),
    "Lattice": (fill.lattice_points,),
    "Random": (fill.random_points,),
    "Motion": (Oscillation,),
    "SurfaceVelocity": (SurfaceVelocity,),
    "BoxRegion": (BoxRegion,),
    "DiscRegion": (DiscRegion,),
    **{f"{shape.__name__}Shape": (shape,) for shape in PLAIN if shape is not Box},
    "FunnelShape": (funnel,),
    "HopperShape": (hopper,),
    "DrumShape": (drum,),
    "ScrewShape": (screw,),
}
"""Where the defaults of a table's keys are"""
NAMES = {float: "number", int: "whole number", bool: "true or false", str: "text", Any: "anything"}
UNIT = re.compile(r"\[([^\]]+)\]")
FORMULA = {"type": "string", "pattern": "^=", "description": "A formula over [parameters]"}


def sections() -> Iterator[tuple[str, str, type]]:
    """Heading, name and model of every table of a scene, and of those within them, each once."""
    seen: set[str] = set()
    waiting: list[tuple[str, Any]] = []
    for key, field in schema().scene.model_fields.items():
        models = _models(field.annotation)
        for model in models:
            listed = "list[" in str(field.annotation)
            yield (f"[[{key}]]" if listed else f"[{key}]"), model.__name__, model
            seen.add(model.__name__)
            waiting += [(k, f.annotation) for k, f in model.model_fields.items()]
    while waiting:
        key, annotation = waiting.pop(0)
        for model in _models(annotation):
            if model.__name__ not in seen:
                seen.add(model.__name__)
                kind = model.model_fields.get("type") or model.model_fields.get("kind")
                word = (
                    typing.get_args(kind.annotation)[0] if kind is not None and _is_literal(kind.annotation) else None
                )
                tag = "type" if "type" in model.model_fields else "kind"
                yield f'{key} = {{{tag} = "{word}"}}' if word else f"{key} = {{...}}", model.__name__, model
                waiting += [(k, f.annotation) for k, f in model.model_fields.items()]


def _is_literal(annotation: Any) -> bool:
    return typing.get_origin(annotation) is typing.Literal


def _models(annotation: Any) -> list[type]:
    """Models anywhere in an annotation."""
    if isinstance(annotation, type) and hasattr(annotation, "model_fields"):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in _models(part)]


def _type(annotation: Any) -> str:
    """What a key takes, in words."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        count = _length(parts[1:])
        inner = typing.get_args(parts[0])
        if typing.get_origin(parts[0]) is list and count:
            of = _type(inner[0])
            return f"{count} x {of}" if of[0].isdigit() else f"{count} {of}s"
        return _type(parts[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type(p) for p in parts if p is not type(None)))
    if origin is typing.Literal:
        return ", ".join(str(getattr(p, "value", p)) for p in parts)
    if origin is list:
        return f"list of {_type(parts[0])}s"
    if origin is dict:
        return "table"
    return NAMES.get(annotation, "table")


def _length(metas: Sequence[Any]) -> int | None:
    """The fixed length of a list, from what its annotation says besides the type."""
    whole = [m for meta in metas for m in (meta, *getattr(meta, "metadata", ()))]
    low, high = (
        next((getattr(m, name) for m in whole if getattr(m, name, None) is not None), None)
        for name in ("min_length", "max_length")
    )
    return low if low == high else None


def _default(table: str, key: str) -> Any:
    """The default of a key where something has one; `inspect.Parameter.empty` else."""
    for source in SOURCES.get(table, ()):
        parameters = inspect.signature(source).parameters
        if key in parameters and parameters[key].default is not inspect.Parameter.empty:
            return parameters[key].default
    return inspect.Parameter.empty


def _words(table: str, key: str) -> tuple[str, str, str]:
    """Unit, range and meaning of a key."""
    for source in SOURCES.get(table, ()):
        if isinstance(source, type) and is_dataclass(source) and key in (told := field_docs(source)):
            text = " ".join(told[key].split())
            unit = UNIT.search(text)
            return (unit[1] if unit else ""), RANGES.get(f"{table}.{key}") or RANGES.get(key, ""), text
    return KEYS.get(f"{table}.{key}") or KEYS.get(key) or ("", "", "")


def _shown(value: Any) -> str:
    if value is inspect.Parameter.empty or value is None:
        return ""
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def reference() -> str:
    """The page docs/scene_reference.md."""
    lines = [PREFACE]
    for heading, name, model in sections():
        lines += ["", f"## `{heading}`", *([TABLES[name]] if name in TABLES else []), ""]
        lines += ["| key | takes | unit | default | range | |", "| --- | --- | --- | --- | --- | --- |"]
        for key, field in model.model_fields.items():
            unit, allowed, words = _words(name, key)
            default = "" if name == "Pair" else _shown(_default(name, key))
            default = "**required**" if field.is_required() else default
            row = (f"`{key}`", _type(_annotation(field)), unit, default, allowed, words)
            lines.append("| " + " | ".join(part.replace("|", "\\|") for part in row) + " |")
    return "\n".join(lines) + "\n" + METHODS


def _annotation(field: Any) -> Any:
    """With what pydantic took out of an Annotated."""
    return typing.Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def json_schema() -> dict[str, Any]:
    """The JSON schema of a TOML scene, for editors: formulas and arrays from files may stand for values."""
    made = schema().scene.model_json_schema()
    for name, table in made.get("$defs", {}).items():
        table.pop("description", None)
        for key, entry in table.get("properties", {}).items():
            unit, allowed, words = _words(name, key)
            text = (
                words
                + (f" [{unit}]" if unit and f"[{unit}]" not in words else "")
                + (f" ({allowed})" if allowed else "")
            )
            entry["description"] = text
            default = _default(name, key)
            if entry.get("default") is None:
                entry.pop("default", None)
            if isinstance(default, (bool, int, float, str)):
                entry["default"] = default
    made = _with_formulas(made)
    parameter = {"type": ["number", "string", "boolean", "array", "object"]}
    made["properties"] |= {
        "parameters": {"type": "object", "additionalProperties": parameter, "description": "docs/scenes.md"},
        "include": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    }
    return {"$schema": "http://json-schema.org/draft-07/schema#", **made, "title": "tumble scene"}


def _with_formulas(node: Any) -> Any:
    """Numbers, flags and lists may be formulas, lists also arrays in files."""
    if isinstance(node, list):
        return [_with_formulas(part) for part in node]
    if not isinstance(node, dict):
        return node
    out = {k: v if k in ("enum", "const", "default") else _with_formulas(v) for k, v in node.items()}
    if out.get("type") in ("number", "integer", "boolean"):
        return _either(out, FORMULA)
    if out.get("type") == "array":
        return _either(out, FORMULA, {"type": "object", "required": ["array"]})
    return out


def _either(node: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    outside = {k: node.pop(k) for k in ("description", "default", "title") if k in node}
    return {"anyOf": [node, *others], **outside}


PREFACE = """# Every key of a scene file

Made by `tumble schema --markdown` from the models that read the files; `tumble schema > tumble.schema.json` gives the
same to editors: put `#:schema tumble.schema.json` in the first line of a scene (Taplo, Even Better TOML).
How scenes are written, parameters, formulas, includes: [scenes.md](scenes.md). Any number or list may be a formula
(`"=2 * r"`), any list an array from a file: `{array = "points.csv", columns = ["x", "y", "z"]}` (`.npy`, `.npz` with
`key`, `.csv`, `.txt`; `rows = [first, last]`)."""

METHODS = """
## The builder's methods and their keys
| method | in a scene file |
| --- | --- |
| `SceneBuilder(gravity=)` | `gravity` |
| `add_material`, `set_pair` | `[[material]]`, `[[pair]]` |
| `add_body`, `add_static`, `add_kinematic` | `[[body]]` with `kind`; `motion` is an `Oscillation` |
| the same with `open_box` | `[[container]]` with `kind` |
| `add_spheres`, `add_boxes`, `add_copies`, `add_bodies` | `[[spheres]]`, `[[boxes]]`, `[[copies]]`, `[[bodies]]` |
| `grid_points`, `lattice_points`, `random_points` | `packing` |
| `add_emitter`, `add_sink`, `add_measuring_plane` | `[[emitter]]`, `[[sink]]`, `[[measuring_plane]]` |
| `add_joint`, `add_gear`, `add_motor` | `[[joint]]`, `[[gear]]`, `[[motor]]` (targets are numbers) |
| `add_spring`, `add_joint_spring`, `add_bushing` | `[[spring]]`, `[[joint_spring]]`, `[[bushing]]` |
| `add_urdf` | `[[robot]]` |
| `replicate` | `[[replicate]]`: the part is a scene file |
| `exclude_pair` | `[[exclude]]` |
| arrays | `{array = "file.csv"}` |
| `StepOptions`, a solver, `Save`, `run(until=)` | `[step]`, `[solver]`, `[save]`, `[run]` |
| `add_force`, `add_controller`, targets and motions that are functions | a Python scene |
| `contacts()` | `tumble check` |
"""
