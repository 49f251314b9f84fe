"""Scene files: a TOML table of bodies, or a Python file that defines `build()`."""

from __future__ import annotations

import functools
import inspect
import sys
import tomllib
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks, memory
from ..errors import FileError, SceneError, TumbleError, message
from ..options import StepOptions
from . import fill, rotation
from .builder import STANDARD_GRAVITY, SceneBuilder
from .flow_tables import flow_adders
from .materials import Material
from .mechanism_tables import mechanism_adders
from .model import Model
from .motion import Oscillation
from .schema import schema, validated
from .shape_tables import ShapeReader, either
from .shapes import Placed, open_box

__all__ = ["LoadedScene", "load_scene"]

SETTINGS = {"STEP": "step", "SOLVER": "solver", "UNTIL": "until", "SAVE_EVERY": "save_every"}


@dataclass(frozen=True, kw_only=True)
class LoadedScene:
    """A scene read from a file, with the settings that the file proposes."""

    model: Model
    path: Path
    step: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of `StepOptions`; may be empty."""
    solver: dict[str, Any] = field(default_factory=dict)
    """Any of name, tolerance, stop, max_iterations, scaling."""
    until: float | None = None
    """End of the run [s]."""
    save_every: int | None = None
    """Steps between two recorded frames."""


def load_scene(path: str | Path) -> LoadedScene:
    """Read a `.toml` or `.py` scene; every error names the file and the place in it."""
    path = checks.file_name("load_scene.path", path, "scene.toml")
    readers = {".toml": _load_toml, ".py": _load_python}
    if path.suffix not in readers:
        raise FileError(
            message(str(path), "a scene file ends in .toml or .py", checks.short(path.suffix), "Rename the file.")
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        reason = getattr(cause, "strerror", None) or "not a text in UTF-8"
        raise FileError(message(str(path), "must be a readable text file", reason, "Check the file name.")) from cause
    return readers[path.suffix](path, text)


# ---------------------------------------------------------------------- Python


def _load_python(path: Path, text: str) -> LoadedScene:
    module = types.ModuleType("tumble_scene")
    module.__file__ = str(path)
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(path.parent))
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
        build = getattr(module, "build", None)
        model = build() if callable(build) else None
    except (Exception, SystemExit) as cause:
        raise SceneError(_raised(path, cause)) from cause
    finally:
        with suppress(ValueError):  # the scene took it away
            sys.path.remove(str(path.parent))
        if before is None:
            sys.modules.pop(module.__name__, None)
        else:
            sys.modules[module.__name__] = before
    if build is None:
        raise SceneError(message(str(path), "a Python scene defines build()", "no build", "Add def build() -> Model."))
    if not isinstance(model, Model):
        raise SceneError(
            message(
                f"{path}: build()", "must return a Model", type(model).__name__, "End it with return scene.build()."
            )
        )
    given = {key: getattr(module, name) for name, key in SETTINGS.items() if hasattr(module, name)}
    checked = validated(path, schema().settings, given, {key: name for name, key in SETTINGS.items()})
    return LoadedScene(model=model, path=path, **_settings(path, checked, "STEP"))


def _raised(path: Path, cause: BaseException) -> str:
    lines = [f.lineno for f in traceback.extract_tb(cause.__traceback__) if f.filename == str(path)]
    if isinstance(cause, SyntaxError) and cause.filename == str(path):
        lines.append(cause.lineno)
    line = lines[-1] if lines else "?"
    if isinstance(cause, TumbleError):
        return f"{path}: line {line}: {cause}"
    return message(
        f"{path}: line {line}", "the scene file must run", f"{type(cause).__name__}: {cause}", "Correct this line."
    )


# ---------------------------------------------------------------------- TOML


def _load_toml(path: Path, text: str) -> LoadedScene:
    try:
        data = tomllib.loads(text)
    except ValueError as cause:  # of TOML, and integers of thousands of digits
        raise FileError(message(str(path), "must be valid TOML", cause, "Correct this line.")) from cause
    except RecursionError as cause:
        got, remedy = "lists in lists in lists", "The deepest scene has six levels."
        raise FileError(message(str(path), "must not be nested so deep", got, remedy)) from cause
    scene = validated(path, schema().scene, data)
    with _at(path, "gravity"):
        builder = SceneBuilder(gravity=scene.get("gravity", STANDARD_GRAVITY))
    reader = ShapeReader(path.parent)
    adders = {
        "material": lambda **row: builder.add_material(Material(**row)),
        "pair": builder.set_pair,
        "container": functools.partial(_add_container, builder),
        "body": functools.partial(_add_body, builder, reader),
        "spheres": functools.partial(_add_spheres, builder),
        "boxes": functools.partial(_add_boxes, builder),
        "copies": functools.partial(_add_copies, builder, reader),
        **flow_adders(builder, functools.partial(_shapes, builder, reader)),
        **mechanism_adders(builder, path.parent, _turn),
        "exclude": builder.exclude_pair,
    }
    for table, add in adders.items():
        for i, row in enumerate(scene.get(table, ())):
            with _at(path, f"{table}[{i}]"):
                add(**row)
    with _at(path, "scene"):
        model = builder.build()
    return LoadedScene(model=model, path=path, **_settings(path, scene | scene.get("run", {}), "step"))


def _add_container(builder: SceneBuilder, **row: Any) -> None:
    own = {key: row.pop(key) for key in ("material", "name") if key in row}
    builder.add_static(open_box(**row), **own)


def _add_body(builder: SceneBuilder, reader: ShapeReader, *, kind: str = "dynamic", **row: Any) -> None:
    add = getattr(builder, "add_body" if kind == "dynamic" else f"add_{kind}")
    bare = kind == "dynamic" and "inertia" in row and "shape" not in row and "shapes" not in row
    shapes = None if bare else _shapes(builder, reader, row)
    row = _turn(row)
    allowed = inspect.signature(add).parameters
    for key in row:
        if key not in allowed:
            raise SceneError(message(key, f"does not apply to a {kind} body", row[key], "Leave it out or change kind."))
    if "motion" in row:
        place = {k: row[k] for k in ("position", "orientation") if k in row}
        row["motion"] = Oscillation(**row["motion"], **place)
    add(shapes, **row)


def _add_copies(builder: SceneBuilder, reader: ShapeReader, **row: Any) -> None:
    shapes = _shapes(builder, reader, row)
    reach = max(np.linalg.norm(p.position) + p.shape.bound for p in shapes)
    points = _points(row, lambda count: float(reach))
    builder.add_copies(shapes, position=points, **_turn(row))


def _shapes(builder: SceneBuilder, reader: ShapeReader, row: dict[str, Any]) -> list[Placed]:
    """Take the shapes out of a row; those with a material of their own make a list of its material."""
    either(row, "shape", "shapes")
    shapes = row.pop("shapes", None) or [row.pop("shape")]
    if any("material" in s for s in shapes):
        row["material"] = [s.get("material") or row.get("material") or _default(builder) for s in shapes]
    return [
        Placed(reader.shape(s), **{k: v for k, v in _turn(s).items() if k in ("position", "orientation")})
        for s in shapes
    ]


def _add_spheres(builder: SceneBuilder, *, seed: int = 0, **row: Any) -> None:
    either(row, "radius", "radius_range")
    radius, radius_range = row.pop("radius", None), row.pop("radius_range", None)

    def radii(count: int) -> Any:
        if radius_range is None:
            return radius
        low, high = radius_range
        if not 0.0 < low <= high:
            raise SceneError(
                message("radius_range", "must be 0 < low <= high [m]", radius_range, "Swap or correct them.")
            )
        return np.random.default_rng(checks.seed("seed", seed)).uniform(low, high, count)

    points = _points(row, radii)
    builder.add_spheres(radii(len(points)), position=points, **row)


def _add_boxes(builder: SceneBuilder, *, size: Any, **row: Any) -> None:
    half = 0.5 * np.linalg.norm(size, axis=-1)
    points = _points(row, lambda count: half)
    builder.add_boxes(size, position=points, **_turn(row))


def _points(row: dict[str, Any], radii: Any) -> Any:
    """Take position or packing out of a row; a random packing uses the bodies' own radii unless given."""
    either(row, "position", "packing")
    if "position" in row:
        return row.pop("position")
    packing = row.pop("packing")
    kind, count = packing.pop("kind"), packing.get("count")
    if kind == "random":
        memory.check_packing("packing.count", checks.integer("packing.count", count, at_least=1, error=SceneError))
        return fill.random_points(**{"radius": radii(count), **packing})
    packing.pop("count", None)
    points = {"grid": fill.grid_points, "lattice": fill.lattice_points}[kind](**packing)
    if count is not None and count > len(points):
        raise SceneError(
            message("packing.count", f"must be <= {len(points)}, the size of the packing", count, "Enlarge its shape.")
        )
    return points[:count]


def _turn(row: dict[str, Any]) -> dict[str, Any]:
    """`rotation` as the orientation it stands for."""
    if "rotation" not in row:
        return row
    either(row, "rotation", "orientation")
    axis = checks.direction("rotation.axis", row["rotation"]["axis"])
    angle = np.deg2rad(checks.number("rotation.angle_degrees", row["rotation"]["angle_degrees"], error=SceneError))
    turned = {k: v for k, v in row.items() if k != "rotation"}
    return turned | {"orientation": rotation.from_axis_angle(axis, angle).tolist()}


def _default(builder: SceneBuilder) -> str:
    """The material of shapes without one; it may be there already."""
    with suppress(SceneError):
        builder.add_material(Material(name="default"))
    return "default"


# ---------------------------------------------------------------------- shared


@contextmanager
def _at(path: Path, place: str) -> Iterator[None]:
    try:
        yield
    except TumbleError as cause:
        raise SceneError(f"{path}: {place}: {cause}") from cause


def _settings(path: Path, data: dict[str, Any], step: str) -> dict[str, Any]:
    with _at(path, step):
        StepOptions(**{"dt": 1.0, **data.get("step", {})})
    return {key: data[key] for key in SETTINGS.values() if key in data}
