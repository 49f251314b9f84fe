"""How much memory a scene needs, and how much there is."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import MemoryLimitError, message

__all__ = [
    "CONTACTS_A_BODY",
    "FLAT_CONTACTS_A_BODY",
    "available",
    "check",
    "check_device",
    "check_bodies",
    "check_packing",
    "run_bytes",
]

BUILD_BYTES = 900
"""A body of one shape in the builder and the model [bytes]."""
DEVICE_BODY_BYTES, DEVICE_CONTACT_BYTES = 2900, 1100
"""The same on a device, a body with its shape, pairs and contacts found, and a contact with the solver's copies; ten
million spheres with 3.2 contacts each took 6700 bytes a sphere."""
DEVICE_CONTACTS_A_BODY = 3
"""Of what is poured; a dense packing has twice as many."""
POINT_BYTES = 150
"""A point of a packing while it is made [bytes]."""
BODY_BYTES, SHAPE_BYTES, CONTACT_BYTES = 1400, 1000, 950
"""State, workspace and problem of a running simulation [bytes]; measured with 62000 spheres and 20000 boxes."""
CONTACTS_A_BODY, FLAT_CONTACTS_A_BODY = 6, 28
"""A dense packing of balls has six contacts a body. Boxes face to face share 4 points with each of 6 neighbours, 2 with
12 across edges and 1 with 8 across corners, half of them their own: 12 + 12 + 4."""


def available() -> int | None:
    """Bytes that this process may still take: what the machine has left, or its control group; None: unknown."""
    bounds = [_machine(), *_control_group()]
    known = [b for b in bounds if b is not None]
    return max(0, min(known)) if known else None


def run_bytes(bodies: int, shapes: int, contacts: int) -> int:
    """Estimate of what a running simulation takes beyond its model."""
    return BODY_BYTES * bodies + SHAPE_BYTES * shapes + CONTACT_BYTES * contacts


def check_device(where: str, bodies: int, free: int, total: int) -> str | None:
    """Refuse so many bodies that a device cannot hold them; words of warning where they may not fit once packed."""
    least = (DEVICE_BODY_BYTES + DEVICE_CONTACT_BYTES * DEVICE_CONTACTS_A_BODY) * bodies
    dense = least + DEVICE_CONTACT_BYTES * DEVICE_CONTACTS_A_BODY * bodies
    got = f"{size(free)} free of {size(total)} on the device"
    if least > free:
        rule = f"needs about {size(least)} of a device's memory for {bodies} bodies"
        raise MemoryLimitError(message(where, rule, got, "Use fewer bodies, or backend='cpu'."))
    if dense > free:
        rule = f"may need {size(dense)} of the device's memory for {bodies} bodies with six contacts each"
        return message(where, rule, got, "It goes on; a step that finds no memory is refused and changes nothing.")
    return None


def check(where: str, need: int, what: str) -> None:
    """Refuse what does not fit."""
    room = available()
    if room is not None and need > room:
        raise MemoryLimitError(
            message(
                where,
                f"needs about {size(need)} of memory for {what}",
                f"{size(room)} available",
                "Use fewer bodies, or a machine with more memory.",
            )
        )


def check_bodies(where: str, count: int) -> None:
    """Refuse so many bodies in a scene before they are made."""
    check(where, BUILD_BYTES * int(count), f"{int(count)} bodies")


def check_packing(where: str, count: int) -> None:
    """Refuse a packing of so many bodies that could not be simulated, before its points are made."""
    n = int(count)
    check(where, (POINT_BYTES + BUILD_BYTES) * n + run_bytes(n, n, CONTACTS_A_BODY * n), f"{n} bodies")


def size(count: int) -> str:
    """Bytes for people."""
    return f"{count / 1e9:.3g} GB" if count >= 1e8 else f"{count / 1e6:.3g} MB"


def _machine() -> int | None:
    """What the machine has free or can free at once."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _control_group() -> list[int]:
    """What Linux control groups (version 2) leave of their limits: this process's own and the outermost."""
    root = Path("/sys/fs/cgroup")
    folders = {root}
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::"):
                folders.add(root / line[3:].strip().lstrip("/"))
    except OSError:
        return []
    found = []
    for folder in folders:
        try:
            limit, used = int((folder / "memory.max").read_text()), int((folder / "memory.current").read_text())
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):  # no such group, or no limit ("max")
            continue
        found.append(limit - used + int(stat.get("inactive_file", 0)))
    return found
