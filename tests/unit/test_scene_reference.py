"""The reference of scene files and the JSON schema say what the models take."""

import json
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from tumble.cli import main
from tumble.described import describe_fields, field_docs
from tumble.options import Save, StepOptions
from tumble.scene.materials import Material
from tumble.scene.reference import _words, json_schema, reference, sections
from tumble.worked import every_example

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scene_reference.md"
SCENES = [e.path for e in every_example() if e.path.suffix == ".toml"]


def test_the_page_is_up_to_date():
    """If not: tumble schema --markdown > docs/scene_reference.md"""
    assert PAGE.read_text(encoding="utf-8") == reference()


def test_every_key_has_words():
    silent = {"name", "kind", "type", "precision", "max_iterations", "length", "radius"}
    tables = list(sections())
    assert len(tables) >= 45 and len({name for _, name, _ in tables}) == len(tables)
    for _, name, model in tables:
        for key in model.model_fields:
            unit, allowed, words = _words(name, key)
            assert words or unit or allowed or key in silent, (name, key)


def test_fields_are_described_where_they_are():
    for kind in (Material, StepOptions, Save):
        told = field_docs(kind)
        assert set(told) == {f.name for f in fields(kind)}, kind
    assert field_docs(StepOptions)["dt"] == "Time step h [s]."


def test_help_shows_every_field():
    import tumble as tb

    for kind in (tb.Material, tb.StepOptions, tb.Save, tb.SolverAPGD, tb.RunResult, tb.StepReport, tb.Oscillation):
        for f in fields(kind):
            assert f"    {f.name}: " in kind.__doc__, (kind, f.name)
    assert "Time step h [s]." in tb.StepOptions.__doc__ and "= 0.5" in tb.Material.__doc__
    assert tb.Material.__doc__.count("Fields:") == 1 and callable(describe_fields)


@pytest.mark.parametrize("path", SCENES, ids=lambda p: p.name)
def test_the_json_schema_takes_the_examples(path):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: the schema is not tried")
    jsonschema.Draft7Validator(json_schema()).validate(tomllib.loads(path.read_text()))


def test_the_json_schema_refuses_mistakes():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: the schema is not tried")
    check = jsonschema.Draft7Validator(json_schema()).is_valid
    ball = {"shape": {"type": "sphere", "radius": "=r"}, "mass": 1.0}
    assert check({"body": [ball], "parameters": {"r": 0.1}, "spheres": [{"position": {"array": "a.npy"}}]})
    for wrong in (
        {"bodies_": []},
        {"body": [ball | {"masss": 1}]},
        {"body": [ball | {"mass": "heavy"}]},
        {"body": [{"shape": {"type": "spheer", "radius": 1}}]},
        {"body": [{"shape": {"type": "sphere"}}]},
        {"gravity": [0, 0]},
        {"step": {"law": "none"}},
    ):
        assert not check(wrong), wrong


def test_the_command(capsys):
    assert main(["schema"]) == 0
    found = json.loads(capsys.readouterr().out)
    mass = found["$defs"]["Body"]["properties"]["mass"]
    assert found["properties"]["gravity"] and mass["description"].endswith("(> 0)")
    assert found["$defs"]["Material"]["properties"]["friction"]["default"] == 0.5
    assert main(["schema", "--markdown"]) == 0
    assert capsys.readouterr().out == reference()
