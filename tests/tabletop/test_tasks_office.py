"""The office: its expert succeeds, its goals mean what they say, its episodes repeat bit by bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sapien", reason="the benchmark runs in the simulator's environment")

from harness.simulators.contract import Episode, Score
from harness.simulators.tabletop import tasks
from harness.simulators.tabletop.adapter import Tabletop
from harness.simulators.tabletop.instructions import _templates
from harness.simulators.tabletop.layout import lay_out
from harness.simulators.tabletop.tasks.office import HandOverStapler
from harness.simulators.tabletop.world import World

ROOT = Path(__file__).resolve().parents[2]
NAMES = tuple(task.name for task in tasks.of_scene("office"))
HASHING = """
import sys
from tests.tabletop.test_tasks_office import begin, play
from harness.simulators.tabletop.adapter import Tabletop
sim = Tabletop()
for name in sys.argv[1:]:
    begin(sim, name, seed=3)
    play(sim, actions=45, chunk=15)
    print(name, sim.state_hash())
"""


def begin(sim: Tabletop, task: str, seed: int, density: str = "clean") -> str:
    """Resets to an episode; returns its instruction."""
    config = f"bench_demo_office_{density}"
    sealed = sim.seal("office", task, config, seed)
    sim.reset(Episode("office", task, config, seed, sealed["instruction"], sealed["reset"]))
    return str(sealed["instruction"])


def play(sim: Tabletop, actions: int, chunk: int = 30) -> int:
    """Follows the expert until success, or for so many actions; returns how many."""
    for done in range(0, actions, chunk):
        for count, action in enumerate(sim.expert_chunk(chunk), 1):
            if sim.step(action, "ee6d"):
                return done + count
    return actions


def solve(sim: Tabletop, task: str, seed: int, density: str = "clean", chunk: int = 30) -> Score:
    begin(sim, task, seed, density)
    play(sim, sim.step_limit(task, f"bench_demo_office_{density}"), chunk)
    return sim.score()


@pytest.fixture(scope="module")
def sim() -> Tabletop:
    return Tabletop()


@pytest.mark.parametrize("task", NAMES)
@pytest.mark.parametrize("seed", [100, 101])
def test_expert_succeeds_without_a_collision(sim: Tabletop, task: str, seed: int) -> None:
    assert solve(sim, task, seed).hard_success


@pytest.mark.slow
@pytest.mark.parametrize("task", NAMES)
def test_expert_finds_its_way_through_clutter(sim: Tabletop, task: str) -> None:
    assert all(solve(sim, task, seed, "d15").success for seed in (100, 101, 102))


@pytest.mark.parametrize("task", NAMES)
def test_expert_succeeds_when_asked_again_after_every_few_actions(sim: Tabletop, task: str) -> None:
    assert solve(sim, task, seed=7, chunk=7).success


@pytest.mark.parametrize("task", NAMES)
def test_no_goal_is_reached_at_the_start_or_by_waiting(sim: Tabletop, task: str) -> None:
    for seed in range(3):
        begin(sim, task, seed)
        stay = sim.observe(()).proprio
        assert not any(sim.step(stay, "ee6d") for _ in range(20))
        assert sim.score() == Score(False, False, 0, ())


@pytest.mark.parametrize("task", NAMES)
def test_no_goal_is_reached_by_waving_about(sim: Tabletop, task: str) -> None:
    rng = np.random.default_rng(5)
    begin(sim, task, seed=4)
    start = sim.observe(()).state["qpos"]
    for _ in range(60):
        assert not sim.step(start + rng.normal(0.0, 0.4, 16), "qpos")


def _hashes(*names: str) -> dict[str, str]:
    """State hashes after a part of the expert's episode, from a process of its own."""
    printed = subprocess.run(
        [sys.executable, "-c", HASHING, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return dict(line.split() for line in printed.stdout.splitlines())


def test_episodes_repeat_bit_by_bit_in_another_process_and_order(sim: Tabletop) -> None:
    there = _hashes(*reversed(NAMES))
    here = {}
    for task in NAMES:
        begin(sim, task, seed=3)
        play(sim, actions=45, chunk=15)
        here[task] = sim.state_hash()
    assert here == there
    assert len(set(here.values())) == len(NAMES)


@pytest.mark.parametrize("task", NAMES)
def test_things_stand_elsewhere_with_every_seed(task: str) -> None:
    layouts = [lay_out("office", task, 0, seed).task.contents for seed in range(40)]
    for places in zip(*layouts, strict=True):
        xy = np.array([place.xy for place in places])
        assert (np.ptp(xy, axis=0) > 0.10).all(), places[0].name


@pytest.mark.parametrize("task", NAMES)
def test_clutter_leaves_the_clean_layout_and_instruction_kind_alone(
    sim: Tabletop, task: str
) -> None:
    clean, dense = (lay_out("office", task, density, 9) for density in (0, 15))
    assert clean.task.contents == dense.task.contents
    assert (len(clean.obstacles), len(dense.obstacles)) == (0, 15)
    seals = [sim.seal("office", task, "bench_demo_office_d6", 9) for _ in range(2)]
    assert seals[0] == seals[1]


@pytest.mark.parametrize("task", NAMES)
def test_seen_and_unseen_instructions_are_different_ones(task: str) -> None:
    kinds = _templates("office")[task]
    assert set(kinds) == {"seen", "unseen"}
    assert not set(kinds["seen"]) & set(kinds["unseen"])
    assert min(len(kind) for kind in kinds.values()) >= 3


def _world(task: str, seed: int = 0) -> World:
    layout = lay_out("office", task, 0, seed)
    return World(layout.scene, layout.contents, None)


@pytest.mark.parametrize("seed", range(20))
def test_the_first_arm_cannot_reach_the_tray(seed: int) -> None:
    world = _world("hand_over_stapler", seed)
    giver = "left" if world.pose("stapler").p[1] > 0 else "right"
    arm, other = (world.robot.arms[s] for s in (giver, "right" if giver == "left" else "left"))
    above = np.array([*world.pose("tray").p[:2], world.table_height + 0.05])
    misses = []
    for hand in (arm, other):
        target = np.concatenate([above, hand.commanded_tcp().q, [1.0]])
        for _ in range(60):
            hand.aim(target, "ee")
        misses.append(float(np.linalg.norm(hand.commanded_tcp().p - above)))
    assert misses[0] > 0.02 > 0.002 > misses[1]


def test_a_stapler_across_the_rim_of_the_tray_is_not_in_it() -> None:
    world = _world("hand_over_stapler")
    task = HandOverStapler(np.random.default_rng(0))
    tray = world.pose("tray")
    body = world._loose["stapler"].entity
    for offset, inside in (([0, 0, 0.009], True), ([0.07, 0, 0.009], False), ([0, 0, 0.05], False)):
        pose = tray.__class__(offset)
        body.set_pose(tray * pose)
        assert task.success(world) is inside


def test_the_drawer_slides_only_when_pulled(sim: Tabletop) -> None:
    begin(sim, "open_drawer", seed=2)
    world = sim._now.world
    stay = sim.observe(()).proprio
    for _ in range(10):
        sim.step(stay, "ee6d")
    assert world.joint("drawer") == pytest.approx(0.0, abs=1e-3)
    play(sim, actions=300)
    assert world.joint("drawer") > 0.08
    assert world.holder("drawer") is not None
