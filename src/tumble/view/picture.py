"""Pictures without a display: a z-buffer in NumPy, with a shadow map and darkened crevices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import checks
from ..enums import BodyKind, ShapeKind
from ..errors import FileError, OptionsError, message
from ..scene import rotation

__all__ = ["Camera", "auto_camera", "render"]

PALETTE = np.array([[231, 111, 81], [244, 162, 97], [233, 196, 106], [138, 177, 125], [42, 157, 143],
                    [69, 123, 157], [143, 124, 176], [217, 143, 158]]) / 255.0
RAMP = np.array([[38, 70, 131], [42, 157, 143], [163, 190, 108], [233, 196, 106], [231, 111, 81]]) / 255.0
STATIC_COLOR = np.array([0.80, 0.80, 0.82])
FLOOR_COLORS = np.array([[0.885, 0.89, 0.90], [0.80, 0.81, 0.825]], np.float32)
SKY_LOW, SKY_HIGH = np.array([0.955, 0.96, 0.965]), np.array([0.80, 0.86, 0.92])
SHADOW_PIXELS = 1024
BAND = 96
NO_SHAPE = -1


@dataclass(frozen=True, kw_only=True)
class Camera:
    """Where the picture is taken from; z is up."""

    eye: tuple[float, float, float]
    """[m]"""
    target: tuple[float, float, float]
    """Point in the middle of the picture [m]."""
    field_of_view: float = 32.0
    """Vertical opening angle [degrees]."""

    def __post_init__(self) -> None:
        eye = checks.vector("Camera.eye", self.eye, error=OptionsError)
        if np.array_equal(eye, checks.vector("Camera.target", self.target, error=OptionsError)):
            raise OptionsError(message("Camera.target", "must differ from eye", eye, "Move one of them."))
        checks.number("Camera.field_of_view", self.field_of_view, above=0.0, at_most=150.0, unit="degrees")


class _View:
    """Rays of a camera: through pixel (i, j) runs eye + depth (u[j] right + v[i] down + forward)."""

    def __init__(self, camera: Camera, size: tuple[int, int]) -> None:
        self.width, self.height = size
        self.eye = np.array(camera.eye, float)
        self.axes = _axes(np.array(camera.target, float) - self.eye)
        top = np.tan(np.deg2rad(camera.field_of_view) / 2)
        self.focal = self.height / (2 * top)
        self.u = (np.arange(self.width) + 0.5 - self.width / 2) / self.focal
        self.v = (np.arange(self.height) + 0.5 - self.height / 2) / self.focal

    def local(self, points: np.ndarray) -> np.ndarray:
        """World points (k, 3) as right, down, forward."""
        return (points - self.eye.astype(points.dtype)) @ self.axes.T.astype(points.dtype)

    def directions(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """World rays (k, 3) with forward part 1, in single precision."""
        u, v, axes = self.u.astype(np.float32), self.v.astype(np.float32), self.axes.astype(np.float32)
        return u[j, None] * axes[0] + (v[i, None] * axes[1] + axes[2])

    def window(self, low: np.ndarray, high: np.ndarray) -> tuple[slice, slice]:
        """Pixels between two corners (2,) given in u and v."""
        j0, i0 = np.floor(low * self.focal + (self.width / 2, self.height / 2)).clip(0, 1e6).astype(int)
        j1, i1 = np.ceil(high * self.focal + (self.width / 2, self.height / 2)).clip(0, 1e6).astype(int)
        return slice(i0, min(i1, self.height)), slice(j0, min(j1, self.width))


@dataclass(frozen=True)
class _Shapes:
    """Shapes (m of them) in world axes."""

    kind: np.ndarray
    body: np.ndarray
    size: np.ndarray
    center: np.ndarray
    turn: np.ndarray
    """(m, 3, 3) columns are the shape's axes"""
    moves: np.ndarray
    """(m,) whether the body is dynamic"""

    @property
    def bound(self) -> np.ndarray:
        """Radius (m,) of the bounding sphere, 0 for half-spaces [m]."""
        return np.where(self.kind == ShapeKind.SPHERE, self.size[:, 0],
                        np.where(self.kind == ShapeKind.BOX, np.linalg.norm(self.size, axis=1), 0.0))


