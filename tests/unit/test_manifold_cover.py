"""Which contact points of a pair are kept: whatever keeps their gaps open keeps those of the omitted ones open."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

from tumble.kernels import cover
from tumble.kernels.jit import loop

seeds = st.integers(0, 2**32 - 1)
SCRATCH = np.zeros(cover.COVER_SIZE)


@loop
def _cover(points, tolerance, most, scratch, kept):
    for k in range(points.shape[0]):
        cover.put_point(scratch, 0, k, points[k, 0], points[k, 1], points[k, 2])
    count = cover.cover(scratch, 0, points.shape[0], tolerance, most)
    for k in range(points.shape[0]):
        kept[k] = cover.is_kept(scratch, 0, k)
    return count


@loop
def _reduce(rows, found, size, scratch):
    return cover.reduce_rows(rows, found, size, scratch, 0)


def covered(points, tolerance, most=cover.MOST):
    kept = np.zeros(len(points), bool)
    assert _cover(points, tolerance, most, SCRATCH, kept) == kept.sum() >= 1
    return kept


def reduced(normal, point, gap, size):
    """Places, in the order given, of the rows that `reduce_rows` keeps."""
    n = len(gap)
    rows = np.zeros((cover.GATHERED, 9))
    rows[:n] = np.c_[normal, point, gap, np.arange(n), np.zeros(n)]
    count = _reduce(rows, n, size, SCRATCH)
    return rows[:count, 7].astype(int)


def deepest_omitted(points, kept):
    """How deep a tilt up to TURN and a lift can bring an omitted point while all kept gaps stay open, by a linear
    programme: the tilts are those within a regular octagon around the circle."""
    corner = 2 * np.pi * np.arange(8) / 8
    worst = 0.0
    for p in points[~kept]:
        k = points[kept]
        rows = np.r_[np.c_[p[:2] - k[:, :2], np.ones(len(k))], np.c_[np.cos(corner), np.sin(corner), np.zeros(8)]]
        right = np.r_[k[:, 2] - p[2], np.full(8, cover.TURN)]
        result = linprog([0, 0, -1], A_ub=rows, b_ub=right, bounds=[(None, None)] * 3)
        assert result.status == 0
        worst = max(worst, -result.fun)
    return worst


def cloud(kind, n, rng):
    """Points within about 0.1 m of each other, gaps of a few millimetres."""
    p = 0.05 * rng.normal(size=(n, 3))
    if kind == "flat":
        p[:, 2] = 1e-13 * rng.normal(size=n)
    elif kind == "grid":
        p[:, :2] = np.round(p[:, :2], 2)
        p[:, 2] = 0.03 * p[:, 0]
    elif kind == "line":
        p[:, 1] = 2 * p[:, 0]
        p[:, 2] = np.abs(p[:, 0]) * 0.02
    elif kind == "rim":
        angle = 2 * np.pi * np.arange(n) / n
        p = np.c_[0.05 * np.cos(angle), 0.05 * np.sin(angle), 0.001 * np.cos(angle)]
    elif kind == "dome":
        p[:, 2] = (p[:, :2] ** 2).sum(axis=1)
    elif kind == "dent":
        p[:, 2] = -0.2 * (p[:, :2] ** 2).sum(axis=1)
    else:
        p[:, 2] *= 0.03
    return p


KINDS = ("flat", "grid", "line", "rim", "dome", "dent", "rough")


@given(seeds, st.sampled_from(KINDS), st.integers(1, 100))
def test_no_tilt_brings_an_omitted_point_below_the_tolerance(seed, kind, n):
    points = cloud(kind, n, np.random.default_rng(seed))
    tolerance = 1e-5
    kept = covered(points, tolerance)
    assert points[kept, 2].min() <= points[:, 2].min() + 0.01 * tolerance
    if kept.sum() < cover.MOST:
        assert deepest_omitted(points, kept) <= tolerance


def lower_corners(points):
    """Number of corners of the lower hull that a tilt within the octagon can bring down first, by Qhull."""
    corner = 2 * np.pi * np.arange(8) / 8
    far = 1e3 * np.ptp(points[:, :2], axis=0).max()
    middle = points[:, :2].mean(axis=0)
    around = middle + far * np.c_[np.cos(corner), np.sin(corner)]
    ring = np.c_[around, np.full(8, points[:, 2].min() + cover.TURN * far)]
    hull = ConvexHull(np.r_[points, ring])
    low = hull.simplices[hull.equations[:, 2] < 0]
    return len(set(low[low < len(points)].tolist()))


@given(seeds, st.sampled_from(("rough", "dome")), st.integers(8, 100))
def test_hardly_more_points_than_corners_of_the_hull(seed, kind, n):
    """One in twenty may be a neighbour of a corner, for the sake of the band within which the first is taken."""
    points = cloud(kind, n, np.random.default_rng(seed))
    kept = covered(points, 1e-9)
    assert kept.sum() <= min(cover.MOST, 1.05 * lower_corners(points) + 1)


@given(seeds, st.sampled_from(KINDS), st.integers(5, 100))
def test_rounding_changes_no_choice(seed, kind, n):
    """Rest: positions that differ by 1e-13 m give the same points."""
    rng = np.random.default_rng(seed)
    points = cloud(kind, n, rng)
    kept = covered(points, 1e-5)
    for _ in range(3):
        assert np.array_equal(covered(points + 1e-13 * rng.normal(size=points.shape), 1e-5), kept)


@pytest.mark.parametrize("n, most", [(12, 12), (32, 32), (64, 64)])
def test_a_rim_keeps_every_corner(n, most):
    angle = 2 * np.pi * np.arange(n) / n
    rim = np.c_[0.1 * np.cos(angle), 0.1 * np.sin(angle), np.zeros(n)]
    inner = np.c_[rim[:, :2] * 0.8, np.zeros(n)]
    kept = covered(np.r_[inner, rim], 1e-6)
    assert kept[n:].sum() == most and not kept[:n].any()


def test_a_fine_rim_is_thinned_out_evenly():
    angle = 2 * np.pi * np.arange(400) / 400
    rim = np.c_[0.1 * np.cos(angle), 0.1 * np.sin(angle), np.zeros(400)]
    kept = covered(rim, 5e-5)  # sagitta 5e-4 m: 32 points on this circle, and up to twice as many by halving
    assert 32 <= kept.sum() < cover.MOST
    assert deepest_omitted(rim, kept) <= 5e-5
    assert np.diff(np.flatnonzero(kept)).max() <= 16


def test_points_with_other_normals_do_not_cover():
    """Four corners of a floor and four of a wall: all are kept, what lies between them is not."""
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0.5, 0.5), (0.3, 0.6)]) * 0.1
    zero = np.zeros(6)
    point = np.r_[np.c_[square, zero], np.c_[zero, square]]
    normal = np.r_[np.tile([0.0, 0, 1], (6, 1)), np.tile([1.0, 0, 0], (6, 1))]
    assert reduced(normal, point, np.zeros(12), 0.05).tolist() == [0, 1, 2, 3, 6, 7, 8, 9]


@given(seeds)
def test_never_more_than_the_buffer_holds(seed):
    """Points all over a ball, each with a normal of its own."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(65, cover.GATHERED))
    normal = rng.normal(size=(n, 3))
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    gap = 1e-3 * rng.random(n)
    kept = reduced(normal, 0.1 * normal, gap, 0.1)
    assert cover.MOST / 4 <= len(kept) <= cover.MOST and np.all(np.diff(kept) > 0)
    assert gap[kept].min() <= gap.min() + 1e-5
