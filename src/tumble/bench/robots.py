"""Robots: assemblies with joints on a floor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..options import StepOptions
from ..scene.builder import SceneBuilder
from ..scene.fill import grid_points
from ..scene.shapes import Box, Capsule, HalfSpace
from ..sim.simulation import Simulation
from .base import Row, Setting, row

__all__ = ["robots"]


def robots(setting: Setting) -> Iterator[Row]:
    """One passive quadruped (9 bodies, 8 hinges) that falls and lies, 25 of them, and 200 robots of 20 bodies with
    servos that stand on a floor: median time a step."""
    cases = [("passive quadruped", _quadruped(), 1), ("passive quadrupeds", _quadruped(), 25)]
    if not setting.quick:
        cases.append(("robots of 20 bodies with servos", _centipede(), 200))
    for name, part, count in cases:
        side = int(np.ceil(np.sqrt(count)))
        scene = SceneBuilder()
        scene.add_static(HalfSpace())
        scene.replicate(part, position=grid_points((side, side, 1), 2.5)[:count], name="robot")
        sim = Simulation(scene.build(), options=StepOptions(dt=2e-3), threads=setting.threads)
        steps = 20 if setting.quick else 400 if count < 100 else 40
        reports = [sim.step() for _ in range(steps)]
        late = reports[steps // 2 :]
        case = f"{count} {name}, {late[-1].contacts} contacts"
        yield row("robots", case, "median_ms_per_step", 1e3 * float(np.median([sum(r.seconds.values()) for r in late])))
        yield row("robots", case, "steps_missed", float(sum(not r.converged for r in reports)))
        yield row("robots", case, "largest_drift", max(r.joint_drift for r in reports))


def _quadruped() -> SceneBuilder:
    """A trunk on four legs of two links; hinges without motors."""
    part = SceneBuilder()
    part.add_body(Box((0.6, 0.3, 0.12)), mass=8.0, position=(0, 0, 0.75), name="trunk")
    for k, (x, y) in enumerate(((0.25, 0.2), (0.25, -0.2), (-0.25, 0.2), (-0.25, -0.2))):
        part.add_body(Capsule(0.03, 0.22), mass=0.8, position=(x, y, 0.58), name=f"thigh{k}")
        part.add_body(Capsule(0.025, 0.22), mass=0.4, position=(x, y, 0.27), name=f"shank{k}")
        part.add_joint("revolute", "trunk", f"thigh{k}", anchor=(x, y, 0.74), axis=(0, 1, 0))
        part.add_joint("revolute", f"thigh{k}", f"shank{k}", anchor=(x, y, 0.42), axis=(0, 1, 0))
    return part


def _centipede() -> SceneBuilder:
    """A trunk of two links on nine pairs of legs, each hip held by a servo with a largest torque."""
    part = SceneBuilder()
    for k in range(2):
        part.add_body(Box((0.9, 0.16, 0.08)), mass=4.0, position=(0.46 - 0.92 * k, 0, 0.3), name=f"trunk{k}")
    part.add_joint("revolute", "trunk0", "trunk1", anchor=(0, 0, 0.3), axis=(0, 1, 0), name="waist")
    part.add_motor("waist", "position", target=0.0, stiffness=400.0, damping=20.0, maximum=60.0)
    for k in range(18):
        x, side = 0.8 - 0.2 * (k // 2), 1.0 - 2.0 * (k % 2)
        part.add_body(Capsule(0.02, 0.22), mass=0.3, position=(x, 0.12 * side, 0.15), name=f"leg{k}")
        trunk = "trunk0" if x > 0.0 else "trunk1"
        part.add_joint("revolute", trunk, f"leg{k}", anchor=(x, 0.12 * side, 0.28), axis=(0, 1, 0), name=f"hip{k}")
        part.add_motor(f"hip{k}", "position", target=0.0, stiffness=100.0, damping=5.0, maximum=10.0)
    return part
