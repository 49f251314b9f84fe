"""Triangles, drawn as spans of pixels row by row.

With the corners A, B, C in the axes of the view, a ray depth d, d = (u, v, 1), meets the plane of the triangle where
1/depth = sum_k e_k(d) / det, where e_A(d) = d . (B x C) and so on, det = A . (B x C), and the weights of
the corners are depth e_k / det. No division by a corner's depth: triangles that reach behind the eye need no clipping.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .camera import View, turned
from .canvas import Canvas
from .ragged import portions, ranges

__all__ = ["Soup", "draw_triangles"]

ROWS, FRAGMENTS = 2**20, 2**20
"""Rows of triangles and pixels in a portion."""
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


class _Edges(NamedTuple):
    """What the pixels of triangles (t of them) need; signs are such that det > 0."""

    edge: np.ndarray
    """(3, 3, t): the vectors of e_A, e_B, e_C"""
    slope: np.ndarray
    """(3, t): their sum over det, so that 1/depth = slope . (u, v, 1)"""
    det: np.ndarray
    """(t,)"""
    inner: np.ndarray
    """(t,) whether the inner side is seen"""
    flat: np.ndarray
    """(t,) whether the normal does not vary"""
    face: np.ndarray
    """(t, 3) float32 unit normals of the flat ones, in world axes"""


def draw_triangles(view: View, canvas: Canvas, soup: Soup) -> None:
    """Draw the outer sides of triangles, and the inner ones where they are seen."""
    number, low, high = _in_view(view, soup)
    soup = soup._replace(triangle=soup.triangle[number], shape=soup.shape[number])
    count = high[:, 0] - low[:, 0] + 1
    for part in portions(count, ROWS):
        piece = soup._replace(triangle=soup.triangle[part], shape=soup.shape[part])
        edges = _edges(view, piece)
        triangle, row = ranges(low[part, 0], count[part])
        start, length = _spans(view, edges.edge, triangle, row, low[part, 1], high[part, 1])
        kept = np.flatnonzero(length)
        triangle, row, start, length = triangle[kept], row[kept], start[kept], length[kept]
        for some in portions(length, FRAGMENTS):
            _draw_spans(view, canvas, piece, edges, triangle[some], row[some], start[some], length[some])


def _in_view(view: View, soup: Soup) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triangles (t,) that may cover a pixel, and their first and last (row, column), (t, 2) each."""
    x, y, z = soup.point.T
    front = z > 1e-9 * np.abs(soup.point).max(initial=1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        column = np.where(front, view.column(x / z), np.nan)
        row = np.where(front, view.row(y / z), np.nan)
    a, b, c = soup.triangle.T
    turn = (column[b] - column[a]) * (row[c] - row[a]) - (column[c] - column[a]) * (row[b] - row[a])
    candidates = np.flatnonzero(~(turn >= 0.0) | soup.two_sided)
    low, high = [], []
    for places, size in ((row, view.height), (column, view.width)):
        p, q, r = (places[k[candidates]] for k in (a, b, c))
        least, most = np.minimum(np.minimum(p, q), r), np.maximum(np.maximum(p, q), r)  # NaN behind the eye
        low.append(np.ceil(np.nan_to_num(least, nan=0.0) - SLACK).clip(0, size))
        high.append(np.floor(np.where(np.isnan(most), size, most) + SLACK).clip(-1, size - 1))
    low, high = np.stack(low, axis=1).astype(np.int64), np.stack(high, axis=1).astype(np.int64)
    kept = np.all(low <= high, axis=1)
    behind = np.flatnonzero(np.isnan(turn[candidates]) & kept)
    kept[behind] = _meets_frustum(view, soup.point[soup.triangle[candidates[behind]]])
    return candidates[kept], low[kept], high[kept]


def _meets_frustum(view: View, corner: np.ndarray) -> np.ndarray:
    """Whether triangles (t, 3, 3) are not wholly on the outer side of one plane of the view."""
    x, y, z = np.moveaxis(corner, -1, 0)
    wide, tall = view.width / (2 * view.focal), view.height / (2 * view.focal)
    inside = (z > 0, x < wide * z, x > -wide * z, y < tall * z, y > -tall * z)
    return np.logical_and.reduce([side.any(axis=1) for side in inside])


def _edges(view: View, soup: Soup) -> _Edges:
    a, b, c = (np.ascontiguousarray(soup.point[soup.triangle[:, k]].T) for k in range(3))
    edge = np.stack([_cross(b, c), _cross(c, a), _cross(a, b)])
    det = a[0] * edge[0, 0] + a[1] * edge[0, 1] + a[2] * edge[0, 2]
    inner = det > 0.0
    edge *= np.where(inner, 1.0, -1.0)
    det = np.maximum(np.abs(det), 1e-300)
    flat = ~soup.normal[soup.triangle[:, 0]].any(axis=1)
    return _Edges(edge, edge.sum(axis=0) / det, det, inner, flat, _faces(view, soup, flat))


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross products of (3, t)."""
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _spans(
    view: View, edge: np.ndarray, triangle: np.ndarray, row: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """First column and number of columns (s,) of triangles in rows, between columns left and right (t,)."""
    v = view.v[row]
    low, high = left[triangle].astype(float), right[triangle].astype(float)
    for x, y, z in edge:
        slope = x[triangle]
        rest = y[triangle] * v + z[triangle]
        with np.errstate(divide="ignore", invalid="ignore"):
            place = view.column(-rest / slope)
        low = np.where(slope > 0.0, np.maximum(low, place - SLACK), low)
        high = np.where(slope < 0.0, np.minimum(high, place + SLACK), high)
        high = np.where((slope == 0.0) & (rest < 0.0), -1.0, high)
    first = np.ceil(np.minimum(low, view.width)).astype(np.int64)
    last = np.floor(np.maximum(high, -1.0)).astype(np.int64)
    return first, np.maximum(last - first + 1, 0)


def _draw_spans(view, canvas, soup, edges, triangle, row, start, length) -> None:
    """Draw spans (s,) of triangles."""
    v = view.v[row]
    slope = edges.slope[0][triangle]
    rest = edges.slope[1][triangle] * v + edges.slope[2][triangle]
    span, column = ranges(start, length)
    with np.errstate(divide="ignore"):
        depth = 1.0 / (slope[span] * view.u[column] + rest[span])

    def normals(seen: np.ndarray) -> np.ndarray:
        where, u = triangle[span[seen]], view.u[column[seen]]
        return _normals(soup, edges, where, u, v[span[seen]], depth[seen])

    canvas.offer(row[span] * view.width + column, depth, soup.shape[triangle][span], normals)


def _normals(soup: Soup, edges: _Edges, triangle, u, v, depth) -> np.ndarray:
    """Unit normals (k, 3) at pixels of triangles, on the side that is seen."""
    out = edges.face[triangle]
    bent = np.flatnonzero(~edges.flat[triangle])
    if bent.size:
        out[bent] = _blended(soup, edges, triangle[bent], u[bent], v[bent], depth[bent])
    if edges.inner.any():
        out[edges.inner[triangle]] *= np.float32(-1.0)
    return out


def _faces(view: View, soup: Soup, flat: np.ndarray) -> np.ndarray:
    """Unit normals (t, 3) of the flat triangles, in world axes; 0 for others."""
    a, b, c = (soup.point[soup.triangle[flat, k]] for k in range(3))
    face = turned(np.cross(b - a, c - a), view.axes)
    size = np.linalg.norm(face, axis=1)[:, None]
    out = np.zeros((len(flat), 3), np.float32)
    out[flat] = face / np.where(size > 0.0, size, 1.0)
    return out


def _blended(soup: Soup, edges: _Edges, triangle, u, v, depth) -> np.ndarray:
    """Unit normals (k, 3) between those of the corners."""
    scale = (depth / edges.det[triangle]).astype(np.float32)
    out = np.zeros((len(triangle), 3), np.float32)
    for k, (x, y, z) in enumerate(edges.edge):
        weight = (x[triangle] * u + y[triangle] * v + z[triangle]) * scale
        out += weight.astype(np.float32)[:, None] * soup.normal[soup.triangle[triangle, k]]
    length = np.sqrt(np.einsum("ij,ij->i", out, out))
    return out / np.where(length > 0.0, length, np.float32(1.0))[:, None]
