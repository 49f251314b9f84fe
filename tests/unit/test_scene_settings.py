"""Settings from outside a scene: parameters, paths, formulas and includes."""

import json

import numpy as np
import pytest

import tumble as tb
from tumble.cli import main
from tumble.errors import TumbleError
from tumble.scene.settings import parsed, steps_of

TOML = """
[parameters]
mu = 0.3
radius = {value = 0.1, unit = "m", low = 0.01, high = 1, about = "of the ball"}
height = "=4 * radius"
count = 2
what = "wood"
start = [0.0, 0.5]
[[material]]
name = "wood"
friction = "=mu"
[[material]]
name = "steel"
friction = 0.1
[[body]]
kind = "static"
shape = {type = "half_space"}
material = "steel"
[[body]]
name = "ball"
shape = {type = "sphere", radius = "=radius"}
density = 1000
position = ["=start[0]", "=start[1] + sqrt(4)", "=height"]
material = "=what"
[[spheres]]
name = "more"
radius = 0.05
density = 500
packing = {kind = "grid", shape = ["=count", 1, 1], spacing = 0.2, origin = [0, 0, 2]}
[step]
dt = 1e-3
"""
PYTHON = """
import tumble as tb
STEP = dict(dt=1e-3)
UNTIL = 1.0
def build(mu=0.3, radius=0.1, count=2, what="wood"):
    scene = tb.SceneBuilder()
    wood = scene.add_material(tb.Material(friction=mu, name=what))
    steel = scene.add_material(tb.Material(friction=0.1, name="steel"))
    scene.set_pair(wood, steel, friction=0.05)
    scene.add_spheres(radius, density=1000.0, position=tb.grid_points((count, 1, 1), 3 * radius), material=wood)
    return scene.build()
"""


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.toml").write_text(TOML)
    (tmp_path / "scene.py").write_text(PYTHON)
    return tmp_path


def load(path="scene.toml", **settings):
    return tb.load_scene(path, settings={k.replace("__", "."): v for k, v in settings.items()})


def friction(model, name):
    return next(m.friction for m in model.materials if m.name == name)


def test_values_of_texts():
    for text, value in (
        ("3", 3),
        ("-1.6", -1.6),
        ("1e-3", 1e-3),
        (".5", 0.5),
        ("true", True),
        ("[0, 0, 1]", [0, 0, 1]),
        ('"3"', "3"),
        ("coulomb", "coulomb"),
        ("a = b", "a = b"),
        ("1\nother = 2", "1\nother = 2"),
        ("2026-01-01", "2026-01-01"),
        ("{x = 1}", {"x": 1}),
        ("", ""),
    ):
        assert parsed(text) == value and type(parsed(text)) is type(value)


def test_paths():
    assert steps_of("gravity.2") == ("gravity", "2")
    assert steps_of("body[0].shape.radius") == ("body", "0", "shape", "radius")
    assert steps_of('material."a.b".friction') == ("material", "a.b", "friction")
    for wrong in ("", ".", "..", "a{b}x][", 'a."b'):
        with pytest.raises(TumbleError, match="must name a key"):
            steps_of(wrong)


def test_formulas_and_parameters_reach_the_model(scene):
    read = load()
    model = read.model
    assert read.parameters == {
        "mu": 0.3,
        "radius": 0.1,
        "height": 0.4,
        "count": 2,
        "what": "wood",
        "start": [0.0, 0.5],
    }
    ball = model.bodies("ball")[0]
    assert np.allclose(model.user_pose(model.initial)[0][ball], [0, 2.5, 0.4])
    assert friction(model, "wood") == 0.3 and len(model.bodies("more")) == 2
    other = load(mu=0.7, radius=0.2, count=5, what="steel")
    assert other.parameters["height"] == 0.8 and len(other.model.bodies("more")) == 5
    assert other.model.body_mass[ball] == pytest.approx(8 * model.body_mass[ball])
    names = [m.name for m in other.model.materials]
    assert names[other.model.shape_material[other.model.shape_body == ball][0]] == "steel"


