"""Every public constructor refuses nonsense, and says where, which rule, which value, and what to do."""

import re

import numpy as np
import pytest

import tumble as tb
from tumble.errors import FileError, OptionsError, ProblemError, SceneError, TumbleError, TumbleWarning

NAN, INF = float("nan"), float("inf")
FORM = re.compile(r"[^\n]+: [^\n]+ \(got [^\n]*\)\. [^\n]+[.?]")


def builder():
    scene = tb.SceneBuilder()
    scene.add_material(tb.Material(friction=0.3, name="steel"))
    scene.add_static(tb.HalfSpace(), material="steel", name="floor")
    return scene


def ball(**options):
    return builder().add_body(tb.Sphere(0.1), **({"mass": 1.0} | options))


def balls(**options):
    return builder().add_spheres(
        options.pop("radius", 0.1), **({"mass": 1.0, "position": [[0, 0, 1], [0, 0, 2]]} | options)
    )


def boxes(**options):
    size = options.pop("size", (0.1, 0.1, 0.1))
    return builder().add_boxes(size, **({"mass": 1.0, "position": [[0, 0, 1], [0, 0, 2]]} | options))


def mover(**options):
    return builder().add_kinematic(tb.Box((1, 1, 1)), **options)


def simulation(**options):
    scene = builder()
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 1))
    return tb.Simulation(scene.build(), **({"options": tb.StepOptions(dt=1e-3)} | options))


def state_with(**fields):
    sim = simulation()
    state = sim.get_state()
    for name, value in fields.items():
        setattr(state, name, value)
    sim.set_state(state)


def random_points(**options):
    return tb.random_points(**(dict(count=3, radius=0.1, low=(0, 0, 0), high=(1, 1, 1)) | options))


def problem(**options):
    given = dict(matrix=np.eye(3), bias=[-1.0, 0, 0], friction=[0.3]) | options
    return tb.ConeProblem.from_matrix(given.pop("matrix"), given.pop("bias"), given.pop("friction"), **given)


def motion(time):
    return (0, 0, 0)


NUMBERS = (NAN, INF, -INF, "1", None, True, [1.0], 1j)
NOT_VECTORS = (
    (1, 2),
    (1, 2, 3, 4),
    1.0,
    "abc",
    None,
    (NAN, 0, 0),
    (0, INF, 0),
    [[1, 2, 3], [4]],
    (1, "x", 2),
    (1j, 0, 0),
    ("1", "2", "3"),
    (True, False, True),
)
NOT_TURNS = ((0, 0, 0, 0), (2, 0, 0, 0), (1 + 2e-6, 0, 0, 0), (1, 0, 0), (NAN, 0, 0, 0), "no")
NOT_COUNTS = (0, -1, 1.5, "3", True, NAN)


def turned(value):
    """A motor whose function returns this."""
    scene = tb.SceneBuilder()
    scene.add_body(tb.Sphere(0.1), mass=1.0, name="a")
    scene.add_joint("revolute", None, "a", anchor=(0, 0, 0), axis=(0, 1, 0), name="hinge")
    scene.add_motor("hinge", "speed", target=lambda t: value, maximum=1.0)
    tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3)).step()


