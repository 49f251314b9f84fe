"""The command `examples`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import option
from .tables import table

examples = typer.Typer(
    name="examples",
    help="List worked scenes, or copy one. Example: tumble examples copy conveyor",
    rich_markup_mode=None,
)


@examples.callback(invoke_without_command=True)
def list_examples(context: typer.Context) -> None:
    """List worked scenes. Example: tumble examples copy conveyor"""
    if context.invoked_subcommand is not None:
        return
    from ..worked import every_example

    table("examples", ("name", "what it shows"), [(e.name, e.about) for e in every_example()], wide=True)
    print("copy one and run it: tumble examples copy NAME, then tumble run NAME")


@examples.command()
def copy(
    name: Annotated[str, typer.Argument(help="Of the example, or 'all'.", show_default=False)],
    folder: Annotated[Path, typer.Argument(help="Where to (default: here).", show_default=False)] = Path("."),
    overwrite: Annotated[bool, option("Replace files that are there.", "--overwrite")] = False,
) -> None:
    """Copy an example and the files that it needs. Example: tumble examples copy conveyor.toml here"""
    from ..worked import copy_example

    for path in copy_example(name, folder, overwrite=overwrite):
        print(path)
