"""The worked scenes that come with the package."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import checks
from .errors import FileError, OptionsError, message

__all__ = ["Example", "copy_example", "every_example"]

FOLDERS = (Path(__file__).parent / "examples", Path(__file__).parents[2] / "examples")
"""As installed, and in a checkout"""
NAMED = re.compile(r'(?:file|array|image|urdf) = "([^"]+)"')


@dataclass(frozen=True)
class Example:
    """A scene or a program."""

    path: Path

    @property
    def name(self) -> str:
        """As it is copied."""
        return self.path.name

    @property
    def about(self) -> str:
        """Its first sentence."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        first = next((line for line in lines if not line.startswith("#!")), "")
        return first.strip('#" ').partition(": `")[0].partition(" Run it")[0].rstrip(".")

    @property
    def files(self) -> list[Path]:
        """Itself and what it names."""
        named = NAMED.findall(self.path.read_text(encoding="utf-8"))
        return [self.path, *(self.path.with_name(n) for n in dict.fromkeys(named) if self.path.with_name(n).exists())]


def every_example() -> list[Example]:
    """All of them, by name."""
    folder = next((f for f in FOLDERS if f.is_dir()), None)
    if folder is None:
        raise FileError(message("examples", "must be there", "an installation without them", "Install tumble again."))
    return [Example(path) for path in sorted(folder.iterdir()) if path.suffix in (".toml", ".py")]


def copy_example(name: str, folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Copy the examples of a name, with or without its ending, and what they need; returns what was written."""
    known = every_example()
    chosen = [e for e in known if name in (e.name, e.path.stem, "all")]
    if not chosen:
        hint = checks.nearest(name, {n for e in known for n in (e.name, e.path.stem)})
        raise OptionsError(message("examples", "unknown example", repr(name), hint))
    files = list(dict.fromkeys(path for example in chosen for path in example.files))
    folder.mkdir(parents=True, exist_ok=True)
    there = [folder / path.name for path in files if (folder / path.name).exists()]
    if there and not overwrite:
        rule, remedy = "must not be there", "Choose another folder, or replace it with --overwrite."
        raise FileError(message(str(there[0]), rule, "a file of this name", remedy))
    return [Path(shutil.copyfile(path, folder / path.name)) for path in files]
