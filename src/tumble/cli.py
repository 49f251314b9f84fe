"""The command line. Exit codes: 0 success, 2 bad input, 3 not converged (solve, strict run) or an expectation missed
(strict experiment), 129, 130, 143 ended by SIGHUP, SIGINT (Ctrl-C), SIGTERM.

Commands import what they need when they run, so that `tumble --help` is quick.
"""

from __future__ import annotations

import ast
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from . import checks, interrupts
from .errors import ExpectationError, FileError, OptionsError, SceneError, TumbleError, message, warning_line
from .version import __version__

__all__ = ["app", "main"]

BAD_INPUT, NOT_CONVERGED = 2, 3
USAGE_ERROR = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def _number(text: str) -> float:
    return _parsed(text, float, "a number")


def _whole(text: str) -> int:
    return _parsed(text, int, "a whole number")


def _duration(text: str) -> float:
    """Seconds of 2h, 90m, 3600s, 3600, 30:00 or 1:30:00."""
    units = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
    number, colon, rest = text.partition(":")
    parts = [number, *rest.split(":")] if colon else [text[:-1] if text[-1:] in units else text]
    unit = 1.0 if colon else units.get(text[-1:], 1.0)
    try:
        seconds = unit * sum(float(part) * 60.0**k for k, part in enumerate(reversed(parts)))
        if not 0.0 < seconds <= checks.LARGEST or len(parts) > 3:
            raise ValueError
    except ValueError:
        raise typer.BadParameter(f"must be a time above 0, such as 2h, 90m or 1:30:00 (got '{text}').") from None
    return seconds


def _parsed(text: str, kind: type, words: str) -> Any:
    """Typer's own conversion does not say which value was wrong."""
    try:
        return kind(text)
    except ValueError:
        raise typer.BadParameter(f"must be {words} (got '{text}').") from None


def _option(words: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=words, show_default=False, **more)


NUMBER = {"parser": _number, "metavar": "X"}
WHOLE = {"parser": _whole, "metavar": "N"}

