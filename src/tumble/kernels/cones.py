"""The set of one block (n, u, w): projection, violation, gap and correction.

mu >= 0: Coulomb's cone {n >= 0, |t| <= mu n}; with mu = 0 a unilateral row. mu < 0: the interval |n| <= -mu of a
bounded row, whose u and w are zero.
"""

from __future__ import annotations

import math

from .jit import formula

TINY = 1e-300


@formula
def project(n, u, w, mu):
    """Nearest point of the set. Without branches, so that a loop over it vectorises."""
    m = max(mu, 0.0)
    high = -mu if mu < 0.0 else math.inf
    t = math.sqrt(u * u + w * w)
    outside = max(0.0, t - m * n)
    pn = min(max(min(mu, 0.0), n + m * outside / (1.0 + m * m)), high)
    s = min(1.0, m * pn / max(t, TINY))
    return pn, s * u, s * w


@formula
def coulomb_shift(u, w, mu):
    """De Saxce's correction mu |u_T|, added to the normal row."""
    return mu * math.sqrt(u * u + w * w)


@formula
def violation(n, u, w, mu, coulomb):
    """delta >= 0, the shift of the normal velocity that makes it feasible for the law."""
    needed = 0.0 if coulomb else mu * math.sqrt(u * u + w * w)
    return max(0.0, needed - n) if mu >= 0.0 else 0.0


@formula
def interval_gap(n, mu):
    """What a bounded row adds to the gap: -mu |u_n| (its gap is g u + -mu |u|); zero for cones."""
    return -mu * abs(n) if mu < 0.0 else 0.0


@formula
def weighted_set(mu, w):
    """The parameter of the set after impulses are multiplied by w: cones stay, intervals grow."""
    return mu * w if mu < 0.0 else mu


@formula
def natural_map(gn, gu, gw, an, au, aw, mu):
    """Squared norm of g - Pi_K(g - a)."""
    pn, pu, pw = project(gn - an, gu - au, gw - aw, mu)
    dn, du, dw = gn - pn, gu - pu, gw - pw
    return dn * dn + du * du + dw * dw
