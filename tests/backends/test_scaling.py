"""The problem without units: scales, steps, and the way there and back."""

import numpy as np
import pytest

from . import data, sets
from .cover import covers
from .data import COUNTS, assert_close, spare
from .test_cone import random_friction

ROW = [0, 1, 1, 2, 3, 3]
"""Scale of each of the six rows"""


def random_blocks(rng, count, dim=3):
    """Positive semidefinite blocks as (6, cap) and (count, 3, 3): some cannot be moved along n, or not at all."""
    a = rng.normal(size=(count, 3, 3)) * 10.0 ** rng.uniform(-3, 3, (count, 1, 1))
    a[:count:6, 0] = 0.0
    a[1:count:6, 1:] = 0.0
    a[2:count:12] = 0.0
    a[3:count:11] = np.eye(3)  # three equal eigenvalues
    a[:, dim:] = 0.0
    full = np.einsum("nij,nkj->nik", a, a)
    six = spare(6, count)
    six[:, :count] = full[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].T
    return six, full


def inverse_root(x, otherwise):
    """1 / sqrt(x) where x > 0."""
    return np.where(x > 0.0, 1.0 / np.sqrt(np.where(x > 0.0, x, 1.0)), otherwise)


@covers("weigh")
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("count", COUNTS)
def test_weights_are_those_of_the_document(backend, count, mode, dim):
    six, full = random_blocks(np.random.default_rng(count), count, dim)
    scale, weight, tangential = spare(2, count), spare(0, count), spare(0, count)
    backend.weigh(count, dim, six, mode, scale, weight, tangential)
    trace = np.trace(full, axis1=1, axis2=2)
    wanted = np.where(trace > 0.0, np.sqrt(trace / dim), 1.0)
    assert_close(weight[:count], wanted, wanted)
    top = np.linalg.eigvalsh(full[:, 1:, 1:])[:, -1] if count else np.zeros(0)
    assert_close(tangential[:count], np.sqrt(np.maximum(top, 0.0)), np.sqrt(trace) + 1e-9)
    mean = inverse_root(trace / dim, 1.0)
    normal = inverse_root(full[:, 0, 0], mean)
    spread = inverse_root((full[:, 1, 1] + full[:, 2, 2]) / (dim - 1), normal)
    both = [np.ones((2, count)), np.array([mean, mean]), np.array([normal, spread])][mode]
    assert_close(scale[:, :count], both, both)
    assert np.all(np.isnan(scale[:, count:])) and np.all(np.isnan(weight[count:]))


@covers("block_steps")
@pytest.mark.parametrize("count", COUNTS)
def test_block_steps_are_safe_and_hardly_shorter(backend, count):
    """At most 1 / lambda_max, and less by what Newton's method leaves where eigenvalues coincide (1e-3).

    The characteristic polynomial loses eps / 1e-7 where they nearly do: Newton's method goes on to that slope.
    """
    rng = np.random.default_rng(count)
    six, full = random_blocks(rng, count)
    scale, step = np.exp(spare(2, count, rng)), spare(0, count)
    backend.block_steps(count, six, scale, step)
    s = scale[[0, 1, 1], :count].T
    top = np.linalg.eigvalsh(s[:, :, None] * full * s[:, None, :])[:, -1] if count else np.zeros(0)
    none = np.trace(full, axis1=1, axis2=2) == 0.0
    assert np.all(step[:count][none] == 0.0)
    product = step[:count][~none] * top[~none]
    assert np.all(product <= 1.0 + 1e-8) and np.all(product >= 1.0 - 1e-3)


@covers("scale_frame", "scale_turns")
@pytest.mark.parametrize("count", COUNTS)
def test_frames_are_scaled_row_by_row(backend, count):
    rng = np.random.default_rng(count)
    frame, out, turned = data.frames(rng, count), spare(9, count), spare(9, count)
    scale = np.exp(spare(4, count, rng))
    backend.scale_frame(count, frame, scale[:2].copy(), out)
    backend.scale_turns(count, frame, scale, turned)
    assert_close(out[:, :count], np.repeat(scale[[0, 1, 1]], 3, axis=0)[:, :count] * frame[:, :count], roundings=0.0)
    assert_close(turned[:, :count], np.repeat(scale[[2, 3, 3]], 3, axis=0)[:, :count] * frame[:, :count], roundings=0.0)
    assert np.all(np.isnan(out[:, count:])) and np.all(np.isnan(turned[:, count:]))


