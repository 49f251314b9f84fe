"""Rows of contacts: entries, frames, bias, what is remembered from step to step, and works."""

import numpy as np
import pytest

from tumble.backends.base import GapArrays, RestRule, RowArrays, TouchArrays, blocks
from tumble.backends.cpu.rows import fill_entries_in_parts
from tumble.enums import BodyKind

from .cover import covers
from .data import (
    BODIES,
    COUNTS,
    SPARE,
    assert_close,
    bodies,
    contacts,
    entries,
    frames,
    frozen,
    pairs_of_bodies,
    relative,
    spare,
)

H = 2e-3


@covers("fill_entries")
@pytest.mark.parametrize("count", COUNTS)
def test_entries_are_the_sides_of_contacts_sorted_by_body(backend, count):
    rng = np.random.default_rng(count)
    a, b = pairs_of_bodies(rng, count, BODIES)
    movable = rng.random(BODIES) < 0.7
    start, cursor = np.full(BODIES + 1, -1), np.full(BODIES, -1)
    slot = np.full((2, count + SPARE), -1, np.int32)
    slot_a, slot_b = slot[0].copy(), slot[1].copy()
    used = backend.fill_entries(count, a, b, movable, start, cursor, slot_a, slot_b)
    wanted_a, wanted_b, wanted_start = entries(a, b, count, movable)
    assert used == np.sum(movable[a[:count]]) + np.sum(movable[b[:count]])
    assert np.array_equal(start, wanted_start)
    assert np.array_equal(slot_a[:count], wanted_a) and np.array_equal(slot_b[:count], wanted_b)
    assert np.all(slot_a[count:] == -1) and np.all(slot_b[count:] == -1)


@pytest.mark.parametrize("parts", [2, 3, 16])
@pytest.mark.parametrize("count", COUNTS)
def test_entries_numbered_part_by_part_are_the_same(count, parts):
    rng = np.random.default_rng(count)
    a, b = pairs_of_bodies(rng, count, BODIES)
    movable = rng.random(BODIES) < 0.7
    start, sides = np.full(BODIES + 1, -1), np.full((parts, BODIES), -1, np.int32)
    slot_a, slot_b = np.full((2, count + SPARE), -1, np.int32)
    fill_entries_in_parts(count, a, b, movable, start, sides, slot_a, slot_b)
    wanted_a, wanted_b, wanted_start = entries(a, b, count, movable)
    assert np.array_equal(start, wanted_start)
    assert np.array_equal(slot_a[:count], wanted_a) and np.array_equal(slot_b[:count], wanted_b)
    assert np.all(slot_a[count:] == -1) and np.all(slot_b[count:] == -1)


@covers("build_rows")
@pytest.mark.parametrize("recovery", [-1.0, 0.3])
@pytest.mark.parametrize("count", COUNTS)
def test_rows_have_right_handed_frames_arms_and_bias(backend, count, recovery):
    rng = np.random.default_rng(count)
    own = bodies(count)
    op = contacts(count, count, own=own)
    normal = spare(3, count, rng)
    normal[:, :count] /= np.linalg.norm(normal[:, :count], axis=0)
    if count:
        normal[:, 0], normal[:, 1], normal[:, 2] = (0, 0, 1), (0, 0, -1), (1, 0, 0)
    point, gap, size = spare(3, count, rng), 1e-3 * spare(0, count, rng), np.abs(spare(0, count, rng))
    free = rng.normal(size=(BODIES, 6))
    frame, arms, bias = spare(9, count), spare(6, count), spare(3, count)
    entry_arm = np.full_like(op.entry_arm, np.nan)
    touch = TouchArrays(op.body_a, op.body_b, op.slot_a, op.slot_b, normal, point, gap, size)
    rows = RowArrays(frame, arms, entry_arm, bias)
    backend.build_rows(count, touch, own.position, free, H, recovery, 9.81, rows)
    e = frame[:, :count].T.reshape(count, 3, 3)
    assert np.array_equal(frame[:3, :count], normal[:, :count])
    assert_close(np.einsum("nij,nkj->nik", e, e), np.broadcast_to(np.eye(3), (count, 3, 3)), 1.0)
    assert_close(np.linalg.det(e), np.ones(count))
    p, sides = point[:, :count].T, (op.body_a[:count], op.body_b[:count])
    arm = np.stack([p - own.position[k] for k in sides], axis=1)
    assert_close(arms[:, :count], arm.reshape(count, 6).T)
    for s, slot in enumerate((op.slot_a, op.slot_b)):
        moves = own.movable[sides[s]]
        assert np.array_equal(entry_arm[slot[:count]][moves], arms[3 * s : 3 * s + 3, :count].T[moves])
    rows = relative(op._replace(frame=frame, arms=arms), free)
    # An overlap is taken back with the speed that lifts a hundredth of the size: v^2 / 2 = g size / 100.
    limit = recovery if recovery >= 0.0 else np.sqrt(2.0 * 9.81 * size[:count] / 100.0)
    rows[0] += np.maximum(gap[:count] / H, -limit)
    assert_close(bias[:, :count], rows)
    for array in (frame, arms, bias):
        assert np.all(np.isnan(array[..., count:]))