def test_any_key_by_its_path(scene):
    read = load(
        **{
            "gravity.2": -1.6,
            "material.wood.friction": 0.9,
            "body.ball.position.2": 3.0,
            "body[1].velocity": [1.0, 0.0, 0.0],
            "spheres.more.packing.shape": [3, 3, 1],
            "step.law": "relaxed",
            "solver.tolerance": 1e-9,
            "run.until": 2.5,
        }
    )
    model, ball = read.model, read.model.bodies("ball")[0]
    assert np.array_equal(model.gravity, [0, 0, -1.6]) and friction(model, "wood") == 0.9
    assert np.allclose(model.user_pose(model.initial)[0][ball], [0, 2.5, 3.0])
    assert np.array_equal(model.initial.velocity[ball], [1, 0, 0]) and len(model.bodies("more")) == 9
    assert (read.step["law"], read.solver, read.until) == ("relaxed", {"tolerance": 1e-9}, 2.5)


def test_python_scenes_take_the_same(scene):
    plain, read = (
        load("scene.py"),
        load(
            "scene.py",
            **{
                "mu": 0.6,
                "count": 4.0,
                "gravity.2": -1.6,
                "material.steel.friction": 0.2,
                "step.dt": 1e-4,
                "run.until": 3,
                "solver.tolerance": 1e-8,
            },
        ),
    )
    assert plain.parameters == {"mu": 0.3, "radius": 0.1, "count": 2, "what": "wood"}
    assert read.parameters == {"mu": 0.6, "radius": 0.1, "count": 4, "what": "wood"}
    assert np.array_equal(read.model.gravity, [0, 0, -1.6]) and read.model.body_count == 4
    assert friction(read.model, "wood") == 0.6 and friction(read.model, "steel") == 0.2
    assert read.model.friction[0, 1] == 0.05  # of the pair
    assert read.model.friction[1, 1] == 0.2 and plain.model.friction[1, 1] == 0.1
    assert (read.step, read.until, read.solver) == ({"dt": 1e-4}, 3, {"tolerance": 1e-8})
    assert np.array_equal(load("scene.py", gravity=[1.0, 0.0, 0.0]).model.gravity, [1, 0, 0])
    assert np.array_equal(tb.SceneBuilder()._gravity, [0, 0, -9.81])  # nothing stays behind


