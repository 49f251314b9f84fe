"""Triangles, drawn as spans of pixels row by row.

With the corners A, B, C in the axes of the view, a ray depth d, d = (u, v, 1), meets the plane of the triangle where
1/depth = sum_k e_k(d) / det, where e_A(d) = d . (B x C) and so on, det = A . (B x C), and the weights of
the corners are depth e_k / det. No division by a corner's depth: triangles that reach behind the eye need no clipping.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..kernels import jit
from .camera import View
from .canvas import BAND, Canvas

__all__ = ["Soup", "draw_triangles"]

SLACK = 1e-6
"""Pixels by which triangles are widened, so that rounding leaves no gaps between neighbours."""


class Soup(NamedTuple):
    """Triangles of any shapes, as seen by a view."""

    point: np.ndarray
    """(v, 3) right, down, forward [m]"""
    normal: np.ndarray
    """(v, 3) float32 unit normals in world axes, 0 where triangles are flat"""
    triangle: np.ndarray
    """(t, 3) int64"""
    shape: np.ndarray
    """(t,) int32"""
    two_sided: np.ndarray
    """(t,) whether the inner side is seen, too"""


def draw_triangles(view: View, canvas: Canvas, soup: Soup) -> None:
    """Draw the outer sides of triangles, and the inner ones where they are seen."""
    window = np.empty((len(soup.triangle), 4), np.int32)
    nearest = 1e-9 * np.abs(soup.point).max(initial=1e-300)
    _find_windows(view.lens, soup, nearest, window)
    seen = np.flatnonzero(window[:, 0] <= window[:, 1])
    _draw(view.lens, soup, window, seen, canvas.buffers)


@jit.blockwise(1024, "len(window)")
def _find_windows(block, lens, soup, nearest, window):
    """First and last row and column of each triangle; none where its inner side is turned to an eye that may not see
    it. One that reaches behind the eye may be anywhere."""
    for t in range(block * 1024, min(block * 1024 + 1024, len(window))):
        window[t, 0], window[t, 1], window[t, 2], window[t, 3] = 0, -1, 0, -1
        if _volume(soup, t) >= 0.0 and not soup.two_sided[t]:
            continue
        low_u, high_u, low_v, high_v = math.inf, -math.inf, math.inf, -math.inf
        behind = 0
        for k in range(3):
            p = soup.triangle[t, k]
            z = soup.point[p, 2]
            if z > nearest:
                u, v = soup.point[p, 0] / z, soup.point[p, 1] / z
                low_u, high_u, low_v, high_v = min(low_u, u), max(high_u, u), min(low_v, v), max(high_v, v)
            else:
                behind += 1
        if behind == 3:
            continue
        if behind:
            window[t, 0], window[t, 1], window[t, 2], window[t, 3] = 0, lens.height - 1, 0, lens.width - 1
            continue
        rows, columns = 0.5 * lens.height - 0.5, 0.5 * lens.width - 0.5
        low, high = (
            math.ceil(_inside(low_u * lens.focal + columns - SLACK, lens.width)),
            math.floor(_inside(high_u * lens.focal + columns + SLACK, lens.width)),
        )
        top, bottom = (
            math.ceil(_inside(low_v * lens.focal + rows - SLACK, lens.height)),
            math.floor(_inside(high_v * lens.focal + rows + SLACK, lens.height)),
        )
        low, high, top, bottom = max(low, 0), min(high, lens.width - 1), max(top, 0), min(bottom, lens.height - 1)
        if low <= high:
            window[t, 0], window[t, 1], window[t, 2], window[t, 3] = top, bottom, low, high


@jit.formula
def _inside(place, size):
    """A place, or the nearest that is not far outside the picture."""
    return min(max(place, -2.0), size + 2.0)


@jit.merged_formula
def _corner(soup, t, k):
    p = soup.triangle[t, k]
    return soup.point[p, 0], soup.point[p, 1], soup.point[p, 2]


@jit.merged_formula
def _cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@jit.merged_formula
def _volume(soup, t):
    """A . (B x C): positive where the eye is on the inner side."""
    a = _corner(soup, t, 0)
    e = _cross(_corner(soup, t, 1), _corner(soup, t, 2))
    return a[0] * e[0] + a[1] * e[1] + a[2] * e[2]


@jit.blockwise(BAND, "lens.height")
def _draw(band, lens, soup, window, seen, buffers):
    top, bottom = band * BAND, min(band * BAND + BAND, lens.height) - 1
    for t in seen:
        if window[t, 0] <= bottom and window[t, 1] >= top:
            _draw_one(lens, soup, t, window, (top, bottom), buffers)


@jit.merged_formula
def _draw_one(lens, soup, t, window, band, buffers):
    """The rows of a triangle that lie in a band."""
    a, b, c = _corner(soup, t, 0), _corner(soup, t, 1), _corner(soup, t, 2)
    ea, eb, ec = _cross(b, c), _cross(c, a), _cross(a, b)
    det = a[0] * ea[0] + a[1] * ea[1] + a[2] * ea[2]
    sign = 1.0 if det > 0.0 else -1.0
    ea, eb, ec = _scaled(ea, sign), _scaled(eb, sign), _scaled(ec, sign)
    det = max(abs(det), 1e-300)
    slope = (ea[0] + eb[0] + ec[0]) / det, (ea[1] + eb[1] + ec[1]) / det, (ea[2] + eb[2] + ec[2]) / det
    face = _face(lens, a, b, c, -sign)
    p, q, r = soup.triangle[t, 0], soup.triangle[t, 1], soup.triangle[t, 2]
    flat = soup.normal[p, 0] == 0.0 and soup.normal[p, 1] == 0.0 and soup.normal[p, 2] == 0.0
    middle = 0.5 * lens.width - 0.5
    for row in range(max(band[0], window[t, 0]), min(band[1], window[t, 1]) + 1):
        v = (row + 0.5 - 0.5 * lens.height) / lens.focal
        low, high = float(window[t, 2]), float(window[t, 3])
        for e in (ea, eb, ec):
            rest = e[1] * v + e[2]
            if e[0] > 0.0:
                low = max(low, -rest / e[0] * lens.focal + middle - SLACK)
            elif e[0] < 0.0:
                high = min(high, -rest / e[0] * lens.focal + middle + SLACK)
            elif rest < 0.0:
                high = -1.0
        if low > high:
            continue
        for column in range(math.ceil(low), math.floor(high) + 1):
            u = (column - middle) / lens.focal
            depth = 1.0 / (slope[0] * u + slope[1] * v + slope[2])
            pixel = row * lens.width + column
            near = np.float32(depth)
            if not 0.0 < near < buffers.depth[pixel]:
                continue
            buffers.depth[pixel] = near
            buffers.owner[pixel] = soup.shape[t]
            if len(buffers.normal) == 0:
                continue
            x, y, z = face
            if not flat:
                wa, wb, wc = _at(ea, u, v), _at(eb, u, v), _at(ec, u, v)
                x = wa * soup.normal[p, 0] + wb * soup.normal[q, 0] + wc * soup.normal[r, 0]
                y = wa * soup.normal[p, 1] + wb * soup.normal[q, 1] + wc * soup.normal[r, 1]
                z = wa * soup.normal[p, 2] + wb * soup.normal[q, 2] + wc * soup.normal[r, 2]
                length = math.sqrt(x * x + y * y + z * z)
                scale = (-sign) / (length if length > 0.0 else 1.0)
                x, y, z = x * scale, y * scale, z * scale
            buffers.normal[pixel, 0], buffers.normal[pixel, 1], buffers.normal[pixel, 2] = x, y, z


@jit.merged_formula
def _scaled(e, scale):
    return e[0] * scale, e[1] * scale, e[2] * scale


@jit.merged_formula
def _at(e, u, v):
    return e[0] * u + e[1] * v + e[2]


@jit.merged_formula
def _face(lens, a, b, c, side):
    """Unit normal of a flat triangle in world axes, times a side."""
    n = _cross((b[0] - a[0], b[1] - a[1], b[2] - a[2]), (c[0] - a[0], c[1] - a[1], c[2] - a[2]))
    length = math.sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2])
    n = _scaled(n, side / (length if length > 0.0 else 1.0))
    return (
        n[0] * lens.axes[0, 0] + n[1] * lens.axes[1, 0] + n[2] * lens.axes[2, 0],
        n[0] * lens.axes[0, 1] + n[1] * lens.axes[1, 1] + n[2] * lens.axes[2, 1],
        n[0] * lens.axes[0, 2] + n[1] * lens.axes[1, 2] + n[2] * lens.axes[2, 2],
    )
