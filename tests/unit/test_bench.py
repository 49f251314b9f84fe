"""Benches: comparing with an earlier run, and that the quick ones yield figures."""

import json

import numpy as np
import pytest

from tumble.bench import BENCHES, Setting
from tumble.bench.engines import Pile
from tumble.cli import main


def tumble(capsys, *arguments):
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_bench_compares_with_an_earlier_run(monkeypatch, capsys, tmp_path):
    times = {"step_ms": 2.0, "iterations": 10.0, "new_ms": 1.0}

    def stages(setting):
        """A step."""
        yield from ({"bench": "stages", "case": "a", "metric": k, "value": v} for k, v in times.items())

    monkeypatch.setattr("tumble.bench.BENCHES", {"stages": stages})
    old = tmp_path / "old.jsonl"
    old.write_text(tumble(capsys, "bench", "--json")[1].replace("new_ms", "other_ms"))
    times.update(step_ms=3.0, iterations=20.0)
    code, out, _ = tumble(capsys, "bench", "--compare", str(old))
    by_metric = {line.split()[2]: line for line in out.splitlines() if line.strip().startswith("stages")}
    assert code == 0 and "1.500" in by_metric["step_ms"] and "SLOWER" in by_metric["step_ms"]
    assert "2.000" in by_metric["iterations"] and "SLOWER" not in by_metric["iterations"]
    assert "new" in by_metric["new_ms"].split()[-1]
    rows = [json.loads(line) for line in tumble(capsys, "bench", "--json", "--compare", str(old))[1].splitlines()]
    assert rows[0]["ratio"] == 1.5 and rows[0]["before"] == 2.0
    for text in ("no json", '{"bench": 1}', "[1]"):
        old.write_text(text)
        code, _, err = tumble(capsys, "bench", "--compare", str(old))
        assert code == 2 and "--compare" in err and err.count("\n") == 1
    assert tumble(capsys, "bench", "--compare", str(tmp_path / "nothere"))[0] == 2


@pytest.mark.parametrize("name", ["small", "robots", "memory", "looking"])
def test_quick_benches_yield_figures(name):
    rows = list(BENCHES[name](Setting(quick=True)))
    assert len(rows) >= 3
    assert all(set(row) == {"bench", "case", "metric", "value"} and row["bench"] == name for row in rows)


def test_engines_measure_overlap_alike():
    pile = Pile(points=np.zeros((0, 3)), side=10.0)
    assert pile.largest_overlap(np.array([(0, 0, 1.0), (0, 0, 2.9), (4, 0, 8)])) == pytest.approx(0.1)
    assert pile.largest_overlap(np.array([(0, 0, 1.0), (4.2, 0, 4.0)])) == pytest.approx(0.2)
    assert pile.largest_overlap(np.array([(0, 0, 0.7)])) == pytest.approx(0.3)
    assert pile.largest_overlap(np.array([(0, 0, 5.0)])) == 0.0
