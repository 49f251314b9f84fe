"""The kick of Moreau's integrator: rounds that are combined, against least squares and for what they are for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tumble.enums import BodyKind
from tumble.kernels import anderson, motion
from tumble.sim.moreau import MixArrays

from .data import assert_close

START = np.array([0, 1, 3, 3, 9, 20])
"""Rows of mechanisms; one has none"""
ROWS, MECHANISMS = int(START[-1]), len(START) - 1


def past():
    return MixArrays(*np.full((3, 6, ROWS), np.nan), *np.full((2, ROWS), np.nan), np.full((MECHANISMS, 6, 7), np.nan))


def rounds(backend, matrix, goal, count):
    """Rounds on the residual M x - goal, whose plain image is x - 0.4 residual."""
    kept, x = past(), np.zeros(ROWS)
    mix = backend.made("over_mechanisms", anderson.mixed_round)
    for turn in range(count):
        residual, change = matrix @ x - goal, np.full(ROWS, np.nan)
        backend.made("over_rows", anderson.divided_row)(ROWS, residual, -2.5, change)
        yield turn, x.copy(), residual, change
        mix(MECHANISMS, START, turn, change, residual, kept, x)
    yield count, x, matrix @ x - goal, None


def blocks(rng):
    """A matrix that couples the rows of a mechanism alone."""
    matrix = np.zeros((ROWS, ROWS))
    for first, end in pairwise(START):
        part = rng.normal(size=(end - first, end - first))
        matrix[first:end, first:end] = np.eye(end - first) + 0.2 * part
    return matrix


def test_a_round_goes_where_least_squares_of_the_earlier_ones_say(backend):
    """Where there are fewer rounds than rows, so that no difference depends on others."""
    rng, gs, images, compared = np.random.default_rng(1), [], [], 0
    for turn, x, residual, change in rounds(backend, blocks(rng), rng.normal(size=ROWS), 5):
        for first, end in pairwise(START):
            if turn and end - first >= turn:
                part = slice(first, end)
                wanted = images[-1][part].copy()
                if turn > 1:
                    dg, dx = (np.array([b[part] - a[part] for a, b in pairwise(past)]) for past in (gs, images))
                    wanted -= np.linalg.lstsq(dg.T, gs[-1][part], rcond=None)[0] @ dx
                assert_close(x[part], wanted, 1.0, 1e6)
                compared += 1
        gs.append(residual)
        if change is not None:
            images.append(x + change)
    assert compared == 1 + 2 + 5 + 5


def test_linear_residuals_vanish_after_a_round_more_than_there_are_rows(backend):
    rng = np.random.default_rng(2)
    matrix, goal = blocks(rng), rng.normal(size=ROWS)
    for turn, _, residual, _ in rounds(backend, matrix, goal, 9):
        for first, end in pairwise(START):
            if end - first <= 6 and turn > end - first:
                assert np.abs(residual[first:end]).max(initial=0.0) < 1e-9
    assert np.abs(residual).max() > 1e-9  # the eleven rows of the last one take longer


def test_products_of_rows(backend):
    x, y, out = *np.random.default_rng(3).normal(size=(2, ROWS)), np.full(ROWS, np.nan)
    backend.made("over_rows", anderson.times_row)(ROWS, x, y, out)
    assert np.array_equal(out, x * y)


def test_mean_velocities_of_some_bodies(backend):
    rng = np.random.default_rng(4)
    old, new, kind = *rng.normal(size=(2, 30, 6)), rng.integers(0, 3, 30).astype(np.int8)
    some, mean = rng.permutation(30)[:12], np.zeros((30, 6))
    backend.made("over_rows", motion.mean_velocity)(len(some), some, kind, old, new, mean)
    moves = (kind == BodyKind.DYNAMIC)[some, None]
    assert np.array_equal(mean[some], np.where(moves, 0.5 * (old + new)[some], 0.0)) and moves.any() and not moves.all()
    assert not np.delete(mean, some, axis=0).any()
