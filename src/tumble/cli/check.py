"""The command `check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .. import interrupts
from .arguments import AsJson, Settings, Threads, check_threads, scene_settings
from .tables import flat, plain, table


def check(
    scene: Annotated[Path, typer.Argument(help="A scene, .toml or .py.", show_default=False)],
    settings: Settings = None,
    as_json: AsJson = False,
    threads: Threads = None,
) -> None:
    """Build a scene without running it: bodies, contacts, overlaps, warnings.

    Example: tumble check scene.toml --set mu=0.3
    """
    check_threads(threads)
    from ..scene.files import load_scene
    from ..sim.compiling import announced
    from ..sim.preview import preview

    with interrupts.saying(str), announced():
        facts = preview(load_scene(scene, settings=scene_settings(settings)), threads=threads)
    if as_json:
        print(json.dumps(plain(facts)))
        return
    said, overlaps = facts.pop("warnings"), facts.pop("overlaps")
    table(str(scene), ("", ""), flat(facts))
    if overlaps:
        rows = [(o["a"], o["b"], f"{o['depth']:.3g} m", f"{100 * o['part']:.3g} %") for o in overlaps]
        table("deepest overlaps", ("body", "body", "depth", "of the smaller"), rows)
    for words in said:
        print(f"warning: {words}")
    if not said:
        print("nothing to warn about")
