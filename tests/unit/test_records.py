"""What every step makes is whole, and what a simulation had is let go with it."""

import gc
import weakref
from dataclasses import fields

import tumble as tb


def pile(radius: float = 0.05) -> tb.Simulation:
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace())
    scene.add_spheres(radius, density=1e3, position=[(0.0, 0.0, radius * (1 + 2 * k)) for k in range(4)])
    return tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3), threads=1)


def test_records_of_a_step_have_all_their_fields():
    sim = pile()
    sim.step()
    made = sim.last, sim.last.report, sim.last.solution, sim.last.solution.residuals
    assert sim.last.contacts.count == 4
    for one in made:
        assert vars(one).keys() == {f.name for f in fields(one)}


def test_no_kernel_holds_on_to_the_buffers_of_a_simulation_that_is_gone():
    sim = pile()
    for _ in range(3):
        sim.step()
    kept = [weakref.ref(a) for a in (sim._work.contacts.normal, sim._work.free, sim.last.problem.bias)]
    assert all(ref() is not None for ref in kept)
    del sim
    gc.collect()
    assert [ref() is None for ref in kept] == [True, True, True]


def test_other_simulations_go_on_when_one_is_gone():
    one, other, alone = pile(), pile(0.07), pile(0.07)
    for _ in range(3):
        one.step()
        other.step()
    del one
    gc.collect()
    for _ in range(3):
        other.step()
    for _ in range(6):
        alone.step()
    assert other.state.sha256() == alone.state.sha256()
