"""What a compiled kernel depends on: a hash of its module's source and of all that it can call.

Followed are the imports between kernels and backends, the numbers of kinds, and the overloads: a module that registers
one (`@overload`) for a function of another is called by whoever calls that function, though nobody imports it.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

__all__ = ["fingerprint"]

PACKAGE = Path(__file__).resolve().parent.parent


def fingerprint(path: str) -> str:
    """Hash of a module (its file) and of what it depends on; of all kernels for a module outside of the package."""
    module = Path(path).resolve()
    known = _sources()
    digest = hashlib.sha256()
    for source in sorted(_closure(module)) if module in known else sorted(known):
        digest.update(str(source.relative_to(PACKAGE)).encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:20]


@cache
def _sources() -> dict[Path, tuple[frozenset[Path], frozenset[Path]]]:
    """All modules with kernels: the modules that each imports, and those for whose functions it registers overloads."""
    paths = [*PACKAGE.glob("kernels/**/*.py"), *PACKAGE.glob("backends/**/*.py"), PACKAGE / "enums.py"]
    return {path: _imports(path, frozenset(paths)) for path in paths}


def _imports(path: Path, paths: frozenset[Path]) -> tuple[frozenset[Path], frozenset[Path]]:
    tree = ast.parse(path.read_bytes())
    origin: dict[str, frozenset[Path]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for alias in node.names:
                places = (base.with_suffix(".py"), base / "__init__.py", (base / alias.name).with_suffix(".py"))
                origin[alias.asname or alias.name] = paths.intersection(places)
    overloaded: frozenset[Path] = frozenset()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "overload":
            overloaded |= origin.get(getattr(node.args[0], "id", ""), frozenset())
    return frozenset().union(*origin.values()), overloaded


@cache
def _closure(module: Path) -> frozenset[Path]:
    known, found, waiting = _sources(), set(), [module]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += known[path][0]
            waiting += [other for other, (_, overloaded) in known.items() if path in overloaded]
    return frozenset(found)
