"""The command `run`."""

from __future__ import annotations

import ast
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import interrupts
from ..errors import FileError, OptionsError, SceneError, message
from .arguments import (
    NUMBER,
    WHOLE,
    Backend,
    Precision,
    Settings,
    Strict,
    Threads,
    check_threads,
    duration,
    is_input,
    only_given,
    option,
    scene_settings,
)
from .view import Host, Port, live, play


def run(
    scene: Annotated[Path, typer.Argument(help="A scene, .toml or .py.", show_default=False)],
    settings: Settings = None,
    out: Annotated[Path | None, option("Trajectory (default: name of the scene with .h5).")] = None,
    until: Annotated[float | None, option("End of the run [s].", **NUMBER)] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that is there.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint beside the trajectory.")] = False,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="With --resume: go on with another scene, and record what changed.")
    ] = False,
    wall_time: Annotated[
        float | None,
        option("End with a checkpoint before this has passed: 2h, 90m, 3600s, 1:30:00.", parser=duration, metavar="T"),
    ] = None,
    checkpoint: Annotated[Path | None, option("Place of the checkpoint (default: beside the trajectory).")] = None,
    dt: Annotated[float | None, option("Time step [s].", **NUMBER)] = None,
    law: Annotated[str | None, option("coulomb or relaxed.")] = None,
    solver: Annotated[str | None, option("auto (default), apgd, interior_point, ...")] = None,
    tolerance: Annotated[float | None, option("Of the solver.", **NUMBER)] = None,
    max_iterations: Annotated[int | None, option("Of the solver.", **WHOLE)] = None,
    save_every: Annotated[int | None, option("Steps between two frames.", **WHOLE)] = None,
    contacts: Annotated[bool, typer.Option("--contacts", help="Record contacts and their forces, too.")] = False,
    bodies: Annotated[list[str] | None, option("Record only bodies of this name; may be given more than once.")] = None,
    single: Annotated[bool, typer.Option("--single", help="Record bodies in single precision.")] = False,
    compress: Annotated[bool, typer.Option("--compress", help="Pack what is recorded of bodies.")] = False,
    background: Annotated[bool, typer.Option("--background", help="Write frames while the next are computed.")] = False,
    dump_problem: Annotated[
        list[int] | None, option("Write the problem of this step; may be given more than once.", **WHOLE)
    ] = None,
    unique_forces: Annotated[
        bool, typer.Option("--unique-forces", help="Of all forces that carry the motion take the smallest.")
    ] = False,
    backend: Backend = "cpu",
    precision: Precision = None,
    strict: Strict = False,
    threads: Threads = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors and warnings only.")] = False,
    view: Annotated[bool, typer.Option("--view", help="Watch it in a browser; afterwards it can be played.")] = False,
    host: Host = "127.0.0.1",
    port: Port = 8080,
) -> None:
    """Run a scene file. What is given here wins over the file.

    Example: tumble run scene.toml --set gravity.2=-1.6 --set material.wood.friction=0.3 --out moon.h5
    """
    check_threads(threads)
    from ..options import SAVE_FIELDS, Save, StepOptions
    from ..scene.files import load_scene
    from ..sim.simulation import Simulation
    from ..solve.registry import solver_of_steps

    for name, given in (("--overwrite", overwrite), ("--accept-changes", accept_changes)):
        if given and resume != (name == "--accept-changes"):
            rule = "goes with --resume" if not resume else "does not go with --resume"
            raise OptionsError(
                message(name, rule, "no --resume" if not resume else "--resume", "Leave out one of them.")
            )
    path = Path(scene.stem + ".h5") if out is None else out
    if is_input(path, scene):
        raise FileError(message(f"--out {path}", "must be another file than the scene", path, "Choose another name."))
    _check_script(scene)
    loaded = load_scene(scene, settings=scene_settings(settings))
    proposed = dict(loaded.save)
    save: dict[str, Any] = {
        "fields": SAVE_FIELDS if contacts else tuple(proposed.pop("fields", SAVE_FIELDS[:-1])),
        "bodies": tuple(bodies or proposed.pop("bodies", ())) or None,
        "precision": "single" if single else proposed.pop("precision", "double"),
        "compress": compress or proposed.pop("compress", False),
    }
    step = loaded.step | only_given(dt=dt, law=law, unique_forces=unique_forces or None)
    until = loaded.until if until is None else until
    for name, value, place in (("dt", step.get("dt"), "step"), ("until", until, "run")):
        if value is None:
            raise OptionsError(
                message(
                    str(scene),
                    f"needs {name}",
                    "nothing",
                    f"Give --{name} or write {name} under [{place}] in the scene.",
                )
            )
    assert until is not None
    options = StepOptions(**step)
    wanted = loaded.solver | only_given(
        name=solver, tolerance=tolerance, max_iterations=max_iterations, precision=precision
    )
    chosen = solver_of_steps(wanted)
    every = next((n for n in (save_every, loaded.save_every, proposed.get("every")) if n is not None), None)
    if resume:
        every, save = _as_begun(path, save_every, save)
    save |= {
        "overwrite": overwrite,
        "checkpoint": checkpoint,
        "background": background or proposed.get("background", False),
    }
    save |= only_given(every=every, frames_per_checkpoint=proposed.get("frames_per_checkpoint"))
    kept = Save(path=path, **save)
    with interrupts.saying(lambda: _where(path)):
        sim = Simulation(loaded.model, options=options, solver=chosen, threads=threads, backend=backend)
        with live(sim, view, host, port) as watch:
            result = sim.run(
                until=until,
                save=kept,
                progress=False if quiet else None,
                strict=strict,
                resume=resume,
                accept_changes=accept_changes,
                wall_time=None if wall_time is None else max(1e-3, wall_time - (time.monotonic() - interrupts.STARTED)),
                dump_problems=dump_problem or (),
                stop=watch,
            )
    if not quiet:
        print(result.summary(), flush=True)
    if view:
        play(path, host, port)


