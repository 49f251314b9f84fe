"""Contact laws, contact by contact: what `sim.laws` does to the contact c of a step.

pair: the pair of materials of each contact, by which the tables of laws (k * k,) are read. Impulses, velocities and
bias have rows n, u, w.
"""

from __future__ import annotations

import math

from .elementary import exponential, logarithm
from .jit import formula
from .linalg import quat_exp

# ---------------------------------------------------------------------- friction that falls with speed


@formula
def falling_friction(c, pair, static, speed, sliding, before, friction):
    """mu + (mu_s - mu) exp(-(v / v_s)^2) with the sliding speed v before the step."""
    k = pair[c]
    mu = sliding[c]
    v = math.sqrt(before[1, c] * before[1, c] + before[2, c] * before[2, c]) / speed[k]
    friction[c] = mu + (static[k] - mu) * exponential(-v * v)


# ---------------------------------------------------------------------- ageing


@formula
def aged_friction(c, pair, strength, time, age, friction):
    """What an older contact holds more."""
    k = pair[c]
    friction[c] += strength[k] * logarithm(1.0 + age[0, c] / time[k])


@formula
def grown_age(c, pair, length, impulse, after, h, age):
    """d(age)/dt = 1 - v age / D, exactly for the sliding speed v after the step; a contact without force has none."""
    v = math.sqrt(after[1, c] * after[1, c] + after[2, c] * after[2, c])
    x = v * h / length[pair[c]]
    kept = exponential(-x)
    grown = (1.0 - kept) / x if x > 1e-3 else 1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0 * (1.0 - x / 5.0)))
    age[0, c] = age[0, c] * kept + h * grown if impulse[0, c] > 0.0 else 0.0


# ---------------------------------------------------------------------- springs


@formula
def _dashpot(springs, k, gap):
    """Of the normal: it begins where the gap closes."""
    return springs.damping[k] if gap <= 0.0 else 0.0


@formula
def spring_compliance(c, pair, gap, springs, h, compliance):
    """E of the normal and the tangential rows (2, cap): c / (h (h + c d))."""
    k = pair[c]
    n, t = springs.compliance[k], springs.tangential_compliance[k]
    compliance[0, c] = n / (h * (h + n * _dashpot(springs, k, gap[c])))
    compliance[1, c] = t / (h * (h + t * springs.tangential_damping[k]))


@formula
def turned_stretch(c, stretch):
    """Where the normal has turned, the stretch has turned with it: it keeps its length."""
    flat = stretch[1, c] * stretch[1, c] + stretch[2, c] * stretch[2, c]
    whole = math.sqrt(stretch[0, c] * stretch[0, c] + flat)
    flat = math.sqrt(flat)
    stretch[0, c] = 0.0
    if flat > 0.5 * whole:
        stretch[1, c] *= whole / flat
        stretch[2, c] *= whole / flat


@formula
def spring_bias(c, pair, gap, springs, stretch, free, h, bias):
    """The overlap is wanted: its recovery is not capped; and in the tangent plane the stretch is a gap."""
    k = pair[c]
    n, t = springs.compliance[k], springs.tangential_compliance[k]
    if n > 0.0:
        bias[0, c] = gap[c] / (h + n * _dashpot(springs, k, gap[c])) + free[0, c]
    if t > 0.0:
        for row in range(1, 3):
            bias[row, c] += stretch[row, c] / (h + t * springs.tangential_damping[k])


@formula
def spring_end(c, pair, gap, sides, springs, ended, stretch, energy):
    """Stretch after the step, and the energy in both springs [J].

    From the force -s / c - d (s - s_old) / h, so a contact that slides keeps what its friction can hold; the stretch
    turns about the normal with the bodies.
    """
    k, h, impulse, shift = pair[c], ended.h, ended.impulse, ended.shift
    n, t, d = springs.compliance[k], springs.tangential_compliance[k], springs.tangential_damping[k]
    pressed = impulse[0, c] + (shift[c] if shift.size > 0 else 0.0) > 0.0
    u, w, stored = 0.0, 0.0, 0.0
    if pressed and t > 0.0:
        u = t * (d * stretch[1, c] - impulse[1, c]) / (h + t * d)
        w = t * (d * stretch[2, c] - impulse[2, c]) / (h + t * d)
        stored = (u * u + w * w) / (2.0 * t)
    a, b, velocity = sides.body_a[c], sides.body_b[c], ended.velocity
    spin = 0.0
    for i in range(3):
        spin += sides.normal[i, c] * (velocity[a, 3 + i] + velocity[b, 3 + i])
    turn = quat_exp((h * spin, 0.0, 0.0))  # by half the sum of both spins
    stretch[1, c], stretch[2, c] = turn[0] * u - turn[1] * w, turn[1] * u + turn[0] * w
    # The normal spring's own force: without the dashpot, which rests where cohesion pulls with all it has.
    force = impulse[0, c] / h
    if pressed:
        force += _dashpot(springs, k, gap[c]) * ended.after[0, c]
    energy[c] = 0.5 * n * force * force + stored


# ---------------------------------------------------------------------- cohesion