@covers("weigh_rolling")
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("count", COUNTS)
def test_weights_with_rolling_friction(backend, count, mode):
    """Torques have a weight and scales of their own, made of the diagonal of the turns."""
    rng = np.random.default_rng(count)
    six, _ = random_blocks(rng, count)
    _, other = random_blocks(np.random.default_rng(count + 1), count)
    turns = spare(4, count)
    turns[:, :count] = other[:, [0, 1, 2, 1], [0, 1, 2, 2]].T
    scale, weight, tangential = spare(4, count), spare(2, count), spare(3, count)
    backend.weigh_rolling(count, six, turns, mode, scale, weight, tangential)
    plain = spare(2, count), spare(0, count), spare(0, count)
    backend.weigh(count, 3, six, mode, *plain)
    for one, all_rows in zip(plain, (scale[:2], weight[0], tangential[0]), strict=True):
        assert np.array_equal(one, all_rows, equal_nan=True)
    trace = np.trace(other, axis1=1, axis2=2)
    torque = np.where(trace > 0.0, np.sqrt(trace / 3.0), weight[0, :count])
    assert_close(weight[1, :count], torque, torque)
    spin, roll = other[:, 0, 0], np.linalg.eigvalsh(other[:, 1:, 1:])[:, -1] if count else np.zeros(0)
    roots = np.sqrt(np.maximum(0.0, np.array([spin, roll])))
    assert_close(tangential[1:, :count], roots, np.sqrt(trace) + 1e-9)
    mean = inverse_root(trace / 3.0, scale[0, :count])
    if mode == 2:
        mean = np.array([inverse_root(spin, mean), inverse_root(0.5 * (trace - spin), mean)])
    wanted = np.ones((2, count)) if mode == 0 else np.broadcast_to(mean, (2, count))
    assert_close(scale[2:, :count], wanted, wanted)


def scaled_sets(mu, scale):
    """{S^-1 g : g in the set}."""
    if mu.ndim == 1:
        return np.where(mu < 0.0, mu / scale[0], mu * scale[0] / scale[1])
    slide = np.where(mu[0] < 0.0, mu[0] / scale[0], mu[0] * scale[0] / scale[1])
    return np.array([slide, mu[1] * scale[0] / scale[2], mu[2] * scale[0] / scale[3]])


@covers("scale_rows", "unscale_impulses", "scale_rolling", "unscale_rolling")
@pytest.mark.parametrize("rows", [3, 6])
@pytest.mark.parametrize("count", COUNTS)
def test_problems_are_scaled_and_impulses_come_back_on_their_sets(backend, count, rows):
    rng = np.random.default_rng(count)
    mu = random_friction(rng, count, rows)
    scale = np.exp(spare(2 if rows == 3 else 4, count, rng))
    bias, guess = spare(rows, count, rng), spare(rows, count, rng)
    scaled_bias, scaled_mu, x = spare(rows, count), np.full_like(mu, np.nan), spare(rows, count)
    down = backend.scale_rows if rows == 3 else backend.scale_rolling
    down(count, bias, mu, scale, guess, scaled_bias, scaled_mu, x)
    s = scale[ROW[:rows], :count]
    assert_close(scaled_bias[:, :count], s * bias[:, :count], np.abs(s * bias[:, :count]))
    assert_close(x[:, :count], guess[:, :count] / s, np.abs(guess[:, :count] / s))
    wanted = scaled_sets(mu[..., :count], scale[:, :count])
    assert_close(scaled_mu[..., :count], wanted, np.abs(wanted))
    assert np.all(np.isnan(x[:, count:])) and np.all(np.isnan(scaled_mu[..., count:]))

    back, out = backend.unscale_impulses if rows == 3 else backend.unscale_rolling, spare(rows, count)
    back(count, scale, mu, x, out)
    assert_close(out[:, :count], sets.project(guess[:, :count], mu[..., :count]))
    x[:, :count] = sets.project(x[:, :count], wanted)
    inside = s * x[:, :count]
    back(count, scale, mu, x, out)
    assert_close(out[:, :count], inside)
    assert_close(inside, sets.project(inside, mu[..., :count]))
    assert np.all(np.isnan(out[:, count:]))
