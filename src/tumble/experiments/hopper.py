"""Glass beads flow out of a hopper through a slot: mass flow against the width of the slot."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

import numpy as np

import tumble as tb

from ..errors import ExperimentError, TumbleWarning, message
from ..sim.report import StepReport
from ..view.picture import Camera, render
from . import grains
from .base import LAWS, Job, expect, overlap_metrics, setting, slope
from .base import Settings as BaseSettings
from .figures import COLORS, PALETTE, Curve, Panel, draw_panels, draw_pictures
from .grains import Bed

MM = 1e-3
EXPONENT = (1.35, 1.70)
"""Where the exponent of a slot is expected, over the width less a diameter."""
HALF_STEP = 0.03
"""Part by which half the step may change the rate."""
UNSETTLED = dict(gaps=(), dt=1.0, duration=1.0, first=0.0, last=1.0, jam=1.0, half_step_gap=0.0, relaxed_gaps=0)
"""Settings on which the settled beads do not depend, at any values."""
SHRINK = {"width": 0.214, "depth": 0.505}
"""Lengths at a scale, as powers of it: they lead from the full trough to the quick one."""


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Of `hopper`.

    Beads fill a trough between a vertical wall and one at 45 degrees, over a floor that vanishes once they rest. The
    slot is the horizontal gap between the walls. The rate is the slope of the mass that has passed the slot, between
    10 and 60 % of it all. Every slot is settled once, and all its runs begin there.
    """

    beads: int = setting(39000, "number of beads", quick=3600, at_least=10)
    diameter: float = setting(0.5 * MM, "mean diameter of the beads", unit="m", above=0.0)
    spread: float = setting(0.03, "radii differ by at most this part", at_least=0.0, at_most=0.3)
    density: float = setting(2500.0, "of the beads", unit="kg/m^3", above=0.0)
    friction: float = setting(0.3, "coefficient of friction; front and back have none", at_least=0.0)
    gaps: tuple[float, ...] = setting(
        (2.0 * MM, 2.5 * MM, 3.0 * MM), "widths of the slot, separated by commas", unit="m", above=0.0
    )
    width: float = setting(20.0 * MM, "of the trough", unit="m", quick=12.0 * MM, above=0.0)
    depth: float = setting(10.0 * MM, "of the trough, the length of the slot", unit="m", quick=3.0 * MM, above=0.0)
    gravity: float = setting(9.81, "gravity", unit="m/s^2", above=0.0)
    dt: float = setting(1e-4, "time step of the flow", unit="s", quick=2e-4, above=0.0)
    settling: float = setting(0.15, "simulated time over the floor", unit="s", above=0.0)
    settling_dt: float = setting(2e-4, "time step of the settling", unit="s", above=0.0)
    duration: float = setting(6.0, "most simulated time of a flow", unit="s", above=0.0)
    first: float = setting(0.1, "part that has passed when the measurement begins", at_least=0.0, at_most=0.9)
    last: float = setting(0.6, "part that has passed when it ends", above=0.0, at_most=1.0)
    jam: float = setting(0.05, "a time without a bead that is a jam", unit="s", above=0.0)
    half_step_gap: float = setting(
        2.5 * MM, "slot whose flow is repeated with half the step; 0: none", unit="m", quick=0.0, at_least=0.0
    )
    relaxed_gaps: int = setting(3, "slots, the widest first, that also flow by the relaxed law", quick=1)
    seed: int = setting(0, "of jitter and radii", at_least=0)
    tolerance: float = setting(1e-3, "of the solver: natural map", quick=3e-3, at_least=0.0)
    max_iterations: int = setting(100, "of the solver", at_least=1)

    def at_scale(self, scale: float, where: str) -> Settings:
        """Fewer beads in a narrower and less deep trough; 0.092 is the quick one's."""
        lengths = {name: getattr(self, name) * scale**power for name, power in SHRINK.items()}
        return replace(self, beads=max(10, round(scale * self.beads)), **lengths)

    def check(self, where: str) -> None:
        """Beads must fit in the trough and through the slot, and the times make sense."""
        least = grains.columns(self.depth, self.radius, self.spread)
        if least < 1:
            raise ExperimentError(
                message(f"{where}: depth", f"must be > {2.0 * self.diameter:g} m", self.depth, "Enlarge it.")
            )
        for gap in self.gaps:
            if not self.diameter < gap < 0.5 * self.width:
                rule = f"must be above the diameter and below {0.5 * self.width:g} m, half of width"
                raise ExperimentError(message(f"{where}: gaps", rule, gap, "Change the gap or the width."))
        if self.last <= self.first:
            raise ExperimentError(message(f"{where}: last", f"must be > first, {self.first:g}", self.last, "Raise it."))

    @property
    def radius(self) -> float:
        """Mean radius [m]."""
        return 0.5 * self.diameter


