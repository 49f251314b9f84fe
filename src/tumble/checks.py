"""Checks of user input. Each returns the value in its final type or raises with a full message."""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from .errors import FileError, OptionsError, SceneError, TumbleError, TumbleWarning, message

QUATERNION_TOLERANCE = 1e-6
SMALLEST, LARGEST = 1e-30, 1e30
"""Sizes of the numbers that are taken. A product of ten of them is still a number: an energy is one of six."""
LARGEST_INTEGER = 2**63 - 1
RANGE = "Use other units of length, mass or time."


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the nearest known one, or the first few."""
    known = sorted(str(k) for k in known)
    alike = 0.5 if len(str(name)) < 4 else 0.55
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=alike)
    if close:
        return f"Did you mean '{_cut(close[0])}'?"
    if not known:
        return "There are none yet."
    shown = ", ".join(map(_cut, known[:8])) + (", ..." if len(known) > 8 else "")
    return f"Known: {shown}."


def _cut(name: str) -> str:
    return name if len(name) <= 60 else name[:57] + "..."


def number(
    where: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    unit: str = "",
    remedy: str = "",
    error: type[TumbleError] = OptionsError,
) -> float:
    """A finite real number within bounds."""
    unit = f" {unit}" if unit else ""
    if not is_real(value):
        raise error(message(where, f"must be a number{unit}", short(value), remedy or "Give a real number."))
    if abs(value) > LARGEST and value not in (math.inf, -math.inf):
        raise error(message(where, f"must be at most {LARGEST:g} in size{unit}", short(value), RANGE))
    out = float(value)
    if not math.isfinite(out):
        raise error(message(where, "must be finite", out, remedy or "Check for overflow or division by zero."))
    if above is not None and not out > above:
        raise error(message(where, f"must be > {above:g}{unit}", out, remedy or f"Give a value above {above:g}."))
    if above == 0.0 and out < SMALLEST:
        raise error(message(where, f"must be >= {SMALLEST:g}{unit}", out, RANGE))
    if at_least is not None and not out >= at_least:
        raise error(message(where, f"must be >= {at_least:g}{unit}", out, remedy or f"Give at least {at_least:g}."))
    if at_most is not None and not out <= at_most:
        raise error(message(where, f"must be <= {at_most:g}{unit}", out, remedy or f"Give at most {at_most:g}."))
    return out


def integer(
    where: str,
    value: Any,
    *,
    at_least: int,
    at_most: int = LARGEST_INTEGER,
    remedy: str = "",
    error: type[TumbleError] = OptionsError,
) -> int:
    """A whole number within bounds, of 64 bits."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise error(message(where, "must be a whole number", short(value), remedy or "Give an integer."))
    if value < at_least:
        raise error(message(where, f"must be >= {at_least}", short(value), remedy or f"Give at least {at_least}."))
    if value > LARGEST_INTEGER:
        raise error(message(where, "must be below 2^63", short(value), remedy or "Give a smaller number."))
    if value > at_most:
        raise error(message(where, f"must be <= {at_most}", short(value), remedy or f"Give at most {at_most}."))
    return int(value)


def flag(where: str, value: Any, *, error: type[TumbleError] = OptionsError) -> bool:
    """True or False, nothing that merely looks like it."""
    if not isinstance(value, (bool, np.bool_)):
        raise error(message(where, "must be True or False", short(value), "Give a boolean."))
    return bool(value)


def choice(where: str, value: Any, known: Iterable[str], *, error: type[TumbleError] = OptionsError) -> str:
    """One of a closed set of words."""
    known = list(known)
    if not isinstance(value, str) or value not in known:
        hint = nearest(value, known) if isinstance(value, str) else "Known"
        hint = "Give one of these words." if hint.startswith("Known") else hint
        raise error(message(where, "must be one of " + ", ".join(known), short(value), hint))
    return str(value)


def array(
    where: str,
    value: Any,
    shape: tuple[int | None, ...],
    *,
    unit: str = "",
    largest: float = LARGEST,
    error: type[TumbleError] = SceneError,
) -> np.ndarray:
    """A finite float array of the given shape (None: any length), as a new C-contiguous copy."""
    wanted = "(" + ", ".join("n" if s is None else str(s) for s in shape) + ("," if len(shape) == 1 else "") + ")"
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "iufO" or (raw.dtype.kind == "O" and not all(map(is_real, raw.flat))):
            raise TypeError("texts, booleans and complex numbers are not taken for real numbers")
        out = np.array(raw, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise error(
            message(where, f"must be numbers of shape {wanted}", short(value), "Give a list or array of numbers.")
        ) from None
    if out.ndim != len(shape) or any(s is not None and s != o for s, o in zip(shape, out.shape)):
        raise error(message(where, f"must have shape {wanted}", f"shape {out.shape}", "Check the number of values."))
    if not np.all(np.isfinite(out)):
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(out))[0])
        raise error(
            message(where, "must be finite", f"{out[at]} at index {list(at)}", "Check the input for NaN and infinity.")
        )
    if np.abs(out).max(initial=0.0) > largest:
        at = tuple(int(i) for i in np.unravel_index(np.argmax(np.abs(out)), out.shape))
        got = f"{out[at]} at index {list(at)}"
        raise error(message(where, f"must be at most {largest:g} in size {unit}".rstrip(), got, RANGE))
    return out


