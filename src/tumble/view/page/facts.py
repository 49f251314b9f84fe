"""The numbers of a body, as the page shows them."""

from __future__ import annotations

import numpy as np

from ...errors import TumbleError
from ..snapshot import Snapshot

__all__ = ["facts_of"]


def facts_of(shot: Snapshot, body: int) -> str:
    """A few lines about a body of a snapshot."""
    model, speed = shot.model, None
    lines = [model.name(body), f"mass {float(model.body_mass[body]):.4g} kg"]
    lines.append("position " + _vector(shot.position[body]) + " m")
    try:
        velocity = shot.velocity[body]
        speed = float(np.linalg.norm(velocity))
        lines += [f"velocity {_vector(velocity)} m/s", f"speed {speed:.4g} m/s"]
    except TumbleError:
        lines.append("velocity not recorded")
    try:
        c = shot.contacts
        on_a, on_b = c["body_a"] == body, c["body_b"] == body
        force = c["force"][on_b].sum(axis=0) - c["force"][on_a].sum(axis=0)
        lines.append(f"contacts {int(on_a.sum() + on_b.sum())}")
        lines += [f"force of contacts {_vector(force)} N", f"sum of their sizes {shot.load[body]:.4g} N"]
    except TumbleError:
        lines.append("contacts not recorded (tumble run --contacts)")
    return "\n".join(lines)


def _vector(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in values) + ")"
