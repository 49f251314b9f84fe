"""Runs for other people's tools: ParaView, OVITO, Blender and Omniverse, pandas.

A format is a writer that is given the recorded frames one after the other; see `docs/export.md`.
"""

from __future__ import annotations

from .run import FORMATS, Exported, export
from .tables import to_dataframe

__all__ = ["FORMATS", "Exported", "export", "to_dataframe"]
