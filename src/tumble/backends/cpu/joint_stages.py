"""The joints' part of a step in few calls, as `stages` has that of the contacts: the order of the passes and no work.

Backends without a compiler take the same functions over their own passes (`backends.base.over_passes`).
"""

from __future__ import annotations

import math

from ...kernels.contact_rows import immovable_bias
from ...kernels.jit import loop
from ...kernels.joint_steps import (
    bounded_block,
    bounded_row,
    build_row,
    closed,
    contradict,
    coordinates_now,
    gained,
    hold_row,
    kick_row,
    normal_diagonal,
    note_orientation,
    obey,
    own_friction,
    push,
    push_torques,
    react,
    remember_row,
    row_work,
    scaled_bounded_row,
    set_off,
    still,
    take_bounded,
    take_kick,
    torque_impulse,
    world_velocity,
)
from ...kernels.joint_stops import note_stuck
from ...kernels.mechanism_energy import keep_ideal_energy
from ...kernels.motion import difference_of_velocities
from ...kernels.reach import mass_of, power_of, ray_of, wanted_speed
from ..base import Measure
from ..joint_arrays import SystemArrays
from .items import count_true, largest, over_bodies, over_contacts, over_mechanisms, over_rows, total
from .joints import (
    articulated_diagonal,
    articulated_product,
    articulated_rows,
    articulated_velocity,
    factor_joints,
    row_speeds,
    take_rows,
)
from .measure import coulomb_shift_bound, measure
from .mechanisms import turn_inertia
from .motion import add_velocities
from .operators import scale_compliance, scale_frame
from .projection import close_joints, worst_of
from .rows import contact_diagonal, free_frozen_rows, scale_rows, soften_diagonal, weigh
from .works import contact_work

_see, _build, _kick, _hold = map(over_rows, (coordinates_now, build_row, kick_row, hold_row))
_note, _give, _bounded, _row_work = map(over_rows, (note_orientation, torque_impulse, bounded_row, row_work))
_take_bounded, _set_off, _remember, _velocity = map(over_rows, (take_bounded, set_off, remember_row, world_velocity))
_take_kick, _stuck, _scale_bounded, _block = map(over_rows, (take_kick, note_stuck, scaled_bounded_row, bounded_block))
_obey, _contradict, _react, _closed = map(over_mechanisms, (obey, contradict, react, closed))
_torques = over_mechanisms(push_torques)
_still, _push, _gained, _keep = map(over_mechanisms, (still, push, gained, keep_ideal_energy))
_immovable, _own_friction, _alone = map(over_contacts, (immovable_bias, own_friction, normal_diagonal))
_ray, _power, _wanted = map(over_contacts, (ray_of, power_of, wanted_speed))
_mass, _difference = map(over_bodies, (mass_of, difference_of_velocities))


@loop
def look_at_joints(joints, position, orientation, ahead, value, jacobian):
    """Coordinates at some poses and their Jacobians. ahead: see `joint_steps.coordinates_now`."""
    _see(joints.frames.body.shape[0], joints.frames, (position, orientation), ahead, (value, jacobian))


@loop
def assemble_joints(joints, rows, value, jacobian, inverse_inertia):
    """Rows of a set at a pose whose coordinates are known."""
    built = rows.system.built
    _build(built.g.size, rows.system.rows, value, joints.target, jacobian, joints.inverse_mass, inverse_inertia, built)


@loop
def factor_rows(joints, rows, inverse_inertia):
    """The factor of a set with the compliance that is set."""
    data, b, factor = rows.system
    system = SystemArrays(
        data.body, joints.inverse_mass, inverse_inertia, b.jacobian, b.weighted, b.compliance, b.whole
    )
    factor_joints(rows.pattern, system, factor, rows.work)


@loop
def kick_joints(joints, rows, kick, step, near, inverse_inertia):
    """Coordinates, rows and their factor at the pose of the kick. step: h, theta (negative: Euler's), and the time by
    which that pose is ahead of the coordinates `near`."""
    h, theta, lead = step
    value, n = joints.value, rows.y.size
    look_at_joints(
        joints, kick.position, kick.orientation, (near, lead, kick.before, joints.end_jacobian), value, joints.jacobian
    )
    assemble_joints(joints, rows, value, joints.jacobian, inverse_inertia)
    _kick(n, rows.system.rows, joints.target, h, theta, kick.before, rows.system.built)
    factor_rows(joints, rows, inverse_inertia)
    _note(joints.bodies.size, joints.bodies, kick.orientation, joints.kick_orientation)


