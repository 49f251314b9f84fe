"""Several passes in one call do what they do one by one."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType

import numpy as np
import pytest

import tumble as tb
import tumble.backends.cpu
from tumble.backends.base import PASSES, over_passes
from tumble.kernels.direct import direct
from tumble.kernels.jit import loop

from .cover import copied, covers, same_bits

STAGES, JOINT_STAGES = PASSES["stages"], PASSES["joint_stages"]


def scene(kind: str) -> tb.Model:
    """Twelve or three hundred spheres and boxes in a tray, some compliant, some fast."""
    builder = tb.SceneBuilder()
    soft = builder.add_material(tb.Material(friction=0.3, compliance=1e-6 if kind == "soft" else 0.0))
    builder.add_static(tb.HalfSpace())
    count = 6 if kind == "few" else 300
    rng = np.random.default_rng(0)
    side = int(np.ceil(np.cbrt(count)))
    place = np.stack(np.unravel_index(np.arange(count), (side, side, side)), axis=1) * 0.101 + 0.05
    for k, point in enumerate(place[: count // 4]):
        size = tuple(rng.uniform(0.06, 0.1, 3))
        builder.add_body(tb.Box(size), density=1e3, position=point, material=soft, velocity=(0, 0, -0.01 * k))
    builder.add_spheres(0.05, density=1e3, material=soft, position=place[count // 4 :])
    return builder.build()


class Spy(ModuleType):
    """A backend that keeps what the stages are called with, before each call."""

    def __init__(self, backend: ModuleType) -> None:
        super().__init__("spy")
        self.backend, self.calls = backend, []

    def __getattr__(self, name: str) -> object:
        found = getattr(self.backend, name)
        if name not in STAGES + JOINT_STAGES:
            return found

        def noted(*arguments: object) -> object:
            seen: dict[int, object] = {}
            self.calls.append((name, tuple(copied(a, seen) for a in arguments)))
            return found(*arguments)

        return noted


def mechanisms() -> tb.Model:
    """Balls on a floor: an arm that falls on its stop with a servo told by a controller, a motor with a torque and a
    hinge with friction; a triangle with a loop; two balls on a string, one of them on a wall."""
    scene = tb.SceneBuilder()
    soft = scene.add_material(tb.Material(friction=0.3, compliance=1e-6))
    scene.add_static(tb.HalfSpace(), material=soft)
    for k in range(8):
        speed = (0.0, 0.0, -3.0 if k == 2 else 0.0)
        at = (0.3 * k, 0.05 * (k % 3), 0.1 + 0.001 * k)
        scene.add_body(tb.Sphere(0.1), mass=1.0, position=at, velocity=speed, material=soft, name=f"b{k}")

    def hinge(a: int, b: int, **more: object) -> None:
        at = (0.15 * (a + b), 0.0, 0.1)
        scene.add_joint("revolute", f"b{a}", f"b{b}", anchor=at, axis=(0, 1, 0), name=f"j{a}{b}", **more)

    hinge(0, 1, limits=(-1e-4, 1e-4))
    hinge(1, 2, limits=(-0.5, 0.5), friction=0.02)
    hinge(3, 4)
    hinge(4, 5)
    hinge(3, 5)
    scene.add_joint("distance", "b6", "b7", anchor_a=(0, 0, 0), anchor_b=(0, 0, 0))
    scene.add_joint("spherical", None, "b7", anchor=(2.3, 0.05, 0.107))
    scene.add_motor("j12", "position", target=0.0, stiffness=50.0, damping=1.0, maximum=0.5, name="servo")
    scene.add_motor("j34", "torque", target=0.1, name="torque")
    scene.add_controller(lambda time, value, speed: 0.2 + 0.0 * value, ["servo"])
    return scene.build()


def kernels() -> dict[str, object]:
    """All compiled functions of the backend by name, those too that only kernels call."""
    found = {}
    for module in pkgutil.iter_modules(tumble.backends.cpu.__path__):
        one = importlib.import_module(f"tumble.backends.cpu.{module.name}")
        found |= {name: f for name, f in vars(one).items() if hasattr(f, "py_func")}
    return found


@covers(*STAGES)
@pytest.mark.parametrize("kind", ["few", "many", "soft"])
def test_a_stage_leaves_the_bits_of_its_passes(backend, kind):
    compare_with_passes(backend, scene(kind), STAGES, 3)


@covers(*JOINT_STAGES)
def test_a_stage_of_joints_leaves_the_bits_of_its_passes(backend):
    compare_with_passes(backend, mechanisms(), JOINT_STAGES, 8)


def compare_with_passes(backend: ModuleType, model: tb.Model, stages: tuple[str, ...], steps: int) -> None:
    """Each call of a stage in some steps against those of its passes, which all these scenes need."""
    spy = Spy(backend.backend)
    sim = tb.Simulation(model, options=tb.StepOptions(dt=2e-3), backend=spy)
    for _ in range(steps):
        sim.step()
    assert {name for name, _ in spy.calls} >= set(stages) - {"hold_rows"}, "which is a part of rows_at_end"
    for name, arguments in spy.calls:
        if name not in stages:
            continue
        run = getattr(backend.backend, name)
        seen: dict[int, object] = {}
        copies = tuple(copied(a, seen) for a in arguments)
        one_by_one = over_passes(run, kernels())(*copies)
        result = getattr(backend, name)(*arguments)  # with one thread and with two
        same_bits(f"{name}: what it returns", result, one_by_one)
        for key, a, b in zip(inspect.signature(run).parameters, arguments, copies, strict=True):
            same_bits(f"{name}: {key}", a, b, key)


def test_a_kernel_that_is_called_directly_sees_other_types():
    """Order, precision and class of what it is given may change from call to call, in groups too."""

    @direct
    @loop
    def total(group, factor):
        out = 0.0
        for i in range(group[0].shape[0]):
            for j in range(group[0].shape[1]):
                out += group[0][i, j] * group[1]
        return out * factor

    x = np.arange(12.0).reshape(3, 4)
    for a in (x, x.copy(), x.astype(np.float32), np.asfortranarray(x), x[:, ::2], x.astype(np.int64), x):
        for scale in (2, 2.5, True):
            for factor in (1, 0.5):
                assert total((a, scale), factor) == pytest.approx(float(a.sum()) * scale * factor)
    frozen = x.copy()
    frozen.setflags(write=False)
    assert total((frozen, 1), 1) == total((x, 1), 1) == x.sum()
    with pytest.raises(TypeError):
        total((x, 1))