app = typer.Typer(name="tumble", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

Threads = Annotated[int | None, _option("Threads to use (default: all that Numba has).", **WHOLE)]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first step that does not converge (exit code 3).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code. Mistakes of the user end in one line on stderr."""
    command = typer.main.get_command(app)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            given = None if argv is None else list(argv)
            code = int(command.main(args=given, prog_name="tumble", standalone_mode=False) or 0)
            sys.stdout.flush()
            return code
    except USAGE_ERROR as mistake:
        text = mistake.format_message().strip()
        return _fail(text + ("" if text.endswith((".", "?")) else ".") + " Try 'tumble --help'.", BAD_INPUT)
    except TumbleError as mistake:
        from .sim.run import NotConvergedError

        missed = isinstance(mistake, (NotConvergedError, ExpectationError))
        return _fail(str(mistake), NOT_CONVERGED if missed else BAD_INPUT)
    except interrupts.Interrupted as stop:
        print(f"tumble: interrupted{stop}", file=sys.stderr)
        return stop.exit_code
    except OSError as cause:
        if cause.errno is None:
            raise
        if cause.filename is not None:
            reason, remedy = os.strerror(cause.errno), "Check its name and its permissions, and those of its folder."
            return _fail(message(os.fsdecode(cause.filename), "must be within reach", reason, remedy), BAD_INPUT)
        _give_up_output()
        remedy = "Check where it goes; the files of a run are not at fault."
        return _fail(message("output", "must be writable", cause.strerror, remedy), BAD_INPUT)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Rigid bodies with exact Coulomb friction, and a certificate for every step."""
    if version:
        print(f"tumble {__version__}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        print(context.get_help())


# ---------------------------------------------------------------------- commands


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("tumble-demo"),
    spheres: Annotated[int, typer.Option(help="Number of spheres.", **WHOLE)] = 1000,
    threads: Annotated[int, typer.Option(help="Threads; a thousand spheres gain little from more.", **WHOLE)] = 1,
) -> None:
    """Let spheres fill a box; leaves a trajectory, a plot and a picture in a folder."""
    _check_threads(threads)
    from .demo import run_demo
    from .kernels import jit

    with interrupts.saying(lambda: f"; what was computed is in {out}"):
        result = run_demo(out, spheres=spheres, threads=threads, progress=True)
    print(result.run.summary())
    print(f"plot {result.plot}, picture {result.picture}")
    log = jit.compile_log
    if log.kernels:
        print(f"kernels: {log.kernels} compiled in {log.seconds:.1f} s, kept for the next time in {jit.cache_folder()}")
    else:
        print(f"kernels: nothing compiled, all came from {jit.cache_folder()}")
    print("next: try tumble experiment ball-roll")


@app.command()
def run(
    scene: Annotated[Path, typer.Argument(help="A scene, .toml or .py.", show_default=False)],
    out: Annotated[Path | None, _option("Trajectory (default: name of the scene with .h5).")] = None,
    until: Annotated[float | None, _option("End of the run [s].", **NUMBER)] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that is there.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint beside the trajectory.")] = False,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="With --resume: go on with another scene, and record what changed.")
    ] = False,
    wall_time: Annotated[
        float | None,
        _option(
            "End with a checkpoint before this has passed: 2h, 90m, 3600s, 1:30:00.", parser=_duration, metavar="T"
        ),
    ] = None,
    checkpoint: Annotated[Path | None, _option("Place of the checkpoint (default: beside the trajectory).")] = None,
    dt: Annotated[float | None, _option("Time step [s].", **NUMBER)] = None,
    law: Annotated[str | None, _option("coulomb or relaxed.")] = None,
    solver: Annotated[str | None, _option("auto (default), apgd, interior_point, ...")] = None,
    tolerance: Annotated[float | None, _option("Of the solver.", **NUMBER)] = None,
    max_iterations: Annotated[int | None, _option("Of the solver.", **WHOLE)] = None,
    save_every: Annotated[int | None, _option("Steps between two frames.", **WHOLE)] = None,
    contacts: Annotated[bool, typer.Option("--contacts", help="Record contacts and their forces, too.")] = False,
    bodies: Annotated[
        list[str] | None, _option("Record only bodies of this name; may be given more than once.")
    ] = None,
    single: Annotated[bool, typer.Option("--single", help="Record bodies in single precision.")] = False,
    compress: Annotated[bool, typer.Option("--compress", help="Pack what is recorded of bodies.")] = False,
    background: Annotated[bool, typer.Option("--background", help="Write frames while the next are computed.")] = False,
    dump_problem: Annotated[
        list[int] | None, _option("Write the problem of this step; may be given more than once.", **WHOLE)
    ] = None,
    unique_forces: Annotated[
        bool, typer.Option("--unique-forces", help="Of all forces that carry the motion take the smallest.")
    ] = False,
    strict: Strict = False,
    threads: Threads = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors and warnings only.")] = False,
) -> None:
    """Run a scene file. What is given here wins over the file."""
    _check_threads(threads)
    from .options import SAVE_FIELDS, Save, StepOptions
    from .scene.files import load_scene
    from .sim.simulation import Simulation
    from .solve.registry import make_solver

    for name, given in (("--overwrite", overwrite), ("--accept-changes", accept_changes)):
        if given and resume != (name == "--accept-changes"):
            rule = "goes with --resume" if not resume else "does not go with --resume"
            raise OptionsError(
                message(name, rule, "no --resume" if not resume else "--resume", "Leave out one of them.")
            )
    path = Path(scene.stem + ".h5") if out is None else out
    if _is_input(path, scene):
        raise FileError(message(f"--out {path}", "must be another file than the scene", path, "Choose another name."))
    save: dict[str, Any] = {
        "fields": SAVE_FIELDS if contacts else SAVE_FIELDS[:-1],
        "bodies": tuple(bodies) if bodies else None,
        "precision": "single" if single else "double",
        "compress": compress,
    }
    _check_script(scene)
    loaded = load_scene(scene)
    step = loaded.step | _given(dt=dt, law=law, unique_forces=unique_forces or None)
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
    options = StepOptions(**step)
    wanted = loaded.solver | _given(name=solver, tolerance=tolerance, max_iterations=max_iterations)
    # Without a name: auto, unless an option is given that only the first-order solvers know.
    wanted.setdefault("name", "auto" if set(wanted) <= {"tolerance", "max_iterations"} else "apgd")
    chosen = make_solver(**wanted, **({"steps": True} if wanted["name"] == "auto" else {}))
    every = save_every if save_every is not None else loaded.save_every
    if resume:
        every, save = _as_begun(path, save_every, save)
    save |= {"overwrite": overwrite, "checkpoint": checkpoint, "background": background, **_given(every=every)}
    kept = Save(path=path, **save)
    with interrupts.saying(lambda: _where(path)):
        sim = Simulation(loaded.model, options=options, solver=chosen, threads=threads)
        result = sim.run(
            until=until,
            save=kept,
            progress=False if quiet else None,
            strict=strict,
            resume=resume,
            accept_changes=accept_changes,
            wall_time=None if wall_time is None else max(1e-3, wall_time - (time.monotonic() - interrupts.STARTED)),
            dump_problems=dump_problem or (),
        )
    if not quiet:
        print(result.summary())


