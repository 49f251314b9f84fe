"""The tables of a scene file, and how a mistake in one is told."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal, Union, get_type_hints

from .. import checks
from ..enums import Integrator, Law, Scaling, Stop, Variant
from ..errors import SceneError, TumbleError, message
from ..options import SAVE_FIELDS, Save, StepOptions
from .flow_tables import flow_tables
from .materials import PROPERTIES
from .mechanism_tables import mechanism_tables
from .settings import Location
from .shapes import PLAIN

__all__ = ["at_place", "schema", "validated"]


@functools.cache
def schema() -> types.SimpleNamespace:
    """The tables of a TOML scene, and the settings of a Python scene. Pydantic is imported on first use."""
    from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator
    from pydantic_core import PydanticCustomError

    class Table(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

        @model_validator(mode="before")
        @classmethod
        def known(cls, data: Any) -> Any:
            for key in data if isinstance(data, dict) else ():
                if key not in cls.model_fields:
                    raise PydanticCustomError(
                        "unknown_key", "unknown key", {"key": key, "hint": checks.nearest(key, cls.model_fields)}
                    )
            return data

    def table(title: str, /, *bases: type, **columns: Any) -> type[BaseModel]:
        """A column is a type (then the key may be left out) or (type, ...) where it must be there."""
        entries: dict[str, Any] = {k: v if isinstance(v, tuple) else (v | None, None) for k, v in columns.items()}
        return create_model(title, __base__=bases or (Table,), **entries)

    def some(kind: Any, count: int) -> Any:
        return Annotated[list[kind], Field(min_length=count, max_length=count)]

    vector, quaternion, text = some(float, 3), some(float, 4), Annotated[str, Field(min_length=1)]
    rotation = table(
        "Rotation",
        axis=vector,
        angle_degrees=float,
        euler_degrees=vector,
        order=text,
        look_at=vector,
        up=vector,
    )
    turned = table("Turned", orientation=quaternion, rotation=rotation)
    placed = table("PlacedShape", turned, position=vector, material=text)

    def plain(shape: Any) -> type[BaseModel]:
        """The table of a shape whose keys are the fields of its class: numbers and vectors."""
        columns = {}
        for f in fields(shape):
            kind = float if f.type == "float" else vector
            columns[f.name] = (kind, ...) if f.default is MISSING else kind
        if shape.roundable:
            columns["rounding"] = float
        return table(f"{shape.__name__}Shape", placed, type=(Literal[shape.key], ...), **columns)

    hull = table("HullShape", placed, type=(Literal["hull"], ...), points=(list[vector], ...), rounding=float)
    mesh = table(
        "MeshShape",
        placed,
        type=(Literal["mesh"], ...),
        file=text,
        scale=float,
        unit=text,
        vertices=list[vector],
        triangles=list[some(int, 3)],
        convex=bool,
        clean=bool,
        cavity=bool,
    )
    height_field = table(
        "HeightFieldShape",
        placed,
        type=(Literal["height_field"], ...),
        heights=list[list[float]],
        image=text,
        size=(some(float, 2), ...),
        low=float,
        high=float,
    )
    walls = table("Walls", placed, height=(float, ...), spout=float, wall=float, thickness=float)
    funnel = table(
        "FunnelShape", walls, type=(Literal["funnel"], ...), top=(float, ...), bottom=(float, ...), segments=int
    )
    two = some(float, 2)
    hopper = table("HopperShape", walls, type=(Literal["hopper"], ...), top=(two, ...), bottom=(two, ...))
    drum = table(
        "DrumShape", placed, type=(Literal["drum"], ...), radius=(float, ...), length=(float, ...), segments=int
    )
    lengths = dict.fromkeys(("radius", "pitch", "turns", "shaft", "thickness"), (float, ...))
    screw = table("ScrewShape", placed, type=(Literal["screw"], ...), **lengths, segments=int)
    shape = Annotated[
        Union[(*map(plain, PLAIN), hull, mesh, height_field, funnel, hopper, drum, screw)],
        Field(discriminator="type"),
    ]
    shapes = dict(shape=shape, shapes=Annotated[list[shape], Field(min_length=1)])
    common = table("Common", material=text, name=text, group=int, mask=int, locked=list[str])
    moved = table(
        "Moved",
        turned,
        common,
        kind=Literal["dynamic", "static", "kinematic"],
        mass=float,
        density=float,
        inertia=vector | some(vector, 3),
        center=vector,
        position=vector,
        velocity=vector,
        angular_velocity=vector,
        force=vector,
        torque=vector,
        motion=table("Motion", amplitude=(vector, ...), period=(float, ...), start=float),
        surface_velocity=vector | table("SurfaceVelocity", velocity=vector, angular_velocity=vector, point=vector),
    )
    body = table("Body", moved, **shapes)
    regular = dict(shape=(some(int, 3), ...), origin=vector, jitter=float, seed=int, count=Annotated[int, Field(ge=1)])
    grid = table("Grid", kind=(Literal["grid"], ...), spacing=(float | vector, ...), **regular)
    lattice = table("Lattice", kind=(Literal["lattice"], ...), diameter=(float, ...), **regular)
    thrown = table(
        "Random",
        kind=(Literal["random"], ...),
        count=(int, ...),
        low=(vector, ...),
        high=(vector, ...),
        radius=float | list[float],
        seed=int,
        tries=int,
    )
    many = table(
        "Many",
        common,
        position=list[vector],
        mass=float | list[float],
        density=float | list[float],
        packing=Annotated[grid | lattice | thrown, Field(discriminator="kind")],
        velocity=vector | list[vector],
        angular_velocity=vector | list[vector],
        force=vector | list[vector],
        torque=vector | list[vector],
    )
    spheres = table("Spheres", many, radius=float | list[float], radius_range=some(float, 2), seed=int)
    boxes = table("Boxes", many, turned, size=(vector | list[vector], ...), orientation=quaternion | list[quaternion])
    copies = table(
        "Copies",
        many,
        turned,
        **shapes,
        orientation=quaternion | list[quaternion],
    )
    bodies = table(
        "Bodies",
        many,
        turned,
        shapes=(list[shape | Annotated[list[shape], Field(min_length=1)]], ...),
        orientation=quaternion | list[quaternion],
        material=text | list[text],
    )
    container = table("Container", moved, inner=(vector, ...), thickness=float)
    replicate = table(
        "Replicate",
        turned,
        file=(text, ...),
        position=list[vector],
        packing=Annotated[grid | lattice | thrown, Field(discriminator="kind")],
        orientation=quaternion | list[quaternion],
        name=text,
        settings=dict[str, Any],
    )
    step = table("Step", **_options(StepOptions, law=Literal[tuple(Law)], integrator=Literal[tuple(Integrator)]))
    save = table(
        "Save",
        **_options(
            Save,
            left=("path", "overwrite", "label", "checkpoint"),
            fields=list[Literal[SAVE_FIELDS]],
            bodies=list[int | text],
            precision=Literal["single", "double"],
        ),
    )
    stated = dict(stop=Literal[tuple(Stop)], scaling=Literal[tuple(Scaling)], variant=Literal[tuple(Variant)])
    solver = table("Solver", name=text, **_solver_options(), **stated)
    run = dict(until=Annotated[float, Field(gt=0)], save_every=Annotated[int, Field(ge=1)])
    surface = dict.fromkeys(PROPERTIES, float)
    scene = table(
        "Scene",
        gravity=vector,
        material=list[table("Material", name=(text, ...), **surface)],
        pair=list[table("Pair", a=(text, ...), b=(text, ...), **surface)],
        body=list[body],
        container=list[container],
        spheres=list[spheres],
        boxes=list[boxes],
        copies=list[copies],
        bodies=list[bodies],
        exclude=list[table("Exclude", a=(int | str, ...), b=(int | str, ...))],
        **flow_tables(table, some, common, shapes),
        **mechanism_tables(table, some, turned),
        replicate=list[replicate],
        step=step,
        solver=solver,
        save=save,
        run=table("Run", **run),
    )
    settings = table("Settings", step=step, solver=solver, save=save, **run)
    return types.SimpleNamespace(scene=scene, settings=settings)


def _options(kind: type, *, left: tuple[str, ...] = (), **special: Any) -> dict[str, Any]:
    """The fields of a dataclass of options as columns; special: types that say more than the dataclass."""
    hints = get_type_hints(kind)
    return {
        f.name: special.get(f.name, float if hints[f.name] == float | None else hints[f.name])
        for f in fields(kind)
        if f.name not in left
    }


def _solver_options() -> dict[str, Any]:
    """All that some solver takes; the one that is named says what is not for it."""
    from ..solve.registry import SOLVERS

    plain = (int, float, bool, str)
    hints = {n: hint for kind in SOLVERS.values() for n, hint in get_type_hints(kind).items() if n in _fields(kind)}
    kinds = {n: next((k for k in plain if hint in (k, k | None)), None) for n, hint in hints.items()}
    return {
        n: kind for n, kind in kinds.items() if kind is not None and n not in ("record", "stop", "scaling", "variant")
    }


def _fields(kind: Any) -> set[str]:
    return {f.name for f in fields(kind)}


@contextmanager
def at_place(place: str) -> Iterator[None]:
    """Errors in the block say where in a file the mistake is."""
    try:
        yield
    except TumbleError as cause:
        raise SceneError(f"{place}: {cause}") from cause


def validated(kind: Any, data: dict[str, Any], where: Callable[[Location], str]) -> dict[str, Any]:
    """The data as plain dictionaries without the keys left out, or one line about the first mistake.

    where: file and place of a value, for the message."""
    from pydantic import ValidationError

    try:
        return kind.model_validate(data).model_dump(exclude_unset=True)
    except ValidationError as cause:
        raise SceneError(_mistake(cause.errors(include_url=False), data, where)) from cause


def _mistake(mistakes: list[Any], data: Any, place: Callable[[Location], str]) -> str:
    """One line about the mistake that says most."""
    mistake = min(mistakes, key=_vagueness)
    context, kind = mistake.get("ctx", {}), mistake["type"]
    tag = context["discriminator"].strip("'") if kind.startswith("union_tag") else None
    last = {"unknown_key": context.get("key"), "union_tag_invalid": tag, "union_tag_not_found": tag}.get(kind)
    absent = kind in ("missing", "union_tag_not_found")
    at: Location = ()
    value = data
    steps = (*mistake["loc"], *(() if last is None else (last,)))
    for i, step in enumerate(steps):
        if isinstance(value, list) and isinstance(step, int):
            at, value = (*at, step), value[step]
        elif isinstance(value, dict) and (step in value or (absent and i == len(steps) - 1)):
            at, value = (*at, step), value.get(step)
    where = place(at)
    shown = checks.short(value)
    if kind == "unknown_key":
        return message(where, "unknown key", shown, context["hint"])
    if where.endswith("shape") and isinstance(value, list):
        return message(where, "is one shape", shown, "Write shapes = [...] for several.")
    if absent:
        return message(where, "is required", "nothing", "Add this key.")
    if kind in ("union_tag_invalid", "literal_error"):
        words = context.get("expected_tags") or context["expected"]
        known = re.findall(r"'([^']*)'", words)
        hint = checks.nearest(str(value), known)
        return message(
            where,
            "must be one of " + ", ".join(f"'{k}'" for k in known),
            shown,
            hint if hint.startswith("Did") else "Choose one of them.",
        )
    if kind in ("too_short", "too_long"):
        bound, count = ("at least", "min_length") if kind == "too_short" else ("at most", "max_length")
        return message(where, f"must have {bound} {context[count]} items", shown, "Check the number of values.")
    if kind in ("model_type", "model_attributes_type", "dict_type", "list_type"):
        what, form = ("a list", "[...]") if kind == "list_type" else ("a table", "{key = value, ...}")
        return message(where, f"must be {what}", shown, f"Write {form}.")
    rule = mistake["msg"].replace("Input should be", "must be")
    rule = rule[:1].lower() + rule[1:]
    quoted = isinstance(value, str) and kind.startswith(("float", "int", "bool"))
    return message(where, rule, shown, "Write it without quotes." if quoted else "Correct this value.")


def _vagueness(mistake: dict[str, Any]) -> int:
    """Where a key takes a number or a list, a wrong list is also "no number"; that says little."""
    if mistake["type"] == "unknown_key":
        return 0
    return 2 if mistake["type"].endswith("_type") and isinstance(mistake["input"], list) else 1
