"""What a step does to a joint row, a mechanism and a jointed body, one at a time.

Sums of mechanisms go to rows of a table (SUMS, mechanisms); who adds them up does so in order.
"""

from __future__ import annotations

import math

from ..enums import RowRole
from .jit import formula, merged_formula
from .joint_rows import (
    SIDES,
    coordinate_of,
    forward_mechanism,
    frame_pair,
    own_row,
    push_row,
    row_speed,
    solve_mechanism,
)
from .joints import ANGLE, arctangent
from .kinds import DYNAMIC
from .linalg import add, cross, quat_exp, quat_multiply, row3, row4
from .mechanism_energy import mechanism_energy

SPEED, SPRING, FRICTION = int(RowRole.SPEED), int(RowRole.SPRING), int(RowRole.FRICTION)
LOWER, UPPER = int(RowRole.LOWER), int(RowRole.UPPER)
BOUNDED_SPEED, BOUNDED_POSITION = int(RowRole.BOUNDED_SPEED), int(RowRole.BOUNDED_POSITION)
LIMIT_RECOVERY = 10.0
"""A violated limit is restored at this rate [1/s]: softly, so that nothing is thrown off it."""
HUGE = 1e30
"""Compliance of a row that does not count."""
WORK, MOTORS, IDEAL, ENERGY, CROSSED, SUMS = 0, 1, 2, 3, 4, 5


# ---------------------------------------------------------------------- rows


@formula
def coordinates_now(f, frames, poses, ahead, out):
    """Values and Jacobians of all coordinates between the frames of pair f. ahead: values that whole turns of angles
    are counted from, and the way on from there: a time, velocities of the bodies, and Jacobians, which may be those
    that are written."""
    (position, orientation), (near, lead, velocity, old), (value, jacobian) = poses, ahead, out
    pair = frame_pair(f, frames, position, orientation)
    for at in range(frames.start[f], frames.start[f + 1]):
        k = frames.coord[at]
        first, second, j = coordinate_of(k, frames, pair)
        for i in range(12):
            jacobian[k, i] = j[i]
        value[k] = first
        if frames.kind[k] == ANGLE:
            place = near[k]
            if lead != 0.0:
                a, b = frames.body[f, 0], frames.body[f, 1]
                speed = 0.0
                for i in range(6):
                    speed += old[k, i] * velocity[a, i] + old[k, 6 + i] * velocity[b, i]
                place += lead * speed
            angle = arctangent(first, second)
            value[k] = angle + 2.0 * math.pi * math.floor((place - angle) / (2.0 * math.pi) + 0.5)


@formula
def wanted(r, rows, target):
    """weight . coordinates of a row that holds."""
    return rows.offset[r] + target[rows.motor[r]] if rows.driven[r] else rows.offset[r]


@formula
def build_row(r, rows, value, target, coord_jacobian, inverse_mass, inverse_inertia, built):
    """Jacobian and violation (weight . coordinates less what is wanted), and `whole`: what the diagonal would be
    without locked directions, roughly, the scale of its pivot."""
    jacobian, weighted, whole, g = built.jacobian, built.weighted, built.whole, built.g
    own_row(r, rows.coord, rows.weight, rows.body, coord_jacobian, inverse_mass, inverse_inertia, jacobian, weighted)
    whole[r] = 0.0
    for s in range(SIDES):
        linear = angular = 0.0
        for i in range(6 * s, 6 * s + 3):
            linear += jacobian[r, i] * jacobian[r, i]
            angular += jacobian[r, 3 + i] * jacobian[r, 3 + i]
        whole[r] += linear * rows.light[r, s] + angular * rows.nimble[r, s]
    built.wanted[r] = wanted(r, rows, target)
    g[r] = rows.weight[r, 0] * value[rows.coord[r, 0]] - built.wanted[r]
    if rows.coord[r, 1] >= 0:
        g[r] += rows.weight[r, 1] * value[rows.coord[r, 1]]


