"""The folder for compiled kernels: one that nobody else can write to, for what lies there is run.

Where there is no such folder, a private temporary one that lasts as long as the process.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import stat
import tempfile
import warnings
from pathlib import Path

from ..errors import FileError, TumbleWarning, message

__all__ = ["cache_root", "is_kept"]

PRIVATE = 0o700
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@functools.cache
def cache_root() -> Path:
    """The user's cache folder for kernels, or a temporary one with a warning that says why."""
    try:
        root = _users_root()
        _prepare(root)
        return root
    except (OSError, RuntimeError) as cause:  # RuntimeError: no home
        reason = getattr(cause, "strerror", None) or str(cause)
        place = f"{cause.filename}: {reason}" if isinstance(cause, OSError) and cause.filename else reason
        return _temporary(place)


def is_kept() -> bool:
    """Whether kernels outlive this process: others can use them, too."""
    try:
        return cache_root() == _users_root()
    except (OSError, RuntimeError):
        return False


def _users_root() -> Path:
    base = os.environ.get("TUMBLE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "tumble"


def _prepare(root: Path) -> None:
    """Make the folder, or see whether it is safe; raises where it cannot be used."""
    root.parent.mkdir(parents=True, exist_ok=True)
    root.mkdir(mode=PRIVATE, exist_ok=True)
    found = root.stat()
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise PermissionError(0, "it belongs to another user, whose kernels would be run", str(root))
    if found.st_mode & OTHERS_WRITE and os.name == "posix":
        raise PermissionError(0, "others can write to it (chmod go-w), and what they put there would be run", str(root))
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(0, "it cannot be written to", str(root))


def _temporary(reason: str) -> Path:
    try:
        root = Path(tempfile.mkdtemp(prefix="tumble-"))  # mode 0700
    except OSError as cause:
        got, remedy = f"{reason}; {cause}", "Set TUMBLE_CACHE_DIR or TMPDIR to a folder of your own."
        raise FileError(message("kernel cache", "needs a folder", got, remedy)) from cause
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    remedy = "Kernels are compiled anew in every run; set TUMBLE_CACHE_DIR to a folder of your own to keep them."
    text = message("kernel cache", "must be a folder that you, and nobody else, can write to", reason, remedy)
    warnings.warn(text, TumbleWarning, stacklevel=2)
    return root
