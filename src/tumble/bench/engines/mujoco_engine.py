"""MuJoCo, one thread."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from .base import Candidate, Pile

__all__ = ["candidates"]


def candidates(pile: Pile, threads: int) -> Iterator[Candidate]:
    """Conjugate gradients and stiffer and stiffer contacts."""
    for label, impedance in (
        ("CG", "0.9 0.95 0.001"),
        ("CG, impedance 0.99", "0.99 0.999 0.001"),
        ("CG, impedance 0.999", "0.999 0.9999 0.001"),
    ):
        model = mujoco.MjModel.from_xml_string(_document(pile, impedance))
        data = mujoco.MjData(model)
        yield Candidate(
            "mujoco",
            label,
            lambda model=model, data=data: mujoco.mj_step(model, data),
            lambda data=data: np.array(data.qpos).reshape(-1, 7)[:, :3],
            lambda data=data: np.array(data.qvel).reshape(-1, 6)[:, :3],
        )


def _document(pile: Pile, impedance: str) -> str:
    contact = f'friction="{pile.friction} 0 0" condim="3" solimp="{impedance}" solref="{2.0 * pile.dt} 1"'
    walls = "".join(
        f'<geom type="box" size="{a} {b} {c}" pos="{x} {y} {z}" {contact}/>' for (a, b, c), (x, y, z) in pile.walls()
    )
    balls = "".join(
        f'<body pos="{x} {y} {z}"><freejoint/><geom type="sphere" size="{pile.radius}" mass="1" {contact}/></body>'
        for x, y, z in pile.points
    )
    return (
        f'<mujoco><option timestep="{pile.dt}" gravity="0 0 {-pile.gravity}" solver="CG" cone="elliptic" '
        f'integrator="Euler"/><size memory="2G"/><worldbody>{walls}{balls}</worldbody></mujoco>'
    )
