"""The command `schema`."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def schema(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the reference page instead.")] = False,
) -> None:
    """Print the JSON schema of scene files, with which editors complete and check them.

    Example: tumble schema > tumble.schema.json, then '#:schema tumble.schema.json' in the first line of a scene
    """
    from ..scene.reference import json_schema, reference

    print(reference() if markdown else json.dumps(json_schema(), indent=1), end="" if markdown else "\n")
