"""The state that the solver is measured on: 4000 spheres under a slab."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from .. import backends
from ..backends.base import ContactArrays
from ..enums import BlockKind
from ..problem.cone_problem import BlockGroup, ConeProblem
from ..problem.operators import ContactOperator
from ..scene import rotation
from .base import Setting
from .scenes import settled

__all__ = ["slab_problem", "stored_slab"]

DATA_VARIABLE = "TUMBLE_BENCH_DATA"


def slab_problem() -> tuple[str, ConeProblem]:
    """The stored slab state if the data folder is there, else a pile of our own under a slab."""
    folder = Path(os.environ.get(DATA_VARIABLE, Path("..") / "shared" / "bench"))
    if (folder / "slab_state.npz").is_file():
        return "stored slab state", stored_slab(np.load(folder / "slab_state.npz"))
    sim = settled(4000, Setting())
    assert sim.last is not None
    problem = sim.last.problem
    return f"4000 settled spheres ({DATA_VARIABLE} not found)", problem


def stored_slab(data: Any) -> ConeProblem:
    """One cold step of the stored state: container 0, spheres 1..4000, slab 4001; bias max(gap/h, 0) + D^T v_free."""
    order = np.lexsort((data["contact_b"], data["contact_a"]))
    a, b = data["contact_a"][order].astype(np.int32), data["contact_b"][order].astype(np.int32)
    spheres, h = len(data["pos"]), float(data["h"])
    bodies, n = spheres + 2, len(a)
    position, velocity = np.zeros((bodies, 3)), np.zeros((bodies, 6))
    position[1:-1], position[-1] = data["pos"], data["slab_pos"]
    velocity[1:-1, :3], velocity[-1, :3] = data["vel"], data["slab_vel"]
    velocity[1:-1, 3:] = rotation.rotate(data["quat"], data["omega_local"])
    velocity[-1, 3:] = rotation.rotate(data["slab_quat"], data["slab_omega_local"])
    velocity[1:, 2] -= h * float(data["g"])
    geometry = np.concatenate(
        [data["normal"], data["tangent_u"], data["tangent_w"], data["point_a"], data["point_b"]], axis=1
    )[order].T.copy()
    frame, arms = geometry[:9].copy(), geometry[9:].copy()
    arms[:3] -= position[a].T
    arms[3:] -= position[b].T
    inverse_mass, inverse_inertia = np.zeros((bodies, 3)), np.zeros((bodies, 6))
    inverse_mass[1:-1], inverse_mass[-1] = 1.0 / float(data["mass"]), 1.0 / float(data["slab_mass"])
    inverse_inertia[1:-1, :3] = 2.5 / (float(data["mass"]) * float(data["radius"]) ** 2)
    inverse_inertia[-1, :3] = 1.0 / data["slab_inertia"]
    inverse_mass.setflags(write=False)  # as in a Model, so that the same compiled kernels are used
    start, cursor = np.zeros(bodies + 1, np.int64), np.zeros(bodies, np.int64)
    slot_a, slot_b = np.zeros(n, np.int32), np.zeros(n, np.int32)
    backends.choose().fill_entries(n, a, b, inverse_mass[:, 0] > 0.0, start, cursor, slot_a, slot_b)
    arm = np.zeros((2 * n + 1, 3))
    arm[slot_a], arm[slot_b] = arms[:3].T, arms[3:].T
    operator = ContactOperator(
        ContactArrays(
            n,
            a,
            b,
            frame,
            arms,
            slot_a,
            slot_b,
            start,
            arm,
            np.zeros((2 * n + 1, 3)),
            inverse_mass,
            inverse_inertia,
            np.zeros((bodies, 6)),
            np.zeros((2, 0)),
        ),
        backends.choose(),
    )
    bias = np.zeros((3, n))
    operator.relative(velocity, bias)
    bias[0] += np.maximum(data["gap"][order] / h, 0.0)
    group = BlockGroup(BlockKind.CONE, 3, n, np.full(n, float(data["mu"])))
    return ConeProblem(group, bias, operator, h)