def vector(where: str, value: Any, *, error: type[TumbleError] = SceneError) -> np.ndarray:
    """A finite 3-vector."""
    return array(where, value, (3,), error=error)


def direction(where: str, value: Any, *, error: type[TumbleError] = SceneError) -> np.ndarray:
    """A vector (3,) of any length but zero, made one of length one."""
    v = vector(where, value, error=error)
    length = float(np.linalg.norm(v))
    if length < SMALLEST:
        raise error(message(where, "must have a direction", v.tolist(), "Give a vector of any length, like (0, 0, 1)."))
    return v / length


def positive_array(
    where: str, value: Any, count: int, *, unit: str, error: type[TumbleError] = SceneError
) -> np.ndarray:
    """A scalar or (count,) array of positive numbers, broadcast to (count,)."""
    if dimensions(value) == 0:
        return np.full(count, number(where, value, above=0.0, unit=unit, error=error))
    out = array(where, value, (count,), error=error)
    bad = np.flatnonzero(out < SMALLEST)
    if bad.size:
        worst = float(out[bad[0]])
        rule, remedy = ("> 0", f"Give positive values in {unit}.") if worst <= 0.0 else (f">= {SMALLEST:g}", RANGE)
        raise error(message(where, f"must be {rule} {unit}", f"{worst} at index {int(bad[0])}", remedy))
    return out


def quaternions(where: str, value: Any, count: int, *, error: type[TumbleError] = SceneError) -> np.ndarray:
    """Unit quaternions (count, 4) as (w, x, y, z). Within 1e-6 of unit length they are normalised, else refused."""
    value = as_quaternions(value)
    out = array(where, value, (count, 4), error=error)
    length = np.sqrt(np.einsum("ij,ij->i", out, out))
    bad = np.flatnonzero(~(np.abs(length - 1.0) <= QUATERNION_TOLERANCE))
    if bad.size:
        raise error(
            message(
                where,
                "must be a unit quaternion (w, x, y, z)",
                f"length {length[bad[0]]:.9g} at index {int(bad[0])}",
                "Divide it by its length; (1, 0, 0, 0) is no rotation.",
            )
        )
    return out / length[:, None]


def quaternion(where: str, value: Any, *, error: type[TumbleError] = SceneError) -> np.ndarray:
    """One unit quaternion (4,)."""
    return quaternions(where, array(where, as_quaternions(value), (4,), error=error)[None], 1, error=error)[0]


def as_quaternions(value: Any) -> Any:
    """A `scipy.spatial.transform.Rotation`, which tells x, y, z, w, as w, x, y, z; all else as it is."""
    return np.roll(value.as_quat(), 1, axis=-1) if hasattr(value, "as_quat") else value


def warn_of_order(where: str, value: Any) -> None:
    """Say so where an orientation looks like "no rotation" in the order x, y, z, w of other programs."""
    if dimensions(value) == 1 and np.array_equal(value, (0.0, 0.0, 0.0, 1.0)):
        rule, got = "is a half turn about z, since quaternions are (w, x, y, z)", "(0, 0, 0, 1)"
        remedy = "No rotation is (1, 0, 0, 0); for the half turn say axis_angle((0, 0, 1), degrees=180)."
        warnings.warn(message(where, rule, got, remedy), TumbleWarning, stacklevel=4)


def dimensions(value: Any) -> int:
    """Number of dimensions of what may become an array; -1 for ragged lists."""
    try:
        return int(np.ndim(value))
    except ValueError:
        return -1


def seed(where: str, value: Any, *, error: type[TumbleError] = SceneError) -> int:
    """A seed of random numbers."""
    return integer(where, value, at_least=0, remedy="Give a whole number, 0 or above.", error=error)


def file_name(where: str, value: Any, example: str, *, error: type[TumbleError] = FileError) -> Path:
    """A text or path that names a file."""
    if not isinstance(value, (str, Path)) or not str(value):
        raise error(message(where, "must be a file name", short(value), f"For example '{example}'."))
    return Path(value)


def is_real(value: Any) -> bool:
    """Whether a value is a real number; True and False are none."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))


def short(value: Any) -> str:
    """A value for a message, whatever it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of thousands of digits, lists in lists in lists
        text = f"a {type(value).__name__} too large to print"
    return text if len(text) <= 60 else text[:57] + "..."
