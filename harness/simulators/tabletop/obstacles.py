"""Clutter that stands in the way, and leaves a way.

Promises: exactly ``count`` obstacles, drawn from a generator of their own, so that the task's
layout for a seed is the same at every density; they gather about the route of the hands; none
overlaps another, a thing of the task, furniture or a zone the task needs, and a hand that comes
from above has room beside everything it has to reach.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from harness.errors import RollpoolError
from harness.simulators.tabletop.bodies import Placed, Zone
from harness.simulators.tabletop.robot import HOME_XY
from harness.simulators.tabletop.scenes import Scene

#: Free space about what a hand has to reach: half a hand, and what it may be off by.
HAND_ROOM = 0.05
_GAP = 0.015
_TRIES = 4000
_FIRST_SPREAD, _LAST_SPREAD = 0.06, 0.40


def place_obstacles(
    scene: Scene,
    count: int,
    rng: np.random.Generator,
    contents: Sequence[Placed],
    keep_clear: Sequence[Zone],
    route: Sequence[tuple[float, float]],
) -> tuple[Placed, ...]:
    """``count`` obstacles along ``route``, the polyline of xy points that the hands follow.

    Raises:
        RollpoolError: the work area cannot take that many.
    """
    zones = [*keep_clear]
    zones += [Zone((HOME_XY[0], y), (HOME_XY[0], y), HAND_ROOM) for y in (HOME_XY[1], -HOME_XY[1])]
    zones += [Zone(p.xy, p.xy, p.thing.radius + HAND_ROOM) for p in contents]
    zones += [Zone(p.xy, p.xy, p.thing.radius + _GAP) for p in scene.furniture if p.thing.radius]
    placed: list[Placed] = []
    for attempt in range(_TRIES):
        if len(placed) == count:
            return tuple(placed)
        spread = _FIRST_SPREAD + (_LAST_SPREAD - _FIRST_SPREAD) * attempt / _TRIES
        xy = _near(route, spread, rng)
        make = scene.obstacles[int(rng.integers(len(scene.obstacles)))]
        body, yaw = make(f"obstacle_{len(placed)}"), float(rng.uniform(-math.pi, math.pi))
        if _inside(scene, xy) and all(zone.distance(xy) > body.radius for zone in zones):
            placed.append(Placed(body, xy, yaw))
            zones.append(Zone(xy, xy, body.radius + _GAP))
    raise RollpoolError(
        f"{count} obstacles in scene '{scene.name}'",
        f"room for {len(placed)}",
        "lower obstacle_density, or make the scene's work_area larger",
    )


def _near(
    route: Sequence[tuple[float, float]], spread: float, rng: np.random.Generator
) -> tuple[float, float]:
    """A point about a uniformly chosen point of a uniformly chosen leg of the route."""
    leg = int(rng.integers(len(route) - 1))
    t, dx, dy = float(rng.uniform()), *(float(v) for v in rng.normal(0.0, spread, 2))
    (x0, y0), (x1, y1) = route[leg], route[leg + 1]
    return (x0 + t * (x1 - x0) + dx, y0 + t * (y1 - y0) + dy)


def _inside(scene: Scene, xy: tuple[float, float]) -> bool:
    x0, x1, y0, y1 = scene.work_area
    return x0 <= xy[0] <= x1 and y0 <= xy[1] <= y1
