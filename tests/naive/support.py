"""Support functions of convex shapes in plain NumPy, and what follows from them, for many poses at once."""

import numpy as np

import tumble as tb
from tumble.backends import cpu
from tumble.backends.shape_arrays import pools_of
from tumble.kernels.jit import most_threads
from tumble.scene import rotation


def support_value(shape, d):
    """Largest d . x over the shape for each row of d (n, 3)."""
    if isinstance(shape, tb.Rounded):
        return support_value(shape.shape, d) + shape.radius * np.linalg.norm(d, axis=1)
    radial = np.hypot(d[:, 0], d[:, 1])
    length = np.linalg.norm(d, axis=1)
    match shape:
        case tb.Sphere():
            return shape.radius * length
        case tb.Capsule():
            return shape.radius * length + 0.5 * shape.length * np.abs(d[:, 2])
        case tb.Box():
            return np.abs(d) @ (0.5 * np.array(shape.size))
        case tb.Cylinder():
            return shape.radius * radial + 0.5 * shape.height * np.abs(d[:, 2])
        case tb.Cone():
            return np.maximum(0.5 * shape.height * d[:, 2], shape.radius * radial - 0.5 * shape.height * d[:, 2])
        case tb.Frustum():
            half = 0.5 * shape.height * d[:, 2]
            return np.maximum(shape.top_radius * radial + half, shape.bottom_radius * radial - half)
        case tb.Ellipsoid():
            return np.linalg.norm(d * np.array(shape.semi_axes), axis=1)
        case tb.ConvexHull():
            return (d @ shape.points.T).max(axis=1)
    raise TypeError(shape)


def separation(a, b, pose_a, pose_b, n):
    """Gap of the two shapes along the unit vectors n (k, 3): a lower bound of their distance, whatever n is."""
    (pa, qa), (pb, qb) = pose_a, pose_b
    da = rotation.rotate(rotation.conjugate(qa), n)
    db = rotation.rotate(rotation.conjugate(qb), -n)
    return np.einsum("ij,ij->i", n, pb - pa) - support_value(a, da) - support_value(b, db)


def outside(shape, pose, x):
    """How far points x (k, 3) lie outside the shape, over many directions (0 inside)."""
    p, q = pose
    local = rotation.rotate(rotation.conjugate(q), x - p)
    rng = np.random.default_rng(0)
    d = rng.normal(size=(400, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    return np.max(local @ d.T - support_value(shape, d), axis=1)


def gaps(a, b, pose_a, pose_b):
    """The compiled kernel for many poses: gap (n,), normal from a to b (n, 3), nearest point of a (n, 3).

    a's kind must not come after b's.
    """
    scene = tb.SceneBuilder()
    scene.add_static([a])
    scene.add_static([b])
    model = scene.build()
    assert model.shape_kind[0] <= model.shape_kind[1]
    n = len(pose_a[0])
    rows = [np.hstack([p, rotation.matrix(q).reshape(n, 9)]) for p, q in (pose_a, pose_b)]
    out = np.zeros((n, 7))
    cpu.convex_gaps(
        model.shape_kind,
        model.shape_parameters,
        model.shape_geometry,
        *rows,
        pools_of(model.geometry).hulls,
        np.zeros((most_threads(), cpu.SCRATCH)),
        out,
    )
    return out[:, 0], out[:, 1:4], out[:, 4:7]
