"""Checkpoints: the whole state, bit for bit, in a file that is the old one or the new one, never half."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ..errors import FileError, message
from ..scene.model import ContactMemory, State

__all__ = ["Attribute", "read_checkpoint", "replacing", "write_checkpoint"]

Attribute = str | float | int
FORMAT = "tumble checkpoint"
VERSION = 4
"""4: spins are those after the drift of a step, velocities of jointed bodies lie along their joints. In files of
versions 1 and 2 they are those of its kick, and version 3 does not know the energy that the drift owes: refused."""
BODY_ARRAYS = ("position", "orientation", "velocity", "spin")
JOINT_ARRAYS = ("coordinate", "row_impulse", "target", "energy_owed")
FLOW_ARRAYS = ("presence", "flow")
"""Only in scenes that have emitters, sinks or measuring planes."""
MEMORY_ARRAYS = ("uid_a", "uid_b", "feature", "impulse")
LAW_ARRAYS = ("torque", "stretch")
"""What contacts remember in scenes with rolling friction or compliance only"""


def write_checkpoint(path: str | Path, state: State, *, attributes: Mapping[str, Attribute]) -> None:
    """Write the state with its contact memory and a few named values; replaces the file in one stroke."""
    import h5py

    arrays = _arrays(state)
    with replacing(path) as temporary, h5py.File(temporary, "w", libver="latest") as file:
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


def read_checkpoint(path: str | Path) -> tuple[State, dict[str, Attribute]]:
    """The state and the named values of a checkpoint; the content is checked against its hash."""
    import h5py

    path = Path(path)
    if not path.is_file():
        raise FileError(
            message(
                str(path),
                "must be a checkpoint",
                "no such file",
                "Check the name; a run writes one every Save.checkpoint_every frames.",
            )
        )
    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise FileError(
                    message(
                        str(path),
                        "must be a tumble checkpoint",
                        "another HDF5 file",
                        "Trajectories are read by Trajectory.",
                    )
                )
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
            names = MEMORY_ARRAYS + tuple(name for name in LAW_ARRAYS if f"memory/{name}" in file)
            memory = ContactMemory(**{name: file[f"memory/{name}"][...] for name in names})
            state = State(
                float(file.attrs["time"]),
                int(file.attrs["step"]),
                *(file[name][...] for name in BODY_ARRAYS),
                memory,
                *(file[name][...] for name in JOINT_ARRAYS),
                **{name: file[name][...] for name in FLOW_ARRAYS if name in file},
            )
            digest = file.attrs["sha256"]
            attributes = plain(file["attributes"].attrs)
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as cause:
        if isinstance(cause, FileError):
            raise
        raise FileError(
            message(
                str(path),
                "must be a whole checkpoint",
                f"{type(cause).__name__}: {cause}",
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
    return state, attributes


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place, safely on disk, once the block has succeeded."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        got = "a folder" if path.is_dir() else f"no folder {path.parent}"
        raise FileError(
            message(
                str(path),
                "must be a file name in a folder that exists",
                got,
                "Create the folder or choose another name.",
            )
        )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
        _sync(path.parent)
    except OSError as cause:
        raise FileError(
            message(
                str(path),
                "must be writable",
                f"{type(cause).__name__}: {cause}",
                "Check the permissions and the free space.",
            )
        ) from cause
    finally:
        temporary.unlink(missing_ok=True)


def plain(attributes: Mapping[str, object]) -> dict[str, Attribute]:
    """HDF5 attributes as Python values."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in attributes.items()}


def _arrays(state: State) -> dict[str, np.ndarray]:
    arrays = {name: getattr(state, name) for name in BODY_ARRAYS + JOINT_ARRAYS}
    arrays |= {name: getattr(state, name) for name in FLOW_ARRAYS if len(getattr(state, name))}
    names = MEMORY_ARRAYS + tuple(name for name in LAW_ARRAYS if getattr(state.memory, name).shape[1])
    return arrays | {f"memory/{name}": getattr(state.memory, name) for name in names}


def _digest(state: State, arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(np.float64(state.time).tobytes() + np.int64(state.step).tobytes())
    for name, array in arrays.items():
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
