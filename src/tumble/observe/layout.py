"""Layout of a trajectory file in HDF5, version 3; `docs/files.md` describes it for readers in any language.

(f frames, n bodies of which k are recorded, r steps, c contacts over all frames; every dataset has its `unit`)

committed (1,), finished (1,), history: text, JSON
frames/    time, step, state_sha256, report_end (f,); position, velocity, angular_velocity (f, k, 3);
           orientation (f, k, 4); contact_end (f,); for the e joints, motors and springs of model/joint_names:
           joint_force, joint_torque (f, e, 3), joint_value, joint_speed, joint_effort, joint_power (f, e);
           presence (f, n) int8 where bodies come or go
steps      (r,) a table with a named column for each number of the reports; frame i ends at row report_end[i]
contacts/  body_a, body_b, gap (c,); point, normal, force (c, 3); frame i ends at row contact_end[i]
model/     the arrays that a picture needs; body_uid (n,); recorded (k,): which bodies have rows in the frames; names,
           emitters, sinks and measuring planes as JSON; description: text, JSON, everything that acts
model/geometry/  the pooled hulls, meshes and height fields, once however many bodies share them

Version 2, still read, has a dataset for each column in steps/ and no run id, units, history, uids or chosen bodies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..backends.shape_arrays import Geometry
from ..errors import FileError, message
from ..files import made_in_memory
from ..scene import rotation
from ..scene.body_names import BodyNames
from ..scene.model import Model
from ..showing import ShownModel
from .checkpoint import Attribute
from .live import FORMAT_BOUNDS, PAGED

__all__ = ["Plan", "StoredModel", "contact_columns", "create_file", "difference", "joint_places", "read_model"]

FORMAT = "tumble trajectory"
VERSION = 3
READABLE = (2, 3)
CHUNK_BYTES = 2**20
BODY_FIELDS = {"position": 3, "orientation": 4, "velocity": 3, "angular_velocity": 3}
SCALARS = {"time": np.float64, "step": np.int64, "report_end": np.int64, "state_sha256": "S64"}
JOINT_FIELDS = {
    "joint_force": (3,),
    "joint_torque": (3,),
    "joint_value": (),
    "joint_speed": (),
    "joint_effort": (),
    "joint_power": (),
}
PACKED = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
CONTACT_COLUMNS = {
    "body_a": ((), np.int32),
    "body_b": ((), np.int32),
    "point": ((3,), np.float64),
    "normal": ((3,), np.float64),
    "gap": ((), np.float64),
    "force": ((3,), np.float64),
}

UNITS = {
    "position": "m",
    "orientation": "1",
    "velocity": "m/s",
    "angular_velocity": "rad/s",
    "time": "s",
    "joint_force": "N",
    "joint_torque": "N m",
    "joint_value": "rad or m",
    "joint_speed": "rad/s or m/s",
    "joint_effort": "N m or N",
    "joint_power": "W",
    "point": "m",
    "gap": "m",
    "force": "N",
    "shape_parameters": "m",
    "shape_position": "m",
    "body_mass": "kg",
    "body_center": "m",
    "joint_place": "m",
    "hull_point": "m",
    "mesh_point": "m",
    "field_height": "m",
}
"""Of datasets by name; the others are counts, indices, flags and unit vectors: "1"."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a trajectory records."""

    fields: tuple[str, ...]
    """Any of position, orientation, velocity, angular_velocity, contacts"""
    columns: Mapping[str, str]
    """Names of the numbers of a report and their units"""
    bodies: np.ndarray | None = None
    """(k,) bodies whose fields are recorded, None: all"""
    single: bool = False
    """Fields of bodies in single precision"""
    compress: bool = False
    """Fields of bodies packed by gzip"""