@formula
def cohesion_shift(c, touch, tables, default_range, before, inverse_mass, compliance, h, shift):
    """Shift of the normal impulse: h c within the range, less for a pair that parts fast (`impulse_of_work`).

    inverse_mass: first row of the diagonal (6, cap), which has the compliance (2, cap) in it.
    """
    k = touch.pair[c]
    pull, reach = tables.cohesion[k], tables.cohesion_range[k]
    if reach < 0.0:
        reach = default_range * touch.size[c]
    spring = pull * tables.compliance[k]  # a compliant contact stretches so far before it lets go
    shift[c] = h * pull if touch.gap[c] <= reach + spring else 0.0
    speed = before[0, c]
    if shift[c] > 0.0 and speed > 0.0:
        own = inverse_mass[0, c]
        if compliance.shape[1] > 0:
            own -= compliance[0, c]
        opened = max(touch.gap[c], 0.0)
        left = pull * (reach + spring - opened)
        if spring > 0.0:  # of the spring, whose force grows to c
            unstretched = spring - min(opened, spring)
            left -= 0.5 * pull * (unstretched * unstretched / spring)
        shift[c] = min(shift[c], impulse_of_work(left, speed, own))


@formula
def impulse_of_work(work, speed, inverse_mass):
    """Impulse that takes this work [J] from a pair that parts with a speed, or stops it with at most that work [N s].

    g (v - g / 2m) = W has the solution m (v - sqrt(v^2 - 2 W / m)); a slower pair is stopped, with g v / 2 <= W.
    """
    rest = speed * speed - 2.0 * work * inverse_mass
    if rest > 0.0:
        return 2.0 * work / (speed + math.sqrt(rest))  # the same, without cancellation
    return 2.0 * work / speed


@formula
def pulled(c, contacts, shift, pull):
    """The shift of so many contacts as impulses; none of other blocks."""
    if c >= contacts:
        shift[c] = 0.0
    for row in range(pull.shape[0]):
        pull[row, c] = 0.0
    pull[0, c] = shift[c]


@formula
def added(c, x, out):
    """out += x, all rows."""
    for row in range(out.shape[0]):
        out[row, c] += x[row, c]


@formula
def subtracted(c, x, out):
    """out -= x, all rows."""
    for row in range(out.shape[0]):
        out[row, c] -= x[row, c]


@formula
def shifted(c, shift, impulse):
    """Impulses of the cone that cohesion shifts."""
    impulse[0, c] += shift[c]


@formula
def unshifted(c, impulse, shift, out):
    """Impulses of the contacts themselves."""
    for row in range(out.shape[0]):
        out[row, c] = impulse[row, c]
    out[0, c] -= shift[c]


# ---------------------------------------------------------------------- restitution


@formula
def hit_bias(c, pair, gap, bounce, before, free, h, hit, bias):
    """Contacts that would close in the step and approach faster than the threshold leave with e times their speed."""
    k = pair[c]
    e, approach = bounce.restitution[k], before[0, c]
    closes = gap[c] + h * free[0, c] <= 0.0
    hit[c] = e > 0.0 and closes and -approach > bounce.restitution_threshold[k]
    if hit[c]:
        bias[0, c] = e * approach + free[0, c]


@formula
def alone(c, hit, diagonal, bias, guess):
    """A contact that hits starts from the impulse that it needs alone."""
    if hit[c]:
        stiff = diagonal[0, c] > 0.0
        guess[0, c] = max(-bias[0, c], 0.0) / diagonal[0, c] if stiff else 0.0


@formula
def braked(c, pair, gap, bounce, moved, hit, room, least, fresh):
    """Contacts that a row without restitution would brake, and that are not open yet (`moved`: impulses, normal speeds
    before the round and what it adds to them, open contacts)."""
    k = pair[c]
    threshold, speed = bounce.restitution_threshold[k], moved.speed[c]
    fresh[c] = False
    if bounce.restitution[k] > 0.0 and not hit[c] and not moved.opened[c] and moved.impulse[0, c] > 0.0:
        parts = gap[c] > 0.0 or speed > max(threshold, least * room)
        fresh[c] = parts and abs(speed + moved.after[0, c]) > threshold


@formula
def opened_bias(c, fresh, opened, closed_bias, room, bias, guess):
    """Leave open what was braked: its row may close by so much [m/s], and it starts from no impulse."""
    opened[c] = opened[c] or fresh[c]
    bias[0, c] = closed_bias[c] + (room if opened[c] else 0.0)
    if opened[c]:
        for row in range(guess.shape[0]):
            guess[row, c] = 0.0


@formula
def braked_bias(c, gap, hit, speed, h, bias):
    """What has hit asks for no more than to stay apart."""
    if hit[c]:
        bias[0, c] = max(gap[c], 0.0) / h + speed[c]


@formula
def next_hit(c, pair, gap, bounce, speed, h, hit, bias):
    """What hits in the next round, at its normal speeds."""
    k = pair[c]
    e, v = bounce.restitution[k], speed[c]
    hit[c] = e > 0.0 and gap[c] + h * v <= 0.0 and -v > bounce.restitution_threshold[k]
    if hit[c]:
        bias[0, c] = (1.0 + e) * v
