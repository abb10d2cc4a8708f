"""Whole runs on the stand-in checkouts, by the commands a user types."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from harness.paths import Root
from harness.runs.population import Cell, load, read_line
from harness.simulators.contract import Episode
from harness.workers.simulator_process import SimulatorProcess
from tests.e2e.conftest import Home
from tests.robotwin.conftest import CLASSIC, CUP, ROBOPRO

#: Knows where the stand-in puts the thing of a seed, and closes the nearer hand over it.
REACH = """
import numpy as np

class Reach:
    def infer(self, observation, session):
        assert observation["images"]["countertop"].shape == (24, 32, 3)
        x, y = np.random.RandomState(session.seed).uniform((-0.25, -0.1), (0.25, 0.0))
        first = 0 if x < 0 else 10
        actions = np.tile(observation["proprio"], (6, 1))
        actions[:, first : first + 3] = x, y, 0.8
        actions[3:, first + 9] = 0
        return actions

def get_model(usr_args):
    return Reach()
"""
REACH_YML = """
policy_name: reach
action_kind: ee6d
action_dim: 20
chunk: 6
needs: [images]
cameras: [countertop]
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    policy = tmp_path / "policy" / "reach"
    policy.mkdir(parents=True)
    (policy / "deploy_policy.py").write_text(REACH)
    (policy / "deploy_policy.yml").write_text(REACH_YML)
    home = Home(tmp_path)
    home.env |= {"SIMULATOR": "robotwin", "POLICY_NAME": "reach"}
    home.env |= {"SIM_CONFIG": str(_written(tmp_path / "robopro.yml", ROBOPRO))}
    return home


def _written(file: Path, content: object) -> Path:
    file.write_text(yaml.safe_dump(content))
    return file


def _queue(home: Home, text: str) -> str:
    file = home.path / "wanted.txt"
    file.write_text(text)
    return str(file)


def _sealed(home: Home, run: str, cell: tuple[str, str, str]) -> Sequence[Episode]:
    return load(Root(home.path).run(run), Cell(*cell))[0].episodes


@pytest.mark.slow
def test_robopro_from_its_own_seed_bank_to_tables_and_videos(home: Home) -> None:
    bank = str(Path(ROBOPRO["bench_root"]) / "eval_seeds")  # no final newline, as upstream's
    code, out, err = home.call(
        *("run", "bench", "--queue", _queue(home, "study put_cup_in_box\n")),
        *("--seeds", bank, "--test-num", "3"),
        EVAL_VIDEO="all", DXVLA_VIDEO_CAM="countertop_camera",
    )  # fmt: skip
    assert code == 0, err + out
    rows = home.rows("bench")
    assert [row.seed for row in rows] == [40000, 40001, 40002]
    assert {(row.outcome, row.hard_success) for row in rows} == {("success", True)}
    assert all((home.path / "runs/bench" / str(row.video)).is_file() for row in rows)
    assert rows[0].versions["simulator"] == "robotwin robopro"
    episode = _sealed(home, "bench", CUP)[0]
    assert episode.instruction == "Put the cup in the box."
    assert set(episode.fingerprint) == {"assets", "code", "sapien", "scene", "settings"}
    code, out, _ = home.call("organize", "bench", "reach")
    assert code == 0
    assert "put_cup_in_box" in out


@pytest.mark.slow
def test_without_a_bank_the_first_seeds_that_the_expert_solves_are_sealed(home: Home) -> None:
    """Unstable seeds, plans without a pose and failed plans are left out, before the run."""
    code, _, err = home.call(
        *("prepare", "scan", "--queue", _queue(home, "robotwin stack_bowls\n")),
        *("--test-num", "4"),
        SIM_CONFIG=str(_written(home.path / "classic.yml", CLASSIC)),
        BENCH_CONFIG="demo_clean", USE_EVAL_SEEDS="0",
    )  # fmt: skip
    assert code == 0, err
    seeds = [e.seed for e in _sealed(home, "scan", ("robotwin", "stack_bowls", "demo_clean"))]
    good = [s for s in range(100_000, 100_020) if s % 3 != 1 and s % 5 and s % 7]
    assert seeds == good[:4]


@pytest.mark.slow
def test_a_queue_of_a_whole_checkout_is_one_command(home: Home) -> None:
    code, out, err = home.call("queue", "-o", str(home.path / "all.txt"))
    assert code == 0, err + out
    lines = (home.path / "all.txt").read_text().split("\n")
    assert "kitchens put_bowl_in_sink_ks" in lines
    code, out, err = home.call("list", "configs")
    assert "bench_demo_office_d6" in out, err


def test_a_known_episode_needs_no_expert(tmp_path: Path) -> None:
    """The doctor compares nodes by an episode; here its actions are the episode's own."""
    with SimulatorProcess(
        sys.executable, "robotwin", tmp_path / "sim.log", options={"config": ROBOPRO}
    ) as sim:
        (line,) = sim.seal(Cell(*CUP), [40000]).lines
        episode = read_line(Cell(*CUP), line)
        assert sim.probe(episode, 5) == sim.probe(episode, 5) != sim.probe(episode, 6)
