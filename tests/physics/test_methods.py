"""The experiment `methods`: every formulation and solver gives the same motion under one law."""

from __future__ import annotations

from tumble.experiments import run_experiment
from tumble.experiments.methods import FORMULATIONS, TESTS


def test_all_methods_of_a_law_agree(tmp_path):
    found = run_experiment("methods", out=tmp_path, settings={"part": 0.12})
    assert found["max_disagreement_unrelaxed"] < 1e-6
    assert found["max_disagreement_relaxed"] < 1e-6
    assert sum(key.startswith("disagreement_") for key in found) == len(TESTS) * sum(map(len, FORMULATIONS.values()))
    assert all((tmp_path / f"methods_{name}.png").exists() for name in TESTS)