def table():
    """(name, call, error, words that the message must hold)"""

    def rows(name, make, values, error, *words):
        for value in values:
            yield f"{name}={value!r}"[:70], (lambda value=value: make(value)), error, words

    S, O, P = SceneError, OptionsError, ProblemError
    bad_size = (*NUMBERS, 0, -0.1)
    # shapes, materials, motions
    yield from rows("Sphere", tb.Sphere, bad_size, S, "Sphere.radius")
    yield from rows("Box", tb.Box, (*NOT_VECTORS, (0, 1, 1), (1, -1, 1)), S, "Box.size")
    yield from rows("HalfSpace.normal", tb.HalfSpace, (*NOT_VECTORS, (0, 0, 0)), S, "HalfSpace.normal")
    yield from rows("HalfSpace.offset", lambda v: tb.HalfSpace(offset=v), NUMBERS, S, "HalfSpace.offset")
    yield from rows(
        "Placed.shape", tb.Placed, (1, None, "sphere", tb.Sphere), S, "Placed.shape", "Sphere, Box, ConvexHull"
    )
    yield from rows("Placed.position", lambda v: tb.Placed(tb.Sphere(1), v), NOT_VECTORS, S, "Placed.position")
    yield from rows(
        "Placed.orientation", lambda v: tb.Placed(tb.Sphere(1), orientation=v), NOT_TURNS, S, "Placed.orientation"
    )
    yield from rows("open_box.inner", lambda v: tb.open_box(inner=v), (*NOT_VECTORS, (1, 1, 0)), S, "open_box.inner")
    yield from rows(
        "open_box.thickness",
        lambda v: tb.open_box(inner=(1, 1, 1), thickness=v),
        [v for v in bad_size if v is not None],
        S,
        "open_box.thickness",
    )
    yield from rows(
        "open_box.center", lambda v: tb.open_box(inner=(1, 1, 1), center=v), NOT_VECTORS, S, "open_box.center"
    )
    yield from rows("Material.friction", lambda v: tb.Material(friction=v), (*NUMBERS, -0.1), S, "Material.friction")
    yield from rows("Material.name", lambda v: tb.Material(name=v), ("", 3), S, "Material.name")
    swing = dict(amplitude=(0, 0, 1), period=1.0)
    yield from rows(
        "Oscillation.amplitude",
        lambda v: tb.Oscillation(**swing | {"amplitude": v}),
        NOT_VECTORS,
        S,
        "Oscillation.amplitude",
    )
    yield from rows(
        "Oscillation.period", lambda v: tb.Oscillation(**swing | {"period": v}), bad_size, S, "Oscillation.period"
    )
    yield from rows("Oscillation.start", lambda v: tb.Oscillation(**swing, start=v), NUMBERS, S, "Oscillation.start")
    yield from rows(
        "Oscillation.position", lambda v: tb.Oscillation(**swing, position=v), NOT_VECTORS, S, "Oscillation.position"
    )
    yield from rows(
        "Oscillation.orientation",
        lambda v: tb.Oscillation(**swing, orientation=v),
        NOT_TURNS,
        S,
        "Oscillation.orientation",
    )
    # packings
    for name, make in (("grid_points", tb.grid_points), ("lattice_points", tb.lattice_points)):
        yield from rows(
            name + ".shape",
            lambda v, make=make: make(v, 1.0),
            ((1, 2), 3, (1, 1, 0), (1, 1, 1.5), (1, -1, 1), "abc", None),
            S,
            name + ".shape",
        )
        size = "spacing" if name == "grid_points" else "diameter"
        yield from rows(f"{name}.{size}", lambda v, make=make: make((1, 1, 1), v), bad_size, S, f"{name}.{size}")
        yield from rows(
            name + ".origin", lambda v, make=make: make((1, 1, 1), 1.0, origin=v), NOT_VECTORS, S, name + ".origin"
        )
        yield from rows(
            name + ".jitter", lambda v, make=make: make((1, 1, 1), 1.0, jitter=v), (*NUMBERS, -1), S, name + ".jitter"
        )
        yield from rows(
            name + ".seed",
            lambda v, make=make: make((1, 1, 1), 1.0, jitter=0.1, seed=v),
            (-1, 1.5, "1", None),
            S,
            name + ".seed",
        )
    yield from rows(
        "grid_points.spacing",
        lambda v: tb.grid_points((1, 1, 1), v),
        ((1, 2), (1, 1, -1), (1, 1, NAN)),
        S,
        "grid_points.spacing",
    )
    yield from rows("random_points.count", lambda v: random_points(count=v), NOT_COUNTS, S, "random_points.count")
    yield from rows(
        "random_points.radius",
        lambda v: random_points(radius=v),
        (NAN, INF, 0, -1, "1", None, [0.1, 0.1], [0.1, 0.1, -1]),
        S,
        "random_points.radius",
    )
    yield from rows("random_points.low", lambda v: random_points(low=v), NOT_VECTORS, S, "random_points.low")
    yield from rows("random_points.high", lambda v: random_points(high=v), NOT_VECTORS, S, "random_points.high")
    yield from rows(
        "random_points.high", lambda v: random_points(high=v), ((0.1, 1, 1), (-1, -1, -1)), S, "box must hold"
    )
    yield from rows(
        "random_points.seed", lambda v: random_points(seed=v), (-1, 1.5, "1", None), S, "random_points.seed"
    )
    yield from rows("random_points.tries", lambda v: random_points(tries=v), NOT_COUNTS, S, "random_points.tries")
    yield "random_points full", lambda: random_points(count=100, radius=0.2), S, ("found room for", "of 100")
    # builder
    yield from rows("gravity", lambda v: tb.SceneBuilder(gravity=v), NOT_VECTORS, S, "SceneBuilder.gravity")
    yield from rows(
        "add_material", lambda v: builder().add_material(v), ("steel", None, 0.3), S, "add_material", "Material"
    )
    yield "two materials", lambda: builder().add_material(tb.Material(name="steel")), S, ("'steel'", "unique")
    yield (
        "set_pair name",
        lambda: builder().set_pair("steel", "stel", friction=0.1),
        S,
        ("'stel'", "Did you mean 'steel'?"),
    )
    yield from rows(
        "set_pair", lambda v: builder().set_pair("steel", "steel", friction=v), (*NUMBERS, -0.1), S, "set_pair"
    )
    yield from rows(
        "set_pair material",
        lambda v: builder().set_pair("steel", v, friction=0.1),
        (None, 3, ["steel"]),
        S,
        "set_pair.material",
    )
    for kind, make in (
        ("add_body", ball),
        ("add_kinematic", mover),
        ("add_static", lambda **o: builder().add_static(tb.Sphere(1), **o)),
    ):
        yield from rows(kind + ".position", lambda v, make=make: make(position=v), NOT_VECTORS, S, kind, ".position")
        yield from rows(
            kind + ".orientation", lambda v, make=make: make(orientation=v), NOT_TURNS, S, kind, ".orientation"
        )
        yield from rows(
            kind + ".material", lambda v, make=make: make(material=v), ("stel",), S, kind, "Did you mean 'steel'?"
        )
        yield from rows(
            kind + ".material", lambda v, make=make: make(material=v), (3, [3], ["steel", "steel"]), S, kind, "material"
        )
        yield from rows(kind + ".name", lambda v, make=make: make(name=v), ("", 3, "a[1]", "floor"), S, kind, "name")
        yield from rows(
            kind + ".group", lambda v, make=make: make(group=v), (-1, 1.5, "1", None, 2**32), S, kind + ".group"
        )
        yield from rows(
            kind + ".mask", lambda v, make=make: make(mask=v), (-1, 1.5, "1", None, 2**32), S, kind + ".mask"
        )
    for method in ("add_body", "add_static", "add_kinematic"):
        extra = {"mass": 1.0} if method == "add_body" else {}
        yield from rows(
            method + ".shapes",
            lambda v, m=method, e=extra: getattr(builder(), m)(v, **e),
            (None, 3, "sphere", [], [tb.Sphere(1), 3], tb.Sphere),
            S,
            "Sphere",
        )
    for kind, make in (("add_body", ball), ("add_kinematic", mover), ("add_spheres", balls), ("add_boxes", boxes)):
        yield from rows(kind + ".velocity", lambda v, make=make: make(velocity=v), NOT_VECTORS, S, kind + ".velocity")
        yield from rows(
            kind + ".angular_velocity",
            lambda v, make=make: make(angular_velocity=v),
            NOT_VECTORS,
            S,
            kind + ".angular_velocity",
        )
    for kind, make in (("add_body", ball), ("add_spheres", balls), ("add_boxes", boxes)):
        yield from rows(
            kind + ".mass",
            lambda v, make=make: make(mass=v),
            (NAN, INF, "1", 0, -1, [1.0, 2.0, 3.0]),
            S,
            kind + ".mass",
        )
        yield from rows(
            kind + ".density",
            lambda v, make=make: make(mass=None, density=v),
            (NAN, INF, "1", 0, -1),
            S,
            kind + ".density",
        )
        yield from rows(kind + " both", lambda v, make=make: make(density=v), (1.0,), S, kind, "either mass or density")
        yield from rows(
            kind + " neither", lambda v, make=make: make(mass=v), (None,), S, kind, "either mass or density"
        )
        yield from rows(kind + ".force", lambda v, make=make: make(force=v), NOT_VECTORS, S, kind + ".force")
        yield from rows(
            kind + ".locked", lambda v, make=make: make(locked=v), (["q"], "x q", [3]), S, kind + ".locked", "rx"
        )
        yield from rows(kind + ".locked", lambda v, make=make: make(locked=v), (3, None, True), S, kind + ".locked")
    for kind, make in (("add_spheres", balls), ("add_boxes", boxes)):
        yield from rows(
            kind + ".position",
            lambda v, make=make: make(position=v),
            ((0, 0, 0), [[0, 0]], [], "no", [[0, 0, NAN]], np.zeros((0, 3)), 1.0),
            S,
            kind + ".position",
        )
        yield from rows(kind + ".name", lambda v, make=make: make(name=v), ("", 3, "a[1]", "floor"), S, kind, "name")
        yield from rows(
            kind + ".material", lambda v, make=make: make(material=v), ("stel",), S, kind, "Did you mean 'steel'?"
        )
        yield from rows(kind + ".material", lambda v, make=make: make(material=v), (3,), S, kind, "material")
        yield from rows(
            kind + ".mass", lambda v, make=make: make(mass=v), ([1.0, 0.0], [1.0], [1.0, NAN]), S, kind + ".mass"
        )
    yield from rows(
        "add_spheres.radius",
        lambda v: balls(radius=v),
        (0, -1, NAN, INF, "1", None, [1.0], [1.0, -1.0]),
        S,
        "add_spheres.radius",
    )
    yield from rows(
        "add_boxes.size", lambda v: boxes(size=v), (*NOT_VECTORS, (1, 1, 0), (1, -1, 1)), S, "add_boxes.size"
    )
    yield from rows(
        "add_boxes.orientation",
        lambda v: boxes(orientation=v),
        (*NOT_TURNS, [(1, 0, 0, 0)]),
        S,
        "add_boxes.orientation",
    )
    yield from rows("add_body.torque", lambda v: ball(torque=v), NOT_VECTORS, S, "add_body.torque")
    yield from rows(
        "add_body.inertia",
        lambda v: ball(inertia=v),
        (
            0,
            "no",
            (1, 2),
            (1, 1, 0),
            (1, 1, -1),
            (1, 1, 3),
            (NAN, 1, 1),
            np.zeros((3, 3)),
            np.eye(2),
            [[1, 5, 0], [0, 1, 0], [0, 0, 1]],
        ),
        S,
        "add_body.inertia",
    )
    yield "inertia with density", lambda: ball(mass=None, density=1.0, inertia=(1, 1, 1)), S, ("inertia needs mass",)
    yield "half-space with mass", lambda: builder().add_body(tb.HalfSpace(), mass=1.0), S, ("HalfSpace", "add_static")
    yield from rows(
        "motion",
        lambda v: mover(motion=v),
        (
            3,
            "up",
            (0, 0, 1),
            motion,
            lambda t: None,
            lambda t: ((0, 0, NAN), (1, 0, 0, 0)),
            lambda t: ((0, 0, 0), (2, 0, 0, 0)),
        ),
        S,
        "add_kinematic.motion",
    )
    yield from rows(
        "motion, velocity", lambda v: mover(motion=tb.Oscillation(**swing), velocity=v), NOT_VECTORS, S, "velocity"
    )
    yield "motion and velocity", lambda: mover(motion=tb.Oscillation(**swing), velocity=(1, 0, 0)), S, ("not both",)
    yield "exclude name", lambda: builder().exclude_pair("floor", "flor"), S, ("'flor'", "Did you mean 'floor'?")
    yield from rows(
        "exclude_pair", lambda v: builder().exclude_pair("floor", v), (-1, 1, 1.5, None, True), S, "exclude_pair"
    )
    yield from rows("add_force", lambda v: builder().add_force(v), (None, (0, 0, 1)), S, "add_force")
    yield "empty scene", lambda: tb.SceneBuilder().build(), S, ("at least one body", "add_body")
    yield "Model.bodies", lambda: builder().build().bodies("flor"), S, ("'flor'", "Did you mean 'floor'?")
    yield "Model.name", lambda: builder().build().name(7), S, ("Model.name", "7")
    # options
    step = dict(dt=1e-3)
    yield from rows("StepOptions.dt", lambda v: tb.StepOptions(dt=v), bad_size, O, "StepOptions.dt", "s")
    yield from rows(
        "StepOptions.law", lambda v: tb.StepOptions(**step, law=v), ("columb",), O, "Did you mean 'coulomb'?"
    )
    yield from rows(
        "StepOptions.law", lambda v: tb.StepOptions(**step, law=v), (None, 3, ["coulomb"]), O, "StepOptions.law"
    )
    for field in ("margin", "recovery_speed"):
        yield from rows(
            "StepOptions." + field,
            lambda v, f=field: tb.StepOptions(**step, **{f: v}),
            (NAN, INF, -1, "1", True),
            O,
            "StepOptions." + field,
        )
    yield from rows(
        "StepOptions.warm_start", lambda v: tb.StepOptions(**step, warm_start=v), (1, "yes", None), O, "warm_start"
    )
    yield from rows(
        "StepOptions.speed_limit", lambda v: tb.StepOptions(**step, speed_limit=v), bad_size, O, "speed_limit"
    )
    yield from rows("Save.path", lambda v: tb.Save(path=v), ("", None, 3), O, "Save.path")
    yield from rows("Save.every", lambda v: tb.Save(path="a", every=v), NOT_COUNTS, O, "Save.every")
    yield from rows(
        "Save.frames_per_checkpoint",
        lambda v: tb.Save(path="a", frames_per_checkpoint=v),
        NOT_COUNTS,
        O,
        "frames_per_checkpoint",
    )
    yield from rows(
        "Save.fields", lambda v: tb.Save(path="a", fields=v), (("positon",),), O, "Did you mean 'position'?"
    )
    yield from rows("Save.fields", lambda v: tb.Save(path="a", fields=v), ("position", (3,)), O, "Save.fields")
    # solvers
    for name, kind in tb.solvers.SOLVERS.items():
        label = kind.__name__
        known = kind.__dataclass_fields__
        bad = {
            "tolerance": (NAN, INF, -1, "1", True),
            "max_iterations": (0, -1, 1.5, "3", True, NAN),
            "stop": ("natural", 7),
            "scaling": ("scaler", None),
            "check_every": NOT_COUNTS,
            "damping": (0, -1, NAN, "1"),
            "record": (1, "yes"),
            "growth": (0, 1.5, NAN),
            "omega": (0, 2.5, NAN),
        }
        for field, values in bad.items():
            if field in known:
                yield from rows(
                    f"{label}.{field}", lambda v, k=kind, f=field: k(**{f: v}), values, O, f"{label}.{field}"
                )
        yield (
            f"make_solver {name}",
            lambda n=name: tb.solvers.make_solver(n, tolerence=1),
            O,
            ("Did you mean 'tolerance'?",),
        )
    yield "make_solver name", lambda: tb.solvers.make_solver("apdg"), O, ("'apdg'", "Did you mean 'apgd'?")
    yield "solve law", lambda: tb.SolverAPGD().solve(problem(), law="columb"), O, ("Did you mean 'coulomb'?",)
    # simulation
    yield (
        "Simulation(builder)",
        lambda: tb.Simulation(builder(), options=tb.StepOptions(dt=1)),
        O,
        ("Simulation.model", "build()"),
    )
    yield from rows(
        "Simulation.options", lambda v: simulation(options=v), (1e-3, None, {"dt": 1}), O, "Simulation.options"
    )
    yield from rows("Simulation.solver", lambda v: simulation(solver=v), ("apgd", 3), O, "Simulation.solver")
    yield from rows(
        "Simulation.threads", lambda v: simulation(threads=v), (*NOT_COUNTS, 10**6), O, "Simulation.threads"
    )
    yield from rows(
        "run.until", lambda v: simulation().run(until=v), (NAN, INF, -1, "1", None), O, "Simulation.run.until"
    )
    yield from rows("run.save", lambda v: simulation().run(until=1, save=v), ("run.h5", 3), O, "Simulation.run.save")
    yield from rows("run.strict", lambda v: simulation().run(until=1, strict=v), (1, "yes"), O, "Simulation.run.strict")
    yield "run.resume", lambda: simulation().run(until=1, resume=True), O, ("needs save",)
    yield (
        "ragged grid",
        lambda: tb.grid_points([[1.0, 2.0], [3.0]], 0.1),
        SceneError,
        ("grid_points.shape", "3 entries"),
    )
    yield from rows("motor target", turned, (None, "x", [1.0, 2.0]), SceneError, "its target must be a number")
    yield from rows("run.stop", lambda v: simulation().run(until=1, stop=v), (3, "now"), O, "Simulation.run.stop")
    yield from rows(
        "run.dump_problems", lambda v: simulation().run(until=1, dump_problems=v), (3, 1.5, ["x"]), O, "dump_problems"
    )
    yield from rows("Trajectory", tb.Trajectory, (5, None, "", b"x"), FileError, "Trajectory.path: must be a file name")
    yield from rows("Save.fields", lambda v: tb.Save(path="a.h5", fields=v), (1.0, "position", {3}), O, "Save.fields")
    for field in ("position", "velocity", "angular_velocity"):
        yield from rows(
            "set_state." + field,
            lambda v, f=field: simulation().set_state(**{f: v}),
            (np.zeros((1, 3)), np.full((2, 3), NAN), "no", 1.0, np.zeros((2, 4))),
            O,
            "set_state." + field,
        )
    yield from rows(
        "set_state.orientation",
        lambda v: simulation().set_state(orientation=v),
        (np.zeros((2, 4)), 2 * np.eye(2, 4), np.zeros((2, 3)), np.full((2, 4), NAN)),
        O,
        "set_state.orientation",
    )
    yield from rows(
        "set_state.state", lambda v: state_with(velocity=v), (np.full((2, 3), NAN), np.zeros((3, 3))), O, "velocity"
    )
    yield from rows("load_checkpoint", lambda v: simulation().load_checkpoint(v), ("none.h5",), FileError, "none.h5")
    yield "contact_forces", lambda: simulation().contact_forces(), O, ("needs a step first",)
    # problems
    yield from rows(
        "from_matrix.matrix",
        lambda v: problem(matrix=v),
        ([1, 2, 3], np.eye(2), np.ones((3, 6)), np.full((3, 3), NAN), np.arange(9.0).reshape(3, 3)),
        P,
        "matrix",
    )
    yield from rows(
        "from_matrix.bias", lambda v: problem(bias=v), ([1, 2], [NAN, 0, 0], "no", 1.0), P, "ConeProblem.bias"
    )
    yield from rows(
        "from_matrix.friction",
        lambda v: problem(friction=v),
        ([-0.1], [NAN], [1, 2], 0.3, "no"),
        P,
        "ConeProblem.friction",
    )
    yield from rows("from_matrix.dim", lambda v: problem(dim=v), (1, 4, 0, "3", None), P, "dim")