def _as_begun(path: Path, every: int | None, save: dict[str, Any]) -> tuple[int | None, dict[str, Any]]:
    """How often and what a run records: as it began, where nothing else is asked for."""
    from ..observe.trajectory import Trajectory

    with Trajectory(path) as old:
        old.check_appendable()
        plan, began = old.plan, old.options
    some = plan.bodies is not None and len(plan.bodies) < len(old.model.body_kind)
    chosen = tuple(old.bodies.tolist()) if some else None
    stored = {
        "fields": plan.fields,
        "bodies": chosen,
        "precision": "single" if plan.single else "double",
        "compress": plan.compress,
    }
    asked = {
        "fields": "contacts" in save["fields"],
        "bodies": save["bodies"],
        "precision": save["precision"] == "single",
        "compress": save["compress"],
    }
    for name, given in asked.items():
        if given and save[name] != stored[name]:
            remedy = "Leave the option out, or start anew without --resume."
            rule = f"must be {stored[name]} as when the run began"
            raise OptionsError(message(f"{path}: {name}", rule, save[name], remedy))
    return (began.get("save", {}).get("every") if every is None else every), stored


def _check_script(path: Path) -> None:
    """Refuse a program that is no scene before anything of it runs."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8")) if path.suffix == ".py" else None
    except (OSError, ValueError, SyntaxError, RecursionError):
        return  # told where it is read
    if tree is None or "build" in _defined(tree) or "*" in _defined(tree):
        return
    remedy = f"Run a program with python {path.name}; to make it a scene add def build() -> Model."
    raise SceneError(message(str(path), "a Python scene defines build()", "a program without it", remedy))


def _defined(tree: ast.Module) -> set[str]:
    """Names that a program gives a value to, wherever."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _where(path: Path) -> str:
    """Where the data of a run are that was interrupted."""
    return f"; the data are in {path}, go on with --resume" if path.exists() else " before anything was written"
