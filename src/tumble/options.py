"""Options of a step and of a recording: frozen, checked when made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import checks
from .enums import Integrator, Law
from .errors import OptionsError, message

__all__ = ["Save", "StepOptions"]

SAVE_FIELDS = ("position", "orientation", "velocity", "angular_velocity", "contacts")


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """How one step is taken."""

    dt: float
    """Time step h [s]."""
    law: str = Law.COULOMB
    """Contact law, "coulomb" (default) or "relaxed"."""
    integrator: str = Integrator.EULER
    """"euler" (default) or "moreau", see `Integrator`."""
    theta: float = 0.5
    """Moreau's weight of the new velocity, from 0.5 (midpoint: sliding distances of second order) to 1."""
    margin: float | None = None
    """Contacts are sought up to this gap [m], plus h times the pair's approach speed (or the speed that a neighbour
    could hand on to one of them in the step). None: a twentieth of the smaller of the two shapes."""
    recovery_speed: float | None = None
    """Overlaps are removed at this speed at most [m/s].
    None: the speed that lifts the smaller shape by a hundredth of its size under the scene's gravity (9.81 m/s^2 where
    there is none)."""
    leave_gaps: bool = True
    """Leave the gaps of contacts at rest within a tenth of g h^2 as they are (`docs/rest.md`). False: close every gap
    in every step; a pile then chases the noise of its own positions."""
    warm_start: bool = True
    """Start every solve from the previous impulses of the same contacts."""
    unique_forces: bool = False
    """Of all impulses that carry the computed motion take those of smallest norm: forces that do not depend on the
    order of contacts or on history. Costs a sharper solve and a second one (`docs/unique_forces.md`)."""
    speed_limit: float = 1e6
    """A body faster than this [m/s] stops the run as a blow-up."""

    def __post_init__(self) -> None:
        where = "StepOptions."
        checks.number(where + "dt", self.dt, above=0.0, unit="s", remedy="A common start is radius / (10 * top speed).")
        object.__setattr__(self, "law", Law(checks.choice(where + "law", self.law, list(Law))))
        integrator = checks.choice(where + "integrator", self.integrator, list(Integrator))
        object.__setattr__(self, "integrator", Integrator(integrator))
        checks.number(where + "theta", self.theta, at_least=0.5, at_most=1.0)
        if self.theta != 0.5 and self.integrator == Integrator.EULER:
            raise OptionsError(
                message(where + "theta", "belongs to integrator 'moreau'", self.theta, "Set the integrator too.")
            )
        if self.margin is not None:
            checks.number(where + "margin", self.margin, at_least=0.0, unit="m")
        if self.recovery_speed is not None:
            checks.number(where + "recovery_speed", self.recovery_speed, at_least=0.0, unit="m/s")
        checks.flag(where + "leave_gaps", self.leave_gaps)
        if not self.leave_gaps and self.integrator == Integrator.MOREAU:
            raise OptionsError(
                message(
                    where + "leave_gaps",
                    "belongs to integrator 'euler'",
                    self.leave_gaps,
                    "Leave it out: 'moreau' holds contacts in velocity and closes no gap.",
                )
            )
        checks.flag(where + "warm_start", self.warm_start)
        checks.flag(where + "unique_forces", self.unique_forces)
        checks.number(where + "speed_limit", self.speed_limit, above=0.0, unit="m/s")


@dataclass(frozen=True, kw_only=True)
class Save:
    """What a run records, where and how often."""

    path: str | Path
    """HDF5 file, NAME.h5 or NAME.hdf5."""
    every: int = 10
    """Steps between two frames; the first and the last state are always recorded."""
    fields: tuple[str, ...] = ("position", "orientation", "velocity", "angular_velocity")
    """Any of position, orientation, velocity, angular_velocity, contacts."""
    frames_per_checkpoint: int | None = None
    """Frames between two checkpoints (`tumble run --resume` goes on from the last one). None: ten, or as many more as
    pass in two seconds: a kill costs the work of ten frames or of two seconds, whichever is more."""
    checkpoint: str | Path | None = None
    """Where the checkpoint lies; None: beside the trajectory, NAME.checkpoint.h5. On another disk it is written even if
    that of the trajectory is full."""
    overwrite: bool = False
    """Replace a run that is there; without it a new run onto an old one is refused. Other files are never replaced."""
    label: str = ""
    """Beginning of the run id. With a label `overwrite` replaces runs of the same label only."""
    bodies: tuple[str | int, ...] | None = None
    """Names or indices of the bodies whose fields are recorded; None: all. Contacts and joints are always of all."""
    precision: str = "double"
    """Of the recorded fields of bodies, "double" or "single". Checkpoints are always exact."""
    compress: bool = False
    """Pack the recorded fields of bodies (gzip)."""
    background: bool = False
    """Write frames in a thread of their own while the next steps are computed; takes the memory of two states."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", checks.file_name("Save.path", self.path, "run.h5", error=OptionsError))
        checks.integer("Save.every", self.every, at_least=1)
        if self.frames_per_checkpoint is not None:
            checks.integer("Save.frames_per_checkpoint", self.frames_per_checkpoint, at_least=1)
        if not isinstance(self.fields, (tuple, list)):
            remedy = f"Write ({self.fields!r},)." if isinstance(self.fields, str) else "For example ('position',)."
            raise OptionsError(message("Save.fields", "must be a tuple of names", checks.short(self.fields), remedy))
        for field in self.fields:
            checks.choice("Save.fields", field, SAVE_FIELDS)
        object.__setattr__(self, "fields", tuple(self.fields))
        for flag in ("overwrite", "compress", "background"):
            checks.flag(f"Save.{flag}", getattr(self, flag))
        checks.choice("Save.precision", self.precision, ("double", "single"))
        if not isinstance(self.label, str) or not (self.label == "" or self.label.replace("-", "_").isidentifier()):
            raise OptionsError(
                message(
                    "Save.label", "must be a word of letters, digits, - and _", checks.short(self.label), "Say 'demo'."
                )
            )
        if self.bodies is not None:
            several = isinstance(self.bodies, (tuple, list, range)) and len(self.bodies)
            if not several or not all(isinstance(body, (str, int)) for body in self.bodies):
                got, remedy = checks.short(self.bodies), "For example ('balls', 3)."
                raise OptionsError(message("Save.bodies", "must be names or indices, at least one", got, remedy))
            object.__setattr__(self, "bodies", tuple(self.bodies))
        _check_suffix("Save.path", Path(self.path))
        if self.checkpoint is not None:
            path = checks.file_name("Save.checkpoint", self.checkpoint, "run.checkpoint.h5", error=OptionsError)
            object.__setattr__(self, "checkpoint", path)
            _check_suffix("Save.checkpoint", path)

    @property
    def checkpoint_path(self) -> Path:
        """Where the checkpoint lies: run.h5 -> run.checkpoint.h5."""
        path = Path(self.path)
        return path.with_suffix(".checkpoint" + path.suffix) if self.checkpoint is None else Path(self.checkpoint)


def _check_suffix(where: str, path: Path) -> None:
    if path.suffix not in (".h5", ".hdf5"):
        remedy = f"It will be an HDF5 file; write '{path.with_suffix('.h5').name}'." if path.name else "Say 'run.h5'."
        raise OptionsError(message(where, "must end in .h5 or .hdf5", f"'{path}'", remedy))
