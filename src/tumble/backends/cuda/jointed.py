"""APGD over contacts and bounded rows on jointed bodies: one kernel more, in which each mechanism answers.

| kernel | does |
| --- | --- |
| contacts | as without joints; bounded rows are the blocks after the contacts |
| scalars | the same |
| bodies | velocities of all bodies from the world impulses of their contacts |
| mechanisms | a thread each: impulses of its bounded rows, then what its joints answer |
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from ...kernels.cones import project
from ...kernels.joint_rows import eliminate_mechanism, push_row, row_speed
from . import nesterov
from .apgd import Run, _kept, _loop
from .launch import LONG, Kernel, device_function, item_kernel, pass_over
from .nesterov import THREADS, Loop, relative

Joints = NamedTuple("Joints", [(name, Any) for name in (
    "body", "jacobian", "weighted", "factor", "reaction", "bounded_body", "bounded_jacobian", "bounded_weighted",
    "bounded_compliance", "bounded_start",
)])  # fmt: skip
JointedLoop = NamedTuple("JointedLoop", [*((name, Any) for name in Loop._fields), *((n, Any) for n in Joints._fields)])
"""What the kernels of the loop read and write: `Loop`, and of `ArticulatedArrays` all but the contacts; numbers of
bounded rows have room for all. `size` has the contacts alone, too."""


@device_function
def jointed_relative(c, p):
    """N x of contact or bounded row c from the velocities of its bodies."""
    r = c - p.size[2]
    if r < 0:
        return relative(c, p)
    n = row_speed(p.bounded_body, p.bounded_jacobian, r, p.velocity) + p.bounded_compliance[r] * p.x[0, c]
    return n, 0.0, 0.0


@device_function
def jointed_force(c, p, n, u, w):
    """The world impulse of contact c; that of a bounded row mechanisms take themselves."""
    if c < p.size[2]:
        f = p.frame
        p.force[c, 0] = f[0, c] * n + f[3, c] * u + f[6, c] * w
        p.force[c, 1] = f[1, c] * n + f[4, c] * u + f[7, c] * w
        p.force[c, 2] = f[2, c] * n + f[5, c] * u + f[8, c] * w


def answer(c, p):
    """Bounded rows and joints of mechanism c."""
    for r in range(p.bounded_start[c], p.bounded_start[c + 1]):
        push_row(p.bounded_body, p.bounded_weighted, r, p.x[0, p.size[2] + r], p.velocity)
    eliminate_mechanism(c, p, p.velocity)


def begin_row(r, contacts, p):
    """Bounded row r of a run that has not begun."""
    c = contacts + r
    x0, x1, x2 = project(p.x[0, c], p.x[1, c], p.x[2, c], p.friction[c])
    p.x[0, c], p.x[1, c], p.x[2, c] = x0, x1, x2
    p.shift[c] = 0.0
    for k in range(3):
        p.d[k, c], p.old[k, c] = 0.0, 0.0


def _jointed(kernel: Any) -> Any:
    """The same kernel over contacts and bounded rows; its code counts as this file's, whose changes it follows."""
    names = vars(nesterov) | {"relative": jointed_relative, "lay_force": jointed_force, "__name__": __name__}
    return FunctionType(kernel.__code__.replace(co_filename=__file__), names, kernel.__name__)


_contacts, _look = Kernel(_jointed(nesterov.contacts), THREADS), Kernel(_jointed(nesterov.look), THREADS)
_answer = item_kernel(answer, ["p"], device_function(answer), LONG)
_begin_row = pass_over(begin_row)


class JointedRun(Run):
    """The loop over one problem, in double precision."""

    look = _look

    def _arrays(self, op: Any, cone: Any, x: Any, dtype: Any, *steps: Any) -> Any:
        plain = _loop(op.contacts, cone, x, np.float64, *steps)
        active, room = len(op.bounded_body), x.shape[1] - len(op.contacts.body_a)
        self._mechanisms = len(op.factor.mechanism) - 1
        kept = []  # where a recorded launch finds them, however many there are
        for name in ("bounded_body", "bounded_jacobian", "bounded_weighted", "bounded_compliance"):
            given = getattr(op, name)
            found = _kept(name, (room, *given.shape[1:]), given.dtype)
            found[:active] = given
            kept.append(found)
        p = JointedLoop(*plain, op.body, op.jacobian, op.weighted, op.factor, op.reaction, *kept, op.bounded_start)
        if active:
            _begin_row(active, op.contacts.count, p)
        return p

    def _kernel(self, precision: str) -> Kernel:
        return _contacts

    def _prepare(self) -> None:
        super()._prepare()
        if self._mechanisms:
            _answer.prepare(self._mechanisms, self.p)

    def _move(self) -> None:
        super()._move()
        if self._mechanisms:
            _answer.launch(-(-self._mechanisms // LONG), self._mechanisms, self.p)
