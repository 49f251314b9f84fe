"""The command line. Exit codes: 0 success, 1 some points of a sweep failed, 2 bad input, 3 not converged (solve, strict
run) or an expectation missed (strict experiment), 129, 130, 143 ended by SIGHUP, SIGINT (Ctrl-C), SIGTERM.

Commands import what they need when they run, so that `tumble --help` is quick.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from .. import interrupts
from ..errors import ExpectationError, NotConvergedError, TumbleError, message, warning_line
from ..version import __version__
from .arguments import BAD_INPUT, NOT_CONVERGED
from .bench import bench
from .check import check
from .demo import demo
from .examples import examples
from .experiment import experiment
from .export import export
from .info import info
from .plot import plot
from .render import render
from .run import run
from .schema import schema
from .solve import solve
from .sweep import sweep
from .video import video
from .view import view

__all__ = ["app", "main"]

USAGE_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(name="tumble", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
# As the help lists them
for command in (demo, run, check, schema, sweep, view, render, video, plot, info, export, solve, experiment, bench):
    app.command()(command)
app.add_typer(examples)


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
        missed = isinstance(mistake, (NotConvergedError, ExpectationError))
        return _fail(str(mistake), NOT_CONVERGED if missed else BAD_INPUT)
    except interrupts.Interrupted as stop:
        interrupts.end()
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


def _show_warning(text: Any, category: type[Warning], *where: Any) -> None:
    print(warning_line(text, category), end="", file=sys.stderr)


def _give_up_output() -> None:
    """What was printed and cannot be written is dropped, or Python would try again in leaving."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(text: str, code: int) -> int:
    print("tumble: error: " + " ".join(text.split()), file=sys.stderr)
    return code