CASES = list(table())


# Addresses of functions differ from process to process, and names must not.
NAMES = [re.sub(r" at 0x[0-9a-f]+", "", c[0]) for c in CASES]


@pytest.mark.parametrize("call, error, words", [c[1:] for c in CASES], ids=NAMES)
def test_refused_with_place_rule_value_and_remedy(call, error, words):
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert FORM.fullmatch(text), text
    for word in words:
        assert word in text


def test_the_value_is_shown():
    for call, shown in (
        (lambda: tb.Sphere(-0.25), "(got -0.25)"),
        (lambda: tb.StepOptions(dt="fast"), "(got 'fast')"),
        (lambda: balls(mass=[1.0, -3.5]), "(got -3.5 at index 1)"),
        (lambda: tb.Placed(tb.Sphere(1), orientation=(2, 0, 0, 0)), "(got length 2 at index 0)"),
        (lambda: ball(position=(0, NAN, 0)), "(got nan at index [1])"),
        (lambda: ball(position=(0, 0)), "(got shape (2,))"),
    ):
        with pytest.raises(TumbleError) as caught:
            call()
        assert shown in str(caught.value)


def test_almost_unit_quaternions_are_normalised():
    q = tb.Placed(tb.Sphere(1.0), orientation=(1 + 9e-7, 0, 0, 0)).orientation
    assert q == (1.0, 0.0, 0.0, 0.0)
    scene = builder()
    body = scene.add_body(tb.Box((1, 1, 1)), mass=1.0, orientation=(0.6 * (1 - 5e-7), 0.8 * (1 - 5e-7), 0, 0))
    model = scene.build()
    assert np.linalg.norm(model.initial.orientation[body]) == pytest.approx(1.0, abs=1e-15)


