"""The benchmark behind the contract. What each task owes is in ``scene_suite.py``."""

from __future__ import annotations

import numpy as np
import pytest

from harness.errors import RollpoolError
from harness.simulators import contract, load
from harness.simulators.tabletop import scenes
from harness.simulators.tabletop.adapter import Tabletop
from tests.tabletop.scene_suite import begin, play

BELL = ("study", "press_bell", "bench_demo_study_clean")


def test_one_millimetre_makes_another_state() -> None:
    sim, found = Tabletop(), []
    for shift in (0.0, 0.0, 0.001):
        begin(sim, "study", "press_bell", seed=1)
        action = sim.observe(()).proprio
        action[0] += shift
        sim.step(action, "ee6d")
        found.append(sim.state_hash())
    assert found[0] == found[1] != found[2]


def test_replaying_an_experts_actions_ends_in_the_same_bits() -> None:
    sim = Tabletop()
    begin(sim, "study", "put_cup_in_box", seed=2)
    actions = [sim.expert_chunk(1)[0]]
    while not sim.step(actions[-1], "ee6d"):
        actions.append(sim.expert_chunk(1)[0])
    ended = sim.state_hash()
    begin(sim, "study", "press_bell", seed=0)
    begin(sim, "study", "put_cup_in_box", seed=2)
    assert [sim.step(a, "ee6d") for a in actions].index(True) == len(actions) - 1
    assert sim.state_hash() == ended


@pytest.mark.parametrize("task", ["put_cup_in_box", "press_bell", "push_book_to_mark"])
def test_the_expert_takes_over_from_other_hands(task: str) -> None:
    sim = Tabletop()
    begin(sim, "study", task, seed=3)
    for _ in range(2):
        for action in sim.expert_chunk(15):
            sim.step(action, "ee6d")
        away = sim.observe(()).proprio
        away[[2, 12]] += 0.08  # both hands up, as a policy with other ideas may do
        for _ in range(5):
            sim.step(away, "ee6d")
    assert play(sim, actions=300, chunk=1)


def test_a_chunk_is_as_long_as_asked_or_shorter_but_never_empty() -> None:
    sim = Tabletop()
    begin(sim, "study", "press_bell", seed=1)
    for length in (1, 7, 500):
        chunk = sim.expert_chunk(length)
        assert chunk.dtype == np.float32
        assert 1 <= chunk.shape[0] <= length and chunk.shape[1] == 20
    assert play(sim, actions=200)
    assert len(sim.expert_chunk(30)) == 1, "nothing is left to do: stay"


def test_success_ends_the_action_at_once_and_collisions_stop_counting() -> None:
    sim = Tabletop()
    begin(sim, "study", "press_bell", seed=5)
    steps = 0
    while not sim.step(sim.expert_chunk(1)[0], "ee6d"):
        steps += 1
    assert steps / 20 < sim.sim_time() <= (steps + 1) / 20
    down = sim.observe(()).proprio
    down[[2, 12]] = 0.5  # into the desk
    for _ in range(20):
        assert sim.step(down, "ee6d")
    assert sim.score() == contract.Score(True, True, 0, ())


def test_a_collision_costs_the_hard_success_alone() -> None:
    sim = Tabletop()
    begin(sim, "study", "press_bell", seed=5)
    down = sim.observe(()).proprio
    down[12] = 0.7  # the hand that is not needed rams the desk
    for _ in range(20):
        sim.step(down, "ee6d")
    assert play(sim, actions=200)
    assert sim.score() == contract.Score(True, False, 1, ("desk",))


def test_an_episode_of_another_version_is_refused() -> None:
    episode = contract.Episode(*BELL, 5, "press", {"benchmark_version": 0})
    with pytest.raises(RollpoolError, match="seal the population again"):
        Tabletop().reset(episode)


@pytest.mark.parametrize("scene", scenes.names())
def test_every_scene_has_all_configurations(scene: str) -> None:
    kinds = ("clean", *(f"d{density}" for density in range(6, 16)))
    assert list(Tabletop().task_configs(scene)) == [f"bench_demo_{scene}_{kind}" for kind in kinds]


def test_every_task_has_a_step_limit() -> None:
    sim = Tabletop()
    for scene, task in sim.cells():
        assert 100 <= sim.step_limit(task, f"bench_demo_{scene}_clean") <= 1000


def test_a_configuration_of_another_scene_is_refused() -> None:
    with pytest.raises(RollpoolError, match="belongs to scene 'office'"):
        Tabletop().seal("study", "press_bell", "bench_demo_office_clean", 0)


def test_without_a_renderer_there_are_no_cameras() -> None:
    sim = load("tabletop")
    assert sim.cameras == ()
    sim.reset(contract.Episode(*BELL, 0, "press the bell"))
    with pytest.raises(RollpoolError, match="without a renderer"):
        sim.observe((contract.COUNTERTOP,))
    observation = sim.observe(())
    assert observation.proprio.shape == (20,) and observation.state["qpos"].shape == (16,)
    assert observation.instruction == "press the bell"


def test_nothing_runs_before_reset() -> None:
    with pytest.raises(RollpoolError, match="call reset first"):
        Tabletop().observe(())


@pytest.mark.parametrize("name", ["tabeltop", "no.such.module:factory", "harness.errors:nothing"])
def test_load_refuses_what_is_not_there(name: str) -> None:
    with pytest.raises(RollpoolError):
        load(name)
