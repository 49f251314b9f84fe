"""Overlaps and impulses that are out of reach, contact by contact (`solve.reach`, `sim.stuck`)."""

from __future__ import annotations

from .cones import is_interval
from .jit import formula


@formula
def ray_of(c, mu, impulse, bias, ray, asked):
    """The impulse of a cone as a direction, none of a bounded row, which ends somewhere; and -r.p of it."""
    power = 0.0
    for k in range(impulse.shape[0]):
        ray[k, c] = 0.0 if is_interval(mu[c]) else impulse[k, c]
        power -= bias[k, c] * ray[k, c]
    asked[c] = power


@formula
def power_of(c, ray, product, out):
    """p.N p"""
    out[c] = 0.0
    for k in range(ray.shape[0]):
        out[c] += ray[k, c] * product[k, c]


@formula
def wanted_speed(c, bias, out):
    """How fast the normal row asks to part."""
    out[c] = -bias[0, c]


@formula
def mass_of(i, inverse_mass, out):
    """Of a body that can move, else 0."""
    ease = max(inverse_mass[i, 0], inverse_mass[i, 1], inverse_mass[i, 2])
    out[i] = 1.0 / ease if ease > 0.0 else 0.0


@formula
def left_overlap(c, gap, impulse, least, hit, free, bias, left):
    """Where a contact that overlaps pushes with more than `least` and does not bounce (hit: of none where empty) its
    bias does not ask for more than the free velocity; left is then its overlap, else 0."""
    bounces = hit.size > 0 and hit[c]
    left[c] = 0.0
    if gap[c] < 0.0 and impulse[0, c] > least and not bounces and bias[0, c] < free[0, c]:
        bias[0, c], left[c] = free[0, c], -gap[c]


@formula
def scaled_by(c, factor, x):
    """x times a factor."""
    for k in range(x.shape[0]):
        x[k, c] *= factor