# ---------------------------------------------------------------------- files

BALL = 'shape = {type = "sphere", radius = 1}'


@pytest.mark.parametrize(
    "text, words",
    [
        (
            '[[body]]\nmass = 1\nshape = {type = "spere", radius = 1}',
            ["body[0].shape.type", "'sphere', 'box', 'half_space'", "(got 'spere')", "Did you mean 'sphere'?"],
        ),
        ('[[body]]\nmass = 1\nshape = {type = "torus"}', ["'sphere', 'box', 'half_space'", "Choose one of them."]),
        ("[[body]]\nmass = 1\nshape = {radius = 1}", ["body[0].shape.type: is required"]),
        ("[[body]]\nmass = 1\nshape = 3", ["body[0].shape: must be a table", "(got 3)"]),
        (
            '[[spheres]]\nradius = 1\nmass = 1\npacking = {kind = "gird"}',
            ["spheres[0].packing.kind", "Did you mean 'grid'?"],
        ),
        (
            '[[spheres]]\nradius = 1\nmass = 1\npacking = {kind = "grid", shape = [1, 1, 1], spacing = [1, 2]}',
            ["spheres[0].packing.spacing", "3 items", "[1, 2]"],
        ),
        (f'[[body]]\nmass = 1\nkind = "statc"\n{BALL}', ["body[0].kind", "Did you mean 'static'?"]),
        (
            "[[spheres]]\nradius_range = [1, 2]\nmass = 1\nseed = -1\nposition = [[0, 0, 0]]",
            ["spheres[0]", "seed", "(got -1)"],
        ),
        (f'[[body]]\nmass = 1\n{BALL}\n[[exclude]]\na = "x"\nb = 0', ["exclude[0]", "unknown body", "'x'"]),
        (f"[[body]]\nmass = 0\n{BALL}", ["body[0]", "must be > 0 kg", "(got 0.0)"]),
        ("body = 3", ["body: must be a list", "(got 3)"]),
    ],
)
def test_scene_files(tmp_path, text, words):
    path = tmp_path / "scene.toml"
    path.write_text(text)
    with pytest.raises(SceneError) as caught:
        tb.load_scene(path)
    line = str(caught.value)
    assert FORM.fullmatch(line) and line.startswith(f"{path}: ")
    assert "tag" not in line and "dictionary" not in line
    for word in words:
        assert word in line


