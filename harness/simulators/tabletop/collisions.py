"""What counts as a collision, and counts it until the task has succeeded.

Two kinds, each counted once per name: the robot hits furniture (or a mechanism that is no target)
with an impulse above 10 N times the physics step; a loose thing that is no target, obstacles
included, lies 1 cm or 0.1 rad from where it had settled.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from harness.simulators.tabletop.world import PHYSICS_HZ, World

HIT_IMPULSE = 10.0 / PHYSICS_HZ  # newton seconds in one physics step
SHIFT, TURN = 0.01, 0.1  # metres, radians


class CollisionMeter:
    """Watches a settled world; ``targets`` are the things the task is about."""

    def __init__(self, world: World, targets: Collection[str]) -> None:
        self._world = world
        self._ignored = frozenset(targets) | frozenset(world.loose)
        self._settled = {
            name: world.pose(name) for name in world.loose if name not in frozenset(targets)
        }
        self._names: dict[str, None] = {}  # a dict keeps the order of happening

    @property
    def names(self) -> tuple[str, ...]:
        """What was hit or moved, in the order it happened."""
        return tuple(self._names)

    def after_physics_step(self) -> None:
        """Looks at the contacts of the step just made: an impact may last a single step."""
        for touch in self._world.touches:
            if touch.body not in self._ignored and touch.impulse > HIT_IMPULSE:
                self._names[touch.body] = None

    def after_action(self) -> None:
        """Looks at where the loose things are."""
        for name, settled in self._settled.items():
            if name in self._names:
                continue
            pose = self._world.pose(name)
            shift = float(np.linalg.norm(pose.p - settled.p))
            turn = 2.0 * math.acos(min(1.0, abs(float(pose.q @ settled.q))))
            if shift >= SHIFT or turn >= TURN:
                self._names[name] = None
