"""Coulomb's cone K = {n >= 0, |t| <= mu n}: projection, violation, gap and correction of one block (n, u, w)."""

from __future__ import annotations

import math

from .jit import formula

TINY = 1e-300


@formula
def project(n, u, w, mu):
    """Nearest point of K. Without branches, so that a loop over it vectorises."""
    t = math.sqrt(u * u + w * w)
    outside = max(0.0, t - mu * n)
    pn = max(0.0, n + mu * outside / (1.0 + mu * mu))
    s = min(1.0, mu * pn / max(t, TINY))
    return pn, s * u, s * w


@formula
def coulomb_shift(u, w, mu):
    """De Saxce's correction mu |u_T|, added to the normal row."""
    return mu * math.sqrt(u * u + w * w)


@formula
def violation(n, u, w, mu, coulomb):
    """delta >= 0, the shift of the normal velocity that makes it feasible for the law."""
    needed = 0.0 if coulomb else mu * math.sqrt(u * u + w * w)
    return max(0.0, needed - n)


@formula
def natural_map(gn, gu, gw, an, au, aw, mu):
    """Squared norm of g - Pi_K(g - a)."""
    pn, pu, pw = project(gn - an, gu - au, gw - aw, mu)
    dn, du, dw = gn - pn, gu - pu, gw - pw
    return dn * dn + du * du + dw * dw