@loop
def obey_joints(joints, rows, torques, bounded, kick, step, carried, free):
    """Torques of motors, velocities that obey the rows, and which bounded rows count in the step. step: h, theta,
    inverse inertia. Returns how many rows depend on others, the largest that is wanted of a row, the most that one
    which depends on others misses, and how many bounded rows count."""
    h, theta, inverse_inertia = step
    value, target, n = joints.value, joints.target, torques.impulse.size
    mechanisms = rows.sums.shape[1]
    if n > 0:
        poses = (value, target, joints.jacobian, joints.inverse_mass, inverse_inertia)
        _build(n, torques.rows, value, target, joints.jacobian, joints.inverse_mass, inverse_inertia, torques.built)
        _give(n, torques.motor, h, target, torques.impulse)
        _torques(mechanisms, torques, free)
    _obey(mechanisms, rows.system, carried, free, (rows.wanted, rows.y, joints.impulse, joints.end_impulse))
    dropped, most, miss, active = total(mechanisms, rows.system.factor.dropped), 0.0, 0.0, 0
    if dropped > 0.0:
        _contradict(mechanisms, rows.system, rows.wanted, rows.y, rows.sums)
        most, miss = largest(mechanisms, rows.sums[0]), largest(mechanisms, rows.sums[1])
    n = bounded.slack.size
    if n > 0:
        poses = (value, target, joints.jacobian, joints.inverse_mass, inverse_inertia)
        _bounded(n, bounded.rows, bounded.slack, (h, theta), (free, kick.before), poses, bounded.built, bounded.state)
        active = take_rows(bounded.rows, bounded.first, bounded.built, bounded.state, bounded.active)
    return dropped, most, miss, active


@loop
def join_contacts(op, where, answers, friction, limits, rule, diagonal, out):
    """Diagonal blocks of contacts and bounded rows on jointed bodies, and their cones. friction: of the contacts;
    limits: bias, bounds and numbers of the bounded rows, and by number those that the joints leave no freedom; rule:
    the part of the diagonal without joints below which a contact does not give way, and the bias it then has at least.
    out: room for that diagonal (cap,), friction and bias of the problem. Returns how many bounded rows are stuck."""
    contacts, (bias, bound, number, stuck), (part, least), (alone, cones, rows) = op.contacts, limits, rule, out
    count, active = contacts.count, op.bounded_body.shape[0]
    contact_diagonal(
        count, contacts.body_a, contacts.body_b, contacts.frame, contacts.arms, contacts.inverse_mass,
        contacts.inverse_inertia, diagonal,
    )  # fmt: skip
    held = 0
    if where.mechanism_of.size > 0:
        _alone(count, diagonal, alone)
        held = articulated_diagonal(op, where.mechanism_of, where.start, where.body, answers, diagonal)
        if held > 0:
            _stuck(active, count, number, diagonal, bias, bound, stuck)
        _immovable(count, alone, diagonal, part, least, rows)
    if contacts.compliance.shape[1] > 0:
        soften_diagonal(count, contacts.compliance, diagonal)
    free_frozen_rows(count, diagonal, rows)
    _own_friction(count, friction, cones)
    if active > 0:
        _block(active, count, bound, bias, cones, rows)
    return held


@loop
def scale_articulated(op, mode, bias, friction, guess, weights, scaled, bounded):
    """Scales and weights of contacts and bounded rows, whose diagonal blocks `weights` has, and the problem in scaled
    impulses with its guess. bounded: room for the scaled rows."""
    contacts, active = op.contacts, op.bounded_body.shape[0]
    count = contacts.count + active
    weigh(count, 3, weights.diagonal, mode, weights.scale, weights.weight, weights.tangential)
    scale_frame(contacts.count, contacts.frame, weights.scale, scaled.frame)
    if contacts.compliance.shape[1] > 0:
        scale_compliance(contacts.count, contacts.compliance, weights.scale, scaled.compliance)
    if active > 0:
        rows = (op.bounded_jacobian, op.bounded_weighted, op.bounded_compliance)
        _scale_bounded(active, contacts.count, weights.scale, rows, bounded)
    scale_rows(count, bias, friction, weights.scale, guess, scaled.bias, scaled.friction, scaled.x)


