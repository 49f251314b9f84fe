"""The command `bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import checks, interrupts
from ..errors import OptionsError, message
from .arguments import AsJson, Backend, Precision, Threads, check_threads
from .tables import plain, table, text_of

SLOWER = 1.1
"""A time that grew by more than this is marked."""
TIMES = ("_ms", "_ns", "_us", "_s", "seconds", "ms_per_step", "ns_per_contact", "us_per_sphere", "us_per_pair")


def bench(
    name: Annotated[str | None, typer.Argument(help="One bench (default: all).", show_default=False)] = None,
    as_json: AsJson = False,
    listed: Annotated[bool, typer.Option("--list", help="List the benches.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: roughly how fast.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for tables and figures (of `peers`).")] = None,
    compare: Annotated[
        Path | None, typer.Option("--compare", help="Lines of an earlier --json: ratios, slower times marked.")
    ] = None,
    threads: Threads = None,
    backend: Backend = "cpu",
    precision: Precision = None,
) -> None:
    """Measure the speed of this machine with this version.

    Example: tumble bench solver --json > old.jsonl, and after a change tumble bench solver --compare old.jsonl
    """
    from ..backends import choose
    from ..bench import BENCHES, ON_DEVICES, Setting

    if listed:
        return table(
            "benches",
            ("name", "what it measures"),
            [(n, " ".join((f.__doc__ or "").split("\n\n")[0].split())) for n, f in BENCHES.items()],
        )
    check_threads(threads)
    names = list(BENCHES) if name is None else [checks.choice("bench", name, BENCHES)]
    elsewhere = backend != "cpu" or precision is not None
    if elsewhere:
        if name is not None and name not in ON_DEVICES:
            rule = "measures the processor: --backend and --precision are for others"
            raise OptionsError(
                message(f"bench {name}", rule, backend, f"Benches that take them: {', '.join(ON_DEVICES)}.")
            )
        names = [chosen for chosen in names if chosen in ON_DEVICES]
        choose(backend)
    before = {} if compare is None else _lines(compare)
    rows = []
    with interrupts.saying(str):
        for chosen in names:
            for row in BENCHES[chosen](Setting(threads, quick, out, backend, precision or "auto")):
                old = before.get((row["bench"], row["case"], row["metric"]))
                if old:
                    row = row | {"before": old, "ratio": row["value"] / old}
                if as_json:
                    print(json.dumps(plain(row)), flush=True)
                else:
                    rows.append(row)
    if as_json:
        return
    columns = ["bench", "case", "metric", "value"]
    if compare is None:
        return table("bench", columns, [tuple(text_of(row[k]) for k in columns) for row in rows])
    table("bench", [*columns, "before", "ratio", ""], [_compared(row, columns) for row in rows])


def _compared(row: dict[str, Any], columns: list[str]) -> tuple[str, ...]:
    """A line with the figure of before, and a mark where a time grew."""
    cells = tuple(text_of(row[k]) for k in columns)
    if "ratio" not in row:
        return (*cells, "", "", "new")
    slower = row["ratio"] > SLOWER and any(word in row["metric"] for word in TIMES)
    return (*cells, text_of(row["before"]), f"{row['ratio']:.3f}", "SLOWER" if slower else "")


def _lines(path: Path) -> dict[tuple[str, str, str], float]:
    """Figures of an earlier run, by bench, case and metric."""
    try:
        rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        return {(row["bench"], row["case"], row["metric"]): float(row["value"]) for row in rows if row["value"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as cause:
        remedy = "Give a file that `tumble bench --json` wrote."
        raise OptionsError(message("--compare", "must be lines of JSON", f"{path}: {cause}", remedy)) from None