@covers("rest_gaps")
@pytest.mark.parametrize("count", COUNTS)
def test_gaps_of_contacts_at_rest_follow_the_table_of_rest(backend, count):
    """The table of docs/rest.md, row by row."""
    rng = np.random.default_rng(count)
    old, least, band_step, share, part = 40, 1.0, 1e-6, 1e-4, 0.2
    gap, size = 3e-6 * spare(0, count, rng), 0.03 * np.abs(spare(0, count, rng))
    if count > 2:
        gap[0] = 0.0
    pair = np.zeros(count + SPARE, np.int32)
    pair[:count] = rng.integers(0, 4, count)
    firm = np.array([True, True, True, False])
    found = np.zeros(count + SPARE, np.int64)
    found[:count] = rng.integers(-1 - old, old, count)
    found[:count][found[:count] == -1 - old] = -1
    impulse = rng.normal(size=(3, old))
    partial, out = np.full(blocks(count + SPARE), np.nan), np.full(count + SPARE, np.nan)
    gaps, rule = GapArrays(gap, size, pair, firm), RestRule(least, band_step, share, part)
    backend.rest_gaps(count, gaps, found, impulse, rule, partial, out)
    wanted, shift = np.zeros(count), np.zeros(count)
    for c in range(count):
        band = min(band_step, share * size[c]) if firm[pair[c]] else 0.0
        place = found[c] if found[c] >= 0 else -2 - found[c]  # a point that only changed its name counts too
        carried = place >= 0 and np.linalg.norm(impulse[:, place]) > least
        if band == 0.0:
            wanted[c] = gap[c]
        elif gap[c] >= 0.0:  # left within the band, what lies beyond it is closed; without force all of it
            wanted[c] = max(0.0, gap[c] - band) if carried else gap[c]
        elif gap[c] >= -band:
            wanted[c] = 0.0
        else:
            wanted[c] = part * (gap[c] + band)
        shift[c] = abs(gap[c] - wanted[c]) if gap[c] >= -band else band
    if count:
        assert_close(out[:count], wanted, np.abs(gap[:count]).max())
        assert_close(partial[: blocks(count)].max(), shift.max(), np.abs(gap[:count]).max())
    assert np.all(np.isnan(out[count:]))


@covers("survey_contacts")
@pytest.mark.parametrize("rows", [3, 6])
@pytest.mark.parametrize("count", COUNTS)
def test_mean_speed_and_largest_overlap_of_contacts(backend, count, rows):
    rng = np.random.default_rng(count)
    before, gap = spare(rows, count, rng), spare(0, count, rng)
    partial = np.full((blocks(count), 2), np.nan)
    speed, overlap = backend.survey_contacts(count, before, gap, partial)
    assert_close(speed, np.linalg.norm(before[:3, :count], axis=0).mean() if count else 0.0, 1.0)
    assert overlap == max(0.0, -gap[:count].min(initial=0.0))


@covers("free_frozen_rows")
@pytest.mark.parametrize("count", COUNTS)
def test_rows_that_cannot_open_ask_for_no_opening(backend, count):
    rng = np.random.default_rng(count)
    diagonal, bias = np.abs(spare(6, count, rng)), spare(3, count, rng)
    diagonal[0, :count] += 1e-6
    diagonal[0, :count:3] = 1e-16 * diagonal[1, :count:3]
    diagonal[:, 1:count:5] = 0.0
    stuck = np.zeros(count + SPARE, bool)
    stuck[:count:3] = stuck[1:count:5] = True
    wanted = bias.copy()
    wanted[0, stuck] = np.maximum(wanted[0, stuck], 0.0)
    backend.free_frozen_rows(count, diagonal, bias)
    assert np.array_equal(bias, wanted, equal_nan=True)


def keyed(rng, count, uid, few=6):
    """Contacts with a few points a pair, sorted by (a, b, feature): bodies and features."""
    key = set()
    while len(key) < count:
        a = int(rng.integers(0, len(uid) - 1))
        b = int(rng.integers(a + 1, min(len(uid), a + 4)))
        key.add((a, b, int(rng.integers(0, few))))
    rows = np.array(sorted(key), np.int64).reshape(-1, 3)
    out = np.zeros((3, count + SPARE), np.int64)
    out[:, :count] = rows.T
    return out[0].astype(np.int32), out[1].astype(np.int32), out[2].copy()


@covers("match_contacts")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("old_count", [0, 1900])
def test_contacts_are_found_again_by_their_keys(backend, count, old_count):
    rng = np.random.default_rng(count + old_count)
    uid = frozen(np.cumsum(rng.integers(1, 4, BODIES)))
    a, b, feature = keyed(rng, count, uid)
    oa, ob, old_feature = (x[:old_count].copy() for x in keyed(rng, old_count, uid))
    old_a, old_b = uid[oa], uid[ob]
    found = np.full(count + SPARE, 77)
    hits = backend.match_contacts(count, uid, a, b, feature, old_a, old_b, old_feature, found)
    place = {key: k for k, key in enumerate(zip(old_a, old_b, old_feature, strict=True))}
    keys = [(uid[a[c]], uid[b[c]], feature[c]) for c in range(count)]
    gone: dict[tuple, list[int]] = {}
    for key, k in place.items():
        if key not in set(keys):
            gone.setdefault(key[:2], []).append(k)
    wanted = []
    for key in keys:
        kin = gone.get(key[:2])
        wanted.append(place[key] if key in place else -2 - kin.pop(0) if kin else -1)
    assert found[:count].tolist() == wanted and np.all(found[count:] == 77)
    assert hits == sum(key in place for key in keys)
    if count > 1000 and old_count:
        assert hits > 20 and min(wanted) < -1, "both ways of being found must occur"


