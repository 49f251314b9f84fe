"""First step of a sliding ball in the plane, by Coulomb's law and relaxed, with the landscapes that are minimised.

A ball of mass m slides at v0 on a floor. In impulses (normal, tangential) one step of size h is the cone problem
N = diag(1/m, 7/(2 m)), r = (-g h, v0).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tumble as tb

from ..errors import NotConvergedError, message
from .base import LAWS, Job, setting
from .base import Settings as BaseSettings
from .figures import COLORS, new_figure, save_figure, tidy


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Of `ball-2d`."""

    friction: float = setting(0.2, "coefficient of friction", at_least=0.0)
    mass: float = setting(1.0, "mass of the ball", unit="kg", above=0.0)
    speed: float = setting(2.0, "sliding speed at the start", unit="m/s", at_least=0.0)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", above=0.0)
    dt: float = setting(0.01, "time step", unit="s", above=0.0)
    tolerance: float = setting(1e-12, "of the solver: natural map", at_least=0.0)
    max_iterations: int = setting(1000, "of the solver", at_least=1)


@dataclass(frozen=True)
class Landscape:
    """The problem as functions of a normal and a tangential impulse [N s], for drawing."""

    n: np.ndarray
    """(2,) diagonal of N [1/kg]"""
    r: np.ndarray
    """(2,) bias [m/s]"""
    mu: float

    def normal_velocity(self, gn: Any) -> Any:
        """u_n [m/s]."""
        return self.n[0] * gn + self.r[0]

    def tangential_velocity(self, gt: Any) -> Any:
        """u_t [m/s]."""
        return self.n[1] * gt + self.r[1]

    def dissipation(self, gn: Any, gt: Any) -> Any:
        """What friction minimises at a given normal impulse: its power times h [J]."""
        return gt * self.tangential_velocity(gt) + 0.0 * gn

    def quadratic(self, gn: Any, gt: Any, shift: float = 0.0) -> Any:
        """What the optimisation minimises, with the normal bias raised by a shift [m/s]: [J]."""
        return gn * (0.5 * self.n[0] * gn + self.r[0] + shift) + gt * (0.5 * self.n[1] * gt + self.r[1])


def exact_impulses(s: Settings) -> dict[str, tuple[float, float]]:
    """Closed forms (normal, tangential) [N s] of both laws: sliding, or rolling where friction suffices."""
    normal, rolling = s.mass * s.gravity * s.dt, -s.speed * s.mass / 3.5
    if abs(rolling) <= s.friction * normal:
        return dict.fromkeys(LAWS, (normal, rolling))
    lifted = s.mass * (s.gravity * s.dt + s.friction * s.speed) / (1.0 + 3.5 * s.friction**2)
    return {"coulomb": (normal, -s.friction * normal), "relaxed": (lifted, -s.friction * lifted)}


def run(s: Settings, job: Job) -> dict[str, float]:
    """Solve the step by both laws and draw the landscapes (Figs 3-6 and 12-19 of the paper)."""
    land = Landscape(np.array([1.0, 3.5]) / s.mass, np.array([-s.gravity * s.dt, s.speed]), s.friction)
    exact = exact_impulses(s)
    found, metrics = {}, {}
    for law in LAWS:
        problem = tb.ConeProblem.from_matrix(np.diag(land.n), land.r, [s.friction], dim=2)
        solution = tb.SolverAPGD(tolerance=s.tolerance, max_iterations=s.max_iterations).solve(problem, law=law)
        if job.strict and not solution.converged:
            raise NotConvergedError(
                message(
                    f"experiment ball-2d ({law})",
                    "the solver must reach its tolerance",
                    solution.residuals.natural_map,
                    solution.status.advice + ".",
                )
            )
        found[law] = tuple(float(g) for g in solution.impulse[:2, 0])
        for i, part in enumerate(("normal", "tangential")):
            metrics[f"{law}_{part}"] = found[law][i]
            metrics[f"{law}_{part}_exact"] = exact[law][i]
        metrics[f"vertical_velocity_{law}"] = land.normal_velocity(found[law][0])
        metrics[f"natural_map_{law}"] = solution.residuals.natural_map
    draw(land, found, exact["coulomb"], job.out)
    return metrics


