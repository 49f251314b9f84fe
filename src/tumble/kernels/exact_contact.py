"""One contact, solved exactly.

One contact, the others held: K ∋ g ⊥ A g + q (+ mu |u_T| e_n) ∈ K*. For a given normal impulse the tangential one
minimises a quadratic over the disc of radius mu g_n (a secular equation in the eigenbasis of A_TT, Newton from the
left never overshoots). What is left is one equation in g_n: u_n = 0 (Coulomb) or u_n = mu |u_T| (relaxed, monotone).
"""

from __future__ import annotations

import math

from .cones import coulomb_shift, in_interval, is_interval, project
from .jit import formula

FROZEN = 1e-13
"""A normal row whose diagonal is below this part of the block's trace cannot be moved by its impulse."""


@formula
def disc_minimum(d1, d2, b1, b2, radius):
    """Minimiser of d.t^2 / 2 + b.t over |t| <= radius, and |u_T| = |d t + b| there."""
    if radius <= 0.0:
        return 0.0, 0.0, math.sqrt(b1 * b1 + b2 * b2)
    if abs(b1) <= radius * d1 and abs(b2) <= radius * d2:
        t1 = -b1 / d1 if d1 > 0.0 else 0.0
        t2 = -b2 / d2 if d2 > 0.0 else 0.0
        if t1 * t1 + t2 * t2 <= radius * radius:
            return t1, t2, 0.0
    low = max(0.0, max(abs(b1) / radius - d1, abs(b2) / radius - d2))
    low = max(low, math.sqrt(b1 * b1 + b2 * b2) / radius - max(d1, d2))
    t1, t2 = 0.0, 0.0
    for _ in range(60):
        e1, e2 = d1 + low, d2 + low
        t1 = -b1 / e1 if e1 > 0.0 else 0.0
        t2 = -b2 / e2 if e2 > 0.0 else 0.0
        squares = t1 * t1 + t2 * t2
        size = math.sqrt(squares)
        if size <= radius * (1.0 + 1e-15):
            break
        slope = (t1 * t1 / e1 if e1 > 0.0 else 0.0) + (t2 * t2 / e2 if e2 > 0.0 else 0.0)
        step = (size - radius) / radius * squares / slope
        low += step
        if step <= 1e-16 * low:
            break
    return t1, t2, low * radius


@formula
def local_value(n, nn, c, d, q, qn, mu, coulomb):
    """u_n - s for a given normal impulse (s = 0 or mu |u_T|), and the tangential impulse. c, d, q: coupling, diagonal
    and velocity of the two tangents in the eigenbasis."""
    t1, t2, speed = disc_minimum(d[0], d[1], q[0] + c[0] * n, q[1] + c[1] * n, mu * n)
    value = nn * n + c[0] * t1 + c[1] * t2 + qn
    return (value if coulomb else value - mu * speed), t1, t2


@formula
def solve_contact(block, q, mu, coulomb, start):
    """Exact solution of one block (True), or False where its normal row cannot be moved. block: nn, uu, ww, nu, nw, uw;
    q: its velocity without its own impulse."""
    nn, uu, ww, nu, nw, uw = block
    qn, qu, qw = q
    if nn <= FROZEN * (uu + ww):
        return False, 0.0, 0.0, 0.0
    if is_interval(mu):
        return True, in_interval(-qn / nn, mu), 0.0, 0.0
    if mu == 0.0:
        return True, max(0.0, -qn / nn), 0.0, 0.0
    if qn >= (0.0 if coulomb else mu * math.sqrt(qu * qu + qw * qw)):
        return True, 0.0, 0.0, 0.0
    # Eigenbasis (c, s), (-s, c) of A_TT.
    half, mean = 0.5 * (uu - ww), 0.5 * (uu + ww)
    spread = math.sqrt(half * half + uw * uw)
    d1, d2 = mean + spread, max(0.0, mean - spread)
    c, s = 1.0, 0.0
    if spread > 1e-16 * mean:
        if half >= 0.0:
            c, s = half + spread, uw
        else:
            c, s = uw, spread - half
        size = math.sqrt(c * c + s * s)
        c, s = c / size, s / size
    turned = (c * qu + s * qw, c * qw - s * qu)
    coupling = (c * nu + s * nw, c * nw - s * nu)
    # Bracket the normal impulse.
    low, f_low = 0.0, qn
    if not coulomb:
        f_low = qn - mu * math.sqrt(qu * qu + qw * qw)
    high = start if start > 0.0 else -f_low / nn
    f_high, t1, t2 = local_value(high, nn, coupling, (d1, d2), turned, qn, mu, coulomb)
    for _ in range(200):
        if f_high >= 0.0:
            break
        low, f_low = high, f_high
        high *= 2.0
        f_high, t1, t2 = local_value(high, nn, coupling, (d1, d2), turned, qn, mu, coulomb)
    if f_high < 0.0:
        return False, 0.0, 0.0, 0.0
    # Illinois: false position that halves the value of an end that stays.
    n, side = high, 0
    for _ in range(100):
        if high - low <= 4e-16 * high:
            break
        n = (low * f_high - high * f_low) / (f_high - f_low)
        if not low < n < high:
            n = 0.5 * (low + high)
        f, t1, t2 = local_value(n, nn, coupling, (d1, d2), turned, qn, mu, coulomb)
        if f == 0.0:
            break
        if f > 0.0:
            high, f_high = n, f
            if side == 1:
                f_low *= 0.5
            side = 1
        else:
            low, f_low = n, f
            if side == -1:
                f_high *= 0.5
            side = -1
    u, w = c * t1 - s * t2, s * t1 + c * t2
    n, u, w = project(n, u, w, mu)
    return True, n, u, w


@formula
def new_impulse(a, c, x, u0, u1, u2, mu, coulomb, omega):
    """The impulse of contact c after its exact solve, from the velocity u with the present impulse."""
    g0, g1, g2 = x[0, c], x[1, c], x[2, c]
    nn, uu, ww, nu, nw, uw = a[0, c], a[1, c], a[2, c], a[3, c], a[4, c], a[5, c]
    q0 = u0 - nn * g0 - nu * g1 - nw * g2
    q1 = u1 - nu * g0 - uu * g1 - uw * g2
    q2 = u2 - nw * g0 - uw * g1 - ww * g2
    done, p0, p1, p2 = solve_contact((nn, uu, ww, nu, nw, uw), (q0, q1, q2), mu, coulomb, g0)
    if not done:
        t = 1.0 / (nn + uu + ww) if nn + uu + ww > 0.0 else 0.0
        shift = coulomb_shift(u1, u2, mu) if coulomb and not is_interval(mu) else 0.0
        p0, p1, p2 = project(g0 - t * (u0 + shift), g1 - t * u1, g2 - t * u2, mu)
    return g0 + omega * (p0 - g0), g1 + omega * (p1 - g1), g2 + omega * (p2 - g2)
