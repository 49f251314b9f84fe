"""One point of a sweep: `tumble run` in a process of its own, so that whatever happens to it happens to it alone."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files import replacing

__all__ = ["Point", "run_point"]

LOOK = 0.05
"""Seconds between two looks at a process"""
PATIENCE = 30.0
"""Seconds that the last frame and checkpoint of a point may take, and those of a sweep that was killed"""
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Point:
    """What one process is to do; it travels to other machines."""

    scene: str
    folder: str
    settings: Mapping[str, Any]
    options: tuple[str, ...]
    """More words of the command"""
    threads: int
    stop: str
    """A file that ends all points when it is there"""

    @property
    def run(self) -> Path:
        """The trajectory."""
        return Path(self.folder) / "run.h5"

    @property
    def record(self) -> Path:
        """What became of the point, as JSON."""
        return Path(self.folder) / "point.json"

    def outcome(self) -> dict[str, Any]:
        """What became of it so far; empty before it ended."""
        try:
            return dict(json.loads(self.record.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}

    @property
    def done(self) -> bool:
        """Whether it ran to its end."""
        return self.outcome().get("status") == "done" and self.run.exists()


def run_point(point: Point, stopped: Callable[[], bool] | None = None) -> dict[str, Any]:
    """Run a point, or go on with it, and keep what became of it.

    Status "done", "failed" (with the command's last words and exit code) or "stopped" (it can be resumed)."""
    Path(point.folder).mkdir(parents=True, exist_ok=True)
    point.record.unlink(missing_ok=True)
    _wait_for_lock(point)
    start = time.monotonic()
    log = Path(point.folder) / "log.txt"
    with log.open("w", encoding="utf-8") as said:
        process = subprocess.Popen(
            _command(point),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=os.environ | dict.fromkeys(THREADS, str(point.threads)),
            start_new_session=True,  # Ctrl-C is for the sweep, which ends its points in order
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        asked = _wait(process, lambda: Path(point.stop).exists() or (stopped is not None and stopped()))
    code = process.returncode
    status = "done" if code == 0 else "stopped" if asked else "failed"
    words = [] if code == 0 else log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
    outcome = {
        "settings": dict(point.settings),
        "status": status,
        "code": code,
        "seconds": round(time.monotonic() - start, 3),
        "error": words[0].removeprefix("tumble: error: ") if words else "",
    }
    if status == "failed" and code < 0:
        outcome["error"] = f"ended by signal {signal.Signals(-code).name}" + (f": {words[0]}" if words else "")
    if status != "stopped":
        with replacing(point.record) as temporary:
            temporary.write_text(json.dumps(outcome), encoding="utf-8")
    return outcome


def _command(point: Point) -> Sequence[str]:
    """Go on from the checkpoint where there is one."""
    words = [sys.executable, "-m", "tumble", "run", point.scene, "--out", str(point.run), "--quiet"]
    going_on = point.run.exists() and point.run.with_suffix(".checkpoint.h5").exists()
    words += ["--resume"] if going_on else ["--overwrite"]
    words += ["--threads", str(point.threads), *point.options]
    for key, value in point.settings.items():
        words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return words


def _wait(process: subprocess.Popen, stopped: Callable[[], bool]) -> bool:
    """Until it has ended; whether it was asked to."""
    asked: float | None = None
    while process.poll() is None:
        if asked is None and stopped():
            asked = time.monotonic()
            process.send_signal(signal.SIGTERM)
        elif asked is not None and time.monotonic() - asked > PATIENCE:
            process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOOK)
    return asked is not None


def _wait_for_lock(point: Point) -> None:
    """The run of a sweep that was killed may still be writing its checkpoint."""
    lock, until = point.run.with_name(".run.h5.lock"), time.monotonic() + PATIENCE
    while _is_held(lock) and time.monotonic() < until:
        time.sleep(LOOK)


def _is_held(lock: Path) -> bool:
    """Whether a process at work has its number in the lock."""
    try:
        os.kill(int(lock.read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


def _end_with_parent() -> None:
    """Between fork and exec: end in order, with a checkpoint, when the sweep is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
