"""Limits that the source keeps, so that it stays readable."""

from __future__ import annotations

import ast
from pathlib import Path

import tumble

ROOT = Path(tumble.__file__).parent
MOST_LINES, MOST_ARGUMENTS, STEP_LINES = 500, 10, 80
COMMANDS = "cli"
"""A command has an argument for each of its options."""


def positional(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> int:
    """Arguments that a caller may give by place."""
    names = [a.arg for a in function.args.posonlyargs + function.args.args]
    return len([name for name in names if name not in ("self", "cls")])


def functions(source: str) -> list:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]


def test_files_are_short_and_functions_take_few_arguments():
    long, wide = [], []
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text()
        if len(source.splitlines()) > MOST_LINES:
            long.append(str(path))
        if path.parent.name != COMMANDS:
            wide += [f"{path}:{f.lineno}" for f in functions(source) if positional(f) > MOST_ARGUMENTS]
    assert long == [] and wide == []
    assert positional(functions("def f(self, a, b, *, c): pass")[0]) == 2  # what is counted


def test_a_step_is_a_short_function():
    [step] = [f for f in functions((ROOT / "sim" / "stepper.py").read_text()) if getattr(f, "name", "") == "step"]
    assert step.end_lineno - step.lineno < STEP_LINES
