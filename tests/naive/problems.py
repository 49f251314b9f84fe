"""Slow and obvious twins of the engine's formulas, in NumPy."""

from __future__ import annotations

import numpy as np


def random_problem(seed: int, contacts: int = 8, bodies: int = 4, dim: int = 3, friction: float = 0.6):
    """N = D^T M^-1 D, r and mu of a random system; rank deficient when 3 contacts > 6 bodies."""
    rng = np.random.default_rng(seed)
    jacobian = rng.normal(size=(dim * contacts, 6 * bodies))
    mask = np.zeros((contacts, bodies), bool)
    for c in range(contacts):
        mask[c, rng.choice(bodies, size=min(2, bodies), replace=False)] = True
    jacobian *= np.repeat(np.repeat(mask, dim, axis=0), 6, axis=1)
    inverse_mass = np.repeat(10.0 ** rng.uniform(-1, 1, bodies), 6)
    free = rng.normal(size=6 * bodies)
    matrix = jacobian @ (inverse_mass[:, None] * jacobian.T)
    bias = jacobian @ free
    bias.reshape(-1, dim)[:, 0] += rng.uniform(-0.5, 0.2, contacts)
    mu = friction * rng.uniform(0.3, 1.5, contacts)
    return 0.5 * (matrix + matrix.T), bias, mu, jacobian, inverse_mass, free


def project(x: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Rows (n, d) projected on |t| <= mu n, case by case."""
    out = np.zeros_like(x)
    for i, (row, m) in enumerate(zip(x, mu)):
        n, t = row[0], row[1:]
        size = np.linalg.norm(t)
        if n >= 0.0 and size <= m * n:
            out[i] = row
        elif m * size <= -n:
            out[i] = 0.0
        else:
            pn = (n + m * size) / (1 + m * m)
            out[i, 0] = pn
            out[i, 1:] = m * pn * t / size
    return out


def slack(matrix, bias, gamma, mu, law, dim=3):
    """a = u or u + mu |u_T| e_n as rows (n, d), and u."""
    u = (matrix @ gamma + bias).reshape(-1, dim)
    a = u.copy()
    if law == "coulomb":
        a[:, 0] += mu * np.linalg.norm(u[:, 1:], axis=1)
    return a, u


def natural_map(matrix, bias, gamma, mu, law, dim=3, weighted=True):
    """The scale-free natural map, from its definition."""
    a, u = slack(matrix, bias, gamma, mu, law, dim)
    g, r = gamma.reshape(-1, dim), bias.reshape(-1, dim)
    w = np.sqrt(np.diag(matrix).reshape(-1, dim).mean(axis=1))[:, None] if weighted else np.ones((len(g), 1))
    top = np.linalg.norm(w * g - project(w * g - a / w, mu))
    return top / max(np.linalg.norm(r / w), np.linalg.norm(w * g), np.linalg.norm(u / w))


def certificate(matrix, bias, gamma, mu, law, dim=3, rounding=0.0):
    """gap and the largest shift of the normal velocity, from their definitions. rounding: what the gap may err by."""
    u = (matrix @ gamma + bias).reshape(-1, dim)
    g = gamma.reshape(-1, dim)
    s = mu * np.linalg.norm(u[:, 1:], axis=1)
    if law == "relaxed":
        delta = np.maximum(0.0, s - u[:, 0])
        return float(np.sum(g * u) + g[:, 0] @ delta), delta, delta
    delta = np.maximum(0.0, -u[:, 0])
    gap = float(np.sum(g * u) + g[:, 0] @ (s + delta))
    tops = [
        np.linalg.eigvalsh(matrix[dim * i + 1 : dim * i + dim, dim * i + 1 : dim * i + dim])[-1] for i in range(len(mu))
    ]
    return gap, delta, delta + mu * np.sqrt(tops) * np.sqrt(max(gap + rounding, 0.0))


def solve_ccp(matrix, bias, mu, dim=3):
    """Optimum of the relaxed problem by an interior-point method (Clarabel)."""
    import clarabel
    import scipy.sparse as sp

    n = len(mu)
    rows = sp.block_diag([np.diag([m] + [1.0] * (dim - 1)) for m in mu]).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(
        sp.triu(sp.csc_matrix(matrix)).tocsc(),
        bias,
        -rows,
        np.zeros(dim * n),
        [clarabel.SecondOrderConeT(dim)] * n,
        settings,
    )
    return np.array(solver.solve().x)