@pytest.mark.parametrize("path", ["scene.toml", "scene.py"])
@pytest.mark.parametrize(
    "key, value, words",
    [
        ("muu", 0.3, ["muu", "Did you mean 'mu'?"]),
        ("mu", "rough", ["--set mu", "must be a number", "'rough'"]),
        ("mu", True, ["--set mu", "must be a number"]),
        ("mu", [1.0], ["--set mu", "must be a number"]),
        ("what", 3, ["--set what", "must be a text"]),
        ("material.stel.friction", 0.3, ["--set material.stel.friction", "Did you mean 'steel'?"]),
        ("material.steel.frction", 0.3, ["--set material.steel.frction", "friction"]),
        ("material.steel.friction", -0.3, ["Material.friction", "must be >= 0", "-0.3"]),
        ("gravity.3", 1.0, ["--set gravity.3"]),
        ("gravity.x", 1.0, ["--set gravity.x"]),
        ("gravity", "down", ["--set gravity", "'down'"]),
        ("step.dtt", 1e-3, ["--set step.dtt", "Did you mean 'dt'?"]),
        ("step.dt", -1.0, ["StepOptions.dt", "must be > 0", "-1.0"]),
        ("run.until", "soon", ["--set run.until", "'soon'"]),
        ("solver.tolerence", 1.0, ["--set solver.tolerence", "'tolerance'"]),
        ("nothing.like.it", 1.0, ["--set nothing.like.it", "unknown"]),
    ],
)
def test_mistakes_name_the_setting(scene, path, key, value, words):
    with pytest.raises(TumbleError) as caught:
        tb.load_scene(path, settings={key: value})
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "key, value, words",
    [
        ("radius", 5.0, ["--set radius", "must be <= 1 m", "5.0"]),
        ("body.ball.mas", 1.0, ["--set body.ball.mas", "Did you mean 'mass'?"]),
        ("body.bal.mass", 1.0, ["Did you mean 'ball'?"]),
        ("body.7.mass", 1.0, ["body has 2 entries", "(got 7)"]),
        ("body.ball.density.0", 1.0, ["single value"]),
        ("body.ball.velocity.0", 1.0, ["does not give body.1.velocity", "the whole"]),
        ("spheres.more.packing.kind", "gird", ["--set spheres.more.packing.kind", "Did you mean 'grid'?"]),
    ],
)
def test_mistakes_in_toml_settings(scene, key, value, words):
    with pytest.raises(TumbleError) as caught:
        tb.load_scene("scene.toml", settings={key: value})
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "text, words",
    [
        ("=muu", ["body[0].mass", "unknown parameter", "Did you mean 'mu'?"]),
        ("=mu +", ["body[0].mass", "must be a formula"]),
        ("=mu / 0", ["division"]),
        ("=__import__('os')", ["unknown function", "__import__"]),
        ("=mu.real", ["Attribute"]),
        ("=(1).__class__", ["Attribute"]),
        ("=[x for x in y]", ["ListComp"]),
        ("=word * 2", ["'word' must be a number"]),
        ("=word", ["body[0].mass", "number", "'heavy'"]),
        ("=vector[3]", ["has 3 entries"]),
        ("=vector[0.5]", ["has 3 entries"]),
        ("=10 ** 1000", ["must be a formula"]),
        ("=9 ** 9 ** 9 ** 9", ["must be a formula"]),
        ("=sqrt(-1)", ["must be a formula"]),
        ("=" + "(" * 300, ["must be a formula"]),
        ("=" + "1+" * 400 + "1", ["characters"]),
        ("=(-8) ** 0.5", ["body[0].mass"]),
    ],
)
def test_mistakes_in_formulas(scene, text, words):
    head = '[parameters]\nmu = 1.0\nword = "heavy"\nvector = [1, 2, 3]\n'
    (scene / "wrong.toml").write_text(f'{head}[[body]]\nmass = "{text}"\nshape = {{type = "sphere", radius = 1}}\n')
    with pytest.raises(TumbleError) as caught:
        tb.load_scene("wrong.toml")
    assert "\n" not in str(caught.value) and "wrong.toml" in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "text, words",
    [
        ("gravity = 3", ["gravity", "the name of a table"]),
        ("pi = 3", ["parameters.pi"]),
        ('"a b" = 3', ["parameters.a b"]),
        ('a = "=b"\nb = 1', ["parameters.a", "unknown parameter"]),
        ("a = {low = 1}", ["parameters.a.value", "required"]),
        ("a = {value = 1, hihg = 2}", ["parameters.a.hihg", "'high'"]),
        ("a = {value = 3, high = 2}", ["parameters.a", "must be <= 2"]),
    ],
)
def test_mistakes_in_declarations(scene, text, words):
    (scene / "wrong.toml").write_text(f'[parameters]\n{text}\n[[body]]\nmass=1\nshape={{type = "sphere", radius = 1}}')
    with pytest.raises(TumbleError) as caught:
        tb.load_scene("wrong.toml")
    for word in words:
        assert word in str(caught.value)


def test_python_parameters_without_a_default_are_asked_for(scene):
    (scene / "needs.py").write_text(PYTHON.replace("mu=0.3, ", "mu, "))
    with pytest.raises(TumbleError, match=r"needs mu .* --set mu="):
        tb.load_scene("needs.py")
    assert tb.load_scene("needs.py", settings={"mu": 0.2}).parameters["mu"] == 0.2


# ---------------------------------------------------------------------- includes


