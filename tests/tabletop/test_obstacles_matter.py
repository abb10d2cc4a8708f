"""Clutter makes a difference: an expert that does not look for obstacles runs into them."""

from __future__ import annotations

import pytest

from tests.tabletop.scene_suite import begin, play

hands = pytest.importorskip("harness.simulators.tabletop.hands")

SEEDS = (40000, 40001)


@pytest.mark.slow
def test_a_hand_that_ignores_obstacles_collides_more_often_than_not(sim, monkeypatch):
    monkeypatch.setattr(hands, "_highest", lambda world, *rest: world.table_height)
    collided = []
    for scene, task in sim.cells():
        for seed in SEEDS:
            begin(sim, scene, task, seed, "d15")
            play(sim, sim.step_limit(task, f"bench_demo_{scene}_d15"))
            collided.append(not sim.score().hard_success)
    assert sum(collided) > len(collided) / 2
