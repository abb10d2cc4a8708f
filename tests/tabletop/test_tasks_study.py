"""The study: the suite of every scene, and what its tasks mean by success."""

from __future__ import annotations

import pytest
import sapien

from harness.simulators.tabletop.adapter import Tabletop
from harness.simulators.tabletop.layout import lay_out
from harness.simulators.tabletop.world import World
from tests.tabletop.scene_suite import SceneSuite, begin, play


class TestStudy(SceneSuite):
    SCENE = "study"


@pytest.mark.parametrize(
    ("offset", "counts"), [((0, 0, 0.009), True), ((0, 0, 0.10), False), ((0.12, 0, 0), False)]
)
def test_the_cup_counts_inside_the_box_only(
    offset: tuple[float, float, float], counts: bool
) -> None:
    layout = lay_out("study", "put_cup_in_box", 0, 0)
    world = World(layout.scene, layout.contents, None)
    bodies = {entity.name: entity for entity in world.sapien_scene.entities}
    bodies["cup"].set_pose(world.pose("box") * sapien.Pose(offset))
    assert layout.task.success(world) is counts


def test_a_cup_still_in_the_hand_does_not_count() -> None:
    sim = Tabletop()
    world = begin(sim, "study", "put_cup_in_box", seed=1)
    while world.holder("cup") is None:
        assert not play(sim, actions=1, chunk=1)
    assert world.touched("cup")


def test_the_bell_springs_back() -> None:
    sim = Tabletop()
    world = begin(sim, "study", "press_bell", seed=1)
    assert play(sim, actions=200)
    assert world.joint("bell") > 0.008
    up = sim.observe(()).proprio
    up[[2, 12]] += 0.1
    for _ in range(15):
        sim.step(up, "ee6d")
    assert world.joint("bell") < 0.001
