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
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from .. import checks
from ..enums import Law, Scaling, Stop
from ..errors import FileError, SceneError, TumbleError, message
from ..options import StepOptions
from . import fill, rotation
from .builder import STANDARD_GRAVITY, SceneBuilder
from .materials import Material
from .model import Model
from .motion import Oscillation
from .shapes import Box, HalfSpace, Placed, Sphere, open_box

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
    path = Path(path)
    readers = {".toml": _load_toml, ".py": _load_python}
    if path.suffix not in readers:
        raise FileError(message(str(path), "a scene file ends in .toml or .py", repr(path.suffix),
                                "Rename the file."))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        reason = getattr(cause, "strerror", None) or "not a text in UTF-8"
        raise FileError(message(str(path), "must be a readable text file", reason,
                                "Check the file name.")) from cause
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
    except Exception as cause:
        raise SceneError(_raised(path, cause)) from cause
    finally:
        sys.path.remove(str(path.parent))
        if before is None:
            del sys.modules[module.__name__]
        else:
            sys.modules[module.__name__] = before
    if build is None:
        raise SceneError(message(str(path), "a Python scene defines build()", "no build",
                                 "Add def build() -> Model."))
    if not isinstance(model, Model):
        raise SceneError(message(f"{path}: build()", "must return a Model", type(model).__name__,
                                 "End it with return scene.build()."))
    given = {key: getattr(module, name) for name, key in SETTINGS.items() if hasattr(module, name)}
    checked = _validated(path, _schema().settings, given, {key: name for name, key in SETTINGS.items()})
    return LoadedScene(model=model, path=path, **_settings(path, checked, "STEP"))


def _raised(path: Path, cause: Exception) -> str:
    lines = [f.lineno for f in traceback.extract_tb(cause.__traceback__) if f.filename == str(path)]
    if isinstance(cause, SyntaxError) and cause.filename == str(path):
        lines.append(cause.lineno)
    line = lines[-1] if lines else "?"
    if isinstance(cause, TumbleError):
        return f"{path}: line {line}: {cause}"
    return message(f"{path}: line {line}", "the scene file must run", f"{type(cause).__name__}: {cause}",
                   "Correct this line.")


# ---------------------------------------------------------------------- TOML