@formula
def implicit_spring(g, k, d, h, theta, before):
    """Bias and compliance of a spring and damper, implicit.

    theta: Moreau's (negative: Euler's step); the force is that of the mean stretch and speed of the step, g at the pose
    of the kick and `before` the speed there.
    """
    if theta < 0.0:
        s = h * k + d
        return k * g / s, 1.0 / (h * s)
    s = theta * (theta * h * k + d)
    old = (1.0 - theta) * (d - (1.0 - theta) * h * k)
    return (k * g + old * before) / s, 1.0 / (h * s)


@formula
def kick_row(r, rows, target, h, theta, before, built):
    """Bias and compliance of an equality row in the kick. theta: Moreau's, whose rigid rows leave the velocity across
    them as it is (`before` the kick), negative: Euler's."""
    built.compliance[r] = 0.0
    role, speed = rows.role[r], 0.0
    if theta >= 0.0:
        speed = row_speed(rows.body, built.jacobian, r, before)
    if role == SPRING:
        k, d = rows.stiffness[r], rows.damping[r]
        built.bias[r], built.compliance[r] = implicit_spring(built.g[r], k, d, h, theta, speed)
    elif role == SPEED:
        built.bias[r] = -target[rows.motor[r]]
    elif theta >= 0.0:
        built.bias[r] = -speed
    else:
        built.bias[r] = built.g[r] * (1.0 / h)


@formula
def hold_row(r, held, compliance):
    """Only rows that are held count."""
    compliance[r] = 0.0 if held[r] else HUGE


@formula
def bounded_row(i, rows, slack, step, velocities, poses, built, out):
    """Bias, bound and Jacobian of bounded row i, and whether it counts in this step.

    step: h, theta (negative: Euler's); velocities: with and without the kick of the forces; poses: the arguments of
    `build_row`; out: `BoundedState`."""
    (h, theta), (free, before) = step, velocities
    value, target, coord_jacobian, inverse_mass, inverse_inertia = poses
    build_row(i, rows, value, target, coord_jacobian, inverse_mass, inverse_inertia, built)
    role, g, speed = rows.role[i], built.g[i], row_speed(rows.body, built.jacobian, i, free)
    limit = role == LOWER or role == UPPER
    # A limit holds until the next kick, the position of a motor at the end of the step.
    bias = g / (h if limit or theta < 0.0 else theta * h)
    if limit and g < 0.0:
        bias = LIMIT_RECOVERY * g
    if role == FRICTION:
        bias = 0.0
    if role == BOUNDED_SPEED:
        bias = -target[rows.motor[i]]
    built.compliance[i] = 0.0
    if role == BOUNDED_POSITION and rows.stiffness[i] > 0.0:
        old = row_speed(rows.body, built.jacobian, i, before)
        bias, built.compliance[i] = implicit_spring(g, rows.stiffness[i], rows.damping[i], h, theta, old)
    built.bias[i] = bias + speed
    out.bound[i] = 0.0 if limit else -h * rows.most[i]
    out.limit[i] = limit
    out.impulse[rows.number[i]] = 0.0
    out.kept[i] = not limit or g <= slack[i] + 2.0 * h * abs(speed)


@formula
def passes_limit(i, rows, built, out, h, velocity, passed):
    """Whether a limit that was thought far is passed at these velocities."""
    speed = row_speed(rows.body, built.jacobian, i, velocity)
    passed[i] = not out.kept[i] and built.g[i] + h * speed < 0.0


@merged_formula
def _mean_speed(body, jacobian, r, before, after, kind, all_bodies):
    """J (before + after) / 2, of dynamic bodies or of all."""
    total = 0.0
    for s in range(SIDES):
        b = body[r, s]
        if b >= 0 and (all_bodies or kind[b] == DYNAMIC):
            for i in range(6):
                total += jacobian[r, 6 * s + i] * (0.5 * (before[b, i] + after[b, i]))
    return total


