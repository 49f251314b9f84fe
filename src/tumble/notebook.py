"""Whether the program runs in a notebook, and a line there that changes."""

from __future__ import annotations

import html
import sys
from typing import Any

__all__ = ["NotebookLine", "in_notebook"]


def in_notebook() -> bool:
    """Whether what is displayed appears in a notebook: a kernel of Jupyter runs the program."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class NotebookLine:
    """A bar with words, below the cell that runs."""

    def __init__(self) -> None:
        from IPython.display import display

        self._handle: Any = display(_Html(""), display_id=True)

    def show(self, part: float, words: str) -> None:
        """part: how much is done, 0..1."""
        bar = f'<progress max="1" value="{part:.4f}" style="width:20em"></progress>'
        self._handle.update(_Html(f"<div>{bar} {html.escape(words)}</div>"))


class _Html:
    """Something that a notebook shows as it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return ""
