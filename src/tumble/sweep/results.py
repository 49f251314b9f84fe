"""What came out of a sweep: a table with a row for each point, those that failed apart, and a plot."""

from __future__ import annotations

import csv
import json
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np

from .. import checks
from ..errors import FileError, OptionsError, TumbleError, message
from ..files import replacing
from ..observe.trajectory import Trajectory
from .point import Point

__all__ = ["check_plot", "gather", "measure_of", "quantities"]

Measure = Callable[[Trajectory], Mapping[str, float]]
LAST = ("time", "contacts", "kinetic_energy", "potential_energy")
WORST = ("largest_overlap", "natural_map", "certificate_energy")
KNOWN = ("steps", "iterations", *LAST, *WORST, "unconverged", "seconds")
"""In every table"""
DRAWN = 4
"""Quantities that are drawn where none is asked for"""


def measure_of(path: Path, *, required: bool) -> Measure | None:
    """The function `measure` of a Python file."""
    if path.suffix != ".py" and not required:
        return None
    module = types.ModuleType("tumble_measure")
    module.__file__ = str(path)
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    except Exception as cause:
        got = f"{type(cause).__name__}: {cause}"
        raise FileError(message(str(path), "must be a Python file that runs", got, "Correct it.")) from cause
    found: Any = getattr(module, "measure", None)
    if required and not callable(found):
        remedy = "Define measure(run: tumble.Trajectory) -> dict."
        raise FileError(message(str(path), "must define measure(run)", "no such function", remedy))
    return cast(Measure, found) if callable(found) else None


def quantities(run: Trajectory, measure: Measure | None) -> dict[str, float]:
    """Numbers about a run: those that the user measures, then what every run has."""
    reports = run.reports
    found: dict[str, float] = {}
    if measure is not None:
        found |= {str(name): value for name, value in measure(run).items()}
    if len(reports.get("time", ())):
        found |= {"steps": len(reports["time"]), "iterations": float(reports["iterations"].mean())}
        found |= {name: float(reports[name][-1]) for name in LAST if name in reports}
        found |= {name: float(reports[name].max()) for name in WORST if name in reports}
        found["unconverged"] = int((reports["converged"] == 0).sum())
        found |= {name: float(values[-1]) for name, values in reports.items() if "." in name}
    return found


def gather(
    folder: Path,
    points: Sequence[Point],
    outcomes: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Sequence[Any]],
    measure: Measure | None,
    plot: str | None,
) -> tuple[Path, ...]:
    """Write table.csv (and table.parquet, plot.png, failed.csv where there is something to say)."""
    rows, failed = [], []
    for point, outcome in zip(points, outcomes):
        place = Path(point.folder).name
        if outcome.get("status") == "done":
            with Trajectory(point.run) as run:
                measured = _measured(run, measure, point)
            rows.append({**point.settings, **measured, "seconds": outcome["seconds"], "folder": place})
        elif outcome.get("status") == "failed":
            failed.append({**point.settings, "code": outcome["code"], "error": outcome["error"], "folder": place})
    files = [folder / "table.csv"]
    _write_csv(files[0], rows or [dict.fromkeys(settings)])
    (folder / "failed.csv").unlink(missing_ok=True)
    if failed:
        files.append(folder / "failed.csv")
        _write_csv(files[-1], failed)
    if rows:
        files += _write_parquet(folder / "table.parquet", rows)
        files += _draw(folder / "plot.png", rows, settings, plot)
    return tuple(files)


def check_plot(plot: str | None, measure: Measure | None) -> None:
    """Refuse a quantity that no table will have, before anything runs; what is measured or passes a plane is known at
    the end."""
    if plot is not None and measure is None and "." not in plot:
        checks.choice("--plot", plot, KNOWN)


def _measured(run: Trajectory, measure: Measure | None, point: Point) -> dict[str, float]:
    try:
        return quantities(run, measure)
    except TumbleError:
        raise
    except Exception as cause:
        got = f"{type(cause).__name__}: {cause}"
        raise OptionsError(message("measure", f"must work on {point.run}", got, "Correct the function.")) from cause


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _columns(rows))
        writer.writeheader()
        writer.writerows({name: _flat(value) for name, value in row.items()} for row in rows)


def _write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Where pyarrow is there."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return []
    columns = {name: [_flat(row.get(name)) for row in rows] for name in _columns(rows)}
    with suppress(pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):  # a key that is a text here and a number there
        with replacing(path) as temporary:
            pyarrow.parquet.write_table(pyarrow.table(columns), temporary)
        return [path]
    return []


def _draw(
    path: Path, rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Sequence[Any]], wanted: str | None
) -> list[Path]:
    """Quantities over the numeric setting with most values, a line for each combination of the others."""
    numeric = {k: v for k, v in settings.items() if all(map(checks.is_real, v))}
    known = [n for n in _columns(rows) if n not in settings and n != "folder" and checks.is_real(rows[0].get(n))]
    if wanted is not None:
        checks.choice("--plot", wanted, known)
    if not numeric or max(map(len, numeric.values())) < 2:
        return []
    along = max(numeric, key=lambda key: len(numeric[key]))
    drawn = [wanted] if wanted else known[:DRAWN]
    others = [key for key in settings if key != along and len(settings[key]) > 1]
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        lines.setdefault(", ".join(f"{key} {_flat(row[key])}" for key in others), []).append(row)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 2.4 * len(drawn) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    rows_of_axes: list[Any] = list(np.ravel(figure.subplots(len(drawn), 1, sharex=True, squeeze=False)))
    for axes, name in zip(rows_of_axes, drawn):
        for words, group in lines.items():
            group = sorted(group, key=lambda row: row[along])
            axes.plot([r[along] for r in group], [r.get(name, np.nan) for r in group], "o-", ms=3, label=words)
        axes.set_ylabel(name)
        axes.grid(alpha=0.3)
    rows_of_axes[-1].set_xlabel(along)
    if others and len(lines) <= 12:
        figure.axes[0].legend(fontsize="small")
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, format="png")
    return [path]