@formula
def row_work(i, rows, built, limit, impulse, before, after, kind, out):
    """Work of row i on dynamic bodies over the step, with velocities before and after, into out (3, n) [J]: all of it;
    a motor's own, also against bodies of prescribed motion; what pushed a joint back from beyond its limit."""
    body, jacobian, y = rows.body, built.jacobian, impulse[rows.number[i]]
    out[0, i] = y * _mean_speed(body, jacobian, i, before, after, kind, False)
    out[1, i] = y * _mean_speed(body, jacobian, i, before, after, kind, True) if rows.motor[i] >= 0 else 0.0
    out[2, i] = 0.0
    if limit[i] and built.g[i] < 0.0:
        old, new = row_speed(body, jacobian, i, before), row_speed(body, jacobian, i, after)
        out[2, i] = min(max(0.5 * y * (old + new), 0.0), max(y * new, 0.0))


@formula
def torque_impulse(i, motor, h, target, impulse):
    """What a motor that gives a torque gives in a step."""
    impulse[i] = h * target[motor[i]]


# ---------------------------------------------------------------------- mechanisms


@formula
def push_torques(c, torques, free):
    """Torques of the motors of mechanism c into the free velocities."""
    for i in range(torques.mechanism[c], torques.mechanism[c + 1]):
        if torques.impulse[i] != 0.0:
            push_row(torques.rows.body, torques.built.weighted, i, torques.impulse[i], free)


@formula
def obey(c, system, carried, free, out):
    """Velocities after which the equality rows hold; out: right sides, y, impulses by number of row.

    carried: impulses of the step before by number, which belong to this kick (Euler's); empty: none."""
    (rows, built, factor), (wanted, y, impulse, end_impulse) = system, out
    first, end = factor.mechanism[c], factor.mechanism[c + 1]
    for r in range(first, end):
        wanted[r] = row_speed(rows.body, built.jacobian, r, free) + built.bias[r]
        y[r] = wanted[r]
        if carried.size > 0:
            end_impulse[rows.number[r]] = carried[rows.number[r]]
    solve_mechanism(c, factor, y)
    for r in range(first, end):
        push_row(rows.body, built.weighted, r, -y[r], free)
        impulse[rows.number[r]] = -y[r]


@formula
def contradict(c, system, wanted, left, sums):
    """What is wanted of the rows of a mechanism: the largest, and the most that a row which depends on others misses.
    left (rows,): scratch."""
    factor = system.factor
    first, end = factor.mechanism[c], factor.mechanism[c + 1]
    most = miss = 0.0
    for r in range(first, end):
        left[r] = wanted[r]
        most = max(most, abs(wanted[r]))
    if factor.dropped[c] > 0:
        forward_mechanism(c, factor, left)
        for r in range(first, end):
            if factor.inverse_pivot[r] == 0.0:
                miss = max(miss, abs(left[r]))
    sums[0, c], sums[1, c] = most, miss


@formula
def _works(c, system, impulse, before, after, kind, sums):
    """All work of the rows of a mechanism, that of its motors, and that of rigid rows that nothing drives."""
    rows, built, factor = system
    total = motors = ideal = 0.0
    for r in range(factor.mechanism[c], factor.mechanism[c + 1]):
        y = impulse[rows.number[r]]
        total += y * _mean_speed(rows.body, built.jacobian, r, before, after, kind, False)
        every = y * _mean_speed(rows.body, built.jacobian, r, before, after, kind, True)
        if rows.motor[r] >= 0:
            motors += every
        elif rows.rigid[r]:
            ideal += every
    sums[WORK, c], sums[MOTORS, c], sums[IDEAL, c] = total, motors, ideal


