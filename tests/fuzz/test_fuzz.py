"""Mutated scenes, files and calls: only answers and our own errors, none above 5 s, and no state that is not finite.

The default run takes a few hundred; `pytest -m fuzz` 10^5 scenes and calls and 10^4 files of each kind. A failure names
its seed: `tests.fuzz.scenes.mutated(seed)`, `tests.fuzz.calls.call(seed)`. Put what it found into `cases/`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from . import calls, files, scenes
from .judge import Tally, soon

KINDS = list(files.KINDS)
CASES = sorted((Path(__file__).parent / "cases").iterdir())
CHUNK = 1000


def judge_scenes(folder: Path, seeds: range) -> None:
    tally, path = Tally(), folder / "scene.toml"
    for seed in seeds:
        path.write_text(scenes.to_toml(scenes.mutated(seed)), encoding="utf-8")
        tally.judge(f"scene {seed}", lambda: scenes.run_file(path))
    tally.all_answered()
    assert tally.accepted >= 0.5 * tally.count, f"{tally.accepted} of {tally.count} scenes took their 20 steps"


def judge_files(folder: Path, kind: files.Kind, seeds: range) -> None:
    path, good = folder / f"file{kind.suffix}", []
    for number in range(files.GOOD):
        kind.make(path, number)
        kind.read(path)
        good.append(path.read_bytes())
        path.unlink()
    tally = Tally()
    for seed in seeds:
        files.mutated(kind, good, seed, path)
        tally.judge(f"{kind.name} {seed}", lambda: kind.read(path))
    tally.all_answered()
    assert tally.refused, "no mutation was noticed"


def judge_resumed(folder: Path, seeds: range) -> None:
    tally, runs, path = Tally(), files.good_runs(folder), folder / "run.h5"
    kept = {p.name for p in folder.iterdir()} | {path.name, "run.checkpoint.h5"}
    for seed in seeds:
        save = files.broken_run(runs, seed, path)
        tally.judge(f"resumed {seed}", lambda save=save: files.go_on(save))
        assert {p.name for p in folder.iterdir()} <= kept, "something was left behind"
    tally.all_answered()
    assert tally.refused and tally.accepted


def judge_calls(folder: Path, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    tally = Tally()
    for seed in seeds:
        label, case = calls.call(seed)
        tally.judge(label, lambda case=case: soon(case))
    tally.all_answered()
    assert tally.refused > tally.accepted


def test_scenes(tmp_path):
    judge_scenes(tmp_path, range(200))


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in files.KINDS])
def test_files(kind, tmp_path):
    judge_files(tmp_path, kind, range(60))


def test_resumed(tmp_path):
    judge_resumed(tmp_path, range(60))


def test_calls(tmp_path, monkeypatch):
    judge_calls(tmp_path, range(500), monkeypatch)


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, 100_000, CHUNK))
def test_many_scenes(first, tmp_path):
    judge_scenes(tmp_path, range(first, first + CHUNK))


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, 10_000, CHUNK))
@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in files.KINDS])
def test_many_files(kind, first, tmp_path):
    judge_files(tmp_path, kind, range(first, first + CHUNK))


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, 10_000, CHUNK))
def test_many_resumed(first, tmp_path):
    judge_resumed(tmp_path, range(first, first + CHUNK))


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(0, 100_000, CHUNK))
def test_many_calls(first, tmp_path, monkeypatch):
    judge_calls(tmp_path, range(first, first + CHUNK), monkeypatch)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_past_failures(case):
    """What once raised something else, hung or returned NaN: a scene, or a file of a kind."""
    tally = Tally()
    kinds = {kind.suffix: kind.read for kind in files.KINDS} | {".toml": scenes.run_file}
    tally.judge(case.name, lambda: kinds[case.suffix](case))
    tally.all_answered()
