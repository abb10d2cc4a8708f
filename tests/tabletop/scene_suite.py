"""What every scene owes: inherit ``SceneSuite``, name the ``SCENE``, and add what is its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("sapien", reason="the benchmark runs in the simulator's environment")

from harness.simulators.contract import Episode, Score
from harness.simulators.tabletop import tasks
from harness.simulators.tabletop.adapter import Tabletop
from harness.simulators.tabletop.instructions import _templates
from harness.simulators.tabletop.layout import lay_out
from harness.simulators.tabletop.world import World

_ROOT = Path(__file__).resolve().parents[2]
_HASHING = """
import sys
from tests.tabletop.scene_suite import hashes
for task, digest in hashes(sys.argv[1], sys.argv[2:]).items():
    print(task, digest)
"""


def begin(sim: Tabletop, scene: str, task: str, seed: int, density: str = "clean") -> World:
    """Resets to an episode; returns its world."""
    config = f"bench_demo_{scene}_{density}"
    sealed = sim.seal(scene, task, config, seed)
    sim.reset(Episode(scene, task, config, seed, sealed["instruction"], sealed["reset"]))
    return sim._now.world


def play(sim: Tabletop, actions: int, chunk: int = 30) -> bool:
    """Follows the expert until success (True), or for so many actions."""
    for _ in range(0, actions, chunk):
        if any(sim.step(action, "ee6d") for action in sim.expert_chunk(chunk)):
            return True
    return False


def hashes(scene: str, names: list[str]) -> dict[str, str]:
    """State hashes after a part of each task's episode, one after the other."""
    sim, found = Tabletop(), {}
    for task in names:
        begin(sim, scene, task, seed=3)
        play(sim, actions=90, chunk=15)
        found[task] = sim.state_hash()
    return found


class SceneSuite:
    """See the module. Every test that asks for ``task`` runs for each task of the scene."""

    SCENE: ClassVar[str]

    def solve(self, sim: Tabletop, task: str, seed: int, density: str = "clean") -> Score:
        begin(sim, self.SCENE, task, seed, density)
        play(sim, sim.step_limit(task, f"bench_demo_{self.SCENE}_{density}"))
        return sim.score()

    @pytest.mark.parametrize("seed", [100, 101])
    def test_expert_succeeds_without_a_collision(self, sim: Tabletop, task: str, seed: int) -> None:
        assert self.solve(sim, task, seed).hard_success

    @pytest.mark.slow
    def test_expert_finds_its_way_through_clutter(self, sim: Tabletop, task: str) -> None:
        assert all(self.solve(sim, task, seed, "d15").success for seed in (100, 101, 102))

    def test_expert_succeeds_when_asked_again_after_every_few_actions(
        self, sim: Tabletop, task: str
    ) -> None:
        begin(sim, self.SCENE, task, seed=7)
        assert play(sim, sim.step_limit(task, f"bench_demo_{self.SCENE}_clean"), chunk=7)

    def test_no_goal_is_reached_at_the_start_or_by_waiting(self, sim: Tabletop, task: str) -> None:
        for seed in range(3):
            begin(sim, self.SCENE, task, seed)
            stay = sim.observe(()).proprio
            assert not any(sim.step(stay, "ee6d") for _ in range(20))
            assert sim.score() == Score(False, False, 0, ())

    def test_no_goal_is_reached_by_waving_about(self, sim: Tabletop, task: str) -> None:
        rng = np.random.default_rng(5)
        begin(sim, self.SCENE, task, seed=4)
        start = sim.observe(()).state["qpos"]
        for _ in range(60):
            assert not sim.step(start + rng.normal(0.0, 0.4, 16), "qpos")

    def test_episodes_repeat_bit_by_bit_in_another_process_and_order(self) -> None:
        names = [task.name for task in tasks.of_scene(self.SCENE)]
        printed = subprocess.run(
            [sys.executable, "-c", _HASHING, self.SCENE, *reversed(names)],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        there = dict(line.split() for line in printed.stdout.splitlines())
        assert hashes(self.SCENE, names) == there
        assert len(set(there.values())) == len(names)

    def test_things_stand_elsewhere_with_every_seed(self, task: str) -> None:
        layouts = [lay_out(self.SCENE, task, 0, seed).task.contents for seed in range(40)]
        for places in zip(*layouts, strict=True):
            spread = np.ptp(np.array([place.xy for place in places]), axis=0)
            assert (spread > 0.10).all(), places[0].name

    def test_clutter_leaves_the_clean_layout_alone(self, task: str) -> None:
        clean, dense = (lay_out(self.SCENE, task, density, 9) for density in (0, 15))
        assert clean.task.contents == dense.task.contents
        assert (len(clean.obstacles), len(dense.obstacles)) == (0, 15)

    def test_the_instruction_follows_from_the_seed(self, sim: Tabletop, task: str) -> None:
        config = f"bench_demo_{self.SCENE}_d6"
        first, again = ([sim.seal(self.SCENE, task, config, n) for n in range(12)] for _ in "ab")
        assert first == again
        assert len({sealed["instruction"] for sealed in first}) > 1

    def test_seen_and_unseen_instructions_are_different_ones(self, task: str) -> None:
        kinds = _templates(self.SCENE)[task]
        assert set(kinds) == {"seen", "unseen"}
        assert not set(kinds["seen"]) & set(kinds["unseen"])
        assert min(len(kind) for kind in kinds.values()) >= 3
