"""CSV, Parquet and data frames hold the run's own numbers, bit for bit in double precision."""

import csv
import sys

import numpy as np
import pytest

import tumble as tb
from tumble.errors import OptionsError
from tumble.export import export

COLUMNS = {"position": "xyz", "orientation": ("qw", "qx", "qy", "qz")}
COLUMNS |= {"velocity": ("vx", "vy", "vz"), "angular_velocity": ("wx", "wy", "wz")}


def bodies(run, field):
    """What the table of bodies must say about a field, frame after frame of those present."""
    return np.concatenate([run.read(field, i)[run.present(i)] for i in range(len(run))])


def columns_of(path):
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    return dict(zip(head, zip(*rows))), len(rows)


def test_csv_reads_back_to_the_same_bits(run, tmp_path):
    done = export(run, "csv", tmp_path / "a.csv")
    assert [p.name for p in done.paths] == ["a.csv", "a.contacts.csv", "a.joints.csv", "a.steps.csv"]
    found, count = columns_of(done.paths[0])
    assert count == sum(int(run.present(i).sum()) for i in range(len(run)))
    units = {"position": "m", "orientation": None, "velocity": "m/s", "angular_velocity": "rad/s"}
    for field, names in COLUMNS.items():
        heads = [name if units[field] is None else f"{name} [{units[field]}]" for name in names]
        assert np.array_equal(np.array([found[h] for h in heads], float).T, bodies(run, field))
    assert found["name"][1] == "hill" and "rain[0]" in found["name"] and {*found["frame"]} == set("01234")
    contacts, _ = columns_of(done.paths[1])
    force = np.concatenate([run.contacts(i)["force"] for i in range(len(run))])
    assert np.array_equal(np.array([contacts[f"force_{x} [N]"] for x in "xyz"], float).T, force)
    steps, _ = columns_of(done.paths[3])
    assert np.array_equal(np.array(steps["kinetic_energy [J]"], float), run.reports["kinetic_energy"])
    joints, _ = columns_of(done.paths[2])
    assert joints["name"] == ("hook",) * len(run) and joints["joint_force_x [N]"] == ("0.5",) * len(run)


def test_single_precision_is_the_nearest_and_every_skips(run, tmp_path):
    export(run, "csv", tmp_path / "b.csv", precision="single", every=2)
    found, _ = columns_of(tmp_path / "b.csv")
    wanted = np.concatenate([run.read("position", i)[run.present(i)] for i in (0, 2, 4)]).astype(np.float32)
    assert np.array_equal(np.array([found[f"{x} [m]"] for x in "xyz"], np.float32).T, wanted)
    assert {*found["frame"]} == set("024")


def test_parquet_is_the_same_table(run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: Parquet is not read back")
    done = export(run, "parquet", tmp_path / "a.parquet")
    table = parquet.read_table(done.paths[0])
    for field, names in COLUMNS.items():
        assert np.array_equal(np.stack([table[n].to_numpy() for n in names], axis=1), bodies(run, field))
    assert table.schema.field("vx").metadata == {b"unit": b"m/s"}
    contacts = parquet.read_table(done.paths[1])
    assert np.array_equal(contacts["gap"], np.concatenate([run.contacts(i)["gap"] for i in range(len(run))]))
    assert parquet.read_table(done.paths[2])["name"].to_pylist() == ["hook"] * len(run)


@pytest.mark.filterwarnings("ignore:.*float_precision")
def test_data_frames(run, tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: data frames are not made")
    found = run.to_dataframe()
    assert np.array_equal(found[["x", "y", "z"]], bodies(run, "position")) and found.attrs["units"]["vx"] == "m/s"
    assert found.name.dtype == "category" and list(found.time.unique()) == run.times.tolist()
    assert np.array_equal(run.to_dataframe("steps").kinetic_energy, run.reports["kinetic_energy"])
    assert len(run.to_dataframe("contacts")) == sum(len(run.contacts(i)["gap"]) for i in range(len(run)))
    assert run.to_dataframe("joints").joint_value.tolist() == [0.25] * len(run)
    export(run, "csv", tmp_path / "a.csv")
    read = pandas.read_csv(tmp_path / "a.csv", float_precision="round_trip")
    assert np.array_equal(read["x [m]"], found.x)
    with pytest.raises(OptionsError, match="Did you mean 'contacts'"):
        run.to_dataframe("contact")


def test_xarray(run, tmp_path):
    pytest.importorskip("xarray", reason="xarray is not installed: its datasets are not looked at")
    found = run.to_xarray()
    assert found.time.values.tolist() == run.times.tolist() and found.time.attrs["units"] == "s"
    for i in range(len(run)):
        there = run.present(i)
        assert np.array_equal(found.orientation.isel(time=i)[there], run.read("orientation", i)[there])
        assert np.isnan(found.velocity.isel(time=i)[~there]).all()
    assert not found.present.all() and found.velocity.attrs["units"] == "m/s"
    heights = found.position.sel(axis="z").where(found.name == "sphere0", drop=True)
    assert np.array_equal(heights[:, 0], [run.read("position", i)[3, 2] for i in range(len(run))])
    assert found.joint_force.sel(joint="hook", axis="x").values.tolist() == [0.5] * len(run)
    assert np.array_equal(found.kinetic_energy, run.reports["kinetic_energy"])
    assert found.kinetic_energy.attrs["units"] == "J" and found.sizes["step"] == len(run.reports["time"])
    with run.__class__(run.path) as again:  # the caller may change what it got
        assert np.array_equal(again.array("position"), run.array("position"))


def test_xarray_that_is_missing_is_named(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(OptionsError, match=r"needs the package xarray .*pip install 'tumble\[xarray\]'"):
        run.to_xarray()


def test_xarray_of_some_bodies(tmp_path):
    pytest.importorskip("xarray", reason="xarray is not installed: its datasets are not looked at")
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), name="floor")
    scene.add_spheres(0.1, mass=1.0, position=[(0, 0, 1), (1, 0, 1), (2, 0, 1)], name="balls")
    save = tb.Save(path=tmp_path / "run.h5", every=2, bodies=(2, 3), fields=("position",))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=0.01), threads=1)
    sim.run(until=0.06, save=save, progress=False)
    with tb.Trajectory(save.path) as run:
        found = run.to_xarray()
    assert found.body.values.tolist() == [2, 3] and found.sizes["time"] == 4 and "velocity" not in found
    assert found.position.isel(time=-1).values.tolist() == sim.positions()[2:].tolist()
    assert found.step.values.tolist() == [1, 2, 3, 4, 5, 6]
