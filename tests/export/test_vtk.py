"""ParaView's own library reads what was written for it."""

import numpy as np
import pytest

from tumble.export import export
from tumble.export.source import Source
from tumble.scene import rotation

vtk = pytest.importorskip("vtk", reason="VTK is not installed: files for ParaView are not read back")
from vtk.util.numpy_support import vtk_to_numpy  # noqa: E402


def read(path, time):
    kind = vtk.vtkHDFReader if path.suffix == ".vtkhdf" else None
    if kind is None:
        import json

        entries = json.loads(path.read_text())["files"]
        name = next(e["name"] for e in entries if e["time"] == time)
        reader = vtk.vtkXMLPolyDataReader()
        reader.SetFileName(str(path.parent / name))
        reader.Update()
        return reader.GetOutput()
    reader = kind()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    times = reader.GetOutputInformation(0).Get(vtk.vtkStreamingDemandDrivenPipeline.TIME_STEPS())
    assert time in times
    reader.UpdateTimeStep(time)
    found = vtk.vtkPolyData()
    found.DeepCopy(reader.GetOutputDataObject(0))
    return found


def array(data, name):
    return vtk_to_numpy(data.GetArray(name))


@pytest.mark.parametrize(("to", "ending"), [("vtkhdf", "vtkhdf"), ("vtp-series", "vtp.series")])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_points_are_the_bodies(run, tmp_path, to, ending, precision):
    out = tmp_path / f"bodies.{ending}"
    done = export(run, to, out, shapes="points", precision=precision)
    assert done.frames == len(run) and [p.name for p in done.paths] == [out.name, f"bodies.contacts.{ending}"]
    cast = np.float32 if precision == "single" else np.float64
    for i, time in enumerate(run.times):
        here = np.flatnonzero(run.present(i))
        found = read(out, time)
        assert vtk_to_numpy(found.GetPoints().GetData()).dtype == cast
        assert np.array_equal(vtk_to_numpy(found.GetPoints().GetData()), run.read("position", i)[here].astype(cast))
        assert found.GetNumberOfVerts() == len(here)
        data = found.GetPointData()
        assert np.array_equal(array(data, "body"), here)
        for name in ("orientation", "velocity", "angular_velocity"):
            assert np.array_equal(array(data, name), run.read(name, i)[here].astype(cast))
        contacts, wanted = read(done.paths[1], time), run.contacts(i)
        assert contacts.GetNumberOfVerts() == len(wanted["gap"]) == contacts.GetNumberOfPoints()
        if len(wanted["gap"]):
            assert np.array_equal(vtk_to_numpy(contacts.GetPoints().GetData()), wanted["point"].astype(cast))
            for name in ("force", "normal", "gap", "body_a", "body_b"):
                assert np.array_equal(array(contacts.GetPointData(), name), wanted[name].astype(cast))


@pytest.mark.parametrize(("to", "ending"), [("vtkhdf", "vtkhdf"), ("vtp-series", "vtp.series")])
def test_surfaces_are_the_shapes(run, tmp_path, to, ending):
    """Closed surfaces whose volumes and centres are those of the bodies, wherever they are."""
    out = tmp_path / f"all.{ending}"
    export(run, to, out, segments=32, precision="double")
    source = Source(run)
    for i in (0, 2, 4, 1):
        frame, found = source.frame(i), read(out, run.times[i])
        bodies = array(found.GetCellData(), "body")
        assert set(bodies) == set(np.flatnonzero(run.present(i))) - {len(run.model.body_kind) - 1}
        points = vtk_to_numpy(found.GetPoints().GetData())
        cells = vtk_to_numpy(found.GetPolys().GetConnectivityArray()).reshape(-1, 3)
        velocity = array(found.GetCellData(), "velocity")
        assert np.array_equal(velocity, frame.velocity[bodies])
        for body in np.flatnonzero((run.model.body_kind == 2) & run.present(i)):
            corner = points[cells[bodies == body]]
            volume = np.linalg.det(corner) / 6.0
            center = (volume[:, None] * corner.sum(axis=1) / 4.0).sum(axis=0) / volume.sum()
            wanted = source.frame(i).position[body] + rotation.rotate(
                frame.orientation[body], run.model.body_center[body]
            )
            assert volume.sum() > 0
            np.testing.assert_allclose(center, wanted, atol=2e-3)


def test_units_are_in_the_files(run, tmp_path):
    import h5py

    export(run, "vtkhdf", tmp_path / "a.vtkhdf")
    with h5py.File(tmp_path / "a.vtkhdf") as file:
        assert file["VTKHDF/CellData/velocity"].attrs["unit"] == "m/s" and file["VTKHDF/Points"].attrs["unit"] == "m"
    export(run, "vtp-series", tmp_path / "b.vtp.series")
    found = read(tmp_path / "b.contacts.vtp.series", run.times[1])
    assert found.GetPointData().GetArray("force").GetInformation().Get(vtk.vtkDataArray.UNITS_LABEL()) == "N"
