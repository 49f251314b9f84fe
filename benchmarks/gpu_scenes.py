"""Two of the papers' scenes at their size, cut into commands of a few minutes: what is done is not done again.

    python benchmarks/gpu_scenes.py snow --out FOLDER [--backend cuda] [--wall-time 8m] [--set KEY=VALUE ...]
    python benchmarks/gpu_scenes.py mixer --out FOLDER --set sizes=50000,100000,200000,400000

Exit code 75: the time is used up; the same command goes on. Settings are those of `tumble experiment NAME --list`; the
results are the experiment's, in FOLDER. Every simulation has a trajectory of its own there, with a checkpoint.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import tumble as tb
from tumble import interrupts
from tumble.cli.arguments import duration
from tumble.experiments import EXPERIMENTS, mixer
from tumble.experiments.base import Job, ObservedSimulation, make_settings
from tumble.experiments.settled import nothing
from tumble.observe.trajectory import Trajectory
from tumble.sim.run import RunResult

AGAIN = 75
"""Exit code of a command that has to be given again"""
FRAME = 250
"""Steps between two frames, with a checkpoint each"""


@dataclass(frozen=True)
class Restartable(Job):
    """A job whose simulations are written, and gone on with."""

    limit: float = math.inf
    """Wall time of the command [s]"""
    numbers: itertools.count = field(default_factory=itertools.count)

    def left(self) -> float:
        """Wall time that is left [s]."""
        return self.limit - (time.monotonic() - interrupts.STARTED)

    def go_on(self, sim: tb.Simulation, until: float) -> RunResult:
        """Run to a time, from where an earlier command came; the result is that of the whole run."""
        path = self.out / f"run{next(self.numbers):03d}.h5"
        if self.left() < 5.0:
            leave(path, sim)
        save = tb.Save(path=path, every=FRAME, fields=("position",), precision="single", frames_per_checkpoint=1)
        wall = None if self.limit == math.inf else self.left()
        begun = path.exists() and save.checkpoint_path.exists()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tb.TumbleWarning)
            result = sim.run(until=until, progress=self.progress, save=save, resume=begun, wall_time=wall)
        if result.out_of_time:
            leave(path, sim)
        with Trajectory(path) as run:
            reports = {name: np.array(column) for name, column in run.reports.items()}
        seconds = float(sum(column.sum() for name, column in reports.items() if name.startswith("seconds_")))
        missed = int((reports["converged"] == 0).sum())
        say(run=path.name, steps=len(reports["time"]), missed=missed, seconds=seconds, contacts=reports["contacts"][-1],
            largest_overlap=reports["largest_overlap"].max())  # fmt: skip
        return replace(result, steps=len(reports["time"]), reports=reports, seconds=seconds, unconverged=missed)

    def simulate(
        self, model: tb.Model, *, until: float, observe: Any, stop: Any = None, memory: Any = None, **rest: Any
    ) -> tuple[ObservedSimulation, RunResult]:
        """See `Job.simulate`."""
        if observe is not nothing or stop is not None or memory is not None:
            raise SystemExit("This experiment looks at every step: it cannot be cut.")
        sim = ObservedSimulation(model, observe=observe, **self.runs_on(**rest))
        result = self.go_on(sim, until)
        smallest = model.body_size[model.body_kind == tb.enums.BodyKind.DYNAMIC].min()
        sim.largest_overlap_ratio = float(result.reports["largest_overlap"].max() / smallest)  # at most
        return sim, result


def say(**words: Any) -> None:
    """A line."""
    print(json.dumps({k: v.item() if isinstance(v, np.generic) else v for k, v in words.items()}), flush=True)


def leave(path: Path, sim: tb.Simulation) -> None:
    """The time is used up."""
    say(run=path.name, time=sim.time, step=sim.state.step, again=True)
    sys.exit(AGAIN)


def fill(s: mixer.Settings, job: Restartable, bodies: int) -> tuple[tb.Simulation, float]:
    """As `mixer.fill`, both parts restartable."""
    loose = mixer.build(s, bodies, cohesion=0.0, turning=0.0)
    high = max(0.0, float(loose.initial.position[:, 2].max()) - mixer.drum_radius(bodies))
    rest: dict[str, Any] = dict(
        options=tb.StepOptions(dt=s.filling_dt),
        solver=tb.SolverAPGD(tolerance=s.tolerance, max_iterations=s.filling_iterations),
    )
    settled, settling = job.simulate(loose, until=mixer.REST + math.sqrt(2.0 * high / 9.81), observe=nothing, **rest)
    model = mixer.build(s, bodies, cohesion=s.cohesion, turning=s.turning)
    state = settled.get_state()
    state.time, state.step = 0.0, 0
    state.spin[1] = model.initial.spin[1]
    sim = tb.Simulation(model, **job.runs_on(**rest))
    sim.set_state(state)
    return sim, settling.seconds + job.go_on(sim, 2.0 * math.pi * s.turn / s.turning).seconds


def main() -> None:
    """The command."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("name", choices=["snow", "mixer"])
    asked.add_argument("--out", type=Path, required=True)
    asked.add_argument("--backend", default="cuda")
    asked.add_argument("--precision", default=None)
    asked.add_argument("--wall-time", type=duration, default=math.inf)
    asked.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = asked.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    module = EXPERIMENTS[given.name].module
    settings = make_settings(given.name, module.Settings, quick=False, given=dict(t.split("=", 1) for t in given.set))
    job = Restartable(given.out, None, None, False, given.backend, given.precision, limit=given.wall_time)
    mixer.fill = fill
    metrics = {key: float(value) for key, value in module.run(settings, job).items()}
    (given.out / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
    say(**metrics)


if __name__ == "__main__":
    main()