class Flow(NamedTuple):
    """One run."""

    time: np.ndarray
    """(k,) [s]"""
    passed: np.ndarray
    """(k,) mass below the slot [kg]"""
    rate: float | None
    """[kg/s], None if the beads did not come so far"""
    jam_time: float | None
    """When the last bead passed before a jam [s]; None: no jam"""
    result: tb.RunResult
    overlap: float
    """Largest overlap over half-sizes"""
    picture: np.ndarray | None
    """After 30 %, or at the end of a flow that stopped before; None: not wanted"""


# ---------------------------------------------------------------------- the scene


def start(s: Settings, gap: float) -> Bed:
    """Beads on a jittered grid in the trough."""
    nx, ny = (grains.columns(length, s.radius, s.spread) for length in (s.width, s.depth))
    reach = grains.reach(s.radius, s.spread)
    layers = 2 + -(-s.beads // (nx * ny)) + int(s.width / grains.pitch(s.radius, s.spread))
    points = grains.grid((nx, ny, layers), s.radius, s.spread, s.seed) + np.array([0.5 * s.width, 0.0, 0.0])
    inside = (points[:, 2] - points[:, 0] + gap) / sqrt(2.0) > reach  # above the wall at 45 degrees
    points = points[inside][: s.beads]
    radius = grains.radii_of(len(points), s.radius, s.spread, s.seed)
    return grains.loose_bed(radius, points)


def build(s: Settings, gap: float, bed: Bed, *, closed: bool) -> tb.Model:
    """The trough (body 0; the slot lies between x = 0 and x = gap at z = 0) and the beads; closed: with the floor."""
    scene = tb.SceneBuilder(gravity=(0.0, 0.0, -s.gravity))
    rough = scene.add_material(tb.Material(name="rough", friction=s.friction))
    smooth = scene.add_material(tb.Material(name="smooth", friction=0.0))
    height, wall = bed.position[:, 2].max() + 2.0 * s.diameter, 0.1 * s.width
    run = sqrt(2.0) * (s.width - gap + wall)
    side = (s.width + 4.0 * wall, wall, height)
    shapes = [
        tb.Placed(tb.Box((wall, s.depth + 2.0 * wall, height)), (-0.5 * wall, 0.0, 0.5 * height)),
        tb.Placed(tb.Box((wall, s.depth + 2.0 * wall, height)), (s.width + 0.5 * wall, 0.0, 0.5 * height)),
        tb.Placed(
            tb.Box((run, s.depth + 2.0 * wall, wall)),
            (gap + (0.5 * run + 0.5 * wall) / sqrt(2.0), 0.0, (0.5 * run - 0.5 * wall) / sqrt(2.0)),
            (np.cos(np.pi / 8.0), 0.0, -np.sin(np.pi / 8.0), 0.0),
        ),
        tb.Placed(tb.Box(side), (0.5 * s.width, -0.5 * (s.depth + wall), 0.5 * height)),
        tb.Placed(tb.Box(side), (0.5 * s.width, 0.5 * (s.depth + wall), 0.5 * height)),
    ]
    materials = [rough] * 3 + [smooth] * 2
    if closed:
        shapes.append(tb.Placed(tb.Box((3.0 * gap, s.depth + 2.0 * wall, wall)), (0.5 * gap, 0.0, -0.5 * wall)))
        materials.append(rough)
    scene.add_static(shapes, material=materials, name="trough")
    scene.add_spheres(
        bed.radius,
        density=s.density,
        material=rough,
        position=bed.position,
        velocity=bed.velocity,
        angular_velocity=bed.spin,
        name="beads",
    )
    return scene.build()


# ---------------------------------------------------------------------- measuring


def flow_rate(s: Settings, time: np.ndarray, passed: np.ndarray, total: float) -> float | None:
    """Slope [kg/s] of the mass passed (k,) over the time (k,) between the parts `first` and `last` of the total.

    None unless `last` is reached.
    """
    if passed[-1] < s.last * total:
        return None
    part = (passed >= s.first * total) & (passed <= s.last * total)
    return float(np.polyfit(time[part], passed[part], 1)[0]) if part.sum() >= 2 else None


def jam_time(s: Settings, time: np.ndarray, passed: np.ndarray) -> float | None:
    """When the last bead passed [s], if none did since for the time `jam` up to the end; else None."""
    moved = np.flatnonzero(np.diff(passed, prepend=0.0) > 0.0)
    since = float(time[moved[-1]]) if moved.size else 0.0
    return since if time[-1] - since >= s.jam * (1.0 - 1e-9) else None


# ---------------------------------------------------------------------- running


def _solver(s: Settings) -> tb.SolverAPGD:
    return tb.SolverAPGD(tolerance=s.tolerance, max_iterations=s.max_iterations)


def settle(s: Settings, job: Job, gap: float) -> tuple[Bed, dict[str, float]]:
    """Let the beads fall on the floor and rest."""
    bed = start(s, gap)
    sim, result = job.lenient().simulate(
        build(s, gap, bed, closed=True),
        until=s.settling,
        observe=lambda *_: None,
        options=tb.StepOptions(dt=s.settling_dt),
        solver=_solver(s),
    )
    speed = np.linalg.norm(sim.velocities(), axis=1).max()
    suffix = f"_{_mm(gap)}"
    figures = {"settled_speed": speed, "settling_seconds": result.seconds, "settling_steps": result.steps}
    return grains.bed_of(sim, bed.radius), {key + suffix: float(value) for key, value in figures.items()}


def drain(
    s: Settings, job: Job, gap: float, bed: Bed, *, law: str = "coulomb", halved: bool = False, pictured: bool = False
) -> Flow:
    """Take the floor away and let the beads flow until the measurement ends or they jam."""
    model = build(s, gap, bed, closed=False)
    mass = model.body_mass[1:]
    total = float(mass.sum())
    time, passed, picture = [0.0], [0.0], []
    last = [0.0]  # when a bead passed

    def observe(sim: tb.Simulation, _: StepReport) -> None:
        below = float(mass[sim.positions()[1:, 2] < 0.0].sum())
        if below > passed[-1]:
            last[0] = sim.time
        time.append(sim.time)
        passed.append(below)
        if pictured and not picture and below > 0.3 * total:
            picture.append(view(s, sim))

    dt = 0.5 * s.dt if halved else s.dt
    with warnings.catch_warnings():  # beads that are out fall freely
        warnings.filterwarnings("ignore", "Simulation: a body moves more than its size", TumbleWarning)
        sim, result = job.lenient().simulate(
            model,
            until=s.duration,
            observe=observe,
            stop=lambda sim: passed[-1] > s.last * total or sim.time - last[0] >= s.jam,
            memory=grains.memory_of(bed, dt),
            options=tb.StepOptions(dt=dt, law=law),
            solver=_solver(s),
        )
    if pictured and not picture:
        picture.append(view(s, sim))
    t, m = np.array(time), np.array(passed)
    rate, jam = flow_rate(s, t, m, total), jam_time(s, t, m)
    return Flow(t, m, rate, jam, result, sim.largest_overlap_ratio, picture[0] if picture else None)


def view(s: Settings, sim: tb.Simulation) -> np.ndarray:
    """A picture from the front, coloured by speed."""
    speed = np.minimum(np.linalg.norm(sim.velocities(), axis=1), 0.3)
    middle = (0.5 * s.width, 0.0, 0.35 * s.width)
    eye = (0.5 * s.width, -3.6 * s.width, 0.8 * s.width)
    camera = Camera(eye=eye, target=middle)
    return render(sim.model, sim.positions(), sim.orientations(), size=(480, 480), camera=camera, color_by=speed)


def run(s: Settings, job: Job) -> dict[str, float]:
    """Settle every slot once; let it flow by Coulomb's law, some by the relaxed one, and one with half the step."""
    metrics: dict[str, float] = {}
    flows: dict[tuple[str, float], Flow] = {}
    relaxed = sorted(s.gaps)[len(s.gaps) - min(s.relaxed_gaps, len(s.gaps)) :]
    for gap in s.gaps:
        key = f"{gap} {replace(s, **UNSETTLED)}"
        bed, found = grains.keep_bed(job.out / f"settled_{_mm(gap)}.npz", key, lambda gap=gap: settle(s, job, gap))
        metrics |= found
        for law in LAWS:
            if law == "coulomb" or gap in relaxed:
                flows[law, gap] = drain(s, job, gap, bed, law=law, pictured=law == "coulomb")
                suffix = "" if law == "coulomb" else "_relaxed"
                metrics |= describe(s, flows[law, gap], f"{suffix}_{_mm(gap)}")
        if gap == s.half_step_gap:
            half, whole = drain(s, job, gap, bed, halved=True), flows["coulomb", gap]
            metrics |= describe(s, half, f"_half_step_{_mm(gap)}")
            if half.rate is not None and whole.rate is not None:
                metrics["half_step_change"] = half.rate / whole.rate - 1.0
    metrics |= grains.accuracy([flow.result for (law, _), flow in flows.items() if law == "coulomb"])
    metrics |= compare(s, {gap: flows["coulomb", gap].rate for gap in s.gaps})
    metrics |= expect(no_jam=all(flow.jam_time is None for flow in flows.values()))
    metrics |= overlap_metrics(flow.overlap for flow in flows.values())
    if "half_step_change" in metrics:
        metrics |= expect(half_step=abs(metrics["half_step_change"]) < HALF_STEP)
    draw(s, flows, job)
    return metrics


def describe(s: Settings, flow: Flow, suffix: str) -> dict[str, float]:
    """Metrics of one flow."""
    metrics = {f"jammed{suffix}": float(flow.jam_time is not None)}
    if flow.jam_time is not None:
        metrics[f"jam_time{suffix}"] = flow.jam_time
    if flow.rate is not None:
        metrics[f"flow_rate{suffix}"] = flow.rate
        metrics[f"flow_rate_per_length{suffix}"] = flow.rate / s.depth
    return metrics


def compare(s: Settings, rates: dict[float, float | None]) -> dict[str, float]:
    """Exponents of the rate [kg/s] over the width of the slot less one diameter, and less 1.4, and the ratio."""
    known = {gap: rate for gap, rate in rates.items() if rate is not None}
    if len(known) < 2:
        return expect(flow_exponent=False)
    gaps, flow = np.array(list(known)), np.array(list(known.values()))
    exponent = slope(gaps - s.diameter, flow)
    metrics = {"flow_exponent": exponent, f"flow_ratio_{_mm(gaps[-1])}_{_mm(gaps[0])}": flow[-1] / flow[0]}
    if gaps[0] > 1.4 * s.diameter:
        metrics["flow_exponent_1.4d"] = slope(gaps - 1.4 * s.diameter, flow)
    low, high = EXPONENT
    right = exponent is not None and low <= exponent <= high
    return metrics | expect(flow_grows=bool(np.all(np.diff(flow) > 0.0)), flow_exponent=right)


def _mm(length: float) -> str:
    return f"{length / MM:.1f}mm"


def draw(s: Settings, flows: dict[tuple[str, float], Flow], job: Job) -> None:
    """Mass passed over time, and rates over the slot (Fig. 12 of the paper); pictures of every slot."""
    mass = Panel("mass passed [g]")
    rate = Panel("rate [g/s]", xlabel="width of the slot less a diameter [mm]", log=True, log_x=True)
    for gap, color in zip(s.gaps, PALETTE):
        for law, line in (("coulomb", "-"), ("relaxed", "--")):
            if (law, gap) in flows:
                found = flows[law, gap]
                mass.curves.append(Curve(f"{gap / MM:g} mm, {law}", found.time, 1e3 * found.passed, color, line))
    for law in LAWS:
        known = [(g, f.rate) for (found, g), f in flows.items() if found == law and f.rate is not None]
        if known:
            x, y = np.array(known).T
            free: np.ndarray = x - s.diameter
            rate.curves.append(Curve(law, free / MM, 1e3 * y, COLORS[law], "", "o"))
            if law == "coulomb" and len(known) > 1:
                middle = np.exp(np.log(y).mean() - 1.5 * np.log(free).mean())
                rate.curves.append(Curve("exponent 1.5", free / MM, 1e3 * middle * free**1.5, "0.35", ":"))
    draw_panels(job.out / "hopper.png", [[mass, rate]], title=f"{s.beads} beads flow through a slot")
    found = [(f"slot {gap / MM:g} mm", flows["coulomb", gap].picture) for gap in s.gaps]
    pictures = [(caption, picture) for caption, picture in found if picture is not None]
    draw_pictures(job.out / "hopper_scene.png", pictures, title="after 30 % (blue: at rest, red: 0.3 m/s and more)")
