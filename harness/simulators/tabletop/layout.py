"""From (scene, task, density, seed) to what stands where: pure data, before any physics.

Promises: each purpose draws from a generator of its own, seeded by task and seed alone, so that the
clean layout of a seed, and its instruction, are the same at every obstacle density.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from harness.simulators.tabletop import scenes, tasks
from harness.simulators.tabletop.bodies import Placed
from harness.simulators.tabletop.obstacles import place_obstacles
from harness.simulators.tabletop.task import Task


@dataclass(frozen=True)
class Layout:
    """An episode's task and the obstacles about it."""

    scene: scenes.Scene
    task: Task
    obstacles: tuple[Placed, ...]

    @property
    def contents(self) -> tuple[Placed, ...]:
        """Everything that stands on the table apart from the furniture."""
        return (*self.task.contents, *self.obstacles)


def generator(task: str, seed: int, purpose: str) -> np.random.Generator:
    """The random numbers of one purpose ("layout", "obstacles", "instruction") of an episode."""
    digest = hashlib.sha256(f"{task}/{purpose}/{seed}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))


def lay_out(scene: str, task: str, density: int, seed: int) -> Layout:
    """What stands where, for a seed.

    Raises:
        RollpoolError: unknown scene or task, or no room for that many obstacles.
    """
    place = scenes.load(scene)
    made = tasks.find(scene, task)(generator(task, seed, "layout"))
    obstacles = place_obstacles(
        place,
        density,
        generator(task, seed, "obstacles"),
        made.contents,
        made.keep_clear(),
        made.route(),
    )
    return Layout(place, made, obstacles)
