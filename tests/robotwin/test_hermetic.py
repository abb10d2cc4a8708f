"""Order dependence, unseeded instructions, drifting defaults, reused robots: the public bug reports
(RoboTwin 147, 202, 288, 505, 509) replayed against the adapter."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.simulators.contract import Episode, differing
from harness.simulators.robotwin.adapter import RoboTwin
from harness.simulators.robotwin.arguments import task_arguments
from tests.robotwin.conftest import CLASSIC, CUP, HAMMER, ROBOPRO, Play, forget, sealed, upstream

CLUTTERED = ("robotwin", "beat_block_hammer", "demo_randomized")


def _solve(sim: RoboTwin) -> bool:
    """Bring the hand that is nearer to the thing there, and close it."""
    env: Any = sim._now.env
    body = getattr(env, "block", None) or env.target_obj
    action = sim.observe(()).state["qpos"]
    arm = 0 if env.arm == "left" else 7
    action[arm : arm + 3] = body.pose.p
    return any(sim.step(action, "qpos") for _ in range(3)) or any(
        sim.step(np.r_[action[: arm + 6], 0, action[arm + 7 :]], "qpos") for _ in range(4)
    )


def test_used_as_upstream_uses_it_the_stand_in_drifts(classic: RoboTwin) -> None:
    """The trap is there: one object for all episodes gives another scene each time."""
    checkout = classic._checkout
    with checkout.inside():
        env = checkout.task_class(*CLUTTERED[:2])()
        made = task_arguments(checkout, *CLUTTERED[1:])
        places = []
        for _ in range(2):
            env.setup_demo(now_ep_num=0, seed=5, is_test=True, **made)
            places.append(np.stack([actor.pose.p for actor in env.scene.get_all_actors()]))
            env.close_env()
    assert not np.array_equal(places[0], places[1])


def test_an_episode_is_the_same_after_others_and_after_itself(classic: RoboTwin) -> None:
    episodes = [sealed(classic, CLUTTERED, seed) for seed in (3, 4, 5)]
    alone: dict[int, str] = {}
    for episode in [*episodes, *reversed(episodes), episodes[0]]:
        classic.reset(episode)
        assert not differing(episode.fingerprint, classic.fingerprint())
        assert alone.setdefault(episode.seed, classic.state_hash()) == classic.state_hash()


def test_it_is_the_same_in_other_processes_and_orders(play_elsewhere: Play) -> None:
    plays = [[CLUTTERED, seed] for seed in (3, 4, 5)]
    forwards = play_elsewhere(CLASSIC, plays, hash_seed=1)
    backwards = play_elsewhere(CLASSIC, plays[::-1], hash_seed=2)
    alone = play_elsewhere(CLASSIC, plays[1:2], hash_seed=3)
    assert forwards == backwards[::-1]
    assert alone == forwards[1:2]


def test_robopro_too(play_elsewhere: Play) -> None:
    plays = [[("study", "put_cup_in_box", "bench_demo_study_d6"), seed] for seed in (40000, 40001)]
    first = play_elsewhere(ROBOPRO, plays, hash_seed=1)
    assert first == play_elsewhere(ROBOPRO, plays[::-1], hash_seed=2)[::-1]


def test_the_arms_are_home_again_after_a_success(classic: RoboTwin) -> None:
    episode = sealed(classic, HAMMER, 3)
    classic.reset(episode)
    start = classic.observe(()).proprio
    assert _solve(classic)
    classic.reset(sealed(classic, HAMMER, 4))
    assert np.array_equal(classic.observe(()).proprio, start)


def test_every_episode_can_succeed_not_the_first_alone(classic: RoboTwin) -> None:
    for seed in (3, 4, 5):
        classic.reset(sealed(classic, HAMMER, seed))
        assert _solve(classic), seed
        assert classic.score().success


def test_an_instruction_is_the_seeds_own_whatever_random_has_done(classic: RoboTwin) -> None:
    told = set()
    for noise in range(4):
        random.seed(noise)
        np.random.seed(noise)
        told.add(sealed(classic, HAMMER, 3).instruction)
    assert len(told) == 1


def test_instructions_differ_between_seeds_and_are_the_episodes(classic: RoboTwin) -> None:
    episodes = [sealed(classic, HAMMER, seed) for seed in range(3, 11)]
    assert len({episode.instruction for episode in episodes}) > 2
    classic.reset(episodes[0])
    assert classic.observe(()).instruction == episodes[0].instruction
    assert classic._now.env.get_instruction() == episodes[0].instruction


def test_seen_and_unseen_sentences_are_chosen_by_configuration() -> None:
    seen = RoboTwin(config={**CLASSIC, "instruction_type": "seen"})
    sentences = [sealed(seen, HAMMER, seed).instruction for seed in range(3, 9)]
    assert all(sentence.startswith(("Grab the", "Take the")) for sentence in sentences)


def test_robopro_sentences_come_from_the_plain_file_or_the_language_bank(robopro: RoboTwin) -> None:
    assert sealed(robopro, CUP, 40000).instruction == "Put the cup in the box."
    asked = {
        sealed(robopro, (*CUP[:2], "bench_perturb_study_colloquial_polite_clean"), seed).instruction
        for seed in range(40000, 40006)
    }
    assert len(asked) > 1
    assert all("up" in sentence and "box" in sentence for sentence in asked)


def test_looking_more_often_changes_nothing(classic: RoboTwin) -> None:
    """`crazy_random_light` draws from numpy's generator at every picture, and the ambient light
    wanders: a picture must not depend on how many were taken before."""
    episode = sealed(classic, CLUTTERED, 3)
    ends = []
    for looks in (1, 3, 0):
        classic.reset(episode)
        for _ in range(3):
            for _ in range(looks):
                classic._now.pictures._rendered = (
                    None  # as if the pictures of this step were not kept
                )
                classic.observe(["head"])
                classic.frame("demo")
            classic.step(classic.observe(()).state["qpos"], "qpos")
        ends.append((classic.state_hash(), classic.frame("demo").tobytes()))
    assert len(set(ends)) == 1


def test_pictures_leave_the_generators_alone(classic: RoboTwin) -> None:
    classic.reset(sealed(classic, CLUTTERED, 3))
    before = (random.getstate(), np.random.get_state()[1].tolist())
    classic.observe(["head"])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_episodes_free_their_scenes(classic: RoboTwin) -> None:
    """The stand-in holds three scenes; `close` frees none of them, `close_env` does."""
    for seed in range(3, 13):
        classic.reset(sealed(classic, HAMMER, seed))  # abandoned by the next one
        assert classic.solvable(Episode(*HAMMER, seed, ""))
    classic.close()
    classic.close()
    assert sys.modules["envs.scene"].OPEN == []


def test_the_working_directory_is_the_callers(
    classic: RoboTwin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    classic.reset(sealed(classic, HAMMER, 3))
    classic.step(classic.observe(["head"]).state["qpos"], "qpos")
    assert os.getcwd() == str(tmp_path)


def test_another_checkout_is_named_part_by_part(classic: RoboTwin, copied: Path) -> None:
    """RoboTwin 215: the same seed in other code or with other assets is another episode."""
    episode = sealed(classic, HAMMER, 3)
    forget()
    root = copied / "customized_robotwin"
    (root / "assets/objects/020_hammer/points_info.json").write_text("{}")
    task = root / "envs/beat_block_hammer.py"
    task.write_text(task.read_text().replace("(-0.25, 0.25)", "(-0.26, 0.25)"))
    changed = RoboTwin(config={"root": str(root)})
    changed.reset(episode)
    parts = [
        line.partition(":")[0] for line in differing(episode.fingerprint, changed.fingerprint())
    ]
    assert parts == ["assets", "code", "scene"]
    changed.close()


def test_the_expert_check_does_not_measure_collisions_and_the_rollout_does(
    robopro: RoboTwin,
) -> None:
    episode = sealed(robopro, CUP, 40000)
    upstream().SETUPS.clear()
    assert robopro.solvable(episode)
    robopro.reset(episode)
    assert [(CUP[1], 40000, False), (CUP[1], 40000, True)] == upstream().SETUPS