def render(
    model_like: Any,
    position: Any,
    orientation: Any,
    *,
    size: tuple[int, int] = (960, 720),
    camera: Camera | None = None,
    path: str | Path | None = None,
    color_by: Any = None,
) -> np.ndarray:
    """A picture (height, width, 3) uint8 of bodies at position (n, 3) [m] and orientation (n, 4).

    model_like: a `Model` or the `model` of a `Trajectory`. size: width and height [pixels]. camera: None frames
    the dynamic bodies. path: a PNG file to write. color_by: a number for each body (n,), drawn from blue (least)
    to red. Walls between the camera and the bodies are drawn as glass.
    """
    width, height = (checks.integer("render.size", s, at_least=1) for s in size)
    shapes = _world_shapes(model_like, position, orientation)
    camera = camera or _fit(shapes, (width, height))
    view = _View(camera, (2 * width, 2 * height))
    focus = _focus(shapes)
    glass = _glass(shapes, view.eye, focus)
    depth, owner = _rasterize(view, shapes, ~glass)
    colors = _body_colors(model_like, color_by)
    picture = _shade(view, shapes, depth, owner, colors, focus)
    for shape in np.flatnonzero(glass):
        _draw_glass(view, shapes, shape, depth, picture)
    picture = picture.reshape(height, 2, width, 2, 3).mean(axis=(1, 3))
    image = (255.0 * np.clip(picture, 0.0, 1.0) + 0.5).astype(np.uint8)
    if path is not None:
        from matplotlib.image import imsave

        try:
            imsave(path, image, format="png")
        except OSError as cause:
            raise FileError(message(str(path), "must be writable", cause, "Check the folder.")) from cause
    return image


def auto_camera(
    model_like: Any, position: Any, orientation: Any, *, size: tuple[int, int] = (960, 720)
) -> Camera:
    """A raised three-quarter view that holds the dynamic bodies."""
    return _fit(_world_shapes(model_like, position, orientation), size)


# ---------------------------------------------------------------------- geometry


def _world_shapes(model: Any, position: Any, orientation: Any) -> _Shapes:
    count = len(model.body_kind)
    position = checks.array("render.position", position, (count, 3), error=OptionsError)
    orientation = checks.quaternions("render.orientation", orientation, count, error=OptionsError)
    center = position + rotation.rotate(orientation, model.body_center)
    axes = rotation.multiply(orientation, model.body_axes)
    body = np.asarray(model.shape_body)
    return _Shapes(
        np.asarray(model.shape_kind), body, np.asarray(model.shape_parameters, float),
        center[body] + rotation.rotate(axes[body], model.shape_position),
        rotation.matrix(rotation.multiply(axes[body], model.shape_orientation)),
        np.asarray(model.body_kind)[body] == BodyKind.DYNAMIC,
    )


def _axes(forward: np.ndarray) -> np.ndarray:
    """Rows right, down, forward of a camera with z up."""
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    if np.linalg.norm(right) < 1e-9:
        right = np.array([1.0, 0.0, 0.0])
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward])


def _subject(shapes: _Shapes) -> np.ndarray:
    """Shapes worth looking at: the dynamic ones without a few strays, or else all of finite size."""
    finite = shapes.kind != ShapeKind.HALF_SPACE
    chosen = np.flatnonzero(finite & shapes.moves)
    if not chosen.size:
        return np.flatnonzero(finite)
    low, high = np.percentile(shapes.center[chosen], (2, 98), axis=0)
    reach = np.max(high - low) + 4 * shapes.bound[chosen].max()
    near = np.all((shapes.center[chosen] > low - reach) & (shapes.center[chosen] < high + reach), axis=1)
    return chosen[near]