def draw(land: Landscape, found: dict[str, tuple[float, float]], exact: tuple[float, float], out: Path) -> None:
    """Contours and surfaces of the four problems."""
    lift = land.mu * abs(land.tangential_velocity(found["coulomb"][1]))
    cases = (
        ("original DVI", land.dissipation, "dvi", "coulomb"),
        ("relaxed DVI", land.dissipation, "relaxed dvi", "relaxed"),
        ("relaxed QP", land.quadratic, "qp", "relaxed"),
        ("anti-relaxed QP", lambda gn, gt: land.quadratic(gn, gt, lift), "qp", "coulomb"),
    )
    reach = 1.5 * max(found["relaxed"][0], found["coulomb"][0])
    height = 1.3 * max(land.mu * reach, abs(found["relaxed"][1]), 1e-3 * reach)
    gn, gt = np.meshgrid(np.linspace(-0.15 * reach, reach, 201), np.linspace(-height, height, 201))

    figure = new_figure(10.5, 8.0)
    for axis, (title, objective, lines, law) in zip(figure.subplots(2, 2).flat, cases):
        contours = axis.contour(gn, gt, objective(gn, gt), levels=24, linewidths=0.8, cmap="viridis")
        figure.colorbar(contours, ax=axis, label="objective [J]", shrink=0.9)
        axis.plot([0.0, reach], [0.0, land.mu * reach], color="black", linewidth=1.4, label="friction cone")
        axis.plot([0.0, reach], [0.0, -land.mu * reach], color="black", linewidth=1.4)
        axis.axvline(0.0, color="black", linestyle="--", linewidth=1.0, label=r"$\gamma_n = 0$")
        column = gt[:, 0]
        if lines != "qp":
            relaxed = lines == "relaxed dvi"
            raised = land.mu * np.abs(land.tangential_velocity(column)) if relaxed else 0.0 * column
            axis.plot(
                (raised - land.r[0]) / land.n[0],
                column,
                color="black",
                linestyle=":",
                linewidth=1.4,
                label=r"$u_n = \mu |u_t|$" if relaxed else r"$u_n = 0$",
            )
        axis.plot(
            *exact,
            "o",
            markersize=10,
            markerfacecolor="none",
            markeredgecolor=COLORS["coulomb"],
            markeredgewidth=1.5,
            label="exact Coulomb",
        )
        axis.plot(*found[law], "x", markersize=8, color=COLORS["coulomb"], markeredgewidth=1.8, label="solution")
        axis.set(
            xlim=(gn.min(), gn.max()),
            ylim=(-height, height),
            title=title,
            xlabel=r"normal impulse $\gamma_n$ [N s]",
            ylabel=r"tangential impulse $\gamma_t$ [N s]",
        )
        axis.legend(fontsize=7, loc="upper left")
        tidy(axis)
    save_figure(figure, out / "contours.png")

    inside = (gn >= 0.0) & (np.abs(gt) <= land.mu * gn)
    figure = new_figure(10.5, 8.0)
    for i, (title, objective, _, law) in enumerate(cases):
        axis = figure.add_subplot(2, 2, i + 1, projection="3d")
        surface = objective(gn, gt)
        axis.plot_surface(gn, gt, surface, cmap="viridis", alpha=0.35, linewidth=0, rcount=40, ccount=40)
        axis.plot_surface(gn, gt, np.where(inside, surface, np.nan), cmap="viridis", linewidth=0, rcount=80, ccount=80)
        axis.scatter(*found[law], objective(*found[law]), color=COLORS["coulomb"], marker="x", s=40, depthshade=False)
        axis.set_title(f"{title} (opaque: inside the cone)", fontsize=9)
        axis.set_xlabel(r"$\gamma_n$ [N s]", fontsize=8)
        axis.set_ylabel(r"$\gamma_t$ [N s]", fontsize=8)
        axis.set_zlabel("objective [J]", fontsize=8)
        axis.tick_params(labelsize=7)
    save_figure(figure, out / "surfaces.png")