@loop
def judge_articulated(op, gauge, tangential, impulse, product, partial, values):
    """As `stages.judge_contacts`."""
    articulated_product(op, impulse, product)
    measure(gauge, impulse, product, partial, values)
    gap = values[Measure.GAP]
    if gauge.coulomb and math.isfinite(gap):
        return coulomb_shift_bound(gauge.count, product, gauge.bias, gauge.friction, tangential, math.sqrt(gap))
    return values[Measure.SHIFT]


@loop
def look_out(op, count, friction, impulse, bias, scratch):
    """What tells whether a solution is in reach (`solve.reach`): the fastest that a contact asks to part, the mass of
    all that moves, what the impulses ask for, and p.N p of those of the cones. scratch: a ray, its product, numbers of
    contacts and of bodies."""
    ray, product, each, mass = scratch
    ease = op.contacts.inverse_mass
    _wanted(count, bias, each)
    speed = largest(count, each)
    _mass(ease.shape[0], ease, mass)
    heavy = total(ease.shape[0], mass)
    _ray(count, friction, impulse, bias, ray, each)
    asked, moved = total(count, each), 0.0
    if asked > 0.0:
        articulated_product(op, ray, product)
        _power(count, ray, product, each)
        moved = total(count, each)
    return speed, heavy, asked, moved


@loop
def act_articulated(op, impulse, free, before, gap, h, velocity, after, partial):
    """As `stages.act_impulses`."""
    articulated_velocity(op, impulse)
    add_velocities(free, op.contacts.body_velocity, velocity)
    articulated_rows(op, velocity, after)
    contacts = op.contacts
    return contact_work(contacts.count, impulse, after, before, gap, contacts.compliance, h, partial)


@loop
def react_joints(joints, rows, torques, bounded, bodies, impulse, before, velocity):
    """Reactions of the joints to the impulses (active,) of bounded rows, and works over the step, with velocities
    before and after it; bodies: `JointedBodies`. Returns works of all rows on dynamic bodies, of motors, what was
    recovered from beyond limits, works of rigid rows that nothing drives, and the kinetic energy."""
    mechanisms, sums = rows.sums.shape[1], rows.sums
    _take_bounded(impulse.size, bounded.active[6], impulse, joints.impulse)
    _react(mechanisms, rows.system, rows.reaction, bodies, joints.impulse, before, velocity, sums)
    by_limits = by_limit_motors = recovered = by_torques = by_torque_motors = 0.0
    n, out = bounded.slack.size, bounded.work
    if n > 0:
        limit = bounded.state.limit
        _row_work(n, bounded.rows, bounded.built, limit, joints.impulse, before, velocity, bodies.kind, out)
        by_limits, by_limit_motors, recovered = total(n, out[0]), total(n, out[1]), total(n, out[2])
    n, out = torques.impulse.size, torques.work
    if n > 0:
        _row_work(n, torques.rows, torques.built, torques.limit, torques.impulse, before, velocity, bodies.kind, out)
        by_torques, by_torque_motors = total(n, out[0]), total(n, out[1])
    works = total(mechanisms, sums[0]) + by_limits + by_torques
    motors = total(mechanisms, sums[1]) + by_limit_motors + by_torque_motors
    return works, motors, recovered, total(mechanisms, sums[2]), total(mechanisms, sums[3])


@loop
def place_unmoved(joints, kick, rest, velocity, position, orientation):
    """Poses after the drift of bodies that no joint can move."""
    _set_off(joints.still.size, joints.still, kick, rest, velocity, position, orientation)


@loop
def close_rows(joints, rows, equality, kick, rule, trial, found):
    """Change the velocities so that the rows of a set hold after the drift (`ClosingRule`). Returns the largest
    violation after it and before it, and the row of the first."""
    row_speeds(rows.system.rows.body, rows.system.built.jacobian, trial.velocity, rows.speed)
    close_joints(rule, equality, joints.frames, kick, (joints.value, joints.jacobian), trial, rows.closing, found)
    return worst_of(found)


@loop
def book_closing(joints, rows, bodies, loads, before, velocity, free, change):
    """After `close_rows`: impulses, works of motors, what external impulses seem to do, and the kinetic energy;
    change: of the velocities by all impulses."""
    mechanisms, sums = rows.sums.shape[1], rows.sums
    closing = (rows.closing.base, rows.closing.y)
    _closed(mechanisms, rows.system, bodies, closing, loads, joints.impulse, before, velocity, rows.speed, sums)
    _difference(velocity.shape[0], velocity, free, change)
    return total(mechanisms, sums[1]), total(mechanisms, sums[4]), total(mechanisms, sums[3])


