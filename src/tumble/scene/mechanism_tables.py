"""Tables of a scene file that join bodies: robots, joints, gears, motors, springs and bushings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from ..enums import JointKind, MotorMode
from .builder import SceneBuilder
from .urdf import MOTORS

__all__ = ["mechanism_adders", "mechanism_tables"]


def mechanism_tables(table: Callable[..., Any], some: Callable[[Any, int], Any], turned: Any) -> dict[str, Any]:
    """Columns of the scene: lists of tables. Keys are the arguments of the builder's methods."""
    from pydantic import Field

    vector, text = some(float, 3), Annotated[str, Field(min_length=1)]
    pair = some(Annotated[float, Field(allow_inf_nan=True)], 2)  # inf: no limit on that side
    named = table("Named", name=text)
    joined = table("Joined", named, a=int | text, b=int | text)
    joint = table(
        "Joint",
        joined,
        kind=(Literal[tuple(JointKind)], ...),
        **dict.fromkeys(("anchor", "axis", "second_axis", "anchor_a", "anchor_b", "axis_a", "axis_b"), vector),
        length=float,
        value=float,
        limits=pair | table("Limits", turn=pair, slide=pair),
        friction=float,
        collide=bool,
    )
    coordinate = text | some(text, 2)
    gear = table("Gear", named, first=(coordinate, ...), second=(coordinate, ...), ratio=(float, ...))
    motor = table(
        "Motor",
        named,
        joint=(coordinate, ...),
        mode=Literal[tuple(MotorMode)],
        target=float,
        maximum=float,
        stiffness=float,
        damping=float,
    )
    spring = table(
        "Spring",
        joined,
        anchors=some(vector, 2),
        anchor_a=vector,
        anchor_b=vector,
        stiffness=float,
        damping=float,
        rest_length=float,
    )
    joint_spring = table("JointSpring", named, joint=(coordinate, ...), stiffness=float, damping=float, rest=float)
    six = some(float, 6)
    bushing = table("Bushing", joined, anchor=(vector, ...), axis=vector, stiffness=(six, ...), damping=six)
    robot = table(
        "Robot",
        turned,
        urdf=(text, ...),
        position=vector,
        fixed=bool,
        values=dict[str, float],
        motors=Literal[MOTORS] | dict[str, Literal[MOTORS]],
        stiffness=float | dict[str, float],
        damping=float | dict[str, float],
        self_collision=bool,
        material=text,
        package_paths=list[text] | dict[str, text],
        prefix=str,
    )
    return dict(
        robot=list[robot],
        joint=list[joint],
        gear=list[gear],
        motor=list[motor],
        spring=list[spring],
        joint_spring=list[joint_spring],
        bushing=list[bushing],
    )


def mechanism_adders(
    builder: SceneBuilder, folder: Path, turn: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Callable[..., Any]]:
    """What to call with each row of these tables, in the order in which they are read."""

    def robot(*, urdf: str, **row: Any) -> None:
        paths = row.pop("package_paths", None)
        if isinstance(paths, dict):
            row["package_paths"] = {name: folder / path for name, path in paths.items()}
        elif paths is not None:
            row["package_paths"] = [folder / path for path in paths]
        builder.add_urdf(folder / urdf, **turn(row))

    def joining(method: Callable[..., Any]) -> Callable[..., Any]:
        """A body that is left out is the ground."""
        return lambda a=None, b=None, **row: method(a, b, **row)

    return {
        "robot": robot,
        "joint": lambda kind, a=None, b=None, **row: builder.add_joint(kind, a, b, **row),
        "gear": builder.add_gear,
        "motor": builder.add_motor,
        "spring": joining(builder.add_spring),
        "joint_spring": builder.add_joint_spring,
        "bushing": joining(builder.add_bushing),
    }
