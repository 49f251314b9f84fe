"""For Blender, Omniverse, Houdini and usdview: a transform for each body with its shapes, moving over time."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from errno import EACCES, EDQUOT, EFBIG, ENOSPC, EROFS
from pathlib import Path
from typing import Any

import numpy as np

from ..enums import ShapeKind
from ..errors import FileError, message
from .run import Plan
from .source import Frame, Source, needed
from .surfaces import shape_triangles

__all__ = ["WRITERS"]

DISK = "Check the permissions and the free space."
ENDINGS = (".usd", ".usda", ".usdc")
COLORS = {0: (0.72, 0.72, 0.75), 1: (0.85, 0.55, 0.3), 2: (0.25, 0.5, 0.75)}
"""By the kind of body: static, kinematic, dynamic."""


class Usd:
    """Metres, z up; a time code is a recorded frame's time times the frames of a second."""

    def __init__(self, source: Source, plan: Plan, places: Mapping[Path, Path]) -> None:
        if plan.out.suffix not in ENDINGS:
            rule, remedy = "must end in .usd, .usda (text) or .usdc", "Rename it."
            raise FileError(message(str(plan.out), rule, f"'{plan.out.suffix}'", remedy))
        names = ("Gf", "Sdf", "Usd", "UsdGeom", "Vt")
        Gf, Sdf, Usd, UsdGeom, Vt = (needed(f"pxr.{name}", "usd-core", "usd") for name in names)
        self._gf, self._sdf, self._usd, self._geom, self._vt = Gf, Sdf, Usd, UsdGeom, Vt
        self._source, self._plan, self._place = source, plan, places[plan.out]
        self._stage = Usd.Stage.CreateInMemory()
        times = source.run.times[list(plan.frames)]
        self._rate = round((len(times) - 1) / (times[-1] - times[0]), 6) if len(times) > 1 else 24.0
        stage = self._stage
        UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(stage, 1.0)
        stage.SetTimeCodesPerSecond(self._rate)
        stage.SetFramesPerSecond(self._rate)
        stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/scene").GetPrim())
        self._plate = 2.0 * source.reach((plan.frames[0], plan.frames[-1]))
        self._still = np.isin(source.model.body_kind[source.bodies], (0,))
        self._bodies = [self._body(row) for row in range(len(source.bodies))]
        self._contacts: Any = self._cloud() if source.has_contacts else None
        self._present: np.ndarray | None = None

    @staticmethod
    def paths(source: Source, plan: Plan) -> list[Path]:
        """One file."""
        return [plan.out]

    def _body(self, row: int) -> tuple[Any, ...]:
        """A transform with the shapes of a body under it, and the attributes that change."""
        source, types = self._source, self._sdf.ValueTypeNames
        path = f"/scene/body{source.bodies[row]}_{re.sub(r'[^A-Za-z0-9_]', '_', source.names[row])}"
        xform = self._geom.Xform.Define(self._stage, path)
        prim = xform.GetPrim()
        prim.SetCustomDataByKey("tumble:name", source.names[row])
        prim.SetCustomDataByKey("tumble:body", int(source.bodies[row]))
        prim.SetCustomDataByKey("tumble:mass", float(source.mass[row]))
        for s in np.flatnonzero(source.owner == row):
            self._shape(f"{path}/shape{s}", int(s))
        velocities = []
        for name, unit in (("velocity", "m/s"), ("angularVelocity", "rad/s")):
            attribute = prim.CreateAttribute(f"tumble:{name}", types.Vector3f)
            attribute.SetCustomDataByKey("unit", unit)
            velocities.append(attribute)
        translate = xform.AddTranslateOp(self._geom.XformOp.PrecisionDouble)
        precision = self._geom.XformOp.PrecisionDouble
        if self._plan.dtype == np.float32:
            precision = self._geom.XformOp.PrecisionFloat
        return xform, translate, xform.AddOrientOp(precision), *velocities

    def _shape(self, path: str, s: int) -> None:
        """A shape in the frame of its body."""
        source, geom, stage = self._source, self._geom, self._stage
        kind, (a, b, c, r) = ShapeKind(int(source.kind[s])), source.parameters[s].tolist()
        size = None
        if kind == ShapeKind.SPHERE:
            shape = geom.Sphere.Define(stage, path)
            shape.CreateRadiusAttr(r)
            reach = (r, r, r)
        elif kind == ShapeKind.CAPSULE:
            shape = geom.Capsule.Define(stage, path)
            shape.CreateRadiusAttr(r)
            shape.CreateHeightAttr(2.0 * c)
            shape.CreateAxisAttr("Z")
            reach = (r, r, c + r)
        elif kind == ShapeKind.BOX and r == 0.0:
            shape = geom.Cube.Define(stage, path)
            shape.CreateSizeAttr(2.0)
            size, reach = (a, b, c), (1.0, 1.0, 1.0)
        elif kind == ShapeKind.ELLIPSOID and r == 0.0:
            shape = geom.Sphere.Define(stage, path)
            shape.CreateRadiusAttr(1.0)
            size, reach = (a, b, c), (1.0, 1.0, 1.0)
        elif kind in (ShapeKind.CYLINDER, ShapeKind.CONE) and r == 0.0:
            shape = (geom.Cylinder if kind == ShapeKind.CYLINDER else geom.Cone).Define(stage, path)
            shape.CreateRadiusAttr(a)
            shape.CreateHeightAttr(2.0 * c)
            shape.CreateAxisAttr("Z")
            reach = (a, a, c)
        else:
            shape, reach = self._mesh(path, s), None
        if reach is not None:
            shape.CreateExtentAttr([tuple(-x for x in reach), reach])
        place, turn = (array[s].tolist() for array in source.local)
        shape.AddTranslateOp(geom.XformOp.PrecisionDouble).Set(self._gf.Vec3d(*place))
        shape.AddOrientOp(geom.XformOp.PrecisionDouble).Set(self._gf.Quatd(*turn))
        if size is not None:
            shape.AddScaleOp(geom.XformOp.PrecisionDouble).Set(self._gf.Vec3d(*size))
        body = int(source.model.body_kind[source.model.shape_body[source.shapes[s]]])
        shape.CreateDisplayColorAttr([self._gf.Vec3f(*COLORS[body])])

    def _mesh(self, path: str, s: int) -> Any:
        """Triangles, where USD has no such solid; a square for a half-space."""
        mesh = self._geom.Mesh.Define(self._stage, path)
        if self._source.kind[s] == ShapeKind.HALF_SPACE:
            point = self._plate * np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], float)
            triangle = np.array([(0, 1, 2), (0, 2, 3)])
        else:
            point, _, triangle, _ = shape_triangles(self._source, np.array([s]), self._plan.segments)
        mesh.CreatePointsAttr(self._vt.Vec3fArray.FromNumpy(np.ascontiguousarray(point, np.float32)))
        mesh.CreateFaceVertexCountsAttr(self._vt.IntArray.FromNumpy(np.full(len(triangle), 3, np.int32)))
        mesh.CreateFaceVertexIndicesAttr(self._vt.IntArray.FromNumpy(np.ascontiguousarray(triangle.ravel(), np.int32)))
        mesh.CreateSubdivisionSchemeAttr("none")
        low, high = point.min(axis=0), point.max(axis=0)
        mesh.CreateExtentAttr([tuple(map(float, low)), tuple(map(float, high))])
        return mesh

    def _cloud(self) -> Any:
        """Contacts as points with the forces on their second bodies."""
        points = self._geom.Points.Define(self._stage, "/scene/contacts")
        primvars = self._geom.PrimvarsAPI(points)
        types, varying = self._sdf.ValueTypeNames, self._geom.Tokens.varying
        force = primvars.CreatePrimvar("force", types.Vector3fArray, varying)
        force.GetAttr().SetCustomDataByKey("unit", "N")
        gap = primvars.CreatePrimvar("gap", types.FloatArray, varying)
        gap.GetAttr().SetCustomDataByKey("unit", "m")
        pair = [primvars.CreatePrimvar(name, types.IntArray, varying) for name in ("body_a", "body_b")]
        points.CreateWidthsAttr([0.02 * self._plate])
        points.SetWidthsInterpolation(self._geom.Tokens.constant)
        return points, force, gap, pair

    def add(self, frame: Frame) -> None:
        """One more time."""
        gf, code = self._gf, self._usd.TimeCode(frame.time * self._rate)
        first = self._present is None
        quaternion = gf.Quatf if self._plan.dtype == np.float32 else gf.Quatd
        rows = zip(self._bodies, frame.position.tolist(), frame.orientation.tolist())
        with self._sdf.ChangeBlock():
            for row, ((_, translate, orient, speed, spin), place, turn) in enumerate(rows):
                if self._still[row] and not first:
                    continue
                at = self._usd.TimeCode.Default() if self._still[row] else code
                translate.Set(gf.Vec3d(*place), at)
                orient.Set(quaternion(*turn), at)
                for attribute, values in ((speed, frame.velocity), (spin, frame.angular_velocity)):
                    if values is not None and not self._still[row]:
                        attribute.Set(gf.Vec3f(*values[row].tolist()), at)
        changed = np.flatnonzero(~frame.present if first else frame.present != self._present)
        for row in changed:
            visible = self._geom.Tokens.inherited if frame.present[row] else self._geom.Tokens.invisible
            self._bodies[row][0].CreateVisibilityAttr().Set(visible, code)
        self._present = frame.present
        if self._contacts is not None:
            self._add_contacts(frame.contacts, code)

    def _add_contacts(self, c: dict[str, np.ndarray], code: Any) -> None:
        vt, (points, force, gap, pair) = self._vt, self._contacts
        points.GetPointsAttr().Set(vt.Vec3fArray.FromNumpy(c["point"].astype(np.float32)), code)
        force.Set(vt.Vec3fArray.FromNumpy(c["force"].astype(np.float32)), code)
        gap.Set(vt.FloatArray.FromNumpy(c["gap"].astype(np.float32)), code)
        for primvar, name in zip(pair, ("body_a", "body_b")):
            primvar.Set(vt.IntArray.FromNumpy(c[name].astype(np.int32)), code)

    def _unwritable(self, reason: str = "no success") -> FileError:
        return FileError(message(str(self._plan.out), "must be writable", reason, DISK))

    def finish(self) -> None:
        """Write the file."""
        codes = [self._source.run.times[i] * self._rate for i in (self._plan.frames[0], self._plan.frames[-1])]
        self._stage.SetStartTimeCode(codes[0])
        self._stage.SetEndTimeCode(codes[1])
        made = self._place.with_name(self._place.name + self._plan.out.suffix)  # USD goes by the ending
        try:
            try:
                done = self._stage.GetRootLayer().Export(str(made))
            except RuntimeError as cause:  # many lines of USD's own
                told = [os.strerror(n) for n in (ENOSPC, EDQUOT, EFBIG, EROFS, EACCES) if os.strerror(n) in str(cause)]
                raise self._unwritable(*told[:1]) from None
            if not done:
                raise self._unwritable()
            os.replace(made, self._place)
        finally:
            made.unlink(missing_ok=True)


WRITERS = {"usd": Usd}