@app.command()
def solve(
    path: Annotated[Path, typer.Argument(help="A problem (.hdf5), or a folder of problems.", show_default=False)],
    law: Annotated[str, typer.Option(help="coulomb or relaxed.")] = "coulomb",
    solver: Annotated[str | None, _option("Name, or names with commas for a folder (default: auto, or apgd).")] = None,
    tolerance: Annotated[float | None, _option("Of the solver.", **NUMBER)] = None,
    unique_forces: Annotated[
        bool, typer.Option("--unique-forces", help="Of all impulses with the same motion take the smallest.")
    ] = False,
    as_json: AsJson = False,
    out: Annotated[Path | None, _option("Impulses of a problem (.npy), or folder for tables and profile.")] = None,
    threads: Threads = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="Option of the solver; may be given more than once."),
    ] = None,
) -> None:
    """Solve a stored problem, or compare solvers on a folder of them. Exit code 3: tolerance not reached."""
    _check_threads(threads)
    from .enums import Law
    from .laboratory import default_solver, make_solvers

    law = checks.choice("--law", law, list(Law))
    options = {key: _value(text) for key, text in map(_setting, settings or ())} | _given(tolerance=tolerance)
    solvers = make_solvers(default_solver() if solver is None else solver, options)
    if out is not None and not path.is_dir() and _is_input(out, path):
        raise FileError(message(f"--out {out}", "must be another file than the problem", out, "Say 'impulses.npy'."))
    if out is not None and not path.is_dir() and out.suffix != ".npy":
        remedy = f"They will be a NumPy array; write '{out.with_suffix('.npy').name}'." if out.name else "Name a file."
        raise OptionsError(message("--out", "must end in .npy", f"'{out}'", remedy))
    if unique_forces and path.is_dir():
        raise OptionsError(message("--unique-forces", "is for one problem", path, "Give a file."))
    with interrupts.saying(str):
        if path.is_dir():
            done = _solve_folder(path, solvers, law, out, threads, as_json)
        else:
            done = _solve_one(path, solvers, law, out, threads, as_json, unique_forces)
    if not done:
        raise typer.Exit(NOT_CONVERGED)


