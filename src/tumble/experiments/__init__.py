"""Experiments of the papers, one file each: settings, a scene, numbers to reach (metrics.json) and figures (PNG)."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from pathlib import Path

from .. import backends, checks
from ..enums import Precision
from ..errors import ExpectationError, ExperimentError, TumbleWarning, message
from .base import OK, Experiment, Job, SettingInfo, claim, make_settings

__all__ = ["EXPERIMENTS", "Experiment", "describe", "run_experiment"]

EXPERIMENTS: dict[str, Experiment] = {
    name: Experiment(name)
    for name in (
        "ball-2d",
        "ball-roll",
        "box-slide",
        "incline-slide",
        "incline-stop",
        "fill",
        "compact",
        "methods",
        "fill-scaling",
        "convergence",
        "solver-scaling",
        "pressure",
        "rest",
        "particle",
        "painleve",
        "hopper",
        "crater",
        "brazil-nut",
        "snow",
        "brittle",
        "mixer",
        "bulldozer",
        "gyroscope",
        "mechanisms",
    )
}
"""Every experiment by its name; `ball-roll` lives in the module `ball_roll`, imported when it is needed."""


def describe() -> list[tuple[str, str, list[SettingInfo]]]:
    """Name, one line and settings of every experiment."""
    return [(name, e.summary, e.settings) for name, e in EXPERIMENTS.items()]


def run_experiment(
    name: str,
    *,
    out: Path | str,
    quick: bool = False,
    scale: float | None = None,
    settings: Mapping[str, object] | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    strict: bool = False,
    backend: str = "cpu",
    precision: str | None = None,
) -> dict[str, float]:
    """Run an experiment and return its metrics, which are also in `out`/metrics.json, next to the figures.

    quick: the small version. scale: of large experiments, this part of the full version's bodies (1: all).
    settings: values in place of the defaults, as numbers or as text ("0.0025,0.01").
    threads, progress, backend and precision go to the simulations (docs/gpu.md). strict: a step that does not converge
    raises NotConvergedError.
    A metric whose event did not take place, such as a ball that does not roll yet, is left out. A metric ending in
    `_ok` is 1 where an expectation is met; one that is 0 gives a warning, or ExpectationError where strict.
    """
    if name not in EXPERIMENTS:
        raise ExperimentError(
            message("experiment", "must be a known one", repr(name), checks.nearest(name, EXPERIMENTS))
        )
    module = EXPERIMENTS[name].module
    values = make_settings(name, module.Settings, quick=quick, given=settings or {}, scale=scale)
    backends.choose(backend)
    if precision is not None:
        checks.choice("--precision", precision, list(Precision))
    job = Job(Path(out), threads, progress, strict, backend, precision)
    claim(job.out, name)
    metrics = {key: float(value) for key, value in module.run(values, job).items()}
    for key, value in metrics.items():
        if not math.isfinite(value):
            raise ExperimentError(
                message(
                    f"experiment {name}: metric {key}", "must be finite", value, "Go back towards the default settings."
                )
            )
    (job.out / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    missed = [key.removesuffix(OK) for key, value in metrics.items() if key.endswith(OK) and not value]
    if missed:
        words = message(
            f"experiment {name}", "must meet its expectations", "missed: " + ", ".join(missed), f"See {job.out}."
        )
        if strict:
            raise ExpectationError(words)
        warnings.warn(words, TumbleWarning, stacklevel=2)
    return metrics
