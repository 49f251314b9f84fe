"""Overlaps that nothing can take back: what joints or static bodies hold in each other stays there.

A step asks overlaps to shrink. In a vice, or on a mechanism that has no way out, no impulses do it: those of the solver
grow until something else gives. Where they show it (`solve.reach`) the contacts that carry them keep their overlap for
this step, and the problem is solved again from the start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..collide.contacts import Contacts
from ..problem.cone_problem import ConeProblem
from ..solve.reach import FAR, moved_mass

__all__ = ["leave_overlaps", "limit_impulses"]

PART = 1e-3
"""Contacts with at least this part of the largest impulse push against each other."""


class _Free(NamedTuple):
    rows: np.ndarray  # relative velocities of the contacts without impulses


def leave_overlaps(
    problem: ConeProblem, contacts: Contacts, impulse: np.ndarray, free: np.ndarray, hit: np.ndarray | None
) -> bool:
    """Take the recovery of overlaps out of the bias of the contacts that push; whether there was any.

    free: velocities (n, 6) without contacts. hit: contacts that bounce (count,), which are not asked to recover.
    """
    n = contacts.count
    rows = problem.vectors_of(_Free).rows
    problem.operator.relative(free, rows)
    pushes = (contacts.gap[:n] < 0.0) & (impulse[0, :n] > PART * impulse[0, :n].max(initial=0.0))
    if hit is not None:
        pushes &= ~hit
    asks = pushes & (problem.bias[0, :n] < rows[0, :n])
    problem.bias[0, :n] = np.where(asks, rows[0, :n], problem.bias[0, :n])
    if asks.any():
        problem.gap_shift = max(problem.gap_shift, -float(contacts.gap[:n][asks].min()))
    return bool(asks.any())


def limit_impulses(problem: ConeProblem, impulse: np.ndarray) -> None:
    """Where nothing was left to give up: scale what pushes absurdly hard, so that the state stays in its bounds."""
    n = problem.count
    most = FAR * moved_mass(problem) * max(0.0, float(np.max(-problem.bias[0, :n])))
    largest = float(np.abs(impulse[:, :n]).max())
    if largest > most:
        impulse[:, :n] *= most / largest
