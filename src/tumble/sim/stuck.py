"""Overlaps that nothing can take back: what joints or static bodies hold in each other stays there.

A step asks overlaps to shrink. In a vice, or on a mechanism that has no way out, no impulses do it: those of the solver
grow until something else gives. Where they show it (`solve.reach`) the contacts that carry them keep their overlap for
this step, and the problem is solved again from the start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..collide.contacts import Contacts
from ..kernels import reach as formulas
from ..problem.cone_problem import ConeProblem
from ..solve.reach import FAR, moved_mass, worst_speed

__all__ = ["leave_overlaps", "limit_impulses"]

PART = 1e-3
"""Contacts with at least this part of the largest impulse push against each other."""


class _Free(NamedTuple):
    rows: np.ndarray  # relative velocities of the contacts without impulses


class _Left(NamedTuple):
    overlap: np.ndarray  # of each contact


def leave_overlaps(
    problem: ConeProblem, contacts: Contacts, impulse: np.ndarray, free: np.ndarray, hit: np.ndarray | None
) -> bool:
    """Take the recovery of overlaps out of the bias of the contacts that push; whether there was any.

    free: velocities (n, 6) without contacts. hit: contacts that bounce (cap,), which are not asked to recover.
    """
    n, b, rows = contacts.count, problem.backend, problem.vectors_of(_Free).rows
    left = problem.scratch_of(_Left, overlap=problem.bias.shape[1:]).overlap
    problem.step_operator.relative(free, rows)
    least, bounces = PART * b.largest(n, impulse[0]), b.zeros(0, bool) if hit is None else hit
    b.over_contacts(formulas.left_overlap)(n, contacts.gap, impulse, least, bounces, rows, problem.bias, left)
    deepest = b.largest(n, left)
    problem.gap_shift = max(problem.gap_shift, deepest)
    return deepest > 0.0


def limit_impulses(problem: ConeProblem, impulse: np.ndarray) -> None:
    """Where nothing was left to give up: scale what pushes absurdly hard, so that the state stays in its bounds."""
    most = FAR * moved_mass(problem) * worst_speed(problem)
    largest = problem.backend.largest_entry(impulse)
    if largest > most:
        problem.backend.over_contacts(formulas.scaled_by)(problem.count, most / largest, impulse)
