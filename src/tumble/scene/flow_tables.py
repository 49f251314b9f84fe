"""Tables of a scene file that let bodies in and out and count them: emitters, sinks, measuring planes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from .. import checks
from ..errors import SceneError, message
from .builder import SceneBuilder
from .mixture import Mixture
from .regions import BoxRegion, DiscRegion, Region

__all__ = ["flow_adders", "flow_tables"]


def flow_tables(
    table: Callable[..., Any], some: Callable[[Any, int], Any], common: Any, shapes: dict[str, Any]
) -> dict[str, Any]:
    """Columns of the scene: lists of tables. Keys are the arguments of the builder's methods."""
    from pydantic import Field

    vector, text = some(float, 3), Annotated[str, Field(min_length=1)]
    box = table("BoxRegion", type=(Literal["box"], ...), low=(vector, ...), high=(vector, ...))
    disc = table("DiscRegion", type=(Literal["disc"], ...), center=(vector, ...), radius=(float, ...), normal=vector)
    kind = table("Kind", **shapes, weight=float, size_range=some(float, 2))
    emitter = table(
        "Emitter",
        common,
        **shapes,
        mixture=Annotated[list[kind], Field(min_length=1)],
        count=(int, ...),
        region=(Annotated[box | disc, Field(discriminator="type")], ...),
        rate=float,
        mass_rate=float,
        mass=float,
        density=float,
        size_range=some(float, 2),
        velocity=vector,
        angular_velocity=vector,
        orientation=some(float, 4) | Literal["random"],
        start=float,
        seed=int,
    )
    corners = table("Corners", low=(vector, ...), high=(vector, ...))
    sink = table("Sink", point=vector, normal=vector, inside=corners, outside=corners, name=text)
    plane = table(
        "MeasuringPlane", point=(vector, ...), normal=vector, radius=float, size=some(float, 2), axis=vector, name=text
    )
    return dict(emitter=list[emitter], sink=list[sink], measuring_plane=list[plane])


def flow_adders(builder: SceneBuilder, shapes_of: Callable[[dict[str, Any]], Any]) -> dict[str, Callable[..., Any]]:
    """What each table calls. shapes_of: takes the shapes out of a row."""

    def add_emitter(*, region: dict[str, Any], **row: Any) -> None:
        shapes: Any = None
        if "mixture" in row:
            shapes = _mixture(row, shapes_of)
        else:
            shapes = shapes_of(row)
        builder.add_emitter(shapes, region=_region(**region), **row)

    def add_sink(**row: Any) -> None:
        regions: dict[str, Any] = {k: BoxRegion(**row[k]) for k in ("inside", "outside") if k in row}
        builder.add_sink(**row | regions)

    return {"emitter": add_emitter, "sink": add_sink, "measuring_plane": builder.add_measuring_plane}


def _region(*, type: str, **settings: Any) -> Region:
    return {"box": BoxRegion, "disc": DiscRegion}[type](**settings)


def _mixture(row: dict[str, Any], shapes_of: Callable[[dict[str, Any]], Any]) -> Mixture:
    """Take the kinds of a mixture out of a row."""
    for key in ("shape", "shapes", "size_range"):
        if key in row:
            remedy = "Say it in each kind of the mixture."
            raise SceneError(message(key, "does not go with mixture", checks.short(row[key]), remedy))
    kinds = row.pop("mixture")
    for kind in kinds:
        if any("material" in shape for shape in kind.get("shapes", [kind.get("shape", {})])):
            remedy = "Give the emitter one material."
            raise SceneError(message("material", "is not taken by single shapes of a mixture", "one", remedy))
    ranges = [kind.get("size_range", (1.0, 1.0)) for kind in kinds]
    weights = [kind.get("weight", 1.0) for kind in kinds]
    own = ({k: v for k, v in kind.items() if k in ("shape", "shapes")} for kind in kinds)
    return Mixture([shapes_of(kind) for kind in own], weights, ranges)
