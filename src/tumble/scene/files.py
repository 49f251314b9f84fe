"""Scene files: a TOML table of bodies, or a Python file that defines `build()`."""

from __future__ import annotations

import inspect
import sys
import traceback
import types
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import FileError, OptionsError, SceneError, TumbleError, message
from ..options import StepOptions
from .changes import KEYS, changing
from .document import read_text
from .model import Model
from .parameters import agreed
from .schema import at_place, schema, validated
from .settings import Location, label, steps_of
from .toml_scene import read_toml

__all__ = ["LoadedScene", "load_scene"]

SETTINGS = {"STEP": "step", "SOLVER": "solver", "SAVE": "save", "UNTIL": "until", "SAVE_EVERY": "save_every"}


@dataclass(frozen=True, kw_only=True)
class LoadedScene:
    """A scene read from a file, with the settings that the file proposes."""

    model: Model
    path: Path
    parameters: dict[str, Any] = field(default_factory=dict)
    """Values of the parameters that the scene declares."""
    step: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of `StepOptions`; may be empty."""
    solver: dict[str, Any] = field(default_factory=dict)
    """name and options of the solver."""
    save: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of `Save` but path, overwrite, label and checkpoint."""
    until: float | None = None
    """End of the run [s]."""
    save_every: int | None = None
    """Steps between two recorded frames."""


def load_scene(path: str | Path, *, settings: Mapping[str, Any] | None = None) -> LoadedScene:
    """Read a `.toml` or `.py` scene; every error names the file and the place in it.

    settings: values for parameters of the scene, by name, and for any of its keys, by path: {"mu": 0.3, "gravity.2":
    -1.6, "material.wood.friction": 0.4, "step.dt": 1e-3} (`docs/scenes.md`).
    """
    path = checks.file_name("load_scene.path", path, "scene.toml")
    readers = {".toml": _load_toml, ".py": _load_python}
    if path.suffix not in readers:
        raise FileError(
            message(str(path), "a scene file ends in .toml or .py", checks.short(path.suffix), "Rename the file.")
        )
    if settings is not None and not isinstance(settings, Mapping):
        remedy = "For example {'gravity.2': -1.6}."
        raise OptionsError(message("load_scene.settings", "must be a table", checks.short(settings), remedy))
    return readers[path.suffix](path, read_text(path), dict(settings or {}))


def _load_toml(path: Path, text: str, settings: dict[str, Any]) -> LoadedScene:
    model, scene, parameters = read_toml(path, text, settings)
    return LoadedScene(
        model=model, path=path, parameters=parameters, **_settings(path, scene | scene.get("run", {}), "step")
    )


# ---------------------------------------------------------------------- Python


def _load_python(path: Path, text: str, settings: dict[str, Any]) -> LoadedScene:
    module = types.ModuleType("tumble_scene")
    module.__file__ = str(path)
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(path.parent))
    parameters: dict[str, Any] = {}
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
        build = getattr(module, "build", None)
        if callable(build):
            parameters, tables, inside = _sorted_out(path, build, settings)
        with changing(inside if callable(build) else {}):
            model = build(**parameters) if callable(build) else None
    except (Exception, SystemExit) as cause:
        if isinstance(cause, OptionsError) and str(cause).startswith((f"{path}: build", "--set")):
            raise
        raise SceneError(_raised(path, cause)) from cause
    finally:
        with suppress(ValueError):  # the scene took it away
            sys.path.remove(str(path.parent))
        if before is None:
            sys.modules.pop(module.__name__, None)
        else:
            sys.modules[module.__name__] = before
    if build is None:
        raise SceneError(message(str(path), "a Python scene defines build()", "no build", "Add def build() -> Model."))
    if not isinstance(model, Model):
        raise SceneError(
            message(
                f"{path}: build()", "must return a Model", type(model).__name__, "End it with return scene.build()."
            )
        )
    given = {key: getattr(module, name) for name, key in SETTINGS.items() if hasattr(module, name)}
    names: dict[Location, str] = {}
    for key, (place, value) in tables.items():
        names[place] = key
        if len(place) == 1:
            given[place[0]] = value
        else:
            given[place[0]] = {**given.get(place[0], {}), place[1]: value}
    labels = {key: name for name, key in SETTINGS.items()}

    def where(at: Location) -> str:
        if at in names:
            return f"{path}: {label(names[at])}"
        return f"{path}: " + ".".join(map(str, (labels.get(str(at[0]), at[0]), *at[1:])) if at else ("scene",))

    checked = validated(schema().settings, given, where)
    return LoadedScene(model=model, path=path, parameters=parameters, **_settings(path, checked, "STEP"))


def _sorted_out(
    path: Path, build: Any, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, tuple[tuple[str, ...], Any]], dict[str, Any]]:
    """Arguments of build(), settings of the run with their places, and what reaches into the builder."""
    known = {
        name: p
        for name, p in inspect.signature(build).parameters.items()
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }
    arguments = {name: p.default for name, p in known.items() if p.default is not p.empty}
    tables: dict[str, tuple[tuple[str, ...], Any]] = {}
    inside: dict[str, Any] = {}
    for key, value in settings.items():
        steps = [str(step) for step in steps_of(key)]
        if key in known:
            arguments[key] = agreed(label(key), arguments.get(key), value)
        elif steps[0] in ("step", "solver", "save") and len(steps) == 2:
            tables[key] = (tuple(steps), value)
        elif steps[0] == "run" and len(steps) == 2 and steps[1] in SETTINGS.values():
            tables[key] = ((steps[1],), value)
        elif steps[0] in KEYS:
            inside[key] = value
        else:
            hint = checks.nearest(
                key, [*known, "gravity.2", "material.NAME.friction", "step.dt", "solver.tolerance", "run.until"]
            )
            raise OptionsError(
                message(label(key), "unknown parameter or key of a Python scene", checks.short(value), hint)
            )
    missing = [name for name in known if name not in arguments]
    if missing:
        rule, remedy = f"needs {missing[0]}", f"Give it a default, or --set {missing[0]}=..."
        raise OptionsError(message(f"{path}: build()", rule, "nothing", remedy))
    return arguments, tables, inside


def _raised(path: Path, cause: BaseException) -> str:
    lines = [f.lineno for f in traceback.extract_tb(cause.__traceback__) if f.filename == str(path)]
    if isinstance(cause, SyntaxError) and cause.filename == str(path):
        lines.append(cause.lineno)
    line = lines[-1] if lines else "?"
    if isinstance(cause, TumbleError):
        return f"{path}: line {line}: {cause}"
    return message(
        f"{path}: line {line}", "the scene file must run", f"{type(cause).__name__}: {cause}", "Correct this line."
    )


# ---------------------------------------------------------------------- shared


def _settings(path: Path, data: dict[str, Any], step: str) -> dict[str, Any]:
    with at_place(f"{path}: {step}"):
        StepOptions(**{"dt": 1.0, **data.get("step", {})})
    return {key: data[key] for key in SETTINGS.values() if key in data}
