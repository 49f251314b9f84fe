"""The command `bench`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from .. import checks, interrupts
from .arguments import AsJson, Threads, check_threads
from .tables import plain, table, text_of


def bench(
    name: Annotated[str | None, typer.Argument(help="One bench (default: all).", show_default=False)] = None,
    as_json: AsJson = False,
    listed: Annotated[bool, typer.Option("--list", help="List the benches.")] = False,
    threads: Threads = None,
) -> None:
    """Measure the speed of this machine with this version."""
    from ..bench import BENCHES, Setting

    if listed:
        return table(
            "benches",
            ("name", "what it measures"),
            [(n, (f.__doc__ or "").strip().split("\n")[0]) for n, f in BENCHES.items()],
        )
    check_threads(threads)
    names = list(BENCHES) if name is None else [checks.choice("bench", name, BENCHES)]
    rows = []
    with interrupts.saying(str):
        for chosen in names:
            for row in BENCHES[chosen](Setting(threads=threads)):
                if as_json:
                    print(json.dumps(plain(row)), flush=True)
                else:
                    rows.append(tuple(text_of(row[k]) for k in ("bench", "case", "metric", "value")))
    if not as_json:
        table("bench", ("bench", "case", "metric", "value"), rows)
