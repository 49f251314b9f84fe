"""What the sources say about the fields of a class: the text below each, which Python itself drops."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
from dataclasses import MISSING, fields
from pathlib import Path

__all__ = ["describe_fields", "field_docs"]


@functools.cache
def _classes(path: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def field_docs(kind: type) -> dict[str, str]:
    """The text below each field, of base classes too; empty where the sources are not there."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        path = getattr(sys.modules.get(base.__module__), "__file__", None)
        if base is object or path is None or not Path(path).exists():
            continue
        body = getattr(_classes(path).get(base.__name__), "body", [])
        for node, below in itertools.pairwise(body):
            text = below.value if isinstance(below, ast.Expr) else None
            target = node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(target, ast.Name) and isinstance(text, ast.Constant):
                found[target.id] = inspect.cleandoc(str(text.value))
    return found


def describe_fields(kind: type) -> None:
    """Put the fields of a dataclass with their defaults into its docstring, for `help()`."""
    told = field_docs(kind)
    lines = []
    for f in fields(kind):  # type: ignore[arg-type]
        words = " ".join(told.get(f.name, "").split())
        default = "" if f.default is MISSING else f" = {f.default!r}"
        lines.append(f"    {f.name}: {f.type}{default}" + (f"\n        {words}" if words else ""))
    kind.__doc__ = inspect.cleandoc(kind.__doc__ or "") + "\n\nFields:\n" + "\n".join(lines)
