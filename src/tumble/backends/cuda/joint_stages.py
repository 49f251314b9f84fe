"""The joints' part of a step: the stages of the processors over the passes of the device."""

from __future__ import annotations

from typing import Any

from ..base import stages_over
from ..cpu import joint_stages, operators
from ..cpu import rows as cpu_rows
from . import items, joints, measure, provider, rows
from .contacts import contact_work
from .launch import item_pass

soften_diagonal = item_pass(cpu_rows.soften_diagonal)
scale_compliance = item_pass(operators.scale_compliance)


def add_velocities(free: Any, change: Any, out: Any) -> None:
    """out = free + change, (n, 6)."""
    provider.xp.add(free, change, out=out)


def _passes() -> dict[str, Any]:
    """By the names under which the stages know them."""
    found = {name: value for module in (items, joints, measure, rows) for name, value in vars(module).items()}
    own = (contact_work, add_velocities, soften_diagonal, scale_compliance)
    wanted = set(vars(joint_stages)) | {"over_rows", "over_mechanisms", "over_contacts", "over_bodies"}
    return {name: value for name, value in found.items() if name in wanted and callable(value)} | {
        value.__name__: value for value in own
    }


STAGES = stages_over(joint_stages, _passes())
"""By name"""