@loop
def rows_at_end(joints, rows, where, state, ahead, held, inverse_inertia):
    """Rows of a set at the pose of a state (`MotionArrays`), with only those that are `held` (rows,) in its factor.
    ahead: coordinates that angles are counted from, time and velocities on the way from there."""
    near, lead, velocity = ahead
    look_at_joints(
        joints, state.position, state.orientation, (near, lead, velocity, joints.end_jacobian), joints.end_value,
        joints.end_jacobian,
    )  # fmt: skip
    turn_inertia(joints.bodies, where.moves, where.inertia, where.locked, state.orientation, inverse_inertia)
    assemble_joints(joints, rows, joints.end_value, joints.end_jacobian, inverse_inertia)
    hold_rows(joints, rows, held, inverse_inertia)


@loop
def hold_rows(joints, rows, held, inverse_inertia):
    """The factor of only those rows that are `held` (rows,)."""
    _hold(held.size, held, rows.system.built.compliance)
    factor_rows(joints, rows, inverse_inertia)


@loop
def find_velocities(joints, state, velocity):
    """Velocities (n, 6) of jointed bodies, angular ones in world axes."""
    _velocity(joints.bodies.size, joints.bodies, state, velocity)


@loop
def still_rows(joints, rows, bodies, held, rates, motion, velocity):
    """Impulses that hold those rows, or let them go as fast as their motors want. rates: of the targets; motion:
    coordinates at the start, and h."""
    start, h = motion
    mechanisms = rows.sums.shape[1]
    _still(
        mechanisms, rows.system, bodies, held, (joints.target, rates), (start, joints.end_value, h), velocity,
        rows.speed, rows.closing.f, rows.sums,
    )  # fmt: skip


@loop
def keep_velocities(joints, rows, bodies, keeping, wanted, owed, free, step, state, velocity):
    """Those impulses into the velocities, and the energy that ideal joints keep, then the velocities into the state
    (`MotionArrays`). keeping: groups of `DriftEnergy`, and whether it is kept; free: freedoms of the mechanisms and
    rows dropped; step: its length, and the travel that is rest. Returns what the mechanisms gained, the work of motors
    in it, and how many mechanisms were strained."""
    mechanisms, sums = rows.sums.shape[1], rows.sums
    arrays, posed, ideal, work, keeps = keeping
    _push(mechanisms, rows.system, rows.closing.f, velocity, joints.end)
    strained = 0
    if keeps:
        _keep(mechanisms, arrays, posed, ideal, wanted, owed, free, step, velocity, work)
        strained = count_true(mechanisms, work.strained)
    _gained(mechanisms, rows.system, bodies, velocity, rows.speed, rows.closing.f, sums)
    _take_kick(joints.bodies.size, joints.bodies, bodies.kind, state, velocity, state.velocity, state.spin)
    return total(mechanisms, sums[3]), total(mechanisms, sums[1]), strained


@loop
def remember_joints(joints, state, near, lead, velocity, symmetric, value):
    """Coordinates at the end of the step, and what its rows know in the next."""
    look_at_joints(
        joints, state.position, state.orientation, (near, lead, velocity, joints.jacobian), value, joints.end_jacobian
    )
    _remember(joints.role.size, joints.role, joints.impulse, joints.end, symmetric, joints.end_impulse)


@loop
def prepare_joints(joints, rows, torques, bounded, kick, step, near, inverse_inertia, carried, free):
    """`kick_joints`, then `obey_joints` and what that returns."""
    h, theta, _ = step
    kick_joints(joints, rows, kick, step, near, inverse_inertia)
    return obey_joints(joints, rows, torques, bounded, kick, (h, theta, inverse_inertia), carried, free)


@loop
def hold_joints(joints, rows, where, bodies, state, motion, velocity, inverse_inertia, rates, keeping):
    """`find_velocities`, `rows_at_end`, `still_rows` with the exact rows of a set held, then `keep_velocities` and what
    that returns. motion: coordinates at the start, and h; keeping: its groups, energies wanted and owed, freedoms, and
    the step."""
    near, h = motion
    groups, wanted, owed, free, step = keeping
    find_velocities(joints, state, velocity)
    rows_at_end(joints, rows, where, state, (near, h, velocity), rows.exact, inverse_inertia)
    still_rows(joints, rows, bodies, rows.exact, rates, motion, velocity)
    return keep_velocities(joints, rows, bodies, groups, wanted, owed, free, step, state, velocity)