def _focus(shapes: _Shapes) -> tuple[np.ndarray, float]:
    """Centre (3,) and radius of a ball about the subject [m]."""
    chosen = _subject(shapes)
    if not chosen.size:
        return np.zeros(3), 1.0
    reach = shapes.bound[chosen][:, None]
    low, high = (shapes.center[chosen] - reach).min(axis=0), (shapes.center[chosen] + reach).max(axis=0)
    return (low + high) / 2, float(np.linalg.norm(high - low) / 2)


def _corners(shapes: _Shapes, boxes: np.ndarray) -> np.ndarray:
    """Corners (k, 8, 3) of boxes."""
    signs = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, 8).T
    arms = signs * shapes.size[boxes, None, :]
    return shapes.center[boxes, None, :] + np.einsum("kij,kcj->kci", shapes.turn[boxes], arms)


def _fit(shapes: _Shapes, size: tuple[int, int]) -> Camera:
    middle, radius = _focus(shapes)
    azimuth, elevation, angle = np.deg2rad(-58.0), np.deg2rad(27.0), 32.0
    flat = np.cos(elevation)
    back = np.array([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])
    shown = np.zeros(len(shapes.kind), bool)
    shown[_subject(shapes)] = True
    near = np.linalg.norm(shapes.center - middle, axis=1) + shapes.bound < 2.5 * radius  # its container
    balls = np.flatnonzero(shown & (shapes.kind == ShapeKind.SPHERE))
    boxes = np.flatnonzero((shown | near) & (shapes.kind == ShapeKind.BOX))
    points = np.concatenate([shapes.center[balls], _corners(shapes, boxes).reshape(-1, 3), middle[None]])
    reach = np.zeros(len(points))
    reach[:len(balls)] = 1.15 * shapes.size[balls, 0]
    axes, top = _axes(-back), np.tan(np.deg2rad(angle) / 2)
    slope = np.array([top * size[0] / size[1], top])
    local = (points - middle) @ axes.T
    distance = 0.0
    for _ in range(4):  # centring changes the distance a little
        distance = max(np.max((np.abs(local[:, :2]) + reach[:, None]) / slope - local[:, 2:]), 1e-9)
        span = local[:, :2] / (distance + local[:, 2:])
        shift = distance * (span.max(axis=0) + span.min(axis=0)) / 2
        local[:, :2] -= shift
        middle = middle + shift @ axes[:2]
    distance = max(1.08 * distance, 1e-3 * radius) if len(points) > 1 else 4.0 * radius
    return Camera(eye=tuple(middle + distance * back), target=tuple(middle), field_of_view=angle)


def _glass(shapes: _Shapes, eye: np.ndarray, focus: tuple[np.ndarray, float]) -> np.ndarray:
    """Plates (m,) of bodies that are not dynamic and stand between the eye and the subject."""
    rows = np.arange(len(shapes.kind))
    order = np.argsort(shapes.size, axis=1)
    thin = shapes.size[rows, order[:, 0]] < 0.25 * shapes.size[rows, order[:, 1]]
    normal = shapes.turn[rows, :, order[:, 0]]
    sides = (np.einsum("ij,ij->i", normal, eye - shapes.center)
             * np.einsum("ij,ij->i", normal, focus[0] - shapes.center))
    return (shapes.kind == ShapeKind.BOX) & ~shapes.moves & thin & (sides < 0.0)


# ---------------------------------------------------------------------- z-buffer


