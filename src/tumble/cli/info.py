"""The command `info`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .arguments import AsJson
from .tables import flat, plain, table


def info(
    path: Annotated[Path, typer.Argument(help="A trajectory, a scene or a robot (.urdf).", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Tell what is in a trajectory, in a scene file or in a robot's URDF file.

    Example: tumble info run.h5 --json
    """
    from ..observe.facts import robot_facts, robot_rows, run_facts, scene_facts

    tell = {".toml": scene_facts, ".py": scene_facts, ".urdf": robot_facts}.get(path.suffix, run_facts)
    facts = tell(path)
    if as_json:
        print(json.dumps(plain(facts)))
    else:
        table(str(path), ("", ""), robot_rows(facts) if tell is robot_facts else flat(facts))
