"""What a surface is made of, and how two surfaces rub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, make_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import checks
from ..errors import SceneError, message

__all__ = ["Material", "MaterialTable", "PairLaws"]


@dataclass(frozen=True, kw_only=True)
class Material:
    """Surface of a shape.

    Between two materials the smaller friction (of every kind), restitution, cohesion, ageing and ranges count, and the
    larger speeds, times and lengths; compliances add up, like springs in series, and dashpots combine as in series,
    1/d = 1/d_a + 1/d_b (a rigid partner's has no part in it). `SceneBuilder.set_pair` overrides all of them.
    """

    friction: float = 0.5
    """Coulomb's coefficient of friction mu, >= 0; while sliding, where `static_friction` is given."""
    static_friction: float | None = None
    """At rest, >= friction: mu(v) = mu + (mu_s - mu) exp(-(v / friction_speed)^2), v the sliding speed at the start of
    the step. None: the same as `friction`."""
    friction_speed: float = 0.01
    """Speed over which friction falls from static to sliding [m/s]."""
    restitution: float = 0.0
    """e, 0 (default) to 1: an impact faster than the threshold leaves with e times its speed."""
    restitution_threshold: float = 0.01
    """Slower impacts do not bounce [m/s]."""
    cohesion: float = 0.0
    """Largest pull c of a contact [N]."""
    cohesion_range: float | None = None
    """Gap up to which cohesion acts [m]; parting two bodies takes the work cohesion times range. None: a millionth of
    the smaller shape's half-extent."""
    rolling_friction: float = 0.0
    """rho [m]: a contact that carries the force N resists rolling with a torque of up to rho N. Needs friction."""
    spinning_friction: float = 0.0
    """sigma [m]: it resists spinning about its normal with up to sigma N. Needs friction."""
    compliance: float = 0.0
    """c [m/N] of the contact along its normal: it yields by c N under the force N. 0 (default): rigid."""
    damping: float = 0.0
    """d [N s/m] of the dashpot beside that spring. Needs compliance."""
    tangential_compliance: float = 0.0
    """[m/N] before the contact slides"""
    tangential_damping: float = 0.0
    """[N s/m]"""
    ageing: float = 0.0
    """b: the longer a contact rests the better it holds, mu + b ln(1 + age / ageing_time) with its age as in
    `docs/laws.md`. 0 (default): it does not."""
    ageing_time: float = 1.0
    """[s]"""
    ageing_length: float = 1e-5
    """Sliding by about this length makes a contact young again [m]."""
    name: str | None = None
    """Name for look-up from scene files and error messages."""

    def __post_init__(self) -> None:
        _checked("Material", {f: getattr(self, f) for f in PROPERTIES})
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise SceneError(
                message("Material.name", "must be a non-empty text", checks.short(self.name), "Or leave it out.")
            )


def _given(material: Material, name: str) -> float:
    return getattr(material, name)


def _smaller(a: Material, b: Material, name: str) -> float:
    return min(_given(a, name), _given(b, name))


def _larger(a: Material, b: Material, name: str) -> float:
    return max(_given(a, name), _given(b, name))


def _in_series(a: Material, b: Material, name: str) -> float:
    return _given(a, name) + _given(b, name)


def _dashpots(a: Material, b: Material, name: str) -> float:
    """Of the soft ones of two materials, in series."""
    soft = [_given(m, name) for m in (a, b) if _given(m, DAMPERS[name]) > 0.0]
    return 0.0 if not soft or min(soft) == 0.0 else 1.0 / sum(1.0 / d for d in soft)


def _at_rest(a: Material, b: Material, name: str) -> float:
    return min(m.friction if _given(m, name) is None else _given(m, name) for m in (a, b))


def _ranges(a: Material, b: Material, name: str) -> float:
    """-1: left to the size."""
    given = [_given(m, name) for m in (a, b) if _given(m, name) is not None]
    return min(given, default=-1.0)


class Property:
    """A number that materials and pairs of them have."""

    def __init__(
        self, combined: Callable[[Material, Material, str], float] = _smaller, *, acts: bool = True, **rule: Any
    ) -> None:
        """combined: the rule for two materials without an entry of their own; acts: a number other than 0 is more than
        plain friction; rule: what is allowed, see `checks.number`."""
        self.combined, self.acts, self.rule = combined, acts, rule


PROPERTIES = {
    "friction": Property(acts=False, at_least=0.0, remedy="Use 0 for a frictionless surface."),
    "static_friction": Property(_at_rest, acts=False, at_least=0.0),
    "friction_speed": Property(_larger, acts=False, above=0.0, unit="m/s"),
    "restitution": Property(at_least=0.0, at_most=1.0, remedy="1 keeps the speed, 0 takes all of it."),
    "restitution_threshold": Property(_larger, acts=False, at_least=0.0, unit="m/s"),
    "cohesion": Property(at_least=0.0, unit="N"),
    "cohesion_range": Property(_ranges, acts=False, at_least=0.0, unit="m"),
    "rolling_friction": Property(at_least=0.0, unit="m"),
    "spinning_friction": Property(at_least=0.0, unit="m"),
    "compliance": Property(_in_series, at_least=0.0, unit="m/N", remedy="Use 0 for a rigid contact."),
    "damping": Property(_dashpots, at_least=0.0, unit="N s/m"),
    "tangential_compliance": Property(_in_series, at_least=0.0, unit="m/N", remedy="Use 0 for a rigid contact."),
    "tangential_damping": Property(_dashpots, at_least=0.0, unit="N s/m"),
    "ageing": Property(at_least=0.0),
    "ageing_time": Property(_larger, acts=False, above=0.0, unit="s"),
    "ageing_length": Property(_larger, acts=False, above=0.0, unit="m"),
}
"""Of everything in `Material` but the name: keys of scene files, of `SceneBuilder.set_pair` and `PairLaws`."""
DAMPERS = {"damping": "compliance", "tangential_damping": "tangential_compliance"}
"""The spring beside each dashpot."""


def _checked(where: str, values: Mapping[str, float | None]) -> None:
    """The rules for the properties of a material or of a pair."""
    for name, value in values.items():
        if value is not None or name not in ("static_friction", "cohesion_range"):
            checks.number(f"{where}.{name}", value, error=SceneError, **PROPERTIES[name].rule)
    rest, sliding = values.get("static_friction"), values.get("friction")
    if rest is not None and sliding is not None and rest < sliding:
        raise SceneError(
            message(f"{where}.static_friction", f"must be at least friction = {sliding}", rest, "Swap the two.")
        )
    _consistent(where, values)


def _consistent(where: str, values: Mapping[str, float | None]) -> None:
    """Rules for properties that need or exclude each other; those that are not given are not looked at."""
    for name in ("rolling_friction", "spinning_friction"):
        if values.get(name) and values.get("friction") == 0.0:
            raise SceneError(
                message(
                    f"{where}.{name}",
                    "needs friction > 0: a contact that slides freely cannot roll",
                    f"{values[name]} m with friction 0",
                    "Give it friction.",
                )
            )
    for damper, spring in DAMPERS.items():
        if values.get(damper) and values.get(spring) == 0.0:
            raise SceneError(
                message(
                    f"{where}.{damper}",
                    f"needs {spring} > 0: a rigid contact has no dashpot",
                    f"{values[damper]} N s/m",
                    f"Give it {spring} too.",
                )
            )
    if values.get("restitution") and values.get("compliance"):
        raise SceneError(
            message(
                f"{where}.restitution",
                "cannot go with compliance: a spring and a dashpot say how a contact rebounds",
                f"restitution {values['restitution']} and compliance {values['compliance']} m/N",
                "Leave one of them at 0.",
            )
        )


_PairTables = make_dataclass("_PairTables", [(name, np.ndarray) for name in PROPERTIES], frozen=True)


@dataclass(frozen=True)
class PairLaws(_PairTables):
    """Properties of every pair of materials, (k, k) arrays under the names of `PROPERTIES`; -1 for a cohesion range
    that is left to the size."""

    active: bool
    """Whether any pair has more than plain friction"""

    def of_pairs(self, name: str) -> np.ndarray:
        """(k * k,) a property by number of pair, see `collide.Contacts.pair`."""
        return np.ascontiguousarray(getattr(self, name)).ravel()

    @cached_property
    def rolls(self) -> bool:
        """Whether any pair resists rolling or spinning."""
        return bool(np.any(self.rolling_friction) or np.any(self.spinning_friction))

    @cached_property
    def is_soft(self) -> bool:
        """Whether any pair is compliant."""
        return bool(np.any(self.compliance) or np.any(self.tangential_compliance))


class MaterialTable:
    """The materials of a scene, numbered in the order of their first use, and friction between pairs of them."""

    def __init__(self) -> None:
        self.known: list[Material] = []
        self._pairs: dict[tuple[int, int], dict[str, float]] = {}

    def add(self, material: Material) -> Material:
        """Register a material and return it."""
        if not isinstance(material, Material):
            raise SceneError(
                message(
                    "add_material", "needs a Material", checks.short(material), "For example Material(friction=0.3)."
                )
            )
        if material.name is not None and any(m.name == material.name and m is not material for m in self.known):
            raise SceneError(
                message("add_material", "names are unique", checks.short(material.name), "Choose another name.")
            )
        if not any(m is material for m in self.known):
            self.known.append(material)
        return material

    def set_pair(self, where: str, a: Material | str, b: Material | str, **properties: float) -> None:
        """Properties between two materials, in place of those combined from their own; `where` names the caller."""
        for name, value in properties.items():
            checks.choice(where, name, PROPERTIES, error=SceneError)
            if value is None:
                raise SceneError(
                    message(f"{where}.{name}", "must be a number", None, "Leave it out to combine the two.")
                )
        _checked(where, properties)
        i, j = sorted((self._index(where, a), self._index(where, b)))
        self._pairs.setdefault((i, j), {}).update({k: float(v) for k, v in properties.items()})

    def friction(self) -> np.ndarray:
        """(k, k) coefficient for every pair."""
        return self._table("friction")

    def laws(self) -> PairLaws:
        """What pairs have beyond friction."""
        tables = {name: self._table(name) for name in PROPERTIES}
        friction = tables["friction"]
        for (i, j), values in self._pairs.items():
            if "friction" in values and "static_friction" not in values:  # one value for rest and motion
                tables["static_friction"][i, j] = tables["static_friction"][j, i] = values["friction"]
        tables["static_friction"] = np.maximum(tables["static_friction"], friction)
        self._check_pairs(tables)
        acting = any(np.any(table) for name, table in tables.items() if PROPERTIES[name].acts)
        active = bool(acting or np.any(tables["static_friction"] > friction))
        return PairLaws(**tables, active=active)

    def _check_pairs(self, tables: dict[str, np.ndarray]) -> None:
        """What no pair may be, given or combined."""
        for i, j in zip(*np.triu_indices(len(self.known))):
            names = " and ".join(repr(self.known[k].name or f"material {k}") for k in (i, j))
            values = {name: float(table[i, j]) for name, table in tables.items()}
            given = self._pairs.get((int(i), int(j)), {})
            # What only came from the two materials gives way to a pair that was made frictionless or rigid.
            needs = {"rolling_friction": "friction", "spinning_friction": "friction", **DAMPERS}
            for name, needed in needs.items():
                if given.get(needed) == 0.0 and name not in given:
                    tables[name][i, j] = tables[name][j, i] = values[name] = 0.0
            _consistent(f"pair {names}", values)

    def _table(self, name: str) -> np.ndarray:
        combined = PROPERTIES[name].combined
        table = np.array([[combined(a, b, name) for b in self.known] for a in self.known], float)
        for (i, j), values in self._pairs.items():
            if name in values:
                table[i, j] = table[j, i] = values[name]
        return table

    def of_shapes(self, where: str, material: Any, count: int, each: str = "shape") -> tuple[int, ...]:
        """Numbers of the materials of so many shapes (or bodies), given one, one each, or none."""
        if material is None:
            default = next((m for m in self.known if m.name == "default"), None)
            material = default or self.add(Material(name="default"))
        if isinstance(material, (Material, str)) or not isinstance(material, Iterable):
            return (self._index(where, material),) * count
        materials = list(material)
        if len(materials) != count:
            raise SceneError(
                message(
                    where + ".material", f"needs one material or {count}", len(materials), f"Give one for each {each}."
                )
            )
        return tuple(self._index(where, m) for m in materials)

    def joined(self, where: str, other: MaterialTable) -> np.ndarray:
        """Take in another table; returns the numbers of its materials here. Equal ones of one name are one."""
        here = {m.name: k for k, m in enumerate(self.known) if m.name is not None}
        same = [None if m.name is None else here.get(m.name) for m in other.known]
        for material, k in zip(other.known, same):
            if k is not None and self.known[k] != material:
                got, remedy = checks.short(material.name), "Give one of them another name."
                raise SceneError(message(where, "a material of one name is the same everywhere", got, remedy))
        for (i, j), values in other._pairs.items():
            low, high = sorted(-1 if k is None else k for k in (same[i], same[j]))
            pair = low, high
            if self._pairs.get(pair, values) != values:
                names, remedy = " and ".join(repr(other.known[k].name) for k in (i, j)), "Set the pair in one place."
                raise SceneError(message(where, "a pair of materials is the same everywhere", names, remedy))
        numbers = [self._index(where, m) if k is None else k for m, k in zip(other.known, same)]
        for (i, j), values in other._pairs.items():
            i, j = sorted((numbers[i], numbers[j]))
            self._pairs[i, j] = dict(values)
        return np.array(numbers, np.int64)

    def _index(self, where: str, material: Material | str) -> int:
        if isinstance(material, str):
            for i, known in enumerate(self.known):
                if known.name == material:
                    return i
            names = [m.name for m in self.known if m.name is not None]
            raise SceneError(
                message(where, "unknown material", checks.short(material), checks.nearest(material, names))
            )
        if not isinstance(material, Material):
            raise SceneError(
                message(
                    where + ".material",
                    "must be a Material or its name",
                    checks.short(material),
                    "For example Material(friction=0.3).",
                )
            )
        self.add(material)
        return next(i for i, known in enumerate(self.known) if known is material)
