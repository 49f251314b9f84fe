"""Runs `tumble run` again and again, each time with another fault, and looks at what is left.

python driver.py FOLDER SCENARIO STRIDE, with the shim preloaded. Kernels are loaded once; every run is a fork of this
process. Prints one JSON object: the number of faults, of each kind of system call, and what went wrong.
"""

import atexit
import ctypes
import json
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path

import h5py
import numpy as np

import tumble as tb
from tumble.cli import main
from tumble.observe.writer import TrajectoryWriter

SCENE = """
[[body]]
kind = "static"
shape = {type = "half_space"}
[[spheres]]
radius = 0.05
mass = 0.1
packing = {kind = "grid", shape = [2, 2, 1], spacing = 0.12, origin = [0, 0, 0.06], jitter = 0.01}
[step]
dt = 2e-3
[run]
until = 0.04
save_every = 3
"""
STEPS, NAMES = (
    20,
    ("open", "write", "pwrite", "copy_file_range", "ftruncate", "fsync", "rename", "unlink", "posix_fallocate"),
)
MOST = 100000
MORE = tuple(os.environ.get("FAULT_OPTIONS", "").split())
NEW = ("run", "scene.toml", "--out", "run.h5", "--contacts", "--threads", "1", "--quiet", *MORE)
RESUME = (*NEW[:4], "--threads", "1", "--quiet", "--resume", *MORE)
TWICE = ("twice",)
shim = ctypes.CDLL(None)


