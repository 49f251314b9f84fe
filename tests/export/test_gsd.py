"""GSD's own library reads what was written for OVITO."""

import numpy as np
import pytest

from tumble.enums import ShapeKind
from tumble.export import export
from tumble.export.source import Source
from tumble.scene import rotation

hoomd = pytest.importorskip("gsd.hoomd", reason="gsd is not installed: files for OVITO are not read back")


def test_particles_are_the_shapes(run, tmp_path):
    export(run, "gsd", tmp_path / "a.gsd")
    source = Source(run)
    with hoomd.open(str(tmp_path / "a.gsd")) as file:
        assert len(file) == len(run)
        for i, found in enumerate(file):
            p, frame = found.particles, source.frame(i)
            drawn = (source.kind != ShapeKind.HALF_SPACE) & frame.present[source.owner]
            assert found.configuration.step == run.steps[i] and found.log["time"] == run.times[i]
            assert np.array_equal(p.body, source.owner[drawn]) and drawn.sum() == p.N
            place, turn = (a[drawn].astype(np.float32) for a in source.placed(frame))
            assert np.array_equal(p.position, place) and np.array_equal(p.orientation, turn)
            assert np.all(np.abs(p.position) <= found.configuration.box[0] / 2)
            spheres = source.kind[drawn] == ShapeKind.SPHERE
            assert {p.types[t] for t in p.typeid[spheres]} == {"sphere"}
            assert np.array_equal(p.diameter[spheres], 2 * source.parameters[drawn][spheres, 3].astype(np.float32))
            contacts = run.contacts(i)
            if len(contacts["gap"]):
                assert np.array_equal(found.log["contacts/force"], contacts["force"].astype(np.float32))


def test_velocities_are_those_of_the_shapes_origins(run, tmp_path):
    """A body's centre of mass, carried back by its spin, has the body's velocity."""
    export(run, "gsd", tmp_path / "a.gsd")
    source, i = Source(run), 3
    frame = source.frame(i)
    with hoomd.open(str(tmp_path / "a.gsd")) as file:
        p = file[i].particles
    center = frame.position + rotation.rotate(frame.orientation, run.model.body_center)
    arm = center[p.body] - p.position
    carried = p.velocity + np.cross(frame.angular_velocity[p.body], arm)
    np.testing.assert_allclose(carried, frame.velocity[p.body], atol=1e-5)


def test_shapes_of_types(run, tmp_path):
    export(run, "gsd", tmp_path / "a.gsd", segments=32)
    with hoomd.open(str(tmp_path / "a.gsd")) as file:
        p = file[0].particles
    shapes = dict(zip(p.types, p.type_shapes))
    assert shapes["sphere"] == {} and shapes["ellipsoid"] == {"type": "Ellipsoid", "a": 0.1, "b": 0.2, "c": 0.3}
    mesh = shapes["cylinder"]
    corner = np.array(mesh["vertices"])[np.array(mesh["indices"])]
    assert np.linalg.det(corner).sum() / 6 == pytest.approx(np.pi * 0.01 * 0.2, rel=0.01)
