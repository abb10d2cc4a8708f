"""The small kitchen: what every scene owes, and that its goals mean what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sapien

from harness.simulators.tabletop.adapter import Tabletop
from harness.simulators.tabletop.world import World
from tests.tabletop.scene_suite import SceneSuite, begin, play

_TALL = 0.10  # metres, a can of the stack


def move(world: World, name: str, pose: sapien.Pose) -> None:
    world._loose[name].entity.set_pose(pose)


def lift_both_hands(sim: Tabletop, actions: int = 20) -> None:
    up = sim.observe(()).proprio
    up[[2, 12]] += 0.1
    for _ in range(actions):
        sim.step(up, "ee6d")


class TestSmallKitchen(SceneSuite):
    SCENE = "kitchens"

    @pytest.mark.parametrize(
        ("offset", "counts"),
        [
            ((0, 0, _TALL), True),
            ((0.015, 0, _TALL), True),
            ((0.03, 0, _TALL), False),
            ((0, 0, _TALL + 0.01), False),
            ((0.07, 0, 0), False),
        ],
    )
    def test_the_red_can_counts_on_the_yellow_one_only(
        self, sim: Tabletop, offset: tuple[float, float, float], counts: bool
    ) -> None:
        world = begin(sim, self.SCENE, "stack_cans", seed=1)
        move(world, "red_can", world.pose("yellow_can") * sapien.Pose(offset))
        assert sim._now.task.success(world) is counts

    def test_a_yellow_can_on_the_red_one_does_not_count(self, sim: Tabletop) -> None:
        world = begin(sim, self.SCENE, "stack_cans", seed=1)
        move(world, "yellow_can", world.pose("red_can") * sapien.Pose([0, 0, _TALL]))
        assert not sim._now.task.success(world)

    def test_a_can_still_in_the_hand_is_not_stacked(self, sim: Tabletop) -> None:
        world = begin(sim, self.SCENE, "stack_cans", seed=2)
        while world.holder("red_can") is None:
            assert not play(sim, actions=1, chunk=1)
        move(world, "yellow_can", world.pose("red_can") * sapien.Pose([0, 0, -_TALL]))
        assert not sim._now.task.success(world)

    @pytest.mark.parametrize("seed", range(3))
    def test_the_stack_stays_when_the_hand_has_gone(self, sim: Tabletop, seed: int) -> None:
        world = begin(sim, self.SCENE, "stack_cans", seed)
        assert play(sim, actions=200)
        for action in sim.expert_chunk(30):
            sim.step(action, "ee6d")
        lift_both_hands(sim)
        assert sim._now.task.success(world)

    def test_the_button_springs_back(self, sim: Tabletop) -> None:
        world = begin(sim, self.SCENE, "press_microwave_button", seed=1)
        assert play(sim, actions=200)
        assert world.joint("microwave") > 0.01
        lift_both_hands(sim)
        assert abs(world.joint("microwave")) < 1e-3

    def test_the_button_is_pressed_level_into_the_front(self, sim: Tabletop) -> None:
        world = begin(sim, self.SCENE, "press_microwave_button", seed=1)
        out = world.pose("microwave").p
        assert play(sim, actions=200)
        way = world.pose("microwave").p - out
        yaw = sim._now.task.place_of("microwave").yaw
        assert abs(way[2]) < 1e-3
        assert np.allclose(way[:2] / np.linalg.norm(way), [math.cos(yaw), math.sin(yaw)], atol=0.01)

    def test_a_plate_over_the_mat_is_not_on_it(self, sim: Tabletop) -> None:
        world = begin(sim, self.SCENE, "slide_plate_to_mat", seed=1)
        for lift, counts in ((0.0, True), (0.03, False)):
            move(world, "plate", sapien.Pose(world.pose("mat").p + [0, 0, lift]))
            assert sim._now.task.success(world) is counts

    def test_the_plate_is_pushed_and_never_lifted(self, sim: Tabletop) -> None:
        world = begin(sim, self.SCENE, "slide_plate_to_mat", seed=2)
        start, highest = world.pose("plate").p, 0.0
        while not sim.step(sim.expert_chunk(1)[0], "ee6d") and world.physics_steps < 3000:
            highest = max(highest, float(world.pose("plate").p[2] - world.table_height))
        assert sim.score().success
        assert highest < 0.002
        assert math.dist(world.pose("plate").p, start) > 0.12

    def test_the_walls_are_furniture(self, sim: Tabletop) -> None:
        begin(sim, self.SCENE, "slide_plate_to_mat", seed=2)
        aside = sim.observe(()).proprio
        aside[1] += 0.35  # the left hand, towards the left wall
        for _ in range(40):
            sim.step(aside, "ee6d")
        assert "left_wall" in sim.score().collision_names
