"""Tables of a scene file that let bodies in and out and count them: emitters, sinks, measuring planes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from .builder import SceneBuilder
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
    emitter = table(
        "Emitter",
        common,
        **shapes,
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
        shapes = shapes_of(row)
        builder.add_emitter(shapes, region=_region(**region), **row)

    def add_sink(**row: Any) -> None:
        builder.add_sink(**row | {k: BoxRegion(**row[k]) for k in ("inside", "outside") if k in row})

    return {"emitter": add_emitter, "sink": add_sink, "measuring_plane": builder.add_measuring_plane}


def _region(*, type: str, **settings: Any) -> Region:
    return {"box": BoxRegion, "disc": DiscRegion}[type](**settings)
