"""Containers of 10 to 16000 spheres are filled: largest complementarity error, iterations and time against contacts."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from ..errors import ExperimentError, message
from . import fill
from .base import LAWS, Job, overlap_metrics, setting, slope
from .base import Settings as BaseSettings
from .figures import COLORS, Curve, Panel, draw_panels


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Of `fill-scaling`. A step's contacts change while the spheres fall; their mean over a run is on the axes."""

    spheres: tuple[float, ...] = setting(
        (10.0, 30.0, 100.0, 300.0, 1000.0, 4000.0, 16000.0),
        "numbers of spheres, separated by commas",
        quick=(10.0, 30.0, 100.0, 300.0, 1000.0),
        at_least=1.0,
    )
    radius: float = setting(1.0, "radius of the spheres", unit="m", above=0.0)
    mass: float = setting(1.0, "mass of a sphere", unit="kg", above=0.0)
    friction: float = setting(0.25, "coefficient of friction", at_least=0.0)
    pitch: float = setting(2.2, "width of the container / (radius x cube root of the number, rounded up)", at_least=2.1)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", above=0.0)
    dt: float = setting(0.01, "time step", unit="s", above=0.0)
    duration: float = setting(5.0, "simulated time", unit="s", quick=2.0, above=0.0)
    fit_from: int = setting(100, "spheres from which on the slopes are fitted", at_least=0)
    seed: int = setting(0, "of the jitter", at_least=0)
    tolerance: float = setting(1e-5, "of the solver", at_least=0.0)
    stop: str = setting("natural_map", "stopping quantity", choices=("natural_map", "residual_eq25", "certificate"))
    max_iterations: int = setting(1000, "of the solver", at_least=1)

    def check(self, where: str) -> None:
        """Whole spheres."""
        for count in self.spheres:
            if count != int(count):
                raise ExperimentError(message(f"{where}: spheres", "must be whole numbers", count, "Round it."))

    def filling(self, spheres: int) -> fill.Settings:
        """One container, as wide as its spheres stand high at the start."""
        columns = ceil(round(spheres ** (1.0 / 3.0), 9))
        return fill.Settings(
            spheres=spheres,
            radius=self.radius,
            mass=self.mass,
            friction=self.friction,
            side=self.pitch * self.radius * columns,
            gravity=self.gravity,
            dt=self.dt,
            duration=self.duration,
            seed=self.seed,
            tolerance=self.tolerance,
            stop=self.stop,
            max_iterations=self.max_iterations,
        )


COLUMNS = (
    "max_complementarity_error",
    "mean_iterations",
    "mean_contacts",
    "seconds_per_step",
    "unconverged_steps",
    "largest_overlap_ratio",
)


def run(s: Settings, job: Job) -> dict[str, float]:
    """Fill every container by both laws."""
    metrics: dict[str, float] = {}
    table = {law: {column: [] for column in COLUMNS} for law in LAWS}
    for count in map(int, s.spheres):
        filling = s.filling(count)
        for law in LAWS:
            found = fill.simulate(filling, job, fill.build(filling), law)
            r = found.reports
            row = {
                "max_complementarity_error": r["complementarity_error"].max(),
                "mean_iterations": r["iterations"].mean(),
                "mean_contacts": r["contacts"].mean(),
                "seconds_per_step": np.sum([v for c, v in r.items() if c.startswith("seconds_")], axis=0).mean(),
                "unconverged_steps": found.metrics["unconverged_steps"],
                "largest_overlap_ratio": found.metrics["largest_overlap_ratio"],
            }
            for column, value in row.items():
                table[law][column].append(value)
                metrics[f"{column}_{law}_n{count}"] = value
    arrays = {law: {c: np.array(v) for c, v in rows.items()} for law, rows in table.items()}
    large = np.array(s.spheres) >= s.fit_from
    for law in LAWS:
        rows = arrays[law]
        part = large & (rows["mean_contacts"] > 0.0) & (rows["mean_iterations"] > 0.0)
        for what, column in (("time", "seconds_per_step"), ("iterations", "mean_iterations")):
            found = slope(rows["mean_contacts"][part], rows[column][part])
            if found is not None:
                metrics[f"{what}_contacts_slope_{law}"] = found
    if "time_contacts_slope_coulomb" in metrics:
        metrics["time_contacts_slope"] = metrics["time_contacts_slope_coulomb"]
    draw(s, arrays, job)
    return metrics | overlap_metrics(arrays[law]["largest_overlap_ratio"].max() for law in LAWS)


def draw(s: Settings, arrays: dict[str, dict[str, np.ndarray]], job: Job) -> None:
    """Error, iterations and time over contacts (Fig. 11)."""
    panels = []
    for label, column in (
        ("largest complementarity error [J]", "max_complementarity_error"),
        ("mean iterations", "mean_iterations"),
        ("mean time of a step [s]", "seconds_per_step"),
    ):
        panel = Panel(label, xlabel="mean number of contacts", log=True, log_x=True)
        for law in ("relaxed", "coulomb"):
            rows = arrays[law]
            panel.curves.append(Curve(law, rows["mean_contacts"], rows[column], COLORS[law], marker="o"))
        panels.append(panel)
    draw_panels(job.out / "fill_scaling.png", [panels], title="Spheres fall into containers of growing size")
