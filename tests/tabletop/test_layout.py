"""Where things stand: reproducible, apart, in the way, and the same at every density."""

from __future__ import annotations

import math

import pytest

from harness.errors import RollpoolError
from harness.simulators.tabletop import scenes, tasks
from harness.simulators.tabletop.bodies import Zone
from harness.simulators.tabletop.layout import lay_out

CELLS = [(scene, task.name) for scene in scenes.names() for task in tasks.of_scene(scene)]
SEEDS = range(20)


@pytest.mark.parametrize(("scene", "task"), CELLS)
def test_obstacles_overlap_nothing(scene: str, task: str) -> None:
    for seed in SEEDS:
        layout = lay_out(scene, task, 15, seed)
        assert len(layout.obstacles) == 15
        furniture = [placed for placed in layout.scene.furniture if placed.thing.radius]
        for index, obstacle in enumerate(layout.obstacles):
            others = (*layout.obstacles[:index], *layout.task.contents, *furniture)
            for other in others:
                gap = math.dist(obstacle.xy, other.xy)
                assert gap > obstacle.thing.radius + other.thing.radius, (seed, other.name)
            for zone in layout.task.keep_clear():
                assert zone.distance(obstacle.xy) > obstacle.thing.radius


@pytest.mark.parametrize(("scene", "task"), CELLS)
def test_density_leaves_the_layout_as_it_is(scene: str, task: str) -> None:
    for seed in SEEDS:
        clean, dense = lay_out(scene, task, 0, seed), lay_out(scene, task, 15, seed)
        assert clean.task.contents == dense.task.contents
        assert clean.obstacles == ()
        assert lay_out(scene, task, 6, seed).obstacles == dense.obstacles[:6]


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(RollpoolError, match="put_cup_in_box"):
        lay_out("study", "no_such_task", 0, 0)
    with pytest.raises(RollpoolError, match="study"):
        lay_out("attic", "put_cup_in_box", 0, 0)


def test_distance_to_a_zone() -> None:
    zone = Zone((0.0, 0.0), (1.0, 0.0), 0.1)
    assert zone.distance((0.5, 0.3)) == pytest.approx(0.2)
    assert zone.distance((2.0, 0.0)) == pytest.approx(0.9)
    assert zone.distance((0.5, 0.0)) == pytest.approx(-0.1)
