"""Pixar's own library reads what was written for Blender and Omniverse."""

import numpy as np
import pytest

from tumble.errors import FileError
from tumble.export import export
from tumble.export.source import Source
from tumble.scene import rotation

pytest.importorskip("pxr.Usd", reason="usd-core is not installed: USD is not read back")
from pxr import Gf, Usd, UsdGeom


def body_of(stage, body):
    return next(p for p in stage.GetPrimAtPath("/scene").GetChildren() if p.GetCustomDataByKey("tumble:body") == body)


@pytest.mark.parametrize("ending", ["usdc", "usda"])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_poses_velocities_and_contacts(run, tmp_path, ending, precision):
    out = tmp_path / f"a.{ending}"
    export(run, "usd", out, precision=precision)
    stage = Usd.Stage.Open(str(out))
    assert UsdGeom.GetStageUpAxis(stage) == "Z" and UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    rate = stage.GetTimeCodesPerSecond()
    assert rate == pytest.approx(10.0) and stage.GetEndTimeCode() == pytest.approx(4.0)
    atol = 1e-12 if precision == "double" else 2e-7
    for i, time in enumerate(run.times):
        code = Usd.TimeCode(time * rate)
        position, orientation = run.read("position", i), run.read("orientation", i)
        for body in range(len(run.model.body_kind)):
            prim = body_of(stage, body)
            found = np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(code))
            np.testing.assert_array_equal(found[3, :3], position[body])
            np.testing.assert_allclose(found[:3, :3].T, rotation.matrix(orientation[body]), atol=10 * atol)
            speed = prim.GetAttribute("tumble:velocity")
            if run.model.body_kind[body] == 2:
                assert np.array_equal(speed.Get(code), run.read("velocity", i)[body].astype(np.float32))
            visible = UsdGeom.Imageable(prim).ComputeVisibility(code) != "invisible"
            assert visible == run.present(i)[body]
        contacts, cloud = run.contacts(i), UsdGeom.Points(stage.GetPrimAtPath("/scene/contacts"))
        assert len(cloud.GetPointsAttr().Get(code)) == len(contacts["gap"])
        if len(contacts["gap"]):
            force = UsdGeom.PrimvarsAPI(cloud).GetPrimvar("force").Get(code)
            assert np.array_equal(force, contacts["force"].astype(np.float32))
    assert body_of(stage, 1).GetCustomDataByKey("tumble:name") == "hill"


def test_shapes_have_the_extents_of_the_surfaces(run, tmp_path):
    """Bounds of each body in its own frame, from USD's solids and from our triangles."""
    from tumble.view import triangles_of

    export(run, "usd", tmp_path / "a.usdc", segments=64)
    stage = Usd.Stage.Open(str(tmp_path / "a.usdc"))
    cache = UsdGeom.BBoxCache(Usd.TimeCode.Default(), ["default"])  # where bodies are not turned yet
    source = Source(run)
    for body in range(1, 13):
        shapes = source.shapes[source.owner == body]
        points = np.concatenate([triangles_of(run.model, int(s), segments=64)[0] for s in shapes])
        found = cache.ComputeUntransformedBound(body_of(stage, body)).ComputeAlignedRange()
        np.testing.assert_allclose([found.GetMin(), found.GetMax()], [points.min(0), points.max(0)], atol=2e-3)


def test_a_cone_points_where_its_triangles_do(run, tmp_path):
    from tumble.view import triangles_of

    export(run, "usd", tmp_path / "a.usdc")
    stage = Usd.Stage.Open(str(tmp_path / "a.usdc"))
    s = int(np.flatnonzero(run.model.shape_kind == 4)[0])
    body = int(run.model.shape_body[s])
    prim = next(p for p in body_of(stage, body).GetChildren() if p.GetTypeName() == "Cone")
    turn = UsdGeom.Xformable(prim).GetLocalTransformation()
    tip = turn.Transform(Gf.Vec3d(0, 0, UsdGeom.Cone(prim).GetHeightAttr().Get() / 2))
    points = triangles_of(run.model, s)[0]
    nearest = points[np.linalg.norm(points[:, :2], axis=1).argmin()]
    apex = points[points[:, 2].argmax()]
    np.testing.assert_allclose(tip, apex, atol=1e-9)
    assert np.linalg.norm(apex[:2]) < 1e-12 and len(nearest) == 3


def test_the_ending_must_be_one_of_usd(run, tmp_path):
    with pytest.raises(FileError, match=r"must end in \.usd"):
        export(run, "usd", tmp_path / "a.blend")
