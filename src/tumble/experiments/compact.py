"""A heavy slab falls on settled spheres in a container: force on the container and error of both laws."""

from __future__ import annotations

from dataclasses import dataclass, replace

import tumble as tb

from ..errors import ExperimentError, message
from . import fill
from .base import Job, setting


@dataclass(frozen=True, kw_only=True)
class Settings(fill.FillSettings):
    """Of `compact`: those of `fill`, whose time is now called settling, and the slab.

    The tolerance is lower than that of `fill`: with 1e-5 the quick version's largest complementarity error was only 86
    times below the relaxed one's. The quick version takes 2 s, because after 1 s the mean force is still 8 % above the
    weight.
    """

    dt: float = setting(0.001, "time step under the slab", unit="s", above=0.0)
    duration: float = setting(4.0, "simulated time under the slab", unit="s", quick=2.0, above=0.0)
    settling_dt: float = setting(0.01, "time step of the settling before", unit="s", above=0.0)
    settling: float = setting(5.0, "simulated time of the settling before, by Coulomb's law", unit="s", above=0.0)
    tolerance: float = setting(2e-6, "of the solver", at_least=0.0)
    slab_mass: float = setting(4000.0, "mass of the slab", unit="kg", quick=800.0, above=0.0)
    slab_height: float = setting(1.0, "thickness of the slab", unit="m", above=0.0)
    slab_play: float = setting(0.1, "gap between slab and walls on each side", unit="m", above=0.0)
    drop: float = setting(0.1, "height of the slab above the highest sphere at the start", unit="m", at_least=0.0)

    def check(self, where: str) -> None:
        """The slab must fit."""
        super().check(where)
        if self.side <= 2.0 * self.slab_play:
            raise ExperimentError(
                message(
                    f"{where}: slab_play",
                    f"must be < {0.5 * self.side:g} m, half of side",
                    self.slab_play,
                    "Leave the slab some width.",
                )
            )


def build(s: Settings, settled: fill.Filling) -> tb.Model:
    """The settled spheres, as they are and still move, with the slab above them."""
    scene, material = fill.container(s)
    scene.add_spheres(
        s.radius,
        mass=s.mass,
        material=material,
        position=settled.position[1:],
        velocity=settled.velocity[1:],
        angular_velocity=settled.spin[1:],
        name="spheres",
    )
    width = s.side - 2.0 * s.slab_play
    top = settled.position[1:, 2].max() + s.radius
    scene.add_body(
        tb.Box((width, width, s.slab_height)),
        mass=s.slab_mass,
        material=material,
        name="slab",
        position=(0.0, 0.0, top + s.drop + 0.5 * s.slab_height),
    )
    return scene.build()


def run(s: Settings, job: Job) -> dict[str, float]:
    """Settle once, then compact by both laws from the same state."""
    before = replace(s, dt=s.settling_dt, duration=s.settling)
    settled = fill.simulate(before, job, fill.build(before), "coulomb")
    metrics = fill.compare(
        s, job, build(s, settled), name="compact", title=f"{s.spheres} spheres under a slab of {s.slab_mass:g} kg"
    )
    return metrics | {"kinetic_energy_settled": settled.metrics["kinetic_energy_end"]}
