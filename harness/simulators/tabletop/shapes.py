"""Visible primitives with few triangles.

The renderer's own spheres and capsules have about a thousand triangles each, and a software driver
pays for every one of them twice, for the picture and for its shadow: 0.4 ms a sphere, at any size
of picture. These are turned on a lathe with a quarter of that, and smooth normals hide it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

import numpy as np
import sapien

from harness.simulators.tabletop import looks
from harness.simulators.tabletop.bodies import Part

_SEGMENTS = 20  # around the axis
_ARCS = 4  # from the equator of a ball to its pole

#: Points of a profile, top to bottom: radius, z, and the normal's radial and axial parts.
_Profile = tuple[tuple[float, float, float, float], ...]


def visible(parts: Iterable[Part]) -> sapien.render.RenderBodyComponent:
    """What is seen of a body: to be added to its entity, once that stands in its scene.

    Raises:
        RollpoolError: a part wears a finish that is not in the palette.
    """
    body = sapien.render.RenderBodyComponent()
    for part in parts:
        if part.visible:
            shape = _shape(part)
            shape.local_pose = sapien.Pose(part.at, part.turn)
            body.attach(shape)
    return body


def _shape(part: Part) -> sapien.render.RenderShape:
    finish = looks.material(part.material)
    if part.shape == "box":
        return sapien.render.RenderShapeBox(part.size, finish)
    profile = _cylinder(*part.size) if part.shape == "cylinder" else _capsule(*part.size)
    vertices, triangles, normals = _turned(profile)
    uvs = np.zeros((len(vertices), 2), np.float32)
    return sapien.render.RenderShapeTriangleMesh(vertices, triangles, normals, uvs, finish)


def _cylinder(radius: float, half_length: float) -> _Profile:
    return (
        (0.0, half_length, 0.0, 1.0),
        (radius, half_length, 0.0, 1.0),
        (radius, half_length, 1.0, 0.0),
        (radius, -half_length, 1.0, 0.0),
        (radius, -half_length, 0.0, -1.0),
        (0.0, -half_length, 0.0, -1.0),
    )


def _capsule(radius: float, half_length: float = 0.0) -> _Profile:
    """A sphere is a capsule without length."""
    angles = [0.5 * np.pi * k / _ARCS for k in range(_ARCS + 1)]
    quarter = [(float(np.sin(angle)), float(np.cos(angle))) for angle in angles]
    top = [(radius * s, half_length + radius * c, s, c) for s, c in quarter]
    bottom = [(r, -z, s, -c) for r, z, s, c in reversed(top)]
    return (*top, *(bottom if half_length else bottom[1:]))


@functools.cache
def _turned(profile: _Profile) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices ``(n, 3)``, triangles ``(m, 3)`` and normals ``(n, 3)`` of a turned profile."""
    around = 2 * np.pi * np.arange(_SEGMENTS) / _SEGMENTS
    circle = np.stack([np.cos(around), np.sin(around)], axis=1)
    vertices, normals = [], []
    for radius, z, radial, axial in profile:
        height, slope = np.full((_SEGMENTS, 1), z), np.full((_SEGMENTS, 1), axial)
        vertices.append(np.hstack([radius * circle, height]))
        normals.append(np.hstack([radial * circle, slope]))
    here = np.arange(_SEGMENTS)
    beside = (here + 1) % _SEGMENTS
    triangles = []
    for ring, (upper, lower) in enumerate(itertools.pairwise(profile)):
        if upper[:2] == lower[:2]:
            continue  # a crease: one place, two normals
        above, below = ring * _SEGMENTS, (ring + 1) * _SEGMENTS
        if lower[0] > 0:
            triangles.append(np.stack([above + here, below + here, below + beside], axis=1))
        if upper[0] > 0:
            triangles.append(np.stack([above + here, below + beside, above + beside], axis=1))
    return (
        np.concatenate(vertices).astype(np.float32),
        np.concatenate(triangles).astype(np.uint32),
        np.concatenate(normals).astype(np.float32),
    )
