"""What a step says about itself."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ..collide.contacts import Contacts
from ..enums import Law, Status
from ..problem.cone_problem import ConeProblem
from ..problem.joints import CLOSED, Joints
from ..records import record
from ..scene.model import State
from ..showing import ShownReport
from ..solve.base import CONVERGED, LOCAL_TOLERANCE, Solution
from ..solve.unique_forces import UniqueForces
from .books import Books

__all__ = ["REPORT_COLUMNS", "REPORT_UNITS", "STAGES", "Solved", "StepReport", "step_report"]

STAGES = ("predict", "place", "broad", "narrow", "assemble", "solve", "advance")


@dataclass(frozen=True, repr=False)
class StepReport(ShownReport):
    """Figures of one step. SI units; residuals and certificate as in `Residuals`."""

    step: int
    time: float
    """At the end of the step [s]"""
    contacts: int
    iterations: int
    natural_map: float
    residual_eq25: float
    complementarity_error: float
    """max |g_n u_n| [J]"""
    penetration_speed: float
    """Largest closing speed left beyond the gap [m/s]"""
    certificate_energy: float
    """[J]"""
    certificate_shift: float
    """[m]"""
    local_error: float
    """Largest error of a contact against its own motion; compared with the tolerance by default"""
    local_shift: float
    """Largest error of a contact in this step [m]"""
    missed: float
    """By how much at most `local_shift` exceeds what the default rule allows, 0 where the step converged [m]"""
    objective: float
    kinetic_energy: float
    """[J]"""
    potential_energy: float
    """[J]"""
    elastic_energy: float
    """In the springs of compliant contacts at the end of the step [J]"""
    work_normal: float
    """Of the normal impulses of contacts, without the recovery of overlaps [J]"""
    work_recovery: float
    """Of pushing overlapping bodies apart: normal impulses (Euler), or positions moved in gravity (Moreau) [J]"""
    work_friction: float
    """[J]"""
    work_external: float
    """Of forces and torques other than gravity [J]"""
    work_driven: float
    """Put in by bodies of prescribed motion [J]"""
    work_joints: float
    """Of joints, motors, springs and joint friction on dynamic bodies [J]"""
    motor_power: float
    """Mean power of all motors together [W]"""
    energy_flow: float
    """Of bodies that emitters let in less those that sinks took at the end of the step; part of the energies [J]"""
    energy_defect: float
    """Change of kinetic and potential energy minus works and energy_flow: what the scheme makes, O(h) in sum [J]"""
    joint_drift: float
    """Largest violation of a rigid joint row at the end of the step [m or rad]"""
    joint_drift_before: float
    """The same before the projection"""
    redundant_rows: int
    """Joint rows that depend on others"""
    parts: int
    """Steps that the step was divided into because its joints could not be closed in one; 1 as a rule"""
    largest_overlap: float
    """At the start of the step [m]"""
    largest_speed: float
    """[m/s]"""
    warm_started: int
    """Contacts that were there a step ago"""
    products: int
    converged: bool
    unique_iterations: int = 0
    """Newton steps of the second solve, for unique forces"""
    unique_error: float = 0.0
    """Relative change of the motion (v - v_free) that it would bring, in the norm of the kinetic energy"""
    unique_threshold: float = 0.0
    """Speed that it took for rest, relative to the largest impulse; see `docs/unique_forces.md`"""
    unique_forces: bool = False
    """Whether the forces are the unique ones (they are the solver's where they are not asked for, or not found)"""
    law: Law = field(default=Law.COULOMB)
    """The law that was solved"""
    solver: str = ""
    status: Status = Status.CONVERGED
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of each stage [s]"""
    flow: dict[str, float] = field(default_factory=dict)
    """Totals of emitters, sinks and measuring planes by name, see `FlowModel.columns`"""

    @property
    def total_energy(self) -> float:
        """Kinetic, potential, and elastic of contacts [J]."""
        return self.kinetic_energy + self.potential_energy + self.elastic_energy


_TEXT = ("law", "solver", "status", "seconds", "flow")
REPORT_COLUMNS = tuple(f.name for f in fields(StepReport) if f.name not in _TEXT) + tuple(
    f"seconds_{s}" for s in STAGES
)

_UNITS = {
    "J": "complementarity_error certificate_energy objective kinetic_energy potential_energy elastic_energy "
    "work_normal work_recovery work_friction work_external work_driven work_joints energy_flow energy_defect",
    "m": "certificate_shift local_shift missed largest_overlap",
    "m/s": "residual_eq25 penetration_speed largest_speed",
    "s": "time " + " ".join(f"seconds_{stage}" for stage in STAGES),
    "W": "motor_power",
    "m or rad": "joint_drift joint_drift_before",
}
REPORT_UNITS = dict.fromkeys(REPORT_COLUMNS, "1") | {n: unit for unit, names in _UNITS.items() for n in names.split()}
"""Of every column."""


_NUMBERS = attrgetter(*(f.name for f in fields(StepReport) if f.name not in _TEXT))


def report_row(report: StepReport) -> list[float]:
    """The numbers of a report in the order of REPORT_COLUMNS, then those of its flow."""
    return [*map(float, _NUMBERS(report))] + [report.seconds.get(s, 0.0) for s in STAGES] + list(report.flow.values())


class Solved(NamedTuple):
    """The last problem of a step (with restitution, or limits that were passed, there are several) and all impulses."""

    problem: ConeProblem
    solution: Solution
    impulse: np.ndarray
    unique: UniqueForces | None


def step_report(
    state: State,
    contacts: Contacts,
    overlap: float,
    solved: Solved,
    warm: int,
    books: Books,
    joints: Joints | None,
    h: float,
    seconds: dict[str, float],
    flow: dict[str, float],
) -> StepReport:
    """The report of the step that has led to this state. overlap: the largest at its start [m]."""
    solution, unique, status = solved.solution, solved.unique, solved.solution.status
    if solution.converged and joints and joints.drift > CLOSED * joints.size:
        status = Status.JOINTS_OPEN
    r, came = solution.residuals, books.came
    return record(
        StepReport,
        step=state.step,
        time=state.time,
        contacts=contacts.count,
        iterations=solution.iterations,
        natural_map=r.natural_map,
        residual_eq25=r.residual_eq25,
        complementarity_error=r.complementarity_error,
        penetration_speed=r.penetration_speed,
        certificate_energy=r.certificate_energy,
        certificate_shift=r.certificate_shift,
        local_error=r.local_error,
        local_shift=r.local_shift,
        missed=0.0 if solution.converged else max(0.0, r.local_shift - LOCAL_TOLERANCE * solved.problem.pace * h),
        objective=r.objective,
        kinetic_energy=books.kinetic + came[0],
        potential_energy=books.potential + came[1],
        elastic_energy=books.elastic,
        work_normal=books.normal,
        work_recovery=books.recovery,
        work_friction=books.friction,
        work_external=books.external,
        work_driven=books.driven,
        work_joints=books.joints,
        motor_power=books.motors / h,
        energy_flow=sum(came),
        energy_defect=books.defect,
        joint_drift=joints.drift if joints else 0.0,
        joint_drift_before=joints.drift_before if joints else 0.0,
        redundant_rows=joints.redundant if joints else 0,
        parts=1,
        largest_overlap=overlap,
        largest_speed=books.largest_speed,
        warm_started=warm,
        products=solution.products,
        converged=status == CONVERGED,
        unique_iterations=unique.iterations if unique else 0,
        unique_error=unique.error if unique else 0.0,
        unique_threshold=unique.threshold if unique else 0.0,
        unique_forces=unique is not None and unique.converged,
        law=solution.law,
        solver=solution.solver,
        status=status,
        seconds=seconds,
        flow=flow,
    )