def test_missing_and_damaged_files(tmp_path):
    for call in (
        lambda: tb.load_scene(tmp_path / "none.toml"),
        lambda: tb.load_scene(tmp_path),
        lambda: tb.Trajectory(tmp_path / "none.h5"),
        lambda: tb.Trajectory(tmp_path),
    ):
        with pytest.raises(FileError) as caught:
            call()
        assert str(tmp_path) in str(caught.value) and FORM.fullmatch(str(caught.value))
    (tmp_path / "cut.toml").write_text('[[body]]\nshape = {type = "sph')
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("cut.toml", "binary.toml"):
        with pytest.raises(FileError, match=name):
            tb.load_scene(tmp_path / name)
    for wrong in (None, 3):
        with pytest.raises(TumbleError, match="load_scene"):
            tb.load_scene(wrong)


# ---------------------------------------------------------------------- warnings


def test_deep_overlap_warns_and_recovers_gently():
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), name="floor")
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(0, 0, 0.05), name="sunk")
    scene.add_body(tb.Sphere(0.1), mass=1.0, position=(1, 0, 0.1), name="fine")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), threads=1)
    with pytest.warns(TumbleWarning) as caught:
        sim.step()
    text = str(caught[0].message)
    assert len(caught) == 1 and FORM.fullmatch(text)
    assert "1 contact" in text and "0.05 m" in text and "'sunk'" in text and "recovery_speed" in text
    fastest = 0.0
    for _ in range(600):
        sim.step()
        fastest = max(fastest, float(np.abs(sim.velocities()).max()))
    assert fastest < 0.5  # sqrt(2 g 0.05 m) would be a jump of the whole depth
    assert sim.positions()[1, 2] == pytest.approx(0.1, abs=2e-3)


def test_a_body_that_outruns_its_size_warns_once():
    scene = tb.SceneBuilder(gravity=(0, 0, 0))
    scene.add_body(tb.Sphere(0.01), mass=1.0, velocity=(100, 0, 0), name="bullet")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), threads=1)
    with pytest.warns(TumbleWarning) as caught:
        for _ in range(5):
            sim.step()
    text = str(caught[0].message)
    assert len(caught) == 1 and FORM.fullmatch(text)
    assert "'bullet'" in text and "100 m/s" in text and "5 diameters" in text and "shorten dt" in text


def test_names_without_end_are_cut_in_messages():
    """A body of a million letters filled the terminal."""
    scene = tb.SceneBuilder()
    scene.add_body(tb.Sphere(0.1), mass=1.0, name="x" * 10**6)
    with pytest.raises(tb.errors.TumbleError) as found:
        scene.build().bodies("y")
    assert len(str(found.value)) < 200 and "xxx..." in str(found.value)
