"""Methods of the papers as they were published, beside the ones tuned here: `variant="paper"`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from .. import checks
from ..enums import Variant
from ..errors import OptionsError, message

__all__ = ["take_variant"]


def take_variant(solver: Any, paper: Mapping[str, object]) -> None:
    """Check a frozen solver's `variant`; for "paper" set the options that the paper fixes.

    paper: option -> value. One that was given another value than its default does not go with the paper's method.
    """
    where = type(solver).__name__
    variant = Variant(checks.choice(where + ".variant", solver.variant, list(Variant)))
    object.__setattr__(solver, "variant", variant)
    if variant != Variant.PAPER:
        return
    defaults = {f.name: f.default for f in fields(solver)}
    for name, value in paper.items():
        given = getattr(solver, name)
        if given != defaults[name] and given != value:
            raise OptionsError(
                message(f"{where}.{name}", f"is {value} in variant 'paper'", given, "Leave it out, or the variant.")
            )
        object.__setattr__(solver, name, value)