def in_child(arguments, *, kill=0, full=0):
    """Exit code of a command, -9 where it was killed; the frames that it reported; its error output."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os._exit(command(arguments, writing, kill, full))
        finally:
            os._exit(99)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        reported = [int(word) for word in pipe.read().split()]
    status = os.waitpid(child, 0)[1]
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return code, max(reported, default=0), Path("../errors.txt").read_text()


def command(arguments, writing, kill, full):
    """The child's part: reports frames through a pipe."""
    os.dup2(os.open("../errors.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    append = TrajectoryWriter.append_frame

    def reporting(self, *given):
        append(self, *given)
        os.write(writing, f"{self.frames} ".encode())

    TrajectoryWriter.append_frame = reporting
    shim.fault_set(ctypes.c_long(kill), ctypes.c_long(full))
    try:
        code = twice() if arguments == TWICE else main(list(arguments))
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
        raise
    kinds = (ctypes.c_ubyte * MOST)()
    Path("../calls.json").write_text(json.dumps([NAMES[kind] for kind in kinds[: shim.fault_calls(kinds)]]))
    return code


def twice():
    """A program that runs one simulation in two parts into one file."""
    scene = tb.load_scene("scene.toml")
    sim = tb.Simulation(scene.model, options=tb.StepOptions(**scene.step), threads=1)
    save = tb.Save(path="run.h5", every=scene.save_every, fields=tb.options.SAVE_FIELDS)
    for until in (0.02, 0.04):
        sim.run(until=until, save=save, progress=False)
    return 0


def calls():
    """Names of the calls of the last command that was not killed."""
    return json.loads(Path("../calls.json").read_text())


def expect(right, *words):
    if not right:
        raise AssertionError(" ".join(map(str, words)))


def look(reference, least):
    """The file must be one that any program reads, with at least so many frames, each as it should be."""
    with h5py.File("run.h5", "r") as file:  # plainly, without a thought of who writes it
        frames = int(file["committed"][0])
        expect(frames >= least, "frames", frames, "of", least)
        steps, position = file["frames/step"][:frames], file["frames/position"][:frames]
        ends = file["frames/report_end"][:frames]
        expect(np.array_equal(file["steps"].fields("step")[: ends[-1]], np.arange(1, ends[-1] + 1)), "a hole")
    for step, found in zip(steps, position):
        expect(step not in reference or np.array_equal(found, reference[step]), "another frame at step", step)
    with tb.Trajectory("run.h5") as run:
        expect(run.frames == frames and len(run.contacts(-1)["gap"]) >= 0, "reader")
        return frames, run.final_state_sha256, run.steps[-1]


def scenario_start(fresh):
    """A new run in an empty folder."""
    return NEW, 0


def scenario_overwrite(fresh):
    """A new run over one that came to its end."""
    expect(in_child(NEW)[0] == 0, "first run")
    return (*NEW, "--overwrite"), 0


def scenario_resume(fresh):
    """Going on after a kill, with frames behind the last checkpoint."""
    code, reported, _ = in_child((*NEW, "--until", "0.03"), kill=fresh - 45)
    waiting = 2 if "--background" in MORE else 0  # frames that a thread may have before it
    expect(code == -signal.SIGKILL and reported > 3 - waiting, "kill for resume", code, reported)
    return RESUME, reported


def scenario_twice(fresh):
    """A simulation that goes on in its own file."""
    return TWICE, 0


def scenario_go_on(fresh):
    """Going on after a clean end."""
    expect(in_child((*NEW, "--until", "0.02"))[0] == 0, "first half")
    return RESUME, 5


SCENARIOS = {
    "start": scenario_start,
    "overwrite": scenario_overwrite,
    "resume": scenario_resume,
    "go_on": scenario_go_on,
    "twice": scenario_twice,
}


def reference_run(folder):
    """Positions by step and the final hash of a run that nothing happens to; frames at every step."""
    fresh_folder(folder)
    expect(in_child((*NEW, "--save-every", "1"))[0] == 0, "reference")
    with tb.Trajectory("run.h5") as run:
        found = dict(zip(run.steps.tolist(), run.array("position"))), run.final_state_sha256
    expect(len(found[0]) == STEPS + 1, "reference steps")
    return found


def fresh_folder(folder):
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    Path("scene.toml").write_text(SCENE)


def after_kill(reference, final, reported, before):
    """What a run left behind, and that it can be taken up again to the same bits."""
    least = max(reported, before)
    if not Path("run.h5").exists():
        expect(least == 0, "no file, but frames were reported")
        again = NEW
    else:
        look(reference, least)
        again = RESUME
    code, _, errors = in_child(again)
    expect(code == 0, "again:", code, errors)
    expect(look(reference, 0)[1:] == (final, STEPS), "other bits at the end")
    left = sorted(p.name for p in Path().iterdir())
    expect(left == ["run.checkpoint.h5", "run.h5", "scene.toml"], "left behind:", left)


def kills(folder, scenario, stride):
    """Kill at each system call of a scenario in turn; of the many pwrites at every `stride`-th only."""
    reference, final = reference_run(folder / "reference")
    work = folder / "work"
    fresh_folder(work)
    expect(in_child((*NEW, "--until", "0.03"))[0] == 0, "count")
    fresh = len(calls())
    fresh_folder(work)
    arguments, before = SCENARIOS[scenario](fresh)
    shutil.copytree(work, folder / "prepared")
    expect(in_child(arguments)[0] == 0, "undisturbed", scenario)
    names, bad = calls(), []
    points = [k for k, name in enumerate(names) if name != "pwrite" or k % stride == 0]
    for k in points:
        fresh_folder(work)
        shutil.copytree(folder / "prepared", work, dirs_exist_ok=True)
        code, reported, errors = in_child(arguments, kill=k + 1)
        try:
            expect(code == -signal.SIGKILL, "not killed", code, errors)
            after_kill(reference, final, reported, before)
        except Exception as cause:
            bad.append(f"call {k + 1} {names[k]}: {type(cause).__name__}: {cause}")
    return {"points": len(points), "calls": {name: names.count(name) for name in NAMES}, "bad": bad}


def full_disks(folder, stride):
    """The disk is full from the k-th write on: one line, exit code 2, frames readable, and the same bits later."""
    reference, final = reference_run(folder / "reference")
    work = folder / "work"
    bad, points, full = [], 0, 1
    while True:
        fresh_folder(work)
        code, reported, errors = in_child(NEW, full=full)
        if code == 0:
            break
        points += 1
        try:
            expect(code == 2 and errors.count("\n") == 1 and errors.startswith("tumble: error: "), code, errors)
            expect("No space left" in errors, errors)
            after_kill(reference, final, reported, 0)
        except Exception as cause:
            bad.append(f"write {full}: {type(cause).__name__}: {cause}")
        full += stride
    return {"points": points, "bad": bad}


if __name__ == "__main__":
    place, wanted, every = Path(sys.argv[1]).resolve(), sys.argv[2], int(sys.argv[3])
    place.mkdir(parents=True, exist_ok=True)
    main(["run", str(place / "none.toml")])  # the file is missing; imports what a run needs
    warm = place / "warm"
    fresh_folder(warm)
    if main(list(NEW)) != 0:  # loads the kernels
        raise SystemExit("the scene does not run")
    print(json.dumps(full_disks(place, every) if wanted == "full" else kills(place, wanted, every)))
