"""What the default solver costs in the scenes of an experiment, whatever solver the experiment chooses (docs/rest.md).

    python benchmarks/default_cost.py CPU_SECONDS NAME [options of `tumble experiment`]

Prints a line for each simulation, and ends after so many seconds of processor time. Works with older versions too.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

import tumble as tb
from tumble import cli

STEPS: dict[int, list[tuple[float, ...]]] = {}
"""Of each simulation: iterations, whether it missed, by how much [m], contacts, processor time [s]"""


def main() -> None:
    """Run the experiment with every simulation's solver left out."""
    budget, arguments = float(sys.argv[1]), sys.argv[2:]
    make, step = tb.Simulation.__init__, tb.Simulation.step

    def make_default(self: tb.Simulation, *args, **options) -> None:
        make(self, *args, **(options | {"solver": None}))

    def timed(self: tb.Simulation):
        begin = time.process_time()
        r = step(self)
        rows = STEPS.setdefault(id(self), [])
        missed = 0.0 if r.converged else getattr(r, "missed", np.nan)
        rows.append((r.iterations, not r.converged, missed, r.contacts, time.process_time() - begin))
        if sum(row[4] for rows in STEPS.values() for row in rows[1:]) > budget:  # the first step may compile
            report()
            os._exit(0)
        return r

    tb.Simulation.__init__, tb.Simulation.step = make_default, timed
    cli.main(["experiment", *arguments])
    report()


def report() -> None:
    """A line for each simulation of more than a step."""
    for rows in STEPS.values():
        if len(rows) > 1:
            iterations, unsolved, missed, contacts, seconds = np.array(rows, float).T
            worst = missed[unsolved > 0.0]
            print(
                f"{len(rows)} steps, {contacts.mean():.0f} contacts, {iterations.mean():.0f} iterations and "
                f"{1e3 * np.median(seconds):.1f} ms a step, {100 * unsolved.mean():.1f} % missed",
                f"by {np.median(worst):.1e} m, at most {worst.max():.1e} m" if worst.size else "",
                flush=True,
            )


if __name__ == "__main__":
    main()
