"""The collision metric, on cases made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import sapien

from harness.simulators.tabletop import scenes
from harness.simulators.tabletop.actions import ee6d
from harness.simulators.tabletop.bodies import Placed
from harness.simulators.tabletop.collisions import CollisionMeter
from harness.simulators.tabletop.things import block
from harness.simulators.tabletop.world import World

BLOCK = Placed(block("block", "red", (0.03, 0.03, 0.03)), (0.0, 0.28))


def world_with(contents: Sequence[Placed]) -> World:
    return World(scenes.load("study"), contents, None)


def press_down(world: World, meter: CollisionMeter, z: float, actions: int = 15) -> None:
    """The left hand, closed, down to ``z`` above the table."""
    arms = world.robot.arms
    left = arms["left"].commanded_tcp()
    goal = sapien.Pose([left.p[0], left.p[1], world.table_height + z], left.q)
    right = ee6d(arms["right"].commanded_tcp(), 1.0)
    for _ in range(actions):
        for _ in world.execute(np.concatenate([ee6d(goal, 0.0), right]), "ee6d"):
            meter.after_physics_step()
        meter.after_action()


def teleport(world: World, name: str, shift: float, turn: float) -> None:
    pose = world.pose(name)
    moved = sapien.Pose(pose.p + [shift, 0, 0], [np.cos(turn / 2), 0, 0, np.sin(turn / 2)])
    bodies = {entity.name: entity for entity in world.sapien_scene.entities}
    bodies[name].set_pose(moved)


def test_nothing_touched_is_no_collision() -> None:
    world = world_with([BLOCK])
    meter = CollisionMeter(world, targets=())
    press_down(world, meter, z=0.05)
    assert meter.names == ()


def test_ramming_the_desk_counts_once() -> None:
    world = world_with([])
    meter = CollisionMeter(world, targets=())
    press_down(world, meter, z=-0.03, actions=20)
    assert meter.names == ("desk",)


@pytest.mark.parametrize(
    ("shift", "turn", "counts"),
    [(0.009, 0.0, False), (0.011, 0.0, True), (0.0, 0.09, False), (0.0, 0.11, True)],
)
def test_displacement_of_a_bystander(shift: float, turn: float, counts: bool) -> None:
    world = world_with([BLOCK])
    meter = CollisionMeter(world, targets=())
    teleport(world, "block", shift, turn)
    meter.after_action()
    assert meter.names == (("block",) if counts else ())


def test_a_target_may_be_moved() -> None:
    world = world_with([BLOCK])
    meter = CollisionMeter(world, targets=("block",))
    teleport(world, "block", 0.2, 1.0)
    meter.after_action()
    assert meter.names == ()
