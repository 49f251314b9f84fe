"""Closed meshes made of a few numbers: turned, drawn along a path, built of blocks, or fans over a star."""

import numpy as np

from tumble.scene.meshes import Mesh


def turned(profile, sections):
    """The closed curve `profile` (n, 2) of (radius > 0, height), counter-clockwise seen with the radius to the right,
    turned about z."""
    angle = 2 * np.pi * np.arange(sections) / sections
    points = np.array([[(r * np.cos(a), r * np.sin(a), z) for r, z in profile] for a in angle]).reshape(-1, 3)
    return Mesh(points, _tube(sections, len(profile), closed=True))


def _tube(rings, corners, closed):
    quads = []
    for i in range(rings if closed else rings - 1):
        for j in range(corners):
            a, b = i * corners + j, i * corners + (j + 1) % corners
            c, d = (i + 1) % rings * corners + j, (i + 1) % rings * corners + (j + 1) % corners
            quads += [(a, c, d), (a, d, b)]
    return quads


def torus(radius=0.1, tube=0.03, sections=32, corners=16):
    angle = 2 * np.pi * np.arange(corners) / corners - np.pi / 2
    return turned(np.c_[radius + tube * np.cos(angle), tube * np.sin(angle)], sections)


def ring(inner=0.07, outer=0.1, height=0.05, sections=24):
    z = height / 2
    return turned([(inner, -z), (outer, -z), (outer, z), (inner, z)], sections)


def bowl(radius=0.12, wall=0.015, foot=0.05, sections=24, steps=8):
    """Half a hollow ball on a flat foot, open at the top."""
    low = np.arcsin(foot / radius)
    angle = np.linspace(low, np.pi / 2, steps)
    outer = np.c_[radius * np.sin(angle), -radius * np.cos(angle)]
    inner = outer[::-1] * (1 - wall / radius)
    inner[:, 1] += 0.0
    profile = np.r_[[(0.004, outer[0, 1])], outer, inner, [(0.004, inner[-1, 1])]]
    return turned(profile, sections)


def cup(radius=0.05, height=0.12, wall=0.01, sections=20):
    z, r = height / 2, radius - wall
    return turned([(0.004, -z), (radius, -z), (radius, z), (r, z), (r, wall - z), (0.004, wall - z)], sections)


def spool(radius=0.08, waist=0.03, height=0.1, sections=16):
    z, f = height / 2, 0.02
    out, mid = radius, waist
    return turned(
        [(0.01, -z), (out, -z), (out, f - z), (mid, f - z), (mid, z - f), (out, z - f), (out, z), (0.01, z)], sections
    )


def coil(radius=0.08, tube=0.015, pitch=0.05, turns=2.5, sections=60, corners=8):
    """A helical tube with flat ends."""
    t = np.linspace(0, 2 * np.pi * turns, sections)
    centre = np.c_[radius * np.cos(t), radius * np.sin(t), pitch * (t / (2 * np.pi) - turns / 2)]
    angle = 2 * np.pi * np.arange(corners) / corners
    points = []
    slope = pitch / (2 * np.pi * radius)
    for c, a in zip(centre, t, strict=True):
        out = np.array([np.cos(a), np.sin(a), 0])
        along = np.array([-np.sin(a), np.cos(a), slope]) / np.hypot(1, slope)
        up = np.cross(out, along)
        points += [c + tube * (np.cos(b) * out + np.sin(b) * up) for b in angle]
    n = len(points)
    caps = [(n, j, (j + 1) % corners) for j in range(corners)]
    caps += [(n + 1, n - corners + (j + 1) % corners, n - corners + j) for j in range(corners)]
    points += [centre[0], centre[-1]]
    mesh = Mesh(np.array(points), [*_tube(sections, corners, closed=False), *caps])
    return mesh if mesh.volume > 0 else Mesh(mesh.vertices, mesh.triangles[:, ::-1])


def star(radii, height):
    """A prism over the star-shaped outline with these radii at equal angles."""
    n, z = len(radii), height / 2
    angle = 2 * np.pi * np.arange(n) / n
    outline = np.asarray(radii)[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    points = np.r_[np.c_[outline, np.full(n, -z)], np.c_[outline, np.full(n, z)], [(0, 0, -z), (0, 0, z)]]
    triangles = []
    for i in range(n):
        j = (i + 1) % n
        triangles += [(2 * n, j, i), (2 * n + 1, n + i, n + j), (i, j, n + j), (i, n + j, n + i)]
    return Mesh(points, triangles)


def gear(teeth=10, inner=0.08, outer=0.1, height=0.04):
    return star(np.tile([outer, outer, inner, inner], teeth), height)


def blocks(cells, size):
    """The union of unit cells (n, 3 integers), scaled by `size` (3); cells may touch in faces only."""
    have = {tuple(c) for c in cells}
    corner, quads = {}, []

    def number(p):
        return corner.setdefault(p, len(corner))

    for c in sorted(have):
        for axis in range(3):
            for side in (0, 1):
                beside = list(c)
                beside[axis] += 2 * side - 1
                if tuple(beside) in have:
                    continue
                loop = [(0, 0), (1, 0), (1, 1), (0, 1)] if side else [(0, 0), (0, 1), (1, 1), (1, 0)]
                face = []
                for b, e in loop:
                    p = [0, 0, 0]
                    p[axis], p[(axis + 1) % 3], p[(axis + 2) % 3] = side, b, e
                    face.append(number((c[0] + p[0], c[1] + p[1], c[2] + p[2])))
                quads += [(face[0], face[1], face[2]), (face[0], face[2], face[3])]
    points = np.array(list(corner), float) * size
    return Mesh(points - 0.5 * (points.min(axis=0) + points.max(axis=0)), quads)


def bracket(size=0.05):
    return blocks(
        [(x, y, 0) for x in range(4) for y in range(2)] + [(0, y, z) for y in range(2) for z in (1, 2)], [size] * 3
    )


def channel(size=0.04):
    return blocks(
        [(x, y, 0) for x in range(3) for y in range(4)] + [(x, y, 1) for x in (0, 2) for y in range(4)], [size] * 3
    )


def table(size=0.05):
    return blocks(
        [(x, y, 1) for x in range(4) for y in range(3)] + [(x, y, 0) for x in (0, 3) for y in (0, 2)], [size] * 3
    )


def cross(size=0.05):
    return blocks([(1, 1, 0), (0, 1, 0), (2, 1, 0), (1, 0, 0), (1, 2, 0)], [size] * 3)


def brick(size=(0.2, 0.12, 0.06), cells=(4, 3, 1)):
    """A box whose faces are divided."""
    cells = np.array(cells)
    return blocks([tuple(c) for c in np.ndindex(*cells)], np.array(size) / cells)


def ball(radius=0.03, sections=12, rings=7):
    angle = np.linspace(0.02, np.pi - 0.02, rings)
    return turned(np.c_[radius * np.sin(angle), -radius * np.cos(angle)], sections)
