"""Nodes that die, freeze or lose their network, and a controller that goes away: the final table
is that of an undisturbed run each time."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter

import pytest

from harness.runs.population import Cell
from harness.runs.sealing import work_name
from tests.slurm.conftest import BLOCK, DEADLINE_S, SEEDS, Outcomes, Pool, wait_for

pytestmark = pytest.mark.slow

TASKS = ("reach_even", "never_succeed")
#: Two seconds for an episode that fails.
SLOW = {"POINTSIM_STEP_S": "0.05"}
TOTAL = 24
#: Where many episodes are wanted.
MANY = ("reach_goal", "reach_even", "never_succeed")


@pytest.fixture(scope="module")
def undisturbed(_pool: Pool) -> Outcomes:
    queue = _pool.queue(*TASKS)
    command = f"source env.sh; rollpool run undisturbed --queue {queue} --workers 2"
    code, out = _pool.shell(command)
    assert code == 0, out
    return _pool.outcomes("undisturbed")


def _begin(pool: Pool, run: str, nodes: int = 4):  # type: ignore[no-untyped-def]
    """The run is under way: a row is there."""
    pool.make(run, *TASKS)
    block = pool.start(BLOCK.format(run=run, nodes=nodes, gpus=1), **SLOW)
    wait_for(lambda: pool.rows(run), "the first row")
    return block


def _lost(pool: Pool, run: str, host: str) -> int:
    return sum(
        row.error is not None and row.error["kind"] == "lost" and row.host == host
        for row in pool.rows(run)
    )


def _busy(pool: Pool, run: str, host: str) -> bool:
    """Whether a worker of that host has just begun an episode that takes two seconds."""
    for text in pool.heartbeats(run):
        beat = json.loads(text)
        if beat["host"] == host and beat["state"] == "running" and beat["episode"]:
            return beat["episode"]["task"] == "never_succeed" and beat["step"] < 20
    return False


def _stopped(pool: Pool, run: str, host: str) -> bool:
    beats = [json.loads(text) for text in pool.heartbeats(run)]
    return all(beat["state"] == "ended" for beat in beats if beat["host"] == host)


def test_a_node_is_powered_off(pool: Pool, undisturbed: Outcomes) -> None:
    block = _begin(pool, "power")
    wait_for(lambda: _busy(pool, "power", "n2"), "n2 is in an episode")
    pool.cluster.kill_node("n2")
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert pool.outcomes("power") == undisturbed, out
    assert _lost(pool, "power", "n2") == 1


def test_srun_is_not_believed_when_the_last_node_dies(pool: Pool, undisturbed: Outcomes) -> None:
    pool.make("alone", *TASKS)
    block = pool.start("source env.sh; rollpool submit alone --nodes 1 --nodelist n3", **SLOW)
    wait_for(lambda: pool.rows("alone"), "the first row")
    pool.cluster.kill_node("n3")
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert block.returncode == 1, out
    assert "missing: plane never_succeed bench_demo_plane_clean: " in out
    assert 0 < len(pool.outcomes("alone")) < TOTAL
    code, out = pool.shell("source env.sh; rollpool submit alone --nodes 3")
    assert code == 0, out
    assert pool.outcomes("alone") == undisturbed


def test_a_node_freezes_for_longer_than_its_lease(pool: Pool, undisturbed: Outcomes) -> None:
    block = _begin(pool, "frozen")
    wait_for(lambda: _busy(pool, "frozen", "n2"), "n2 is in an episode")
    pool.cluster.freeze("n2")
    wait_for(lambda: _lost(pool, "frozen", "n2"), "another node takes the episode")
    pool.cluster.thaw("n2")
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert pool.outcomes("frozen") == undisturbed, out
    wait_for(lambda: _stopped(pool, "frozen", "n2"), "the thawed worker stops")
    assert pool.outcomes("frozen") == undisturbed


def test_a_node_cut_off_goes_on_writing(pool: Pool, undisturbed: Outcomes) -> None:
    block = _begin(pool, "cut")
    wait_for(lambda: _busy(pool, "cut", "n3"), "n3 is in an episode")
    pool.cluster.partition("n3")
    cut = time.time()
    wait_for(
        lambda: any(r.host == "n3" and r.finished > cut for r in pool.rows("cut")), "n3 goes on"
    )
    pool.cluster.heal("n3")
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert pool.outcomes("cut") == undisturbed, out
    rows = Counter((r.manifest, r.position) for r in pool.rows("cut") if r.success is not None)
    assert len(rows) == TOTAL


def test_the_controller_is_restarted(pool: Pool, undisturbed: Outcomes) -> None:
    block = _begin(pool, "controller")
    pool.cluster.restart_ctld()
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert block.returncode == 0, out
    assert pool.outcomes("controller") == undisturbed
    assert len(pool.rows("controller")) == TOTAL


def test_a_sealer_dies_and_another_takes_over(pool: Pool) -> None:
    pool.make("seal", "reach_goal")
    name = work_name(Cell("plane", "reach_goal", "bench_demo_plane_clean"), SEEDS)
    # The first attempt at a cell is somebody's who never said a word.
    claims = pool.paths("seal").preparing / name
    (claims / "0" / "0-0.1").mkdir(parents=True)
    code, out = pool.shell(BLOCK.format(run="seal", nodes=2, gpus=1))
    assert code == 0, out
    assert out.count("sealing plane reach_goal") == 1
    assert {"0-0.1.released", "0-0.2.done"} <= {path.name for path in (claims / "0").iterdir()}


@pytest.fixture(scope="module")
def two_hundred(_pool: Pool) -> Outcomes:
    queue = _pool.queue(*MANY, seeds=range(1, 35))
    code, out = _pool.shell(
        f"source env.sh; rollpool run quiet --queue {queue} --workers 2", timeout=DEADLINE_S
    )
    assert code == 0, out
    return _pool.outcomes("quiet")


@pytest.mark.parametrize("seed", range(int(os.environ.get("ROLLPOOL_NODE_KILLS", "1"))))
def test_nodes_are_killed_at_random(pool: Pool, two_hundred: Outcomes, seed: int) -> None:
    """Three of four nodes, one after the other, in a run of 204 episodes."""
    chance, run = random.Random(seed), f"random{seed}"
    pool.make(run, *MANY, seeds=range(1, 35))
    block = pool.start(BLOCK.format(run=run, nodes=4, gpus=1), POINTSIM_STEP_S="0.01")
    moments = sorted(chance.sample(range(1, len(two_hundred) - 10), 3))
    for rows, node in zip(moments, chance.sample(pool.cluster.nodes, 3), strict=True):
        wait_for(lambda rows=rows: len(pool.rows(run)) >= rows, f"{rows} rows")
        pool.cluster.kill_node(node)
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert pool.outcomes(run) == two_hundred, out
    kinds = {row.error["kind"] for row in pool.rows(run) if row.error}
    assert kinds <= {"lost"}, kinds