@formula
def react(c, system, reaction, bodies, impulse, before, velocity, sums):
    """What the elimination answered, into the impulses; works and the kinetic energy."""
    start, body, kind, mass, inertia, orientation = bodies
    rows, _, factor = system
    for r in range(factor.mechanism[c], factor.mechanism[c + 1]):
        impulse[rows.number[r]] -= reaction[r]
    _works(c, system, impulse, before, velocity, kind, sums)
    sums[ENERGY, c] = mechanism_energy(c, start, body, mass, inertia, orientation, velocity)


@formula
def closed(c, system, bodies, closing, loads, impulse, before, velocity, speed, sums):
    """After the projection (closing: velocities before it, and its impulses): works, the kinetic energy, and the work
    that external impulses (loads: h, forces, torques) seem to do through the velocity that it added."""
    start, body, kind, mass, inertia, orientation = bodies
    rows, built, factor = system
    base, y = closing
    h, force, torque = loads
    motors = crossed = 0.0
    for r in range(factor.mechanism[c], factor.mechanism[c + 1]):
        impulse[rows.number[r]] += y[r]
        if rows.motor[r] >= 0:
            motors += 0.5 * y[r] * (speed[r] + row_speed(rows.body, built.jacobian, r, velocity))
    _works(c, system, impulse, before, velocity, kind, sums)
    sums[MOTORS, c] = motors
    sums[ENERGY, c] = mechanism_energy(c, start, body, mass, inertia, orientation, velocity)
    for i in range(start[c], start[c + 1]):
        b = body[i]
        for k in range(3):
            crossed += force[b, k] * (velocity[b, k] - base[b, k])
            crossed += torque[b, k] * (velocity[b, 3 + k] - base[b, 3 + k])
    sums[CROSSED, c] = 0.5 * h * crossed


@formula
def still(c, system, bodies, held, wants, motion, velocity, speed, y, sums):
    """Impulses y after which rows that are held keep still, or go as fast as their motor wants.

    wants: targets of the motors and their rates, not a number where nobody knows them; then that of the coordinate,
    motion: its values at the start and now, and h."""
    start, body, _, mass, inertia, orientation = bodies
    rows, built, factor = system
    (target, rate), (before, now, h) = wants, motion
    sums[ENERGY, c] = mechanism_energy(c, start, body, mass, inertia, orientation, velocity)
    for r in range(factor.mechanism[c], factor.mechanism[c + 1]):
        speed[r] = row_speed(rows.body, built.jacobian, r, velocity)
        wrong, motor = speed[r], rows.motor[r]
        if held[r] and motor >= 0 and rows.role[r] == SPEED:
            wrong -= target[motor]
        elif held[r] and motor >= 0 and rows.rigid[r]:
            k = rows.coord[r, 0]
            wrong -= (now[k] - before[k]) / h if math.isnan(rate[motor]) else rate[motor]
        y[r] = -wrong if held[r] else 0.0
    solve_mechanism(c, factor, y)


@formula
def push(c, system, y, velocity, left):
    """Those impulses into the velocities, and by number of row into `left`."""
    rows, built, factor = system
    for r in range(factor.mechanism[c], factor.mechanism[c + 1]):
        push_row(rows.body, built.weighted, r, y[r], velocity)
        left[rows.number[r]] = y[r]


@formula
def gained(c, system, bodies, velocity, speed, y, sums):
    """What the mechanism and its motors have gained since `still`."""
    start, body, _, mass, inertia, orientation = bodies
    rows, built, factor = system
    sums[ENERGY, c] = mechanism_energy(c, start, body, mass, inertia, orientation, velocity) - sums[ENERGY, c]
    motors = 0.0
    for r in range(factor.mechanism[c], factor.mechanism[c + 1]):
        if rows.motor[r] >= 0:
            motors += 0.5 * y[r] * (speed[r] + row_speed(rows.body, built.jacobian, r, velocity))
    sums[MOTORS, c] = motors


# ---------------------------------------------------------------------- bodies


@merged_formula
def _rotated(w, u, v):
    """v turned by the quaternion (w, u)."""
    t = cross(u, v)
    t = (2.0 * t[0], 2.0 * t[1], 2.0 * t[2])
    x = cross(u, t)
    return (v[0] + w * t[0] + x[0], v[1] + w * t[1] + x[1], v[2] + w * t[2] + x[2])


