"""Scenes in TOML: what to call on the builder for each table."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks, memory
from ..errors import SceneError, message
from . import fill
from .arrays import loaded_arrays
from .builder import STANDARD_GRAVITY, SceneBuilder
from .document import Document, read_text
from .flow_tables import flow_adders
from .materials import Material
from .mechanism_tables import mechanism_adders
from .model import Model
from .motion import Oscillation
from .parameters import declared, filled
from .rotations import rotation_of
from .schema import at_place, schema, validated
from .settings import Location, apply, label
from .shape_tables import ShapeReader, either
from .shapes import Placed, open_box

__all__ = ["read_builder", "read_toml"]


def read_toml(path: Path, text: str, settings: Mapping[str, Any]) -> tuple[Model, dict[str, Any], dict[str, Any]]:
    """The model of a TOML scene, its other tables, and the values of its parameters."""
    builder, scene, values = read_builder(path, text, settings)
    with at_place(f"{path}: scene"):
        return builder.build(), scene, values


def read_builder(
    path: Path, text: str, settings: Mapping[str, Any], chain: tuple[Path, ...] = ()
) -> tuple[SceneBuilder, dict[str, Any], dict[str, Any]]:
    """The builder of a TOML scene, its tables, and the values of its parameters. chain: files that it is a part of."""
    document = Document(path, text)
    data = document.data
    parameters = data.pop("parameters", {})
    if not isinstance(parameters, dict):
        rule, remedy = "must be a table", "Write [parameters]."
        raise SceneError(message(f"{path}: parameters", rule, checks.short(parameters), remedy))
    known = schema().scene.model_fields
    for name in parameters:
        if name in known:
            rule, remedy = "has the name of a table of scenes", "Rename the parameter."
            raise SceneError(message(f"{path}: parameters.{name}", rule, name, remedy))
    values = declared(str(path), parameters, {k: v for k, v in settings.items() if k in parameters})
    given: dict[Location, str] = {}
    for key, value in settings.items():
        if key not in parameters:
            if key.startswith("gravity") and key != "gravity":
                data.setdefault("gravity", list(STANDARD_GRAVITY))
            given[apply(data, key, value, known, parameters)] = key

    def where(at: Location) -> str:
        said = next((label(key) for place, key in given.items() if at[: len(place)] == place), None)
        return document.where(at) if said is None else f"{path}: {said}"

    scene = validated(schema().scene, loaded_arrays(filled(data, values, where), path.parent, where), where)
    return _built(path, scene, where, chain), scene, values


def _built(path: Path, scene: dict[str, Any], where: Any, chain: tuple[Path, ...] = ()) -> SceneBuilder:
    with at_place(where(("gravity",))):
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
        "bodies": functools.partial(_add_bodies, builder, reader),
        **flow_adders(builder, functools.partial(_shapes, builder, reader)),
        **mechanism_adders(builder, path.parent, _turn),
        "replicate": functools.partial(_replicate, builder, path.parent, (*chain, path.resolve())),
        "exclude": builder.exclude_pair,
    }
    for table, add in adders.items():
        for i, row in enumerate(scene.get(table, ())):
            with at_place(where((table, i))):
                add(**row)
    return builder


def _add_container(builder: SceneBuilder, *, kind: str = "static", **row: Any) -> None:
    """A box without a lid; its `center` is that of the floor."""
    own = {key: row.pop(key) for key in ("inner", "thickness", "center") if key in row}
    _add_kind(builder, kind, open_box(**own), row)


def _add_body(builder: SceneBuilder, reader: ShapeReader, *, kind: str = "dynamic", **row: Any) -> None:
    bare = kind == "dynamic" and "inertia" in row and "shape" not in row and "shapes" not in row
    _add_kind(builder, kind, None if bare else _shapes(builder, reader, row), row)


def _add_kind(builder: SceneBuilder, kind: str, shapes: Any, row: dict[str, Any]) -> None:
    """A body of a kind, which takes some keys and not others."""
    add = getattr(builder, "add_body" if kind == "dynamic" else f"add_{kind}")
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


def _add_bodies(builder: SceneBuilder, reader: ShapeReader, *, shapes: list[Any], **row: Any) -> None:
    """One entry a body: a shape or a list of them."""
    own = [[shape] if isinstance(shape, dict) else shape for shape in shapes]
    for shape in (s for entry in own for s in entry):
        if "material" in shape:
            remedy = "Give the table one material, or one for each body."
            raise SceneError(message("material", "is not taken by single shapes here", shape["material"], remedy))
    placed = [_shapes(builder, reader, {"shapes": entry}) for entry in own]
    reach = np.array([max(np.linalg.norm(p.position) + p.shape.bound for p in entry) for entry in placed])
    builder.add_bodies(placed, position=_points(row, lambda count: reach), **_turn(row))


def _replicate(builder: SceneBuilder, folder: Path, chain: tuple[Path, ...], *, file: str, **row: Any) -> None:
    """Copies of another scene file as a part of this one."""
    path = folder / file
    if path.resolve() in chain:
        raise SceneError(message("file", "must not be a part of itself", path, "Name another file."))
    part = read_builder(path, read_text(path), row.pop("settings", {}), chain)[0]
    if row.get("packing", {}).get("kind") == "random" and "radius" not in row["packing"]:
        raise SceneError(message("packing.radius", "is required for parts", "nothing", "Add this key."))
    builder.replicate(part, position=_points(row, lambda count: 0.0), **_turn(row))


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
    turned = {k: v for k, v in row.items() if k != "rotation"}
    return turned | {"orientation": rotation_of(**row["rotation"]).tolist()}


def _default(builder: SceneBuilder) -> str:
    """The material of shapes without one; it may be there already."""
    with suppress(SceneError):
        builder.add_material(Material(name="default"))
    return "default"
