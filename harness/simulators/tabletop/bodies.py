"""What stands in a scene, as plain data: no physics engine, no renderer, no randomness.

Conventions: a body's origin is the centre of its **underside**, so that it stands where it is put;
lengths in metres, masses in kilograms; cylinders and capsules point along their own z axis.
``builders.py`` turns these records into physics (and, where there is a renderer, into pictures).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]  # wxyz

UPRIGHT: Quaternion = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Part:
    """One primitive of a body.

    ``size``: half sizes of a box; ``(radius, half_length)`` of a cylinder, or of a capsule without
    its caps; ``(radius,)`` of a sphere.
    """

    shape: Literal["box", "cylinder", "capsule", "sphere"]
    size: tuple[float, ...]
    material: str  # a name that looks.py knows
    at: Vector = (0.0, 0.0, 0.0)
    turn: Quaternion = UPRIGHT
    solid: bool = True
    visible: bool = True

    def volume(self) -> float:
        """Cubic metres."""
        if self.shape == "box":
            return 8.0 * self.size[0] * self.size[1] * self.size[2]
        radius = self.size[0]
        ball = 4.0 / 3.0 * math.pi * radius**3
        if self.shape == "sphere":
            return ball
        rod = 2.0 * math.pi * radius**2 * self.size[1]
        return rod if self.shape == "cylinder" else rod + ball


@dataclass(frozen=True)
class Body:
    """A rigid thing. ``radius`` encloses its footprint, ``height`` its top.

    ``kind``: a ``loose`` body moves when pushed, a ``fixed`` one is furniture, a ``mark`` is
    painted on the table and touches nothing.
    """

    name: str
    parts: tuple[Part, ...]
    radius: float
    height: float
    mass: float = 0.2
    friction: float = 0.7
    kind: Literal["loose", "fixed", "mark"] = "loose"


@dataclass(frozen=True)
class Mechanism:
    """A fixed base with one moving part: a drawer, a door, a button.

    The joint's axis passes through ``pivot`` along ``axis``; a slide is in metres, a hinge in
    radians, 0 at rest. ``spring`` (N/m or Nm/rad) pulls it back to 0, ``friction`` holds it.
    """

    name: str
    base: tuple[Part, ...]
    moving: tuple[Part, ...]
    joint: Literal["slide", "hinge"]
    pivot: Vector
    axis: Vector
    travel: tuple[float, float]
    radius: float
    height: float
    mass: float = 0.3  # of the moving part
    spring: float = 0.0
    damping: float = 1.0
    friction: float = 0.1


@dataclass(frozen=True)
class Placed:
    """A thing and where it stands: ``xy`` and ``yaw`` on the table, ``lift`` above its top."""

    thing: Body | Mechanism
    xy: tuple[float, float]
    yaw: float = 0.0
    lift: float = 0.0

    @property
    def name(self) -> str:
        return self.thing.name


@dataclass(frozen=True)
class Zone:
    """The table within ``radius`` of the segment ``start``-``end``: to be kept free."""

    start: tuple[float, float]
    end: tuple[float, float]
    radius: float

    def distance(self, xy: tuple[float, float]) -> float:
        """Metres from the zone's border to a point; negative inside."""
        dx, dy = self.end[0] - self.start[0], self.end[1] - self.start[1]
        length2 = dx * dx + dy * dy
        along = (xy[0] - self.start[0]) * dx + (xy[1] - self.start[1]) * dy
        t = min(1.0, max(0.0, along / length2)) if length2 > 0 else 0.0
        nearest = (self.start[0] + t * dx, self.start[1] + t * dy)
        return math.dist(xy, nearest) - self.radius
