"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["flat", "plain", "short", "table", "text_of"]


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, wide: bool = False) -> None:
    """wide: 120 columns where there is no terminal to say how many there are."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, show_header=any(columns))
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    console = Console(width=120) if wide and not sys.stdout.isatty() else Console()
    console.print(made)


def flat(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as rows."""
    rows: list[tuple[str, str]] = []
    for key, value in facts.items():
        if isinstance(value, Mapping):
            rows += flat(value, f"{prefix}{key}.")
        else:
            rows.append((prefix + str(key), text_of(value)))
    return rows


def text_of(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, (list, tuple)):
        return ", ".join(map(text_of, value))
    if isinstance(value, Mapping):
        return " ".join(text_of(part) for part in value.values())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def short(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def plain(value: Any) -> Any:
    """For JSON, which knows no infinity: None in its place."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
