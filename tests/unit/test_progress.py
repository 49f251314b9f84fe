"""What a run shows of its progress: lines in a log, nothing where it is short or not wanted."""

import sys

import pytest

import tumble as tb
from tumble.sim import progress


def run(capsys, wanted=None, steps=20):
    scene = tb.SceneBuilder()
    scene.add_body(tb.Sphere(0.1), density=1000.0, position=(0.0, 0.0, 1.0))
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    sim.run(until=steps * 1e-3, progress=wanted)
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("step ")]  # not: it compiles


class Clock:
    """Seconds that pass by a fixed amount a look."""

    def __init__(self, by):
        self.now, self.by = 0.0, by

    def perf_counter(self):
        self.now += self.by
        return self.now


@pytest.mark.parametrize("wanted", [None, False, 0])
def test_short_or_silent_runs_write_nothing(capsys, monkeypatch, wanted):
    if wanted is not None:
        monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    assert run(capsys, wanted) == []


def test_a_long_run_in_a_log_writes_a_line_a_minute(capsys, monkeypatch):
    """Two looks at the clock a step in which a line is written, one else; 20 s a look: a line every second step."""
    monkeypatch.setattr(progress, "time", Clock(20.0))
    lines = run(capsys)
    assert 5 <= len(lines) <= 10
    assert (
        lines[0].startswith("step 3 of 20  ") and "steps/s" in lines[0] and " left  t 0.003 s  0 contacts" in lines[0]
    )
    assert not any(line.startswith("step 20 ") for line in lines)  # the end needs no forecast


def test_the_time_left_follows_the_rate(monkeypatch, capsys):
    monkeypatch.setattr(progress, "time", Clock(100.0))
    shown = progress.show_progress(None, 10)
    report = type("Report", (), dict(time=1.0, contacts=3, natural_map=1e-4))
    with shown:
        shown.update(report, 2)  # began at 100 s, asked at 200 s, the rate taken at 300 s
    assert capsys.readouterr().err == (
        "step 1 of 10  0.005 steps/s  0:30:00 left  t 1 s  3 contacts  residual 1.0e-04  2 unconverged\n"
    )


def test_a_bar_without_rich_becomes_lines(monkeypatch):
    assert "Bar" in type(progress.show_progress(True, 5)).__name__
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert "Lines" in type(progress.show_progress(True, 5)).__name__


def test_a_log_that_cannot_be_written_does_not_end_the_run(monkeypatch):
    class Full:
        def isatty(self):
            return False

        def write(self, _):
            raise OSError("no space left")

        def flush(self):
            raise OSError("no space left")

    monkeypatch.setattr(progress, "time", Clock(100.0))
    shown = progress.show_progress(None, 10)
    monkeypatch.setattr(sys, "stderr", Full())
    shown.update(type("Report", (), dict(time=1.0, contacts=3, natural_map=1e-4)), 0)


def test_what_is_said_goes_through_logging(capsys, caplog, monkeypatch):
    """Plain lines where nothing is configured; to the program's own handlers, and only there, where something is."""
    import logging

    monkeypatch.setattr(progress, "time", Clock(20.0))
    with caplog.at_level(logging.INFO, logger="tumble"):
        lines = run(capsys)
    assert lines and [r.getMessage() for r in caplog.records if r.getMessage().startswith("step ")] == lines
    own = logging.StreamHandler(sys.stdout)
    monkeypatch.setattr(logging.root, "handlers", [own])
    monkeypatch.setattr(progress, "time", Clock(20.0))
    assert run(capsys) == []
    monkeypatch.setattr(logging.root, "handlers", [])
    logging.getLogger("tumble").setLevel(logging.WARNING)
    try:
        monkeypatch.setattr(progress, "time", Clock(20.0))
        assert run(capsys) == []
    finally:
        logging.getLogger("tumble").setLevel(logging.INFO)
