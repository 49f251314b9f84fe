"""What a surface is made of, and how two surfaces rub."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..errors import SceneError, message

__all__ = ["Material", "MaterialTable"]


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


class MaterialTable:
    """The materials of a scene, numbered in the order of their first use, and friction between pairs of them."""

    def __init__(self) -> None:
        self.known: list[Material] = []
        self._pairs: dict[tuple[int, int], float] = {}

    def add(self, material: Material) -> Material:
        """Register a material and return it."""
        if not isinstance(material, Material):
            raise SceneError(
                message("add_material", "needs a Material", repr(material), "For example Material(friction=0.3).")
            )
        if material.name is not None and any(m.name == material.name and m is not material for m in self.known):
            raise SceneError(message("add_material", "names are unique", repr(material.name), "Choose another name."))
        if not any(m is material for m in self.known):
            self.known.append(material)
        return material

    def set_friction(self, a: Material | str, b: Material | str, friction: float) -> None:
        """Friction between two materials, in place of the smaller of their own values."""
        value = checks.number("set_friction.friction", friction, at_least=0.0, error=SceneError)
        i, j = sorted((self._index("set_friction", a), self._index("set_friction", b)))
        self._pairs[i, j] = value

    def friction(self) -> np.ndarray:
        """(k, k) coefficient for every pair."""
        table = np.array([[combined_friction(a, b) for b in self.known] for a in self.known], float)
        for (i, j), value in self._pairs.items():
            table[i, j] = table[j, i] = value
        return table

    def of_shapes(self, where: str, material: Any, count: int) -> tuple[int, ...]:
        """Numbers of the materials of so many shapes, given one, one each, or none."""
        if material is None:
            default = next((m for m in self.known if m.name == "default"), None)
            material = default or self.add(Material(name="default"))
        if isinstance(material, (Material, str)) or not isinstance(material, Iterable):
            return (self._index(where, material),) * count
        materials = list(material)
        if len(materials) != count:
            raise SceneError(
                message(
                    where + ".material", f"needs one material or {count}", len(materials), "Give one for each shape."
                )
            )
        return tuple(self._index(where, m) for m in materials)

    def _index(self, where: str, material: Material | str) -> int:
        if isinstance(material, str):
            for i, known in enumerate(self.known):
                if known.name == material:
                    return i
            names = [m.name for m in self.known if m.name is not None]
            raise SceneError(message(where, "unknown material", repr(material), checks.nearest(material, names)))
        if not isinstance(material, Material):
            raise SceneError(
                message(
                    where + ".material",
                    "must be a Material or its name",
                    repr(material),
                    "For example Material(friction=0.3).",
                )
            )
        self.add(material)
        return next(i for i, known in enumerate(self.known) if known is material)
