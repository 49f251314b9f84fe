"""What a simulation is refused for before it starts: arguments of the wrong kind, combinations that it cannot do."""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np

from .. import checks, memory
from ..enums import BodyKind, Integrator, ShapeKind, ShapeTrait, Variant
from ..errors import OptionsError, TumbleWarning, message
from ..kernels.jit import most_threads
from ..options import StepOptions
from ..problem.joints import Joints
from ..scene.model import Model, State
from ..solve.apgd import SolverAPGD
from ..solve.auto import SolverAuto
from ..solve.barzilai_borwein import SolverBarzilaiBorwein
from ..solve.base import Solver

__all__ = ["check_arguments", "check_backend", "check_flow_state", "check_joint_state", "checked_threads"]

FLAT = ShapeKind.having(ShapeTrait.FLAT)
"""Shapes with faces, which can lie on each other."""


def check_arguments(model: Model, options: StepOptions, solver: Solver | None) -> None:
    """Raise for what `Simulation` cannot take."""
    if not isinstance(model, Model):
        raise OptionsError(
            message("Simulation.model", "must be a Model", type(model).__name__, "Call build() on the SceneBuilder.")
        )
    if not isinstance(options, StepOptions):
        raise OptionsError(
            message(
                "Simulation.options", "must be StepOptions", checks.short(options), "For example StepOptions(dt=1e-3)."
            )
        )
    if solver is not None and not hasattr(solver, "solve"):
        raise OptionsError(
            message(
                "Simulation.solver",
                "must have a solve method",
                checks.short(solver),
                "For example SolverAPGD(tolerance=1e-6).",
            )
        )
    if (model.joints.row_count or model.joints.motors) and not getattr(solver, "jointed", True):
        raise OptionsError(
            message(
                "Simulation.solver",
                "cannot take scenes with joints",
                f"{type(solver).__name__} with {len(model.joints.elements)} joints, motors or springs",
                "Use SolverAPGD, SolverAuto, or leave it out.",
            )
        )
    if options.integrator == Integrator.MOREAU and model.pair_laws.is_soft:
        raise OptionsError(
            message(
                "StepOptions.integrator",
                "'moreau' does not take compliant contacts, whose springs are those of 'euler'",
                "a material with compliance",
                "Use integrator='euler'.",
            )
        )
    if model.pair_laws.rolls and not getattr(solver, "rolls", True):
        raise OptionsError(
            message(
                "Simulation.solver",
                "cannot take rolling friction",
                f"{type(solver).__name__} with a material that resists rolling or spinning",
                "Use SolverAPGD or SolverAuto.",
            )
        )
    if options.unique_forces and model.pair_laws.rolls:
        raise OptionsError(
            message(
                "StepOptions.unique_forces",
                "is for contacts with dry friction",
                "a material with rolling or spinning friction",
                "Leave out one of them.",
            )
        )
    _check_memory(model)


def check_backend(backend: ModuleType, model: Model, options: StepOptions, solver: Solver | None) -> None:
    """Raise for what a device does not do yet; nothing falls back to the processor in silence."""
    if backend.HOSTED:
        return
    name, joined = type(solver).__name__, bool(model.joints.row_count or model.joints.motors)
    refused = {
        "rolling friction together with joints": model.pair_laws.rolls and joined,
        "the integrator 'moreau' together with joints": options.integrator == Integrator.MOREAU and joined,
        "unique forces": options.unique_forces,
        name: solver is not None and not _runs_on_device(solver, model),
    }
    found = [what for what, there in refused.items() if there]
    if found:
        rule, remedy = f"'{backend.name}' does not take {found[0]} yet", "Use backend='cpu'."
        if found[0] == name:
            remedy = "Use SolverAPGD() or SolverAuto(steps=True), or backend='cpu'."
        raise OptionsError(message("Simulation.backend", rule, ", ".join(found), remedy))
    words = memory.check_device("Simulation.backend", model.body_count, *backend.free_memory())
    if words is not None:
        warnings.warn(words, TumbleWarning, stacklevel=4)


def _runs_on_device(solver: Solver, model: Model) -> bool:
    """Whether all that a solver may call is offered by devices."""
    if isinstance(solver, SolverBarzilaiBorwein):
        return model.joints.row_count == 0
    if isinstance(solver, SolverAPGD):
        return solver.variant == Variant.DEFAULT
    return isinstance(solver, SolverAuto) and solver.steps and solver.seconds is None


def _check_memory(model: Model) -> None:
    """Refuse a scene whose state and contacts cannot fit."""
    dynamic = model.body_kind == BodyKind.DYNAMIC
    flat = np.zeros(model.body_count, bool)
    flat[model.shape_body[np.isin(model.shape_kind, FLAT)]] = True
    each = np.where(flat, memory.FLAT_CONTACTS_A_BODY, memory.CONTACTS_A_BODY)
    contacts = int(each[dynamic].sum())
    need = memory.run_bytes(model.body_count, model.shape_count, contacts)
    memory.check("Simulation", need, f"{model.body_count} bodies and about {contacts} contacts")


def checked_threads(threads: int | None) -> int:
    """Threads to use: all that there may be, or so many."""
    most = most_threads()
    if threads is None:
        return most
    count = checks.integer("Simulation.threads", threads, at_least=1)
    if count > most:
        raise OptionsError(
            message(
                "Simulation.threads",
                f"must be <= {most}",
                count,
                "Set TUMBLE_THREADS before Python starts to allow more.",
            )
        )
    return count


def check_joint_state(where: str, model: Model, joints: Joints | None, state: State) -> None:
    """A state must have the joints of the model."""
    j = model.joints
    sizes = (0, 0, 0, 0)
    if joints is not None:
        sizes = (j.coord_count, j.row_count, len(j.motors), joints.mechanism_count)
    found = (len(state.coordinate), len(state.row_impulse), len(state.target), len(state.energy_owed))
    if found != sizes:
        rule = "must have {} joint coordinates, {} rows, {} motors and {} mechanisms".format(*sizes)
        raise OptionsError(message(where, rule, found, "Use a state of the same scene."))


def check_flow_state(where: str, model: Model, state: State) -> None:
    """A state must have the emitters, sinks and measuring planes of the model."""
    wanted = (len(model.initial.presence), len(model.initial.flow))
    if (len(state.presence), len(state.flow)) != wanted:
        rule = f"must have the presence of {wanted[0]} bodies and {wanted[1]} totals of emitters and planes"
        raise OptionsError(
            message(where, rule, (len(state.presence), len(state.flow)), "Use a state of the same scene.")
        )
