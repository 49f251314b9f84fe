"""What a surface is made of, and how two surfaces rub."""

from __future__ import annotations

from dataclasses import dataclass

from .. import checks
from ..errors import SceneError, message

__all__ = ["Material"]


@dataclass(frozen=True, kw_only=True)
class Material:
    """Surface of a shape.

    Between two materials the smaller friction counts, unless `SceneBuilder.set_friction` says otherwise.
    """

    friction: float = 0.5
    """Coulomb's coefficient of friction mu, >= 0."""
    name: str | None = None
    """Name for look-up from scene files and error messages."""

    def __post_init__(self) -> None:
        checks.number(
            "Material.friction",
            self.friction,
            at_least=0.0,
            error=SceneError,
            remedy="Use 0 for a frictionless surface.",
        )
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise SceneError(message("Material.name", "must be a non-empty text", repr(self.name), "Or leave it out."))


def combined_friction(a: Material, b: Material) -> float:
    """The rule for two materials without an entry of their own: the smaller value."""
    return min(a.friction, b.friction)
