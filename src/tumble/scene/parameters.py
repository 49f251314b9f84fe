"""Parameters that a scene declares, and formulas over them: `friction = "=mu"`, `position = [0, 0, "=2 * radius"]`."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from .. import checks
from ..errors import OptionsError, SceneError, message
from .settings import Location, label

__all__ = ["agreed", "declared", "evaluate", "filled"]

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: lambda a, b: float(a) ** b,
}
UNARY: dict[type, Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "exp": math.exp,
    "log": math.log,
    "radians": math.radians,
    "abs": abs,
    "min": min,
    "max": max,
    "round": round,
    "int": int,
}
CONSTANTS = {"pi": math.pi}
LONGEST = 500
"""Characters of a formula"""
TABLE = ("value", "unit", "low", "high", "about")
"""Keys of a parameter that says more than its value"""


def evaluate(where: str, text: str, values: Mapping[str, Any]) -> Any:
    """The value of a formula (without its "=") over parameters. A name alone may stand for a text or a list."""
    rule = "must be a formula of parameters and numbers"
    if len(text) > LONGEST:
        raise SceneError(message(where, rule, f"{len(text)} characters", f"At most {LONGEST}."))
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return values[tree.id] if isinstance(tree, ast.Name) and tree.id in values else _value(where, tree, values)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError) as cause:
        if isinstance(cause, SceneError):
            raise
        got = f"'={text}': {getattr(cause, 'msg', None) or cause or type(cause).__name__}"
        raise SceneError(message(where, rule, got, 'For example "=2 * radius + 0.01".')) from cause


def _value(where: str, node: ast.expr, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and checks.is_real(node.value):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        return BINARY[type(node.op)](_value(where, node.left, values), _value(where, node.right, values))
    if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        return UNARY[type(node.op)](_value(where, node.operand, values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in FUNCTIONS:
            raise SceneError(message(where, "unknown function", node.func.id, checks.nearest(node.func.id, FUNCTIONS)))
        return FUNCTIONS[node.func.id](*(_value(where, a, values) for a in node.args))
    if isinstance(node, ast.Subscript):
        return _entry(where, node, values)
    if isinstance(node, ast.Name):
        known = CONSTANTS | dict(values)
        if node.id not in known:
            raise SceneError(message(where, "unknown parameter", node.id, checks.nearest(node.id, known)))
        if not checks.is_real(known[node.id]):
            raise SceneError(
                message(
                    where, f"'{node.id}' must be a number here", checks.short(known[node.id]), "Calculate with numbers."
                )
            )
        return known[node.id]
    raise ValueError(f"{type(node).__name__} is not taken")


def _entry(where: str, node: ast.Subscript, values: Mapping[str, Any]) -> Any:
    """An entry of a parameter that is a list: size[0]."""
    if not isinstance(node.value, ast.Name) or not isinstance(values.get(node.value.id), list):
        raise ValueError("only a parameter that is a list has entries")
    rows, index = values[node.value.id], _value(where, node.slice, values)
    if not isinstance(index, int) or not -len(rows) <= index < len(rows):
        raise ValueError(f"'{node.value.id}' has {len(rows)} entries, counted from 0")
    return rows[index]


def declared(where: str, tables: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the parameters of a TOML scene, in order; those given take the place of the file's.

    A parameter is a value, a formula over parameters above it, or a table with value, unit, low, high and about."""
    values: dict[str, Any] = {}
    for name, entry in tables.items():
        place = f"{where}: parameters.{name}"
        if not name.isidentifier() or name in CONSTANTS or name in FUNCTIONS:
            raise SceneError(message(place, "must be a plain word of its own", checks.short(name), "Rename it."))
        about = entry if isinstance(entry, dict) else {"value": entry}
        for key in about:
            if key not in TABLE:
                raise SceneError(
                    message(f"{place}.{key}", "unknown key", checks.short(about[key]), checks.nearest(key, TABLE))
                )
        if "value" not in about:
            raise SceneError(message(f"{place}.value", "is required", "nothing", "Add this key."))
        value = about["value"]
        if isinstance(value, str) and value.startswith("="):
            value = evaluate(place, value[1:], values)
        values[name] = agreed(label(name), value, given[name]) if name in given else value
        _in_range(label(name) if name in given else place, values[name], about)
    return values


def agreed(where: str, default: Any, value: Any) -> Any:
    """A value given for a parameter: of the kind of its default, where that says anything."""
    if default is None:
        return value
    kinds = (bool, str, list, dict)
    if any(isinstance(default, k) != isinstance(value, k) for k in kinds):
        words = {bool: "true or false", str: "a text", list: "a list", dict: "a table"}
        kind = next((words[k] for k in kinds if isinstance(default, k)), "a number")
        raise OptionsError(
            message(where, f"must be {kind}", checks.short(value), f"The scene has {checks.short(default)}.")
        )
    if isinstance(default, int) and not isinstance(default, bool) and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _in_range(where: str, value: Any, about: Mapping[str, Any]) -> None:
    unit = f" {about['unit']}" if about.get("unit") else ""
    for key, word, wrong in (("low", ">=", operator.lt), ("high", "<=", operator.gt)):
        if key in about and checks.is_real(about[key]) and (not checks.is_real(value) or wrong(value, about[key])):
            rule = f"must be {word} {about[key]}{unit}"
            raise SceneError(message(where, rule, checks.short(value), "Its range is under [parameters] of the scene."))


def filled(node: Any, values: Mapping[str, Any], where: Callable[[Location], str], at: Location = ()) -> Any:
    """Nested tables and lists with the formulas in them replaced by what they give."""
    if isinstance(node, dict):
        return {k: filled(v, values, where, (*at, k)) for k, v in node.items()}
    if isinstance(node, list):
        return [filled(v, values, where, (*at, i)) for i, v in enumerate(node)]
    if isinstance(node, str) and node.startswith("="):
        return evaluate(where(at), node[1:], values)
    return node