def _rasterize(view: _View, shapes: _Shapes, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Depth along the axis of the view (h, w), inf where nothing is, and the shape seen there (h, w)."""
    depth = np.full((view.height, view.width), np.inf)
    owner = np.full((view.height, view.width), NO_SHAPE, np.int32)
    local = view.local(shapes.center)
    nearest = local[:, 2] - shapes.bound
    nearest[shapes.kind == ShapeKind.HALF_SPACE] = np.inf  # floors last
    inverse = 1.0 / (1.0 + view.u**2 + view.v[:, None] ** 2)
    for shape in np.argsort(nearest, kind="stable"):
        if not shown[shape] or local[shape, 2] + shapes.bound[shape] <= 0 < shapes.bound[shape]:
            continue
        window = _window(view, local[shape], shapes, shape)
        old = depth[window]
        if not old.size or (np.isfinite(nearest[shape]) and old.max() <= nearest[shape]):
            continue
        new = _depth(view, window, shapes, shape, local[shape], inverse)
        with np.errstate(invalid="ignore"):
            closer = new < old
        np.copyto(old, new, where=closer)
        np.copyto(owner[window], np.int32(shape), where=closer)
    return depth, owner


def _window(view: _View, center: np.ndarray, shapes: _Shapes, shape: int) -> tuple[slice, slice]:
    everything = slice(0, view.height), slice(0, view.width)
    if shapes.kind[shape] == ShapeKind.SPHERE:
        radius, flat = shapes.size[shape, 0], np.hypot(center[:2], center[2])
        if np.any(flat <= radius) or center[2] <= radius:
            return everything
        middle, half = np.arctan2(center[:2], center[2]), np.arcsin(radius / flat)
        return view.window(np.tan(middle - half), np.tan(middle + half))
    if shapes.kind[shape] == ShapeKind.BOX:
        corners = view.local(_corners(shapes, np.array([shape]))[0])
        if np.all(corners[:, 2] > 1e-6 * shapes.bound[shape]):
            flat = corners[:, :2] / corners[:, 2:]
            return view.window(flat.min(axis=0), flat.max(axis=0))
    return everything


def _depth(view: _View, window: tuple[slice, slice], shapes: _Shapes, shape: int, center: np.ndarray,
           inverse: np.ndarray) -> np.ndarray:
    """Depth of one shape in a window, NaN or inf where the ray misses it."""
    u, v = view.u[window[1]], view.v[window[0]][:, None]
    kind = shapes.kind[shape]
    with np.errstate(invalid="ignore", divide="ignore"):
        if kind == ShapeKind.SPHERE:
            scale = inverse[window]
            middle = (u * center[0] + (v * center[1] + center[2])) * scale
            excess = center @ center - shapes.size[shape, 0] ** 2
            out = middle - np.sqrt(middle * middle - excess * scale)
        else:
            axes = view.axes @ shapes.turn[shape]
            origin = (view.eye - shapes.center[shape]) @ shapes.turn[shape]
            if kind == ShapeKind.HALF_SPACE:
                slope = u * axes[0, 2] + (v * axes[1, 2] + axes[2, 2])
                out = np.where((slope < 0.0) & (origin[2] > 0.0), -origin[2] / slope, np.inf)
            else:
                enter, leave = -np.inf, np.inf
                for k in range(3):
                    slope = 1.0 / (u * axes[0, k] + (v * axes[1, k] + axes[2, k]))
                    half = shapes.size[shape, k] * np.abs(slope)
                    middle = -origin[k] * slope
                    enter, leave = np.maximum(enter, middle - half), np.minimum(leave, middle + half)
                out = np.where(enter < leave, enter, np.inf)
        return np.where(out > 0.0, out, np.inf)


# ---------------------------------------------------------------------- light


def _body_colors(model: Any, color_by: Any) -> np.ndarray:
    """Colour (n, 3) of every body."""
    count = len(model.body_kind)
    if color_by is None:
        mixed = (np.arange(count, dtype=np.uint64) * np.uint64(2654435761)) % np.uint64(2**32)
        colors = PALETTE[(mixed >> np.uint64(16)) % np.uint64(len(PALETTE))]
        colors = colors * (0.92 + 0.16 * ((mixed % np.uint64(997)) / 996.0))[:, None]
    else:
        values = checks.array("render.color_by", color_by, (count,), error=OptionsError)
        seen = values[np.asarray(model.body_kind) == BodyKind.DYNAMIC]
        low, high = (seen.min(), seen.max()) if seen.size else (0.0, 1.0)
        place = np.clip((values - low) / ((high - low) or 1.0), 0.0, 1.0)
        ticks = np.linspace(0.0, 1.0, len(RAMP))
        colors = np.stack([np.interp(place, ticks, RAMP[:, k]) for k in range(3)], axis=1)
    return np.where((np.asarray(model.body_kind) == BodyKind.DYNAMIC)[:, None], colors, STATIC_COLOR)


def _shade(view: _View, shapes: _Shapes, depth: np.ndarray, owner: np.ndarray, colors: np.ndarray,
           focus: tuple[np.ndarray, float]) -> np.ndarray:
    """Colours (h, w, 3) in 0..1, band by band, in single precision relative to the eye."""
    height = np.clip(0.5 - view.v / (2 * view.v[-1]), 0.0, 1.0)[:, None, None]
    sky = (SKY_LOW + (SKY_HIGH - SKY_LOW) * height).astype(np.float32)
    picture = np.broadcast_to(sky, (view.height, view.width, 3)).copy()
    middle, radius = focus[0] - view.eye, focus[1]
    shapes = replace(shapes, center=shapes.center - view.eye)
    lamp = _Lamp(shapes, middle, radius, view)
    crevices = _crevices(view, depth, shapes, owner)
    shapes = replace(shapes, center=shapes.center.astype(np.float32), turn=shapes.turn.astype(np.float32),
                     size=shapes.size.astype(np.float32))
    colors, middle = colors.astype(np.float32), middle.astype(np.float32)

    def band(start: int) -> None:
        i, j = np.nonzero(owner[start:start + BAND] != NO_SHAPE)
        i += start
        shape, ray = owner[i, j], view.directions(i, j)
        point = depth[i, j, None].astype(np.float32) * ray
        normal = _normals(shapes, shape, point)
        color = colors[shapes.body[shape]]
        floor = _checkers(shapes, shape, point, radius, color)
        facing = normal @ lamp.direction
        lit = np.clip(facing, 0.0, 1.0) * lamp.reaches(point + np.float32(0.01 * radius) * normal)
        mirrored = 2 * facing[:, None] * normal - lamp.direction
        shine = np.clip(-np.einsum("ij,ij->i", mirrored, ray) / np.linalg.norm(ray, axis=1), 0.0, 1.0) ** 24
        crevice = np.where(floor, np.float32(1.0), crevices[i, j])
        bright = (0.46 + 0.12 * normal[:, 2]) * crevice + 0.58 * lit
        rgb = color * bright[:, None] + (0.16 * shine * lit * ~floor)[:, None]
        far = np.linalg.norm(point - middle, axis=1) / np.float32(radius)
        fade = np.where(floor, np.clip((far - 2.0) / 6.0, 0.0, 1.0), np.float32(0.0))[:, None]
        picture[i, j] = rgb + (picture[i, j] - rgb) * fade

    with ThreadPoolExecutor() as pool:
        list(pool.map(band, range(0, view.height, BAND)))
    return picture


def _normals(shapes: _Shapes, shape: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Outward unit normals (k, 3) at points of shapes."""
    kind = shapes.kind[shape]
    normal = np.empty_like(point)
    flat = np.flatnonzero(kind == ShapeKind.HALF_SPACE)
    normal[flat] = shapes.turn[:, :, 2][shape[flat]]
    ball = np.flatnonzero(kind == ShapeKind.SPHERE)
    normal[ball] = (point[ball] - shapes.center[shape[ball]]) / shapes.size[shape[ball], :1]
    box = np.flatnonzero(kind == ShapeKind.BOX)
    turn = shapes.turn[shape[box]]
    local = np.einsum("kij,ki->kj", turn, point[box] - shapes.center[shape[box]]) / shapes.size[shape[box]]
    face = np.abs(local).argmax(axis=1)
    rows = np.arange(len(box))
    normal[box] = turn[rows, :, face] * np.sign(local[rows, face])[:, None]
    return normal


def _checkers(shapes: _Shapes, shape: np.ndarray, point: np.ndarray, radius: float, color: np.ndarray) -> np.ndarray:
    """Paint the half-spaces among the points; returns which they are (k,)."""
    tile = np.float32(10.0 ** np.round(np.log10(0.35 * radius)))
    floor = np.zeros(len(shape), bool)
    for plane in np.flatnonzero(shapes.kind == ShapeKind.HALF_SPACE):
        here = np.flatnonzero(shape == plane)
        square = np.floor((point[here] - shapes.center[plane]) @ shapes.turn[plane][:, :2] / tile + 0.5)
        color[here] = FLOOR_COLORS[square.sum(axis=1).astype(np.int64) % 2]
        floor[here] = True
    return floor


class _Lamp:
    """A far lamp over the camera's left shoulder, with the depth buffer that it sees."""

    def __init__(self, shapes: _Shapes, middle: np.ndarray, radius: float, view: _View) -> None:
        direction = view.axes.T @ np.array([-0.60, 0.0, -0.55]) + np.array([0.0, 0.0, 0.85])
        direction /= np.linalg.norm(direction)
        angle = 4.0
        distance = 1.05 * radius / np.sin(np.deg2rad(angle) / 2)
        camera = Camera(eye=tuple(middle + distance * direction), target=tuple(middle), field_of_view=angle)
        self.view = _View(camera, (SHADOW_PIXELS, SHADOW_PIXELS))
        self.depth = _rasterize(self.view, shapes, shapes.moves)[0].astype(np.float32) + np.float32(0.004 * radius)
        self.direction = direction.astype(np.float32)

    def reaches(self, point: np.ndarray) -> np.ndarray:
        """Part (k,) of the light that reaches each point."""
        local = self.view.local(point)
        spot = local[:, :2] * (np.float32(self.view.focal) / local[:, 2:]) + np.float32(SHADOW_PIXELS / 2)
        out = np.ones(len(point), np.float32)
        inside = np.flatnonzero(np.all((spot >= 2) & (spot < SHADOW_PIXELS - 2), axis=1))
        column, row = spot[inside].astype(np.int32).T
        far = local[inside, 2]
        taps = ((0, 0), (2, 1), (-1, 2), (-2, -1), (1, -2))
        out[inside] = sum(self.depth[row + di, column + dj] >= far for di, dj in taps) / np.float32(len(taps))
        return out


def _crevices(view: _View, depth: np.ndarray, shapes: _Shapes, owner: np.ndarray) -> np.ndarray:
    """Brightness (h, w), less where something lies a little behind its surroundings in the picture."""
    moving = shapes.moves[owner] & (owner != NO_SHAPE)
    if not moving.any():
        return np.ones(depth.shape, np.float32)
    size = float(np.median(shapes.bound[shapes.moves]))
    reach = int(np.clip(0.8 * size * view.focal / np.median(depth[moving]), 2, view.height // 16))
    base = np.minimum(depth, depth[moving].max() + 4.0 * size)
    behind = np.clip(1.3 * (base - _blur(_blur(base, reach), reach)) / size, 0.0, None).astype(np.float32)
    return 1.0 - np.float32(0.6) * behind * np.exp(1.0 - behind)


def _blur(values: np.ndarray, reach: int) -> np.ndarray:
    """Mean over a square of 2 reach + 1 pixels."""
    width = 2 * reach + 1
    for _ in range(2):
        total = np.cumsum(np.pad(values, [(reach + 1, reach), (0, 0)], mode="edge"), axis=0)
        values = ((total[width:] - total[:-width]) / width).T
    return values


def _draw_glass(view: _View, shapes: _Shapes, shape: int, depth: np.ndarray, picture: np.ndarray) -> None:
    """Tint what lies behind a plate and draw the plate's edges."""
    center = view.local(shapes.center[shape])
    window = _window(view, center, shapes, shape)
    near = _depth(view, window, shapes, shape, center, depth)
    i, j = np.nonzero(near < depth[window])
    if not i.size:
        return
    near, i, j = near[i, j], i + window[0].start, j + window[1].start
    local = (view.eye + near[:, None] * view.directions(i, j) - shapes.center[shape]) @ shapes.turn[shape]
    line = (2.0 * near / view.focal)[:, None]
    edge = np.sum(np.abs(local) > shapes.size[shape] - line, axis=1) >= 2
    alpha = np.where(edge, 0.55, 0.10)[:, None]
    picture[i, j] += (np.where(edge[:, None], 0.62, 0.97) - picture[i, j]) * alpha
