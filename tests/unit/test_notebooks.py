"""The example notebooks run from top to bottom."""

import ast
import json
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


class _Display:
    """What a notebook does with the last expression of a cell."""

    def __init__(self):
        self.shown = []

    def __call__(self, value):
        for form in ("_repr_png_", "_repr_html_"):
            if hasattr(value, form):
                self.shown.append(getattr(value, form)())
                return
        self.shown.append(repr(value))


def cells_of(path):
    found = json.loads(path.read_text())
    assert found["nbformat"] == 4
    return [cell for cell in found["cells"] if cell["cell_type"] == "code"]


def test_there_are_three_or_more():
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_every_result(path, tmp_path, monkeypatch):
    pytest.importorskip("IPython", reason="notebooks need IPython: pip install 'tumble[notebook]'")
    monkeypatch.chdir(tmp_path)
    display, names = _Display(), {"__name__": "notebook"}
    for cell in cells_of(path):
        assert cell["outputs"] == [] and cell["execution_count"] is None, "kept without results"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        body = tree.body[:-1] if last is not None else tree.body
        exec(compile(ast.Module(body, []), str(path), "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(path), "eval"), names)
            if value is not None:
                display(value)
    assert len(display.shown) >= 1
    assert all(len(shown) < 20_000 for shown in display.shown if isinstance(shown, str) and "data:" not in shown)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_jupyter(path, tmp_path):
    """With a kernel of its own, as a user has it, where progress is a bar below the cell."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("text/html" in output.get("data", {}) or "image/png" in output.get("data", {}) for output in outputs)
    if path.stem == "first_steps":
        assert "<progress" in json.dumps(outputs)
    assert not [o for o in outputs if o.output_type == "error"] and sys.version_info >= (3, 11)
