"""The large kitchen: what every scene owes, and that its goals mean what they say."""

from __future__ import annotations

import math

import pytest
import sapien

from harness.simulators.tabletop.adapter import Tabletop
from harness.simulators.tabletop.world import World
from tests.tabletop.scene_suite import SceneSuite, begin, play


def move(world: World, name: str, pose: sapien.Pose) -> None:
    world._loose[name].entity.set_pose(pose)


def strew(world: World, place: str, count: int) -> None:
    """Puts that many beans on the floor of the cup or the pot, and the others on the counter."""
    for number in range(6):
        at = sapien.Pose([0.4, 0.02 * number, world.table_height])
        if number < count:
            yaw = number * math.pi / 3
            at = world.pose(place) * sapien.Pose(
                [0.015 * math.cos(yaw), 0.015 * math.sin(yaw), 0.007]
            )
        move(world, f"bean_{number}", at)


class TestLargeKitchen(SceneSuite):
    SCENE = "kitchenl"

    @pytest.mark.parametrize(("count", "enough"), [(6, True), (5, True), (4, False), (0, False)])
    def test_most_beans_must_lie_in_the_pot(self, sim: Tabletop, count: int, enough: bool) -> None:
        world = begin(sim, self.SCENE, "pour_beans_into_pot", seed=1)
        strew(world, "pot", count)
        assert sim._now.task.success(world) is enough

    def test_beans_in_a_cup_that_stands_in_the_pot_are_not_poured(self, sim: Tabletop) -> None:
        world = begin(sim, self.SCENE, "pour_beans_into_pot", seed=1)
        move(world, "cup", world.pose("pot") * sapien.Pose([0, 0, 0.007]))
        strew(world, "cup", 6)
        assert not sim._now.task.success(world)

    def test_beans_come_along_in_the_cup(self, sim: Tabletop) -> None:
        world = begin(sim, self.SCENE, "pour_beans_into_pot", seed=1)
        play(sim, actions=60)
        assert world.holder("cup") is not None
        for number in range(6):
            at = (world.pose("cup").inv() * world.pose(f"bean_{number}")).p
            assert math.hypot(at[0], at[1]) < 0.03 and 0.0 < at[2] < 0.085

    def test_an_apple_in_the_hand_is_not_in_the_bowl(self, sim: Tabletop) -> None:
        world = begin(sim, self.SCENE, "put_apple_in_bowl", seed=2)
        play(sim, actions=45)
        assert world.holder("apple") is not None
        move(world, "bowl", sapien.Pose(world.pose("apple").p - [0, 0, 0.01]))
        assert not sim._now.task.success(world)
        world.touches.clear()
        assert sim._now.task.success(world) is world.at_rest("apple", 0.1, 2.0)

    def test_the_door_opens_only_when_pulled_and_by_its_handle(self, sim: Tabletop) -> None:
        world = begin(sim, self.SCENE, "open_cabinet_door", seed=2)
        stay = sim.observe(()).proprio
        for _ in range(10):
            sim.step(stay, "ee6d")
        assert world.joint("cabinet") == pytest.approx(0.0, abs=1e-3)
        assert play(sim, actions=300)
        assert world.joint("cabinet") > math.radians(40)
        assert world.holder("cabinet") is not None

    def test_the_pan_is_pushed_and_never_lifted(self, sim: Tabletop) -> None:
        world = begin(sim, self.SCENE, "slide_pan_to_burner", seed=2)
        start, highest = world.pose("pan").p, 0.0
        for _ in range(150):
            if sim.step(sim.expert_chunk(1)[0], "ee6d"):
                break
            highest = max(highest, float(world.pose("pan").p[2] - world.table_height))
        assert sim.score().success
        assert highest < 0.002
        assert math.dist(world.pose("pan").p, start) > 0.09
