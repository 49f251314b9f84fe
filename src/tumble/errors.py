"""Named errors and warnings. Every message reads: where: rule (got value). Remedy."""

from __future__ import annotations

__all__ = [
    "BlowUpError",
    "DeviceError",
    "ExpectationError",
    "ExperimentError",
    "FileError",
    "MemoryLimitError",
    "NotConvergedError",
    "OptionsError",
    "ProblemError",
    "SceneError",
    "TumbleError",
    "TumbleWarning",
    "message",
]


class TumbleError(ValueError):
    """Base of all errors that `tumble` raises on purpose. The command line turns it into exit code 2."""


class OptionsError(TumbleError):
    """An option of a step, a solver or a run breaks a rule."""


class SceneError(TumbleError):
    """A body, shape, material or scene file breaks a rule."""


class ProblemError(TumbleError):
    """A cone problem (matrix, bias, friction) breaks a rule."""


class FileError(TumbleError):
    """A file is missing, truncated or of another kind."""


class MemoryLimitError(TumbleError):
    """More bodies than the memory of the machine can hold."""


class ExperimentError(TumbleError):
    """An unknown experiment, or a setting that the experiment does not have."""


class ExpectationError(TumbleError):
    """A strict experiment ended with a result other than it should have shown. Exit code 3."""


class BlowUpError(TumbleError):
    """The state became NaN or infinite, or a speed left every bound, in the middle of a run."""


class DeviceError(TumbleError):
    """A device failed in the middle of a run; what was written before is kept."""


class NotConvergedError(TumbleError):
    """A step of a strict run did not reach the tolerance. The command line turns it into exit code 3."""


class TumbleWarning(UserWarning):
    """Something the user should know about, while the run goes on."""


def warning_line(text: object, category: type[Warning], *_: object, **__: object) -> str:
    """A warning as commands print it; Python's own way shows lines of our code, too."""
    name = "warning" if issubclass(category, TumbleWarning) else category.__name__
    return f"tumble: {name}: {' '.join(str(text).split())}\n"


def message(where: str, rule: str, got: object, remedy: str) -> str:
    """One sentence per question: where is it, which rule, which value, what to do."""
    return f"{where}: {rule} (got {got}). {remedy}"
