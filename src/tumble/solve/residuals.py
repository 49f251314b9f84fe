"""How good is a solution? The only place where an error is defined.

Everything is recomputed from the impulses by a fresh product, whatever solver they come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from ..backends.base import MEASURE_ROOM, MEASURES, GaugeArrays, Measure, blocks
from ..enums import Law
from ..problem.cone_problem import ConeProblem, Weights
from ..problem.operators import ArticulatedOperator, ContactOperator, RollingOperator
from ..records import record

__all__ = ["Residuals", "measure"]

LAST = Measure.LOCAL_SPEED + 1


@dataclass(frozen=True)
class Residuals:
    """Measures of a solution. u = N g + r; a = u (relaxed) or u + mu |u_T| e_n (Coulomb); Pi projects on the cones.

    The certificate is a backward error. It says: this velocity is within sqrt(certificate_energy), in the norm of the
    kinetic energy (|v|_M^2 = v.Mv), of a velocity that solves the same problem *exactly* with every gap moved by at
    most h times certificate_shift_velocity. For the relaxed law that exact solution is unique; for Coulomb's law it
    need not be.
    """

    law: Law
    natural_map: float
    """Scale-free: |g^ - Pi(g^ - a^)| / max(|r^|, |g^|, |u^|) with g^ = w g, a^ = a / w, w^2 = mean diag N_ii."""
    natural_map_classic: float
    """The same with w = 1; depends on the units."""
    residual_eq25: float
    """|(g - Pi(g - g_d a)) / g_d| / (rows), g_d = 1e-6 [m/s]"""
    residual_eq25_sum: float
    """The same, not divided [m/s]"""
    complementarity_error: float
    """max |g_n u_n| [J]"""
    penetration_speed: float
    """max(0, -u_n) [m/s]"""
    objective: float
    """g.(N g / 2 + r) [J]"""
    certificate_energy: float
    """gap [J]"""
    certificate_shift_velocity: float
    """[m/s]"""
    certificate_shift: float
    """h times that, and what the step's own gaps were moved by (`ConeProblem.gap_shift`) [m]"""
    local_error: float
    """max_i w_i |g^ - Pi(g^ - a^)|_i / max(|r_i|, |u_i|, pace): each contact's own error over its own motion"""
    local_shift: float
    """h max_i w_i |g^ - Pi(g^ - a^)|_i: the largest error of a contact in a step [m]"""


def measure(problem: ConeProblem, impulse: np.ndarray, law: Law | str) -> Residuals:
    """Measure impulses (3, cap) of a problem under a law."""
    law = law if isinstance(law, Law) else Law(law)
    n, b = problem.count, problem.backend
    if n == 0:
        return Residuals(law, *(0.0,) * 12)
    gauged, tangential = gauge_of(problem, law)
    product, values, partial = problem.product_room, *problem.kept(_measured)
    if isinstance(problem.operator, ContactOperator):
        shift = b.judge_contacts(problem.operator.arrays, gauged, tangential, impulse, product, partial, values)
    elif isinstance(problem.operator, ArticulatedOperator):
        shift = b.judge_articulated(problem.operator.arrays, gauged, tangential, impulse, product, partial, values)
    else:
        problem.operator.product(impulse, product)
        b.measure(gauged, impulse, product, partial, values)
        values = b.fetch(values)
        shift, gap = float(values[Measure.SHIFT]), float(values[Measure.GAP])
        if gauged.coulomb and math.isfinite(gap):
            bound = b.rolling_shift_bound if problem.is_rolling else b.coulomb_shift_bound
            shift = bound(n, product, problem.bias, problem.friction, tangential, math.sqrt(gap))
    return _residuals(problem, law, b.fetch(values).tolist(), float(shift))


def gauge_of(problem: ConeProblem, law: Law) -> tuple[GaugeArrays, np.ndarray]:
    """What a problem's own impulses are measured with, and the roots of its tangential blocks."""
    _, scale, weight, tangential = weigh(problem, 0)
    p = problem
    gauged = GaugeArrays(p.count, p.bias, p.friction, scale, weight, law == Law.COULOMB, float(p.pace))
    return gauged, tangential


def _residuals(problem: ConeProblem, law: Law, values: list[float], shift: float) -> Residuals:
    """values: in the order of `Measure`; shift: how far the certificate's problem lies [m/s]."""
    natural, _, total, classic, _, gap, _, _, complementarity, closing, objective, local, speed = values[:LAST]
    return record(
        Residuals,
        law=law,
        natural_map=natural,
        natural_map_classic=classic,
        residual_eq25=total / (problem.dim * problem.count),
        residual_eq25_sum=total,
        complementarity_error=complementarity,
        penetration_speed=closing,
        objective=objective,
        certificate_energy=gap,
        certificate_shift_velocity=shift,
        certificate_shift=problem.h * shift + problem.gap_shift,
        local_error=local,
        local_shift=problem.h * speed,
    )


def weigh(problem: ConeProblem, mode: int) -> Weights:
    """Diagonal blocks, scales, weights and roots of a problem, found once. mode: see the kernel."""
    if mode in problem.known:
        return problem.known[mode]
    cap, b, rolls = problem.bias.shape[1], problem.backend, problem.is_rolling
    if problem.known and mode == 0 and not rolls:  # all but the scales are the same
        diagonal, _, weight, tangential = next(iter(problem.known.values()))
        found = problem.known[mode] = Weights(diagonal, problem.kept(_ones), weight, tangential)
        return found
    diagonal, turns = problem.scratch_of(_Diagonal, blocks=(6, cap), turns=(4, cap if rolls else 0))
    if rolls:
        made = problem.scratch_of(_Weights, mode, scale=(4, cap), weight=(2, cap), tangential=(3, cap))
    else:
        made = problem.scratch_of(_Weights, mode, scale=(2, cap), weight=(cap,), tangential=(cap,))
    if not problem.known:
        problem.operator.diagonal_blocks(diagonal)
        if rolls:
            assert isinstance(problem.operator, RollingOperator)
            problem.operator.turn_diagonal(turns)
    if rolls:
        b.weigh_rolling(problem.count, diagonal, turns, mode, *made)
    else:
        b.weigh(problem.count, problem.dim, diagonal, mode, *made)
    found = problem.known[mode] = Weights(diagonal, *made)
    return found


def weights_of(problem: ConeProblem, mode: int) -> Weights:
    """Room for what `weigh` finds in contacts without rolling friction, for a pass that does the same beside others."""
    return problem.kept(_ROOMS[mode])


def _room(mode: int, problem: ConeProblem) -> Weights:
    cap, zeros = problem.bias.shape[1], problem.backend.zeros
    return Weights(zeros((6, cap)), zeros((2, cap)), zeros(cap), zeros(cap))


_ROOMS = {mode: partial(_room, mode) for mode in (1, 2)}


def _ones(problem: ConeProblem) -> np.ndarray:
    return problem.backend.zeros((2, problem.bias.shape[1])) + 1.0


class _Measured(NamedTuple):
    values: np.ndarray
    partial: np.ndarray


def _measured(problem: ConeProblem) -> _Measured:
    parts, zeros = blocks(problem.bias.shape[1]) + 2, problem.backend.zeros
    return _Measured(zeros(MEASURES), zeros((parts, MEASURE_ROOM)))


class _Diagonal(NamedTuple):
    blocks: np.ndarray
    turns: np.ndarray


class _Weights(NamedTuple):  # of one mode
    scale: np.ndarray
    weight: np.ndarray
    tangential: np.ndarray
