"""Checkpoints: the whole state, bit for bit, in a file that is the old one or the new one, never half."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import checks
from ..errors import FileError, message
from ..files import check_place, check_readable, is_file, made_in_memory, replacing
from ..scene.model import GENTLE, ContactMemory, State
from .description import Description, from_text, to_text

__all__ = ["UNREADABLE", "Attribute", "Checkpoint", "read_checkpoint", "write_checkpoint"]

Attribute = str | float | int
FORMAT = "tumble checkpoint"
VERSION = 4
"""4: spins are those after the drift of a step, velocities of jointed bodies lie along their joints. In files of
versions 1 and 2 they are those of its kick, and version 3 does not know the energy that the drift owes: refused."""
BODY_ARRAYS = {"position": 3, "orientation": 4, "velocity": 3, "spin": 3}
JOINT_ARRAYS = ("coordinate", "row_impulse", "target", "energy_owed")
FLOW_ARRAYS = {"presence": np.int8, "flow": np.float64}
"""Only in scenes that have emitters, sinks or measuring planes."""
MEMORY_KEYS = ("uid_a", "uid_b", "feature")
MEMORY_COLUMNS = ("impulse", "torque")
"""The last only in scenes with rolling friction; columns of contact laws are what else is there"""
UNREADABLE = (OSError, KeyError, RuntimeError, TypeError, ValueError, AttributeError, IndexError, MemoryError)
"""What h5py, NumPy and json raise for damaged files and for files of another kind."""


class Checkpoint(NamedTuple):
    """What a checkpoint holds."""

    state: State
    attributes: dict[str, Attribute]
    """Named values about the run: dt, law, .. and, of a run with a trajectory, run_id and frames"""
    description: Description | None
    """Everything that acts, None where the writer did not say"""
    pending: np.ndarray
    """(r, columns) reports of the steps since the last frame"""


def write_checkpoint(
    path: str | Path,
    state: State,
    *,
    attributes: Mapping[str, Attribute],
    description: Description | None = None,
    pending: np.ndarray | None = None,
    more: Callable[[Any], None] | None = None,
) -> None:
    """Write the state with its contact memory and a few named values; replaces the file in one stroke.

    more: writes something else into the HDF5 file it is given."""
    path = checks.file_name("write_checkpoint.path", path, "run.checkpoint.h5")
    check_place(path)
    arrays = _arrays(state)
    with replacing(path.resolve()) as temporary, made_in_memory(temporary, libver="latest") as file:
        for name, array in arrays.items():
            file[name] = array
        file.attrs.update(
            format=FORMAT,
            format_version=VERSION,
            time=float(state.time),
            step=int(state.step),
            sha256=_digest(state, arrays),
        )
        attached = file.create_group("attributes")
        for name, value in attributes.items():
            attached.attrs[name] = value
        file["pending"] = np.zeros((0, 0)) if pending is None else pending
        if description is not None:
            file["description"] = to_text(description)
        if more is not None:
            more(file)


def read_checkpoint(path: str | Path) -> Checkpoint:
    """What a checkpoint holds; the state is checked against its hash."""
    import h5py

    path = checks.file_name("read_checkpoint.path", path, "run.checkpoint.h5")
    if not is_file(path):
        raise FileError(
            message(
                str(path),
                "must be a checkpoint",
                "no such file",
                "Check the name; a run writes one every Save.frames_per_checkpoint frames.",
            )
        )
    check_readable(path)
    try:
        file: Any
        with h5py.File(path, "r") as file:
            _check_kind(path, file)
            state, digest = _read_state(file), str(file.attrs["sha256"])
            description = from_text(file["description"][()]) if "description" in file else None
            pending = _read(file, "pending", 2, np.float64) if "pending" in file else np.zeros((0, 0))
            attributes = _read_attributes(file["attributes"].attrs)
    except FileError:
        raise
    except UNREADABLE as cause:
        raise FileError(
            message(
                str(path),
                "must be a whole checkpoint",
                f"{type(cause).__name__}: {' '.join(str(cause).split())}",
                "It is damaged or of another kind; start the run again.",
            )
        ) from cause
    if _digest(state, _arrays(state)) != digest:
        raise FileError(
            message(
                str(path),
                "the content must match its hash",
                "another hash",
                "The file is damaged; start the run again.",
            )
        )
    return Checkpoint(state, attributes, description, pending)


def _check_kind(path: Path, file: Any) -> None:
    if file.attrs.get("format") != FORMAT:
        remedy = "Trajectories are read by Trajectory."
        raise FileError(message(str(path), "must be a tumble checkpoint", "another HDF5 file", remedy))
    version = int(file.attrs.get("format_version", 0))
    if version != VERSION:
        raise FileError(
            message(
                str(path),
                f"must be of version {VERSION} (velocities after the drift of a step)",
                f"version {version}",
                "Another version of tumble wrote it: go on with that one, or start the run again.",
            )
        )


def _read_attributes(found: Mapping[str, object]) -> dict[str, Attribute]:
    """Single values, those that a run counts with as numbers."""
    attributes = plain(found)
    for name, value in attributes.items():
        _expect(isinstance(value, (str, int, float)), f"attributes/{name} of one value, not {type(value).__name__}")
    for name in ("frames", "unconverged"):
        value = attributes.get(name, 0)
        _expect(isinstance(value, int) and value >= 0, f"attributes/{name} that is a count, not {value!r}")
    return attributes


def _read_state(file: Any) -> State:
    """The state, with types, widths and numbers as a run would have them."""
    time, step = float(file.attrs["time"]), int(file.attrs["step"])
    _expect(np.isfinite(time) and time >= 0.0 and step >= 0, f"a time and a step >= 0, not {time}, {step}")
    bodies = [_read(file, name, 2, np.float64, width) for name, width in BODY_ARRAYS.items()]
    count = {len(array) for array in bodies}
    _expect(len(count) == 1, f"arrays over the same bodies, not {sorted(count)}")
    keys = [_read(file, f"memory/{name}", 1, np.int64) for name in MEMORY_KEYS]
    columns = {n: _read(file, f"memory/{n}", 2, np.float64) for n in file["memory"] if n not in MEMORY_KEYS}
    contacts = len(keys[0])
    _expect(all(len(key) == contacts for key in keys), "contact keys of one length")
    for name, array in columns.items():
        shape = (3 if name in MEMORY_COLUMNS else len(array), contacts)
        _expect(array.shape == shape, f"memory/{name} of shape {shape}, not {array.shape}")
    laws = {name: columns.pop(name) for name in [*columns] if name not in MEMORY_COLUMNS}
    rest: dict[str, Any] = {n: _read(file, n, 1, np.float64, finite=n != "target") for n in JOINT_ARRAYS}
    rest |= {n: _read(file, n, 1, dtype) for n, dtype in FLOW_ARRAYS.items() if n in file}
    part = _read(file, "recovers", 1, np.float64) if "recovers" in file else np.array([GENTLE])
    _expect(part.shape == (1,) and 0.0 < part[0] <= GENTLE, f"recovers in (0, {GENTLE}], not {part}")
    position, orientation, velocity, spin = bodies
    memory = ContactMemory(*keys, **columns, laws=laws)
    return State(time, step, position, orientation, velocity, spin, memory, **rest, recovers=float(part[0]))


def _read(file: Any, name: str, axes: int, dtype: Any, width: int | None = None, finite: bool = True) -> np.ndarray:
    found = file[name]
    right = found.dtype == dtype and len(found.shape) == axes and (width is None or found.shape[-1] == width)
    shape = f"{axes} axes" + (f", the last of {width}" if width else "")
    _expect(right, f"{name} of type {np.dtype(dtype)} with {shape}, not {found.dtype} {found.shape}")
    _expect(found.nbytes <= found.file.id.get_filesize(), f"{name} in it, not {found.nbytes} bytes declared only")
    array = found[...]
    _expect(not finite or bool(np.isfinite(array).all()), f"{name} without NaN and infinite numbers")
    return array


def _expect(right: bool, wanted: str) -> None:
    if not right:
        raise ValueError(f"it must have {wanted}")


def plain(attributes: Mapping[str, Any]) -> dict[str, Attribute]:
    """HDF5 attributes as Python values."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in attributes.items()}


def _arrays(state: State) -> dict[str, np.ndarray]:
    arrays = {name: getattr(state, name) for name in (*BODY_ARRAYS, *JOINT_ARRAYS)}
    arrays |= {name: getattr(state, name) for name in FLOW_ARRAYS if len(getattr(state, name))}
    if state.recovers != GENTLE:
        arrays["recovers"] = np.array([state.recovers])
    memory = state.memory
    found = {name: getattr(memory, name) for name in (*MEMORY_KEYS, *MEMORY_COLUMNS)}
    if not memory.torque.shape[1]:
        del found["torque"]
    found |= {name: memory.laws[name] for name in sorted(memory.laws)}
    return arrays | {f"memory/{name}": array for name, array in found.items()}


def _digest(state: State, arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(np.float64(state.time).tobytes() + np.int64(state.step).tobytes())
    for name, array in arrays.items():
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
