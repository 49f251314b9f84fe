"""The solver on a stored state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..enums import Law
from ..kernels import jit
from ..solve.apgd import SolverAPGD
from .base import Row, Setting, row, seconds_of
from .slab import slab_problem

__all__ = ["solver"]


def solver(setting: Setting) -> Iterator[Row]:
    """Cost of one product and of one APGD iteration on a settled box of 4000 spheres under a slab."""
    case, problem = slab_problem()
    most = jit.most_threads() if setting.threads is None else setting.threads
    n, x = problem.count, np.zeros_like(problem.bias)
    x[:, :n] = np.random.default_rng(0).uniform(0.0, 1.0, (3, n))
    out = np.zeros_like(x)
    short, long = (SolverAPGD(tolerance=0.0, max_iterations=k) for k in (50, 350))
    short.solve(problem, law=Law.RELAXED)
    figures: dict[int, tuple[float, float]] = {}
    for count in sorted({1, min(2, most), most}):
        before = jit.set_threads(count)
        # Alternate the two, so that a slow moment of the machine does not fall on one of them alone.
        # The best long solve less the best short one: iterations alone, without setting up and measuring.
        product, best = np.inf, [np.inf, np.inf]
        for _ in range(7):
            product = min(product, seconds_of(lambda: problem.operator.product(x, out), 40) / n)
            for k, m in enumerate((short, long)):
                best[k] = min(best[k], seconds_of(lambda m=m: m.solve(problem, law=Law.RELAXED), 1))
        iteration = (best[1] - best[0]) / (300 * n)
        jit.set_threads(before)
        figures[count] = (product, iteration)
        yield row("solver", case, f"product_ns_per_contact_{count}_threads", 1e9 * product)
        yield row("solver", case, f"apgd_iteration_ns_per_contact_{count}_threads", 1e9 * iteration)
        yield row("solver", case, f"apgd_iteration_over_product_{count}_threads", iteration / product)
        if count > 1:
            yield row("solver", case, f"apgd_speed_up_{count}_threads", figures[1][1] / iteration)
    for residual in (0.104, 0.0165, 0.00062):
        goal = SolverAPGD(tolerance=residual / (3 * n), stop="residual_eq25", max_iterations=10000)
        found = goal.solve(problem, law=Law.RELAXED)
        yield row("solver", case, f"iterations_to_residual_sum_{residual}", found.iterations)
        for count in sorted({1, min(2, most)}):
            before = jit.set_threads(count)
            seconds = min(seconds_of(lambda: goal.solve(problem, law=Law.RELAXED), 1) for _ in range(5))  # noqa: B023
            jit.set_threads(before)
            yield row("solver", case, f"ms_to_residual_sum_{residual}_{count}_threads", 1e3 * seconds)
