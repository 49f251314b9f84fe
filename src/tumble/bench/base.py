"""What all benches share: what they are given, the rows they yield, timing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Row", "Setting", "row", "seconds_of"]

Row = dict[str, Any]
"""`bench`, `case`, `metric` and `value`; what a metric counts is in its name"""


@dataclass(frozen=True)
class Setting:
    """What a bench is given."""

    threads: int | None = None
    """Most threads to use; None: all"""
    quick: bool = False
    """Small sizes: does it work, and roughly how fast"""
    out: Path | None = None
    """Folder for tables and figures, of benches that have some"""
    backend: str = "cpu"
    """Where steps are computed, of the benches in `ON_DEVICES`"""
    precision: str = "auto"
    """Of the iterations of `SolverAPGD`, of the same"""


def row(bench: str, case: str, metric: str, value: float) -> Row:
    return {"bench": bench, "case": case, "metric": metric, "value": float(f"{float(value):.6g}")}


def seconds_of(call: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats
