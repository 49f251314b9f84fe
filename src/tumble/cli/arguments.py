"""What several commands take, and how it is read."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import checks
from ..errors import OptionsError, message

__all__ = [
    "BAD_INPUT",
    "NOT_CONVERGED",
    "NUMBER",
    "WHOLE",
    "AsJson",
    "Backend",
    "Precision",
    "Settings",
    "Strict",
    "Threads",
    "check_threads",
    "duration",
    "is_input",
    "only_given",
    "option",
    "scene_settings",
    "setting",
    "value_of",
]

BAD_INPUT, NOT_CONVERGED = 2, 3
"""Exit codes"""


def _number(text: str) -> float:
    return _parsed(text, float, "a number")


def _whole(text: str) -> int:
    return _parsed(text, int, "a whole number")


def duration(text: str) -> float:
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


def option(words: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=words, show_default=False, **more)


NUMBER = {"parser": _number, "metavar": "X"}
WHOLE = {"parser": _whole, "metavar": "N"}
Threads = Annotated[int | None, option("Threads to use (default: all that Numba has).", **WHOLE)]
Backend = Annotated[str, typer.Option("--backend", help="Where steps are computed: cpu, or cuda (extra gpu).")]
Precision = Annotated[
    str | None, option("Of the solver's iterations: double, mixed, single or auto; whatever is reported is double.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first step that does not converge (exit code 3).")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A parameter of the scene, or any key: gravity.2=-1.6. May be repeated."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def check_threads(threads: int | None) -> None:
    if threads is None:
        return
    from ..kernels.jit import most_threads

    most = most_threads()
    if checks.integer("--threads", threads, at_least=1) > most:
        raise OptionsError(
            message(
                "--threads",
                f"must be <= {most}",
                threads,
                "Set the environment variable TUMBLE_THREADS to allow more.",
            )
        )


def setting(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not key or not sign:
        raise OptionsError(message("--set", "must be KEY=VALUE", repr(text), "For example --set friction=0.3."))
    return key.strip(), value.strip()


def scene_settings(texts: list[str] | None) -> dict[str, Any]:
    """Settings of a scene, each given once, with their values."""
    from ..scene.settings import parsed

    found: dict[str, Any] = {}
    for text in texts or ():
        key, value = setting(text)
        if key in found:
            rule, remedy = "is given twice", "Leave one of them out."
            raise OptionsError(message(f"--set {key}", rule, f"'{found[key]}' and '{value}'", remedy))
        found[key] = parsed(value)
    return found


def only_given(**options: Any) -> dict[str, Any]:
    return {k: v for k, v in options.items() if v is not None}


def value_of(text: str) -> Any:
    """A setting as a number, true, false, null, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def is_input(path: Path, given: Path) -> bool:
    """Whether an output is one of the inputs."""
    with suppress(OSError):  # one of them is not there
        return path.samefile(given)
    return False