@functools.cache
def _schema() -> types.SimpleNamespace:
    """The tables of a TOML scene."""
    from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator
    from pydantic_core import PydanticCustomError

    class Table(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

        @model_validator(mode="before")
        @classmethod
        def known(cls, data: Any) -> Any:
            for key in data if isinstance(data, dict) else ():
                if key not in cls.model_fields:
                    raise PydanticCustomError("unknown_key", "unknown key",
                                              {"key": key, "hint": checks.nearest(key, cls.model_fields)})
            return data

    def table(title: str, /, *bases: type, **columns: Any) -> type[BaseModel]:
        """A column is a type (then the key may be left out) or (type, ...) where it must be there."""
        entries = {k: v if isinstance(v, tuple) else (v | None, None) for k, v in columns.items()}
        return create_model(title, __base__=bases or (Table,), **entries)

    def some(kind: Any, count: int) -> Any:
        return Annotated[list[kind], Field(min_length=count, max_length=count)]

    vector, quaternion, text = some(float, 3), some(float, 4), Annotated[str, Field(min_length=1)]
    turned = table("Turned", orientation=quaternion,
                   rotation=table("Rotation", axis=(vector, ...), angle_degrees=(float, ...)))
    placed = table("PlacedShape", turned, position=vector, material=text)
    sphere = table("SphereShape", placed, type=(Literal["sphere"], ...), radius=(float, ...))
    box = table("BoxShape", placed, type=(Literal["box"], ...), size=(vector, ...))
    half_space = table("HalfSpaceShape", placed, type=(Literal["half_space"], ...), normal=vector,
                       offset=float)
    shape = Annotated[sphere | box | half_space, Field(discriminator="type")]
    common = table("Common", material=text, name=text, group=int, mask=int, locked=list[str])
    body = table(
        "Body", turned, common, kind=(Literal["dynamic", "static", "kinematic"], "dynamic"), shape=shape,
        shapes=Annotated[list[shape], Field(min_length=1)], mass=float, density=float,
        inertia=vector | some(vector, 3), position=vector, velocity=vector, angular_velocity=vector,
        force=vector, torque=vector,
        motion=table("Motion", amplitude=(vector, ...), period=(float, ...), start=float))
    regular = dict(shape=(some(int, 3), ...), origin=vector, jitter=float, seed=int,
                   count=Annotated[int, Field(ge=1)])
    grid = table("Grid", kind=(Literal["grid"], ...), spacing=(float | vector, ...), **regular)
    lattice = table("Lattice", kind=(Literal["lattice"], ...), diameter=(float, ...), **regular)
    thrown = table("Random", kind=(Literal["random"], ...), count=(int, ...), low=(vector, ...),
                   high=(vector, ...), radius=float | list[float], seed=int, tries=int)
    many = table(
        "Many", common, position=list[vector], mass=float | list[float], density=float | list[float],
        packing=Annotated[grid | lattice | thrown, Field(discriminator="kind")],
        velocity=vector | list[vector], angular_velocity=vector | list[vector],
        force=vector | list[vector])
    spheres = table("Spheres", many, radius=float | list[float], radius_range=some(float, 2), seed=int)
    boxes = table("Boxes", many, turned, size=(vector | list[vector], ...),
                  orientation=quaternion | list[quaternion])
    container = table("Container", inner=(vector, ...), thickness=float, center=vector, material=text,
                      name=text)
    step = table("Step", dt=float, law=Literal[tuple(Law)], margin=float, recovery_speed=float,
                 warm_start=bool, speed_limit=float)
    solver = table("Solver", name=text, tolerance=float, stop=Literal[tuple(Stop)], max_iterations=int,
                   scaling=Literal[tuple(Scaling)])
    run = dict(until=Annotated[float, Field(gt=0)], save_every=Annotated[int, Field(ge=1)])
    scene = table(
        "Scene", gravity=vector, material=list[table("Material", name=(text, ...), friction=float)],
        friction=list[table("Friction", a=(text, ...), b=(text, ...), friction=(float, ...))],
        body=list[body], container=list[container], spheres=list[spheres], boxes=list[boxes],
        exclude=list[table("Exclude", a=(int | str, ...), b=(int | str, ...))], step=step, solver=solver,
        run=table("Run", **run))
    return types.SimpleNamespace(scene=scene, settings=table("Settings", step=step, solver=solver, **run))


def _load_toml(path: Path, text: str) -> LoadedScene:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as cause:
        raise FileError(message(str(path), "must be valid TOML", cause, "Correct this line.")) from cause
    scene = _validated(path, _schema().scene, data)
    with _at(path, "gravity"):
        builder = SceneBuilder(gravity=scene.get("gravity", STANDARD_GRAVITY))
    adders = {
        "material": lambda **row: builder.add_material(Material(**row)),
        "friction": lambda a, b, friction: builder.set_friction(a, b, friction),
        "container": functools.partial(_add_container, builder),
        "body": functools.partial(_add_body, builder),
        "spheres": functools.partial(_add_spheres, builder),
        "boxes": functools.partial(_add_boxes, builder),
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


def _add_body(builder: SceneBuilder, *, kind: str = "dynamic", **row: Any) -> None:
    add = getattr(builder, "add_body" if kind == "dynamic" else f"add_{kind}")
    _either(row, "shape", "shapes")
    shapes = row.pop("shapes", None) or [row.pop("shape")]
    if any("material" in s for s in shapes):
        row["material"] = [s.get("material") or row.get("material") or _default(builder) for s in shapes]
    row = _turn(row)
    allowed = inspect.signature(add).parameters
    for key in row:
        if key not in allowed:
            raise SceneError(message(key, f"does not apply to a {kind} body", row[key],
                                     "Leave it out or change kind."))
    if "motion" in row:
        place = {k: row[k] for k in ("position", "orientation") if k in row}
        row["motion"] = Oscillation(**row["motion"], **place)
    add([_shape(s) for s in shapes], **row)


def _add_spheres(builder: SceneBuilder, *, seed: int = 0, **row: Any) -> None:
    _either(row, "radius", "radius_range")
    radius, radius_range = row.pop("radius", None), row.pop("radius_range", None)

    def radii(count: int) -> Any:
        if radius_range is None:
            return radius
        low, high = radius_range
        if not 0.0 < low <= high:
            raise SceneError(message("radius_range", "must be 0 < low <= high [m]", radius_range,
                                     "Swap or correct them."))
        return np.random.default_rng(seed).uniform(low, high, count)

    points = _points(row, radii)
    builder.add_spheres(radii(len(points)), position=points, **row)


def _add_boxes(builder: SceneBuilder, *, size: Any, **row: Any) -> None:
    half = 0.5 * np.linalg.norm(size, axis=-1)
    points = _points(row, lambda count: half)
    builder.add_boxes(size, position=points, **_turn(row))


def _points(row: dict[str, Any], radii: Any) -> Any:
    """Take position or packing out of a row; a random packing uses the bodies' own radii unless given."""
    _either(row, "position", "packing")
    if "position" in row:
        return row.pop("position")
    packing = row.pop("packing")
    kind, count = packing.pop("kind"), packing.get("count")
    if kind == "random":
        return fill.random_points(**{"radius": radii(count), **packing})
    packing.pop("count", None)
    points = {"grid": fill.grid_points, "lattice": fill.lattice_points}[kind](**packing)
    if count is not None and count > len(points):
        raise SceneError(message("packing.count", f"must be <= {len(points)}, the size of the packing",
                                 count, "Enlarge its shape."))
    return points[:count]


def _shape(row: dict[str, Any]) -> Placed:
    kind = {"sphere": Sphere, "box": Box, "half_space": HalfSpace}[row["type"]]
    own = {f.name: row[f.name] for f in fields(kind) if f.name in row}
    return Placed(kind(**own), **{k: v for k, v in _turn(row).items() if k in ("position", "orientation")})


def _turn(row: dict[str, Any]) -> dict[str, Any]:
    """`rotation` as the orientation it stands for."""
    if "rotation" not in row:
        return row
    _either(row, "rotation", "orientation")
    axis, angle = row["rotation"]["axis"], np.deg2rad(row["rotation"]["angle_degrees"])
    if not np.any(axis):
        raise SceneError(message("rotation.axis", "must have a direction", axis, "For example [0, 0, 1]."))
    turned = {k: v for k, v in row.items() if k != "rotation"}
    return turned | {"orientation": rotation.from_axis_angle(axis, angle).tolist()}


def _either(row: dict[str, Any], a: str, b: str) -> None:
    if (a in row) == (b in row):
        raise SceneError(message(a, f"needs either {a} or {b}", "both" if a in row else "neither",
                                 "Give exactly one of them."))


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


def _validated(path: Path, schema: Any, data: dict[str, Any], labels: dict[str, str] | None = None) -> Any:
    """The data as plain dictionaries without the keys left out, or one line about the first mistake."""
    from pydantic import ValidationError

    try:
        return schema.model_validate(data).model_dump(exclude_unset=True)
    except ValidationError as cause:
        raise SceneError(_mistake(path, cause.errors(include_url=False), data, labels or {})) from cause


def _mistake(path: Path, mistakes: list[Any], data: Any, labels: dict[str, str]) -> str:
    mistake = next((m for m in mistakes if m["type"] == "unknown_key"), mistakes[0])
    context, kind = mistake.get("ctx", {}), mistake["type"]
    where, value = "", data
    steps = (*mistake["loc"], *((context["key"],) if kind == "unknown_key" else ()))
    for i, step in enumerate(steps):
        if isinstance(value, list) and isinstance(step, int):
            where, value = f"{where}[{step}]", value[step]
        elif isinstance(value, dict) and (step in value or (i == len(steps) - 1 and kind == "missing")):
            where, value = f"{where}.{labels.get(step, step) if not where else step}", value.get(step)
    where = f"{path}: {where.lstrip('.') or 'scene'}"
    if kind == "unknown_key":
        return message(where, "unknown key", checks._short(value), context["hint"])
    if kind == "missing":
        return message(where, "is required", "nothing", "Add this key.")
    rule = mistake["msg"].replace("Input should be", "must be").replace("Input tag", "tag")
    rule = rule[:1].lower() + rule[1:]
    quoted = isinstance(value, str) and kind.startswith(("float", "int", "bool"))
    remedy = "Write it without quotes." if quoted else "Correct this value."
    return message(where, rule, checks._short(value), remedy)