@covers("recall", "remember")
@pytest.mark.parametrize("kin", [True, False])
@pytest.mark.parametrize("count", COUNTS)
def test_vectors_are_remembered_in_world_axes_and_recalled_in_frames(backend, count, kin):
    rng = np.random.default_rng(count)
    uid = frozen(rng.permutation(1000)[:BODIES].astype(np.int64))
    a, b = pairs_of_bodies(rng, count, BODIES)
    frame, x = frames(rng, count), spare(3, count, rng)
    uid_a, uid_b, world = np.zeros(count, np.int64), np.zeros(count, np.int64), np.full((3, count), np.nan)
    backend.remember(count, uid, a, b, frame, x, uid_a, uid_b, world)
    e = frame[:, :count].T.reshape(count, 3, 3)
    assert np.array_equal(uid_a, uid[a[:count]]) and np.array_equal(uid_b, uid[b[:count]])
    assert_close(world, np.einsum("nij,in->jn", e, x[:, :count]))

    old = 40
    column, out = rng.normal(size=(3, old)), np.full((3, count + SPARE), np.nan)
    found = np.zeros(count + SPARE, np.int64)
    found[:count] = rng.integers(-1 - old, old, count)
    backend.recall(count, found, kin, frame, column, out)
    wanted = np.zeros((3, count))
    for c in range(count):
        k = found[c] if found[c] >= 0 else -2 - found[c] if kin else -1
        if k >= 0:
            wanted[:, c] = e[c] @ column[:, k]
    assert_close(out[:, :count], wanted)
    assert np.all(np.isnan(out[:, count:]))


@covers("contact_work")
@pytest.mark.parametrize("rows", [3, 6])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("count", COUNTS)
def test_works_of_contacts_are_impulse_times_mean_velocity(backend, count, soft, rows):
    """Exact where no contact gives back; the recovery from overlaps by its definition."""
    rng = np.random.default_rng(count)
    x, after, before = spare(rows, count, rng), spare(rows, count, rng), spare(rows, count, rng)
    gap = 1e-3 * spare(0, count, rng)
    compliance = spare(2, count) if soft else np.zeros((2, 0))
    if soft:
        compliance[0, :count] = np.where(rng.random(count) < 0.5, 0.0, 0.1)
    normal, friction, recovery = backend.contact_work(
        count, x, after, before, gap, compliance, H, np.zeros((blocks(count), 4))
    )
    own = 0.5 * x[:, :count] * (after + before)[:, :count]
    rigid = compliance[0, :count] == 0.0 if soft else np.ones(count, bool)
    opens = np.minimum(np.maximum(after[0, :count], 0.0), np.maximum(-gap[:count] / H, 0.0))
    given = np.where(rigid & (x[0, :count] > 0.0), x[0, :count] * opens, 0.0)
    # At most what the overlaps could take, at least what single contacts gave, or all of them together.
    sums = own[0].sum(), own[1:].sum()
    left = own[0] + np.minimum(own[1:].sum(axis=0), 0.0)
    wanted = min(given.sum(), max(np.clip(left, 0.0, given).sum(), sum(sums)))
    size = max(1.0, np.abs(own).sum())
    assert_close(friction, sums[1], size)
    assert_close(recovery, wanted, size)
    assert_close(normal + recovery, sums[0], size)


@covers("driven_work")
@pytest.mark.parametrize("rows", [3, 6])
@pytest.mark.parametrize("count", COUNTS)
def test_driven_work_is_minus_the_power_of_impulses_on_driven_bodies(backend, count, rows):
    rng = np.random.default_rng(count)
    op = contacts(count, count)
    kind = rng.choice([BodyKind.STATIC, BodyKind.KINEMATIC, BodyKind.DYNAMIC], BODIES).astype(np.int8)
    x, velocity = spare(rows, count, rng), rng.normal(size=(BODIES, 6))
    got = backend.driven_work(count, frozen(kind), op.body_a, op.body_b, op.frame, op.arms, x, velocity)
    only = np.where((kind == BodyKind.KINEMATIC)[:, None], velocity, 0.0)
    power = x[:3, :count] * relative(op, only)
    if rows == 6:
        e = op.frame[:, :count].T.reshape(count, 3, 3)
        turns = only[op.body_b[:count], 3:] - only[op.body_a[:count], 3:]
        power = power + x[3:, :count] * np.einsum("nij,nj->in", e, turns)
    assert_close(got, -power.sum(), max(1.0, np.abs(power).sum()))