@dataclass(frozen=True, repr=False)
class StoredModel(ShownModel, BodyNames):
    """The part of a `Model` that a trajectory keeps, under the same names."""

    shape_kind: np.ndarray
    shape_body: np.ndarray
    shape_parameters: np.ndarray
    shape_geometry: np.ndarray
    shape_position: np.ndarray
    shape_orientation: np.ndarray
    body_kind: np.ndarray
    body_mass: np.ndarray
    body_center: np.ndarray
    body_axes: np.ndarray
    geometry: Geometry
    names: tuple[tuple[str, int, int], ...] = ()
    joint_names: tuple[str, ...] = ()
    flow: str = ""
    """Emitters, sinks and measuring planes as JSON, see `FlowModel.facts`"""
    shape_material: np.ndarray | None = None
    """(m,) numbers in `materials`; None in older files"""
    materials: tuple[str, ...] = ()
    joint_body: np.ndarray | None = None
    """(e, 2) bodies of `joint_names`; None in older files"""
    joint_place: np.ndarray | None = None
    """(e, 2, 3) where they are, in the frames of the two bodies [m]"""


EXTRA = ("shape_material", "joint_body", "joint_place")
MODEL_ARRAYS = tuple(
    name
    for name in StoredModel.__annotations__
    if name not in ("geometry", "names", "joint_names", "flow", "materials", *EXTRA)
)


def difference(stored: StoredModel, model: Model) -> str | None:
    """Name of the first part of the file's model in which another one differs."""
    for name in MODEL_ARRAYS:
        if not np.array_equal(getattr(stored, name), getattr(model, name)):
            return name
    for name in Geometry._fields:
        if not np.array_equal(getattr(stored.geometry, name), getattr(model.geometry, name)):
            return f"geometry.{name}"
    if stored.joint_names != tuple(model.joints.names):
        return "joints"
    return None if stored.flow == _flow(model) else "flow"


def _flow(model: Model) -> str:
    """Empty where there is none."""
    return json.dumps(model.flow.facts()) if model.flow.columns else ""


def read_model(group: Any) -> StoredModel:
    """The model in the HDF5 group of a file."""
    names = tuple((str(n), int(a), int(b)) for n, a, b in json.loads(group.attrs["names"]))
    joints = tuple(json.loads(group.attrs.get("joint_names", "[]")))
    geometry = Geometry(*(group[f"geometry/{name}"][...] for name in Geometry._fields))
    arrays: dict[str, Any] = {name: group[name][...] for name in MODEL_ARRAYS}
    arrays |= {name: group[name][...] for name in EXTRA if name in group}
    words: dict[str, Any] = {"names": names, "joint_names": joints, "flow": str(group.attrs.get("flow", ""))}
    words["materials"] = tuple(map(str, json.loads(group.attrs.get("materials", "[]"))))
    return StoredModel(geometry=geometry, **arrays, **words)


def write_model(group: Any, model: Model, recorded: np.ndarray, description: str) -> None:
    """Fill an empty HDF5 group; large arrays of the geometry, mostly indices, are packed."""
    for name in MODEL_ARRAYS:
        group[name] = getattr(model, name)
    group["body_uid"], group["recorded"] = model.body_uid, recorded
    group["description"] = description
    group.attrs["names"] = json.dumps(model.names)
    group.attrs["joint_names"] = json.dumps(model.joints.names)
    group.attrs["flow"] = _flow(model)
    group.attrs["materials"] = json.dumps([m.name or f"material{i}" for i, m in enumerate(model.materials)])
    group["shape_material"] = model.shape_material
    group["joint_body"], group["joint_place"] = joint_places(model)
    geometry = group.create_group("geometry")
    for name, array in zip(Geometry._fields, model.geometry):
        geometry.create_dataset(name, data=array, **(PACKED if array.nbytes > CHUNK_BYTES else {}))


