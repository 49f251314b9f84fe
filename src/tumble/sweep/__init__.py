"""A scene run at all combinations of some settings, see `docs/sweeps.md`."""

from .driver import Swept, sweep
from .grid import combinations, values_of

__all__ = ["Swept", "combinations", "sweep", "values_of"]
