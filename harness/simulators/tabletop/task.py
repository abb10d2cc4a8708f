"""What a task is, and how to add one.

A task is one short class in ``tasks/<scene>.py`` (``tasks/study.py`` is the example):

1. ``name``: RoboPRO's manner, ``verb_object_preposition_place``; ``targets``: the names of the
   things it may move, everything else counts as a collision when displaced;
2. ``layout(rng)``: ``self.put(thing, x, y, yaw)`` for each thing. Table coordinates: x away from
   the arms, y to their left, the middle of the table is 0, 0. The left arm reaches x -0.30..0.15
   at y -0.10..0.50 with the hand pointing down, the right arm the mirror image. Draw everything
   from ``rng`` and vary object and goal by 10 cm and more;
3. ``success(world)``: a predicate on the world alone, tried after every physics step, so order
   cheap tests first; require that the thing is released and at rest where that is what one means;
4. ``plan(world)``: the expert's waypoints **from the current state**, whoever brought it about:
   leave out what is already done (``world.holder(name)``, ``world.joint(name)``), and when
   everything is done return ``[]``. Compose ``skills`` from poses of ``hands``; they skip their own
   finished stages and avoid obstacles;
5. if a hand needs more room than above the things themselves (the corridor of a push, the swing
   of a door), return ``keep_clear()`` zones; ``route()`` is the way of the hands that obstacles
   gather on;
6. add the class to ``TASKS``, its name to ``step_limits.yml`` (about three times the expert's
   actions) and to ``instructions/<scene>.yml`` with ``seen`` and ``unseen`` templates
   (``words()`` fills their ``{slots}``). The scene's test inherits ``SceneSuite``, which takes
   its tasks from there.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from harness.simulators.tabletop.bodies import Body, Mechanism, Placed, Zone
from harness.simulators.tabletop.expert import Waypoint
from harness.simulators.tabletop.robot import HOME_XY
from harness.simulators.tabletop.world import World


class Task(abc.ABC):
    """One episode's task: its things as plain data, its goal, its expert.

    Args:
        rng: the layout's generator; equal generators give equal layouts.
    """

    name: ClassVar[str]
    targets: ClassVar[tuple[str, ...]]

    def __init__(self, rng: np.random.Generator) -> None:
        self._contents: list[Placed] = []
        self.layout(rng)

    @property
    def contents(self) -> Sequence[Placed]:
        """What ``layout`` put on the table."""
        return tuple(self._contents)

    def put(
        self, thing: Body | Mechanism, x: float, y: float, yaw: float = 0.0, lift: float = 0.0
    ) -> None:
        """Stands a thing on the table (``lift`` metres above it)."""
        self._contents.append(Placed(thing, (float(x), float(y)), float(yaw), float(lift)))

    def place_of(self, name: str) -> Placed:
        """Where ``layout`` put a thing."""
        return next(placed for placed in self._contents if placed.name == name)

    @abc.abstractmethod
    def layout(self, rng: np.random.Generator) -> None:
        """Puts the task's things on the table."""

    @abc.abstractmethod
    def success(self, world: World) -> bool:
        """Whether the task is done."""

    @abc.abstractmethod
    def plan(self, world: World) -> list[Waypoint]:
        """What the expert does from here on; empty when nothing is left to do."""

    def words(self) -> Mapping[str, str]:
        """Fills the slots of the instruction templates."""
        return {}

    def keep_clear(self) -> Sequence[Zone]:
        """Parts of the table the task needs, beyond the room about its things."""
        return ()

    def route(self) -> Sequence[tuple[float, float]]:
        """The way of the hands over the table: from home through the things as they were put."""
        first = self._contents[0].xy
        home = (HOME_XY[0], HOME_XY[1] if first[1] >= 0 else -HOME_XY[1])
        return (home, *(placed.xy for placed in self._contents))