def joint_places(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Bodies (e, 2) of the joints, motors and springs, and where they are in the frames of the two (e, 2, 3) [m]."""
    joints = model.joints
    frame = np.array([e.frame for e in joints.elements], int)
    body = joints.frame_body[frame].reshape(-1, 2)
    place = joints.frame_position.reshape(-1, 2, 3)[frame]
    flat = body.ravel()
    moved = rotation.rotate(model.body_axes[flat], place.reshape(-1, 3)) + model.body_center[flat]
    return body, moved.reshape(-1, 2, 3)


def create_file(
    path: Path, model: Model, plan: Plan, attributes: Mapping[str, Attribute], *, history: str, description: str
) -> None:
    """An empty trajectory with every dataset it will ever have."""
    recorded = np.arange(model.body_count) if plan.bodies is None else plan.bodies
    with made_in_memory(path, libver=FORMAT_BOUNDS, **PAGED) as file:
        file.attrs.update(attributes)
        file.attrs.update(format=FORMAT, format_version=VERSION, fields=json.dumps(plan.fields), part=0, parts=1)
        file["committed"] = np.zeros(1, np.int64)
        file["finished"] = np.zeros(1, np.int64)
        file["history"] = history
        for name, (shape, dtype, chunk, packed) in _growing(model, plan, len(recorded)).items():
            more = PACKED if packed else {}
            file.create_dataset(name, (0, *shape), dtype, chunks=chunk, maxshape=(None, *shape), **more)
        write_model(file.create_group("model"), model, recorded.astype(np.int32), description)
        file.visititems(_add_unit)
        if plan.columns:
            file["steps"].attrs["unit"] = json.dumps(dict(plan.columns))


def _growing(model: Model, plan: Plan, rows: int) -> dict[str, tuple]:
    """Shape of a row, type, chunk and whether it is packed, of all datasets that grow."""
    found: dict[str, tuple] = {f"frames/{name}": ((), dtype, (256,), False) for name, dtype in SCALARS.items()}
    dtype = np.dtype(np.float32 if plan.single else np.float64)
    for field in plan.fields:
        if field != "contacts":
            width = BODY_FIELDS[field]
            chunk = (1, max(1, min(rows, CHUNK_BYTES // (dtype.itemsize * width))), width)
            found[f"frames/{field}"] = ((rows, width), dtype, chunk, plan.compress)
    if model.flow.changes:
        count = model.body_count
        found["frames/presence"] = ((count,), np.int8, (1, min(count, CHUNK_BYTES)), plan.compress)
    joints = len(model.joints.elements)
    if joints:
        for name, shape in JOINT_FIELDS.items():
            found[f"frames/{name}"] = ((joints, *shape), np.float64, (16, joints, *shape), False)
    if "contacts" in plan.fields:
        found["frames/contact_end"] = ((), np.int64, (256,), False)
        for name, (shape, kind) in CONTACT_COLUMNS.items():
            found[f"contacts/{name}"] = (shape, kind, (4096, *shape), False)
    if plan.columns:
        found["steps"] = ((), np.dtype([(name, np.float64) for name in plan.columns]), (64,), False)
    return found


def _add_unit(name: str, item: Any) -> None:
    if hasattr(item, "dtype") and item.dtype.kind in "iuf":
        item.attrs["unit"] = UNITS.get(name.rpartition("/")[2], "1")


def contact_columns(contacts: Any) -> dict[str, np.ndarray]:
    """The columns of a mapping or an object, in their types; None is no contact."""
    if contacts is None:
        return {name: np.zeros((0, *shape), dtype) for name, (shape, dtype) in CONTACT_COLUMNS.items()}
    get = contacts.__getitem__ if isinstance(contacts, Mapping) else lambda name: getattr(contacts, name)
    columns = {name: np.asarray(get(name), dtype) for name, (_, dtype) in CONTACT_COLUMNS.items()}
    count = len(columns["gap"])
    for name, (shape, _) in CONTACT_COLUMNS.items():
        if columns[name].shape != (count, *shape):
            raise FileError(
                message(
                    f"contacts.{name}",
                    f"must have shape {(count, *shape)}",
                    columns[name].shape,
                    "Give one row for each contact.",
                )
            )
    return columns
