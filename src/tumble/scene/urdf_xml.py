"""The XML of a URDF file: what must be there, which numbers it holds, and what of it is not honoured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from ..errors import FileError, SceneError, message

__all__ = ["Notes", "check", "check_unique", "parsed", "prune"]

CHILDREN = {
    "robot": {"link", "joint"},
    "link": {"inertial", "collision"},
    "inertial": {"origin", "mass", "inertia"},
    "collision": {"origin", "geometry"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"},
}
"""Elements that are honoured; others are named in `ignored`."""
ATTRIBUTES = {
    "limit": {"lower", "upper", "effort"},
    "dynamics": {"damping", "friction"},
    "mimic": {"joint", "multiplier", "offset"},
    "mesh": {"filename", "scale"},
    "link": {"name"},
    "joint": {"name", "type"},
}
"""Attributes that are honoured; others of these elements are named in `ignored`."""
SHAPES = {"box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",), "mesh": ("filename",)}
REQUIRED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "link": (("name",), ()),
    "joint": (("name", "type"), ("parent", "child")),
    "parent": (("link",), ()),
    "child": (("link",), ()),
    "inertial": ((), ("mass", "inertia")),
    "mass": (("value",), ()),
    "inertia": (("ixx", "iyy", "izz"), ()),
    "collision": ((), ("geometry",)),
    "axis": (("xyz",), ()),
    "mimic": (("joint",), ()),
    **{tag: (names, ()) for tag, names in SHAPES.items()},
}
"""Attributes and children that an element must have."""
NUMBERS = {
    **{("origin", key): (3,) for key in ("xyz", "rpy")},
    **{("inertia", key): (1,) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")},
    **{("limit", key): (1,) for key in ("lower", "upper", "effort")},
    **{("dynamics", key): (1,) for key in ("damping", "friction")},
    **{("mimic", key): (1,) for key in ("multiplier", "offset")},
    ("mass", "value"): (1,),
    ("axis", "xyz"): (3,),
    ("box", "size"): (3,),
    ("cylinder", "radius"): (1,),
    ("cylinder", "length"): (1,),
    ("sphere", "radius"): (1,),
    ("mesh", "scale"): (1, 3),
}
"""How many numbers an attribute holds."""
DEEPEST = 50
"""Levels of elements, among them some of others that are not honoured."""


@dataclass
class Notes:
    """What was ignored, and whose it was."""

    found: dict[str, list[str]] = field(default_factory=dict)

    def add(self, what: str, whose: str) -> None:
        self.found.setdefault(what, []).append(whose)

    def lines(self) -> tuple[str, ...]:
        return tuple(f"{what}: {', '.join(dict.fromkeys(whose))}" for what, whose in self.found.items())


def parsed(path: Path) -> ElementTree.Element:
    try:
        tree = ElementTree.fromstring(path.read_bytes())
    except OSError as cause:
        raise FileError(
            message(str(path), "must be a readable file", cause.strerror, "Check the file name.")
        ) from cause
    except (ElementTree.ParseError, ValueError, LookupError) as cause:  # ValueError, LookupError: unknown encodings
        raise FileError(message(str(path), "must be valid XML", cause, "Correct this line.")) from cause
    if _deeper(tree, DEEPEST):
        got, remedy = f"more than {DEEPEST} levels", "A robot has five: robot, link, collision, geometry, box."
        raise FileError(message(str(path), "must not be nested so deep", got, remedy))
    if any("xacro" in e.tag for e in tree.iter()) or path.suffix == ".xacro":
        raise FileError(message(str(path), "must be a plain URDF", "xacro", "Expand it with xacro first."))
    if tree.tag != "robot":
        raise FileError(message(str(path), "must have the root element <robot>", f"<{tree.tag}>", "Give a URDF file."))
    return tree


def _deeper(tree: ElementTree.Element, levels: int) -> bool:
    """Whether there are elements so many levels below the root."""
    row = [tree]
    for _ in range(levels):
        row = [child for element in row for child in element]
    return bool(row)


def prune(element: ElementTree.Element, owner: str, notes: Notes) -> None:
    """Take out what is not honoured, and note it."""
    kept = CHILDREN.get(element.tag)
    for child in list(element):
        name = child.get("name")
        inside = f"{child.tag} '{name}'" if child.tag in ("link", "joint") else owner
        if kept is not None and child.tag not in kept:
            element.remove(child)
            whose = owner or (f"'{name or child.get('reference')}'" if len(child.attrib) else "robot")
            notes.add(child.tag, whose)
            continue
        for key in set(child.attrib) - ATTRIBUTES.get(child.tag, set(child.attrib)):
            notes.add(f"{child.tag} {key}", inside)
        prune(child, inside, notes)


def check(path: Path, element: ElementTree.Element, place: str) -> None:
    """Attributes, children and numbers that must be there."""
    where = f"{path}{place}"
    attributes, children = REQUIRED.get(element.tag, ((), ()))
    for key in attributes:
        if not element.get(key):
            raise SceneError(message(where, f"<{element.tag}> needs the attribute {key}", "nothing", "Add it."))
    for tag in children:
        if element.find(tag) is None:
            raise SceneError(message(where, f"<{element.tag}> needs a <{tag}>", "nothing", "Add it."))
    if element.tag == "geometry" and (len(element) != 1 or element[0].tag not in SHAPES):
        got = ", ".join(f"<{e.tag}>" for e in element) or "nothing"
        raise SceneError(
            message(where, "a geometry is one box, cylinder, sphere or mesh", got, "Use one collision for each shape.")
        )
    for key, text in element.attrib.items():
        counts = NUMBERS.get((element.tag, key))
        if counts and not _numeric(text, counts):
            wanted = " or ".join(map(str, counts)) + (" finite number" if counts == (1,) else " finite numbers")
            raise SceneError(
                message(f"{where}: {element.tag}.{key}", f"must be {wanted}", repr(text), "Correct this value.")
            )
    for child in element:
        named = child.tag in ("link", "joint")
        inside = f": {child.tag} '{child.get('name', '')}'" if named else place
        check(path, child, inside)


def _numeric(text: str, counts: Sequence[int]) -> bool:
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        return False
    return len(numbers) in counts and all(map(math.isfinite, numbers))


def check_unique(path: Path, tag: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise SceneError(message(str(path), f"names of {tag}s are unique", repr(name), "Rename one of them."))