def test_includes(scene):
    (scene / "parts").mkdir()
    (scene / "parts" / "base.toml").write_text(
        'include = "deep.toml"\n[parameters]\nmu = 0.5\nsize = 1.0\n'
        '[[material]]\nname = "wood"\nfriction = "=mu"\nrestitution = 0.1\n'
        '[[body]]\nname = "rock"\nmass = 1\nshape = {type = "mesh", file = "rock.stl"}\n'
        '[step]\ndt = 1e-2\nlaw = "relaxed"\n'
    )
    (scene / "parts" / "deep.toml").write_text("gravity = [0, 0, -1]\n")
    cube = tb.Box((1, 1, 1))
    import trimesh

    trimesh.creation.box(extents=cube.size).export(scene / "parts" / "rock.stl")
    (scene / "main.toml").write_text(
        'include = ["parts/base.toml"]\n[parameters]\nmu = 0.7\n'
        '[[material]]\nname = "wood"\nrestitution = 0.2\n[[body]]\nmass = 2\nmaterial = "wood"\n'
        'shape = {type = "sphere", radius = "=size"}\nposition = [9, 0, 0]\n[step]\ndt = 1e-3\n'
    )
    read = tb.load_scene("main.toml", settings={"size": 2.0})
    wood = next(m for m in read.model.materials if m.name == "wood")
    assert (wood.friction, wood.restitution) == (0.7, 0.2)
    assert read.model.body_mass.tolist() == [1.0, 2.0] and read.model.gravity.tolist() == [0, 0, -1]
    assert read.step == {"dt": 1e-3, "law": "relaxed"} and read.model.shape_parameters[1, 3] == 2.0


def test_mistakes_in_included_files_name_those(scene):
    (scene / "base.toml").write_text("[[body]]\nmas = 1\n")
    ball = 'shape = {type = "sphere", radius = 1}'
    (scene / "main.toml").write_text(f'include = ["base.toml"]\n[[body]]\nmass = 1\n{ball}\n')
    with pytest.raises(TumbleError, match=r"^base.toml: body\[0\].mas: unknown key"):
        tb.load_scene("main.toml")
    (scene / "base.toml").write_text(f"[[body]]\nmass = 1\n{ball}\n")
    (scene / "main.toml").write_text(f'include = ["base.toml"]\n[[body]]\nmass = -1\n{ball}\n')
    with pytest.raises(TumbleError, match=r"^main.toml: body\[0\]: add_body.mass"):
        tb.load_scene("main.toml")
    for text, words in (
        ('include = "main.toml"', "must not include itself"),
        ('include = "none.toml"', "none.toml: must be a readable"),
        ('include = "scene.py"', "must be a .toml file"),
        ("include = 3", "must be names of files"),
    ):
        (scene / "main.toml").write_text(text)
        with pytest.raises(TumbleError, match=words):
            tb.load_scene("main.toml")


# ---------------------------------------------------------------------- commands


def command(capsys, *arguments):
    code = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_check(scene, capsys):
    code, out, _ = command(capsys, "check", "scene.toml", "--json", "--set", "height=0.05", "--threads", 1)
    facts = json.loads(out)
    assert code == 0 and facts["parameters"]["height"] == 0.05 and facts["bodies"]["dynamic"] == 3
    assert facts["contacts"] == facts["overlapping"] == 1 and facts["overlaps"][0]["b"] == "ball"
    assert facts["overlaps"][0]["depth"] == pytest.approx(0.05) and facts["overlaps"][0]["part"] == pytest.approx(0.5)
    assert any("overlapping" in w for w in facts["warnings"]) and any("no until" in w for w in facts["warnings"])
    code, out, _ = command(capsys, "check", "scene.toml", "--set", "run.until=1", "--threads", 1)
    assert code == 0 and "nothing to warn about" in out and "parameters.mu" in out
    code, out, _ = command(capsys, "check", "scene.py", "--set", "radius=0.2", "--threads", 1)
    assert code == 0 and "parameters.radius" in out
    code, out, err = command(capsys, "check", "scene.toml", "--set", "mus=1")
    assert (code, out) == (2, "") and "Did you mean 'mu'?" in err and err.count("\n") == 1
    code, _, err = command(capsys, "check", "scene.toml", "--set", "mu=1", "--set", "mu=2")
    assert code == 2 and "given twice" in err


def test_run_takes_settings_and_refuses_others_on_resume(scene, capsys):
    run = ("run", "scene.toml", "--until", "0.02", "--quiet", "--threads", 1)
    assert command(capsys, *run, "--set", "gravity.2=0", "--set", "mu=0.4")[0] == 0
    with tb.Trajectory("scene.h5") as result:
        assert np.allclose(result.read("position", -1)[1], [0, 2.5, 0.4])
    code, _, err = command(capsys, *run, "--set", "gravity.2=0", "--set", "mu=0.5", "--resume")
    assert code == 2 and "friction" in err
