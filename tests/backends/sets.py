"""The sets that impulses of a block lie in, from their definitions: cones, intervals of bounded rows, rolling.

Blocks are columns of x (3 or 6, n). mu (n,) or (3, n) with sigma and rho; mu < 0: the interval |n| <= -mu.
"""

from __future__ import annotations

import numpy as np


def parts(x, mu):
    """Lengths (1 or 3, n) of the parts that are bounded by the normal one, their rows, and their coefficients."""
    slide = np.linalg.norm(x[1:3], axis=0)
    if mu.ndim == 1:
        return slide[None], [slice(1, 3)], mu[None]
    return np.array([slide, np.abs(x[3]), np.linalg.norm(x[4:], axis=0)]), [slice(1, 3), 3, slice(4, 6)], mu


def project(x, mu):
    """Nearest points of the sets: the normal part by bisection on the derivative of the squared distance
    (n' - n)^2 + sum max(0, t_j - mu_j n')^2, a convex function of n' >= 0."""
    size, rows, factor = parts(x, mu)
    factor = np.maximum(factor, 0.0)
    low, high = np.zeros(x.shape[1]), np.maximum(0.0, x[0]) + (factor * size).sum(axis=0) + 1e-300
    for _ in range(1100):
        middle = 0.5 * (low + high)
        slope = middle - x[0] - np.sum(factor * np.maximum(0.0, size - factor * middle), axis=0)
        low, high = np.where(slope < 0.0, middle, low), np.where(slope < 0.0, high, middle)
        if np.all(high - low <= np.spacing(high)):
            break
    out = np.zeros_like(x)
    out[0] = np.where(x[0] >= 0.0, high, np.where(low > 0.0, high, 0.0))
    for k, (row, f) in enumerate(zip(rows, factor, strict=True)):
        shrink = np.minimum(1.0, f * out[0] / np.where(size[k] > 0.0, size[k], 1.0))
        out[row] = x[row] * shrink
    interval = np.atleast_2d(mu)[0] < 0.0
    bound = -np.atleast_2d(mu)[0][interval]
    out[:, interval] = 0.0
    out[0, interval] = np.clip(x[0, interval], -bound, bound)
    return out


def correction(u, mu):
    """mu |u_T| + sigma |spin| + rho |roll|; 0 for bounded rows."""
    size, _, factor = parts(u, mu)
    return np.where(np.atleast_2d(mu)[0] < 0.0, 0.0, np.sum(factor * size, axis=0))


def slack(u, mu, coulomb):
    """a = u, or u with the correction in the normal row."""
    a = u.copy()
    if coulomb:
        a[0] += correction(u, mu)
    return a


def weighted(mu, w, z=None):
    """Sets after forces are multiplied by w and torques by z: cones of forces stay, intervals and lengths change."""
    if mu.ndim == 1:
        return np.where(mu < 0.0, mu * w, mu)
    return np.array([np.where(mu[0] < 0.0, mu[0] * w, mu[0]), mu[1] * z / w, mu[2] * z / w])


def natural(g, u, mu, w, coulomb, z=None):
    """g^ - Pi(g^ - a^) of every block (rows, n), and g^, a^ with g^ = w g, a^ = a / w (z for the torques)."""
    weight = np.ones_like(g) * w
    if len(g) == 6:
        weight[3:] = z
    a = slack(u, mu, coulomb)
    return weight * g - project(weight * g - a / weight, weighted(mu, w, z)), weight


def natural_map(g, u, r, mu, w, coulomb, z=None):
    """The scale-free natural map of docs/measures.md."""
    rho, weight = natural(g, u, mu, w, coulomb, z)
    return np.linalg.norm(rho) / max(np.linalg.norm(v) for v in (r / weight, weight * g, u / weight))
