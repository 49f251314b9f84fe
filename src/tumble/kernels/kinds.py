"""Kinds of bodies and shapes as the numbers that compiled code compares."""

from __future__ import annotations

from ..enums import BodyKind, ShapeKind

STATIC, KINEMATIC, DYNAMIC = (int(kind) for kind in BodyKind)
SPHERE, CAPSULE, BOX, CYLINDER, CONE, ELLIPSOID, HULL, TRIANGLE, MESH, HEIGHT_FIELD, HALF_SPACE = (
    int(kind) for kind in ShapeKind
)