@formula
def world_velocity(i, some, state, out):
    """Velocity (6,) of body some[i], the angular one in world axes."""
    b, q = some[i], state.orientation
    w = _rotated(q[b, 0], (q[b, 1], q[b, 2], q[b, 3]), row3(state.spin, b))
    for k in range(3):
        out[b, k], out[b, 3 + k] = state.velocity[b, k], w[k]


@formula
def take_kick(i, some, kind, state, after, velocity, spin):
    """Velocity and spin of body some[i], if it is dynamic, when its velocity in world axes is `after` the kick."""
    b, q = some[i], state.orientation
    if kind[b] != DYNAMIC:
        return
    u = (q[b, 1], q[b, 2], q[b, 3])
    w = _rotated(q[b, 0], u, row3(state.spin, b))
    change = (after[b, 3] - w[0], after[b, 4] - w[1], after[b, 5] - w[2])
    turned = add(row3(state.spin, b), _rotated(q[b, 0], (-u[0], -u[1], -u[2]), change))
    for k in range(3):
        velocity[b, k] = state.velocity[b, k] + (after[b, k] - state.velocity[b, k])
        spin[b, k] = turned[k]


@formula
def note_orientation(i, some, orientation, out):
    """That of body some[i]."""
    for k in range(4):
        out[some[i], k] = orientation[some[i], k]


@formula
def set_off(i, some, kick, rest, velocity, position, orientation):
    """Pose of body some[i], which no joint can move, after the drift."""
    b = some[i]
    q = row4(kick.orientation, b)
    x, y, z = velocity[b, 3], velocity[b, 4], velocity[b, 5]
    if x != 0.0 or y != 0.0 or z != 0.0:
        q = quat_multiply(quat_exp((rest * x, rest * y, rest * z)), q)
    for k in range(3):
        position[b, k] = kick.position[b, k] + rest * velocity[b, k]
    for k in range(4):
        orientation[b, k] = q[k]


@formula
def take_bounded(i, number, impulse, out):
    """The impulse of a bounded row that counts, by its number."""
    out[number[i]] = impulse[i]


@formula
def remember_row(r, role, impulse, end, symmetric, end_impulse):
    """What row r knows of this step in the next, `end`: of an equality row its impulse at the end, which Moreau's kick
    counts too, else that of the kick."""
    if role[r] > SPRING:
        end[r] = impulse[r]
    elif symmetric:
        end_impulse[r] += end[r]


@formula
def take_target(k, constant, given, out):
    """The target of motor k: that set during the run where there is one (a number), else the model's. Without
    `constant`: its speed, 0, or not a number where one was set."""
    told = given.size > 0 and not math.isnan(given[k])
    if constant.size == 0:
        out[k] = math.nan if told else 0.0
    else:
        out[k] = given[k] if told else constant[k]


@formula
def scaled_bounded_row(r, place, scale, rows, out):
    """Bounded row r in scaled impulses, whose block is at `place` + r. rows, out: J, M^-1 J, compliance."""
    s = scale[0, place + int(r)]
    for i in range(6 * SIDES):
        out[0][r, i], out[1][r, i] = s * rows[0][r, i], s * rows[1][r, i]
    out[2][r] = s * s * rows[2][r]


@formula
def bounded_block(r, place, bound, bias, friction, out):
    """The cone and the bias of bounded row r, whose block is at `place` + r."""
    c = place + int(r)
    friction[c] = bound[r]
    for k in range(out.shape[0]):
        out[k, c] = 0.0
    out[0, c] = bias[r]


@formula
def own_friction(c, friction, out):
    """That of contact c."""
    out[c] = friction[c]


@formula
def normal_diagonal(c, diagonal, out):
    """That of contact c."""
    out[c] = diagonal[0, c]
