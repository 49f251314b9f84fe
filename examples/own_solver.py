"""A solver of your own, here a heavy-ball projected gradient, and a simulation that uses it.

A solver has a name and `solve(problem, law=, guess=)`. It may ask the operator for products; `measure` judges it.
"""

import numpy as np

import tumble as tb
from tumble.solvers import Solution, measure


class SolverOwn:
    name, tolerance, limit = "own", 1e-6, 20_000

    def solve(self, problem, *, law=tb.Law.COULOMB, guess=None):
        n, mu = problem.count, np.maximum(problem.friction, 0.0)
        g, product, blocks = (np.zeros((rows, problem.bias.shape[1])) for rows in (3, 3, 6))
        g[:, :n] = 0.0 if guess is None else guess[:, :n]
        problem.operator.diagonal_blocks(blocks)
        step = 0.3 / np.maximum(blocks[:3].max(axis=0), 1e-12)  # about one over the contacts of a body
        last = g
        for k in range(self.limit + 1):
            residuals = measure(problem, g, law)
            if residuals.natural_map <= self.tolerance or k == self.limit:
                break
            problem.operator.product(g, product)
            u = product + problem.bias
            if law == tb.Law.COULOMB:
                u[0] += mu * np.hypot(u[1], u[2])  # De Saxce's correction
            x, last = g - step * u + 0.5 * (g - last), g
            t = np.hypot(x[1], x[2])  # the projection on |t| <= mu n
            normal = np.maximum(0.0, x[0] + mu * np.maximum(0.0, t - mu * x[0]) / (1 + mu**2))
            g = np.stack([normal, *(x[1:] * np.minimum(1.0, mu * normal / np.maximum(t, 1e-300)))])
        status = tb.Status.CONVERGED if residuals.natural_map <= self.tolerance else tb.Status.MAX_ITERATIONS
        return Solution(g, tb.Law(law), self.name, status, k, k, residuals, np.zeros(1))


def main():
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_body(tb.Box((0.2, 0.2, 0.1)), mass=1.0, position=(0, 0, 0.05), velocity=(1, 0, 0))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), solver=SolverOwn())
    for _ in range(20):
        sim.step()
    return sim.last.solution


if __name__ == "__main__":
    print(main())
