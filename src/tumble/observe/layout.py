"""Layout of a trajectory file in HDF5 (f frames, n bodies, r steps, c contacts over all frames):

committed (1,), finished (1,)
frames/    time, step, state_sha256, report_end (f,); position, velocity, angular_velocity (f, n, 3);
           orientation (f, n, 4); contact_end (f,); for the e joints, motors and springs of model/joint_names:
           joint_force, joint_torque (f, e, 3), joint_value, joint_speed, joint_effort, joint_power (f, e);
           presence (f, n) int8 where bodies come or go
steps/     one column of reports each (r,); frame i ends at row report_end[i]
contacts/  body_a, body_b, gap (c,); point, normal, force (c, 3); frame i ends at row contact_end[i]
model/     the arrays that a picture needs, and names, emitters, sinks and measuring planes as JSON
model/geometry/  the pooled hulls, meshes and height fields, once however many bodies share them

Version 2 has four shape parameters, shape_geometry and model/geometry; version 1 had spheres, boxes and half-spaces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..backends.base import Geometry
from ..errors import FileError, message
from ..scene.model import Model
from .checkpoint import Attribute

__all__ = ["StoredModel", "contact_columns", "create_file", "difference", "read_model"]

FORMAT = "tumble trajectory"
VERSION = 2
CHUNK_BYTES = 2**20
GROUPS = {"frames": None, "steps": "report_end", "contacts": "contact_end"}
BODY_FIELDS = {"position": 3, "orientation": 4, "velocity": 3, "angular_velocity": 3}
JOINT_FIELDS = {
    "joint_force": (3,),
    "joint_torque": (3,),
    "joint_value": (),
    "joint_speed": (),
    "joint_effort": (),
    "joint_power": (),
}
CONTACT_COLUMNS = {
    "body_a": ((), np.int32),
    "body_b": ((), np.int32),
    "point": ((3,), np.float64),
    "normal": ((3,), np.float64),
    "gap": ((), np.float64),
    "force": ((3,), np.float64),
}


@dataclass(frozen=True)
class StoredModel:
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


MODEL_ARRAYS = tuple(
    name for name in StoredModel.__annotations__ if name not in ("geometry", "names", "joint_names", "flow")
)


def difference(stored: StoredModel, model: Model) -> str | None:
    """Name of the first array in which two models differ."""
    for name in MODEL_ARRAYS:
        if not np.array_equal(getattr(stored, name), getattr(model, name)):
            return name
    for name in Geometry._fields:
        if not np.array_equal(getattr(stored.geometry, name), getattr(model.geometry, name)):
            return f"geometry.{name}"
    if stored.joint_names != tuple(model.joints.names):
        return "joints"
    return None if stored.flow == _flow(model) else "emitters, sinks or measuring planes"


def _flow(model: Model) -> str:
    """Empty where there is none."""
    return json.dumps(model.flow.facts()) if model.flow.columns else ""


def read_model(group: Any) -> StoredModel:
    """The model in the HDF5 group of a file."""
    names = tuple((str(n), int(a), int(b)) for n, a, b in json.loads(group.attrs["names"]))
    joints = tuple(json.loads(group.attrs.get("joint_names", "[]")))
    geometry = Geometry(*(group[f"geometry/{name}"][...] for name in Geometry._fields))
    arrays = (group[name][...] for name in MODEL_ARRAYS)
    return StoredModel(*arrays, geometry, names, joints, str(group.attrs.get("flow", "")))


def write_model(group: Any, model: Model) -> None:
    """Fill an empty HDF5 group; large arrays of the geometry, mostly indices, are packed."""
    for name in MODEL_ARRAYS:
        group[name] = getattr(model, name)
    group.attrs["names"] = json.dumps(model.names)
    group.attrs["joint_names"] = json.dumps(model.joints.names)
    group.attrs["flow"] = _flow(model)
    geometry = group.create_group("geometry")
    for name, array in zip(Geometry._fields, model.geometry):
        packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if array.nbytes > CHUNK_BYTES else {}
        geometry.create_dataset(name, data=array, **packed)


def create_file(
    path: Path,
    model: Model,
    fields: tuple[str, ...],
    columns: tuple[str, ...],
    attributes: Mapping[str, Attribute],
) -> None:
    """An empty trajectory with every dataset it will ever have."""
    import h5py

    count = model.body_count
    with h5py.File(path, "w", libver="latest") as file:
        file.attrs.update(attributes)
        file.attrs.update(
            format=FORMAT, format_version=VERSION, fields=json.dumps(fields), report_columns=json.dumps(columns)
        )
        file["committed"] = np.zeros(1, np.int64)
        file["finished"] = np.zeros(1, np.int64)

        def column(name: str, shape: tuple[int, ...], dtype: Any, chunk: tuple[int, ...]) -> None:
            file.create_dataset(name, (0, *shape), dtype, chunks=chunk, maxshape=(None, *shape))

        scalars = {"time": np.float64, "step": np.int64, "report_end": np.int64, "state_sha256": "S64"}
        for name, dtype in scalars.items():
            column(f"frames/{name}", (), dtype, (256,))
        for field in fields:
            if field != "contacts":
                width = BODY_FIELDS[field]
                column(
                    f"frames/{field}",
                    (count, width),
                    np.float64,
                    (1, max(1, min(count, CHUNK_BYTES // (8 * width))), width),
                )
        if model.flow.changes:
            column("frames/presence", (count,), np.int8, (1, min(count, CHUNK_BYTES)))
        joints = len(model.joints.elements)
        if joints:
            for name, shape in JOINT_FIELDS.items():
                column(f"frames/{name}", (joints, *shape), np.float64, (16, joints, *shape))
        if "contacts" in fields:
            column("frames/contact_end", (), np.int64, (256,))
            for name, (shape, dtype) in CONTACT_COLUMNS.items():
                column(f"contacts/{name}", shape, dtype, (4096, *shape))
        steps = file.create_group("steps")
        for name in columns:
            column(f"{steps.name}/{name}", (), np.float64, (1024,))
        write_model(file.create_group("model"), model)


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