@app.command()
def info(
    path: Annotated[Path, typer.Argument(help="A trajectory, a scene or a robot (.urdf).", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Tell what is in a trajectory, in a scene file or in a robot's URDF file."""
    from .observe.facts import robot_facts, robot_rows, run_facts, scene_facts

    tell = {".toml": scene_facts, ".py": scene_facts, ".urdf": robot_facts}.get(path.suffix, run_facts)
    facts = tell(path)
    if as_json:
        print(json.dumps(_plain(facts)))
    else:
        _table(str(path), ("", ""), robot_rows(facts) if tell is robot_facts else _flat(facts))


@app.command()
def experiment(
    name: Annotated[str | None, typer.Argument(help="Name of the experiment.", show_default=False)] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments, or one's settings.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A small version: seconds, minutes for large ones.")] = False,
    scale: Annotated[float | None, _option("Part of the full number of bodies (large experiments).", **NUMBER)] = None,
    out: Annotated[Path | None, _option("Folder for the results (default: tumble-experiments/NAME).")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be given more than once."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit code 3 where a step does not converge or an expectation is missed."),
    ] = False,
    threads: Threads = None,
) -> None:
    """Run a published experiment and compare with its numbers."""
    from . import experiments

    if listed:
        return _list_experiments(name)
    if name is None:
        raise OptionsError(message("tumble experiment", "needs a name", "nothing", "See tumble experiment --list."))
    _check_threads(threads)
    chosen = dict(_setting(text) for text in settings or ())
    folder, start = Path("tumble-experiments") / name if out is None else out, time.time()
    with interrupts.saying(lambda: f"; what was computed is in {folder}"):
        metrics = experiments.run_experiment(
            name,
            out=folder,
            quick=quick,
            scale=scale,
            settings=chosen,
            threads=threads,
            progress=None,
            strict=strict,
        )
    _table(name, ("metric", "value"), _flat(metrics))
    for file in sorted(folder.iterdir()):
        if (
            not file.name.startswith(".") and file.stat().st_mtime >= start - 2.0
        ):  # some file systems keep even seconds only
            print(file)


@app.command()
def bench(
    name: Annotated[str | None, typer.Argument(help="One bench (default: all).", show_default=False)] = None,
    as_json: AsJson = False,
    listed: Annotated[bool, typer.Option("--list", help="List the benches.")] = False,
    threads: Threads = None,
) -> None:
    """Measure the speed of this machine with this version."""
    from .bench import BENCHES

    if listed:
        return _table(
            "benches",
            ("name", "what it measures"),
            [(n, (f.__doc__ or "").strip().split("\n")[0]) for n, f in BENCHES.items()],
        )
    _check_threads(threads)
    names = list(BENCHES) if name is None else [checks.choice("bench", name, BENCHES)]
    rows = []
    with interrupts.saying(str):
        for chosen in names:
            for row in BENCHES[chosen](threads=threads):
                if as_json:
                    print(json.dumps(_plain(row)), flush=True)
                else:
                    rows.append(tuple(_text(row[k]) for k in ("bench", "case", "metric", "value")))
    if not as_json:
        _table("bench", ("bench", "case", "metric", "value"), rows)


# ---------------------------------------------------------------------- helpers


def _solve_one(
    path: Path, solvers: list, law: str, out: Path | None, threads: int | None, as_json: bool, unique: bool
) -> bool:
    """One problem, one solver; returns whether the tolerance was reached, and the unique forces where wanted."""
    import numpy as np

    from .files import replacing
    from .laboratory import find_unique_forces, solve_file

    if len(solvers) > 1:
        got = ", ".join(solver.name for solver in solvers)
        raise OptionsError(message("--solver", "must be one name for one problem", got, "Give a folder to compare."))
    stored, (row, solution) = solve_file(path, solvers[0], law, threads=threads)
    done, impulse = solution.converged, solution.impulse
    if unique:
        found = find_unique_forces(stored, solution, row)
        done, impulse = done and found.converged, found.impulse
    if out is not None:
        with replacing(out) as temporary, temporary.open("wb") as file:
            np.save(file, stored.impulses(impulse))
    if as_json:
        print(json.dumps(_plain(row)))
    else:
        _table(stored.title or path.stem, ("", ""), _flat(row))
    return done


def _solve_folder(path: Path, solvers: list, law: str, out: Path | None, threads: int | None, as_json: bool) -> bool:
    """All problems of a folder with all solvers; returns whether every tolerance was reached."""
    from .laboratory import UNREADABLE, solve_folder, write_results

    names = [solver.name for solver in solvers]
    each = (lambda row: print(json.dumps(_plain(row)), flush=True)) if as_json else lambda row: None
    rows = solve_folder(path, solvers, law, threads=threads, each=each)
    if not as_json:
        columns = ("problem", "contacts", "solver", "status", "iterations", "seconds", "natural_map")
        cells = [
            [_text(row.get(c, "")) for c in columns[:-2]] + [_short(row.get(c)) for c in columns[-2:]] for row in rows
        ]
        _table(str(path), columns, cells, wide=True)
        for name in names:
            own = [row for row in rows if row["solver"] == name]
            solved = [row for row in own if row["status"] == "converged"]
            print(f"{name}: {len(solved)} of {len(own)} solved in {sum(row['seconds'] for row in solved):.3g} s")
    if out is not None:
        for file in write_results(out, rows, names, law):
            print(file, file=sys.stderr if as_json else sys.stdout)
    bad = [row for row in rows if row["status"] == UNREADABLE]
    if bad:
        raise FileError(bad[0]["remark"])
    return all(row["status"] == "converged" for row in rows)


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _value(text: str) -> Any:
    """A setting as a number, true, false, null, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _as_begun(path: Path, every: int | None, save: dict[str, Any]) -> tuple[int | None, dict[str, Any]]:
    """How often and what a run records: as it began, where nothing else is asked for."""
    from .observe.trajectory import Trajectory

    with Trajectory(path) as old:
        old.check_appendable()
        plan, began = old.plan, old.options
    chosen = tuple(plan.bodies.tolist()) if len(plan.bodies) < len(old.model.body_kind) else None
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


def _is_input(path: Path, given: Path) -> bool:
    """Whether an output is one of the inputs."""
    with suppress(OSError):  # one of them is not there
        return path.samefile(given)
    return False


def _list_experiments(name: str | None) -> None:
    """All experiments, or the settings of one."""
    from .experiments import describe

    known = {n: (line, settings) for n, line, settings in describe()}
    if name is None:
        _table("experiments", ("name", "what it shows"), [(n, line) for n, (line, _) in known.items()])
        print("settings: tumble experiment NAME --list")
        return
    line, settings = known[checks.choice("experiment", name, known)]
    _table(
        f"{name}: {line}",
        ("setting", "default", "with --quick", "unit", "meaning"),
        [tuple(_text(v) for v in s) for s in settings],
    )


def _check_threads(threads: int | None) -> None:
    if threads is None:
        return
    import numba

    most = numba.config.NUMBA_NUM_THREADS
    if checks.integer("--threads", threads, at_least=1) > most:
        raise OptionsError(
            message(
                "--threads",
                f"must be <= {most}",
                threads,
                "Set the environment variable NUMBA_NUM_THREADS to allow more.",
            )
        )


def _setting(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not key or not sign:
        raise OptionsError(message("--set", "must be KEY=VALUE", repr(text), "For example --set friction=0.3."))
    return key.strip(), value.strip()


def _given(**options: Any) -> dict[str, Any]:
    return {k: v for k, v in options.items() if v is not None}


def _plain(value: Any) -> Any:
    """For JSON, which knows no infinity: None in its place."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _text(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    if isinstance(value, Mapping):
        return " ".join(_text(part) for part in value.values())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _flat(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as rows."""
    rows: list[tuple[str, str]] = []
    for key, value in facts.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{prefix}{key}.")
        else:
            rows.append((prefix + str(key), _text(value)))
    return rows


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, wide: bool = False) -> None:
    """wide: 120 columns where there is no terminal to say how many there are."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, show_header=any(columns))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(width=120) if wide and not sys.stdout.isatty() else Console()
    console.print(table)


def _show_warning(text: Any, category: type[Warning], *where: Any) -> None:
    print(warning_line(text, category), end="", file=sys.stderr)


def _give_up_output() -> None:
    """What was printed and cannot be written is dropped, or Python would try again in leaving."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(text: str, code: int) -> int:
    print("tumble: error: " + " ".join(text.split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
