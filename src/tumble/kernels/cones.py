"""The set of one block (n, u, w): projection, violation, gap and correction.

A set is one number, here called mu, of one of two kinds: the mu of Coulomb's cone {n >= 0, |t| <= mu n}, with 0 a
unilateral row; or the `interval` |n| <= bound of a bounded row, whose u and w are zero. Which kind it is says
`is_interval`, its bound `bound_of`; that a sign tells them apart is known in this file alone. With rolling friction a
block has six rows, see `project_rolling`.
"""

from __future__ import annotations

import math

from .jit import formula

TINY = 1e-300


@formula
def interval(bound):
    """The set |n| <= bound of a bounded row, bound > 0."""
    return -bound


@formula
def is_interval(mu):
    """Whether a set is an interval, and no cone."""
    return mu < 0.0


@formula
def bound_of(mu):
    """The bound of an interval."""
    return -mu


@formula
def in_interval(n, mu):
    """Nearest point of an interval."""
    return min(max(n, mu), -mu)


@formula
def project(n, u, w, mu):
    """Nearest point of the set. Without branches, so that a loop over it vectorises."""
    m = max(mu, 0.0)
    high = -mu if is_interval(mu) else math.inf
    t = math.sqrt(u * u + w * w)
    outside = max(0.0, t - m * n)
    pn = min(max(min(mu, 0.0), n + m * outside / (1.0 + m * m)), high)
    s = min(1.0, m * pn / max(t, TINY))
    return pn, s * u, s * w


@formula
def shared_normal(n, t, s, r, mu, sigma, rho):
    """Normal part of the nearest point of {|t| <= mu n, |s| <= sigma n, |r| <= rho n}, one n for the three.

    Minimises (n' - n)^2 + sum max(0, t_j - mu_j n')^2, whose pieces end at t_j / mu_j: taken from the highest end down
    until the minimum of the piece lies in it.
    """
    a = t / mu if mu > 0.0 else 0.0
    b = s / sigma if sigma > 0.0 else 0.0
    c = r / rho if rho > 0.0 else 0.0
    top, bottom, best = n, 1.0, max(0.0, n)
    for _ in range(3):
        end = max(a, max(b, c))
        if end <= best:
            break
        if end == a:
            top, bottom, a = top + mu * t, bottom + mu * mu, 0.0
        elif end == b:
            top, bottom, b = top + sigma * s, bottom + sigma * sigma, 0.0
        else:
            top, bottom, c = top + rho * r, bottom + rho * rho, 0.0
        best = max(0.0, top / bottom)
    return best


@formula
def project_rolling(n, u, w, s, p, q, mu, sigma, rho):
    """Nearest point (n, u, w, s, p, q) of the set with rolling: s the spin torque, (p, q) the rolling one."""
    if is_interval(mu):
        return in_interval(n, mu), 0.0, 0.0, 0.0, 0.0, 0.0
    t, r = math.sqrt(u * u + w * w), math.sqrt(p * p + q * q)
    best = shared_normal(n, t, abs(s), r, mu, sigma, rho)
    ft = min(1.0, mu * best / max(t, TINY))
    fs = min(1.0, sigma * best / max(abs(s), TINY))
    fr = min(1.0, rho * best / max(r, TINY))
    return best, ft * u, ft * w, fs * s, fr * p, fr * q


@formula
def rolling_shift(u, w, s, p, q, mu, sigma, rho):
    """The correction mu |u_T| + sigma |spin| + rho |roll|, added to the normal row; 0 for bounded rows."""
    if is_interval(mu):
        return 0.0
    return mu * math.sqrt(u * u + w * w) + sigma * abs(s) + rho * math.sqrt(p * p + q * q)


@formula
def coulomb_shift(u, w, mu):
    """De Saxce's correction mu |u_T|, added to the normal row."""
    return mu * math.sqrt(u * u + w * w)


@formula
def violation(n, u, w, mu, coulomb):
    """delta >= 0, the shift of the normal velocity that makes it feasible for the law."""
    needed = 0.0 if coulomb else mu * math.sqrt(u * u + w * w)
    return 0.0 if is_interval(mu) else max(0.0, needed - n)


@formula
def interval_gap(n, mu):
    """What a bounded row adds to the gap: bound |u_n| (its gap is g u + bound |u|); zero for cones."""
    return -mu * abs(n) if is_interval(mu) else 0.0


@formula
def weighted_set(mu, w):
    """The parameter of the set after impulses are multiplied by w: cones stay, intervals grow."""
    return mu * w if is_interval(mu) else mu


@formula
def scaled_set(mu, sn, st):
    """The parameter of the set of x where impulses are (sn n, st t): friction mu sn / st, or the bound over sn."""
    return mu / sn if is_interval(mu) else mu * sn / st


@formula
def natural_map(gn, gu, gw, an, au, aw, mu):
    """Squared norm of g - Pi_K(g - a)."""
    pn, pu, pw = project(gn - an, gu - au, gw - aw, mu)
    dn, du, dw = gn - pn, gu - pu, gw - pw
    return dn * dn + du * du + dw * dw


@formula
def local_error(natural, bias, velocity, w, speed):
    """Square of a contact's own error w |g^ - Pi(g^ - a^)| [m/s] over its own motion: the largest of |r|, |u| and
    `speed`. natural, bias, velocity: the squared norms of its natural map, r^ and u^ (hats as in the natural map)."""
    motion = max(speed * speed, w * w * max(bias, velocity))
    return w * w * natural / motion if motion > 0.0 else 0.0


@formula
def tangent_residual(gn, gu, gw, an, au, aw, mu):
    """Squared norm of the projection of -a onto the tangents of the cone at g: the natural map of a vanishing step.
    g within 1e-5 of the cone's surface counts as on it."""
    t = math.sqrt(gu * gu + gw * gw)
    out = mu * an - (au * gu + aw * gw) / max(t, TINY)
    on = 1.0 if t >= mu * gn * (1.0 - 1e-5) else 0.0
    along = on * max(0.0, out) * max(0.0, out) / (1.0 + mu * mu)
    whole = an * an + au * au + aw * aw - along
    side = max(0.0, whole if mu > 0.0 else an * an)
    apex = natural_map(0.0, 0.0, 0.0, an, au, aw, mu)
    return side if gn > 0.0 else apex
