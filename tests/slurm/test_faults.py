"""Nodes that die, freeze or lose their network, and a controller that goes away: the final table
is that of an undisturbed run each time."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter

import pytest

from harness.runs.population import Cell
from harness.runs.sealing import work_name
from tests.slurm.conftest import BLOCK, SEEDS, Outcomes, Pool
from tests.waiting import DEADLINE_S, beats, wait_for

pytestmark = pytest.mark.slow

TASKS = ("reach_even", "never_succeed")
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


def _begin(pool: Pool, run: str, host: str) -> subprocess.Popen[str]:
    """A run of four nodes. That host is in the middle of an episode, the gate is closed."""
    pool.gate.close()
    pool.make(run, *TASKS)
    block = pool.start(BLOCK.format(run=run, nodes=4, gpus=1))
    wait_for(lambda: host in pool.held(run), f"{host} is in an episode", block)
    return block


def _lost(pool: Pool, run: str, host: str) -> int:
    return sum(
        row.error is not None and row.error["kind"] == "lost" and row.host == host
        for row in pool.rows(run)
    )


def _stopped(pool: Pool, run: str, host: str) -> bool:
    seen = beats(pool.paths(run).workers)
    return all(beat["state"] == "ended" for beat in seen if beat["host"] == host)


def test_a_node_is_powered_off(pool: Pool, undisturbed: Outcomes) -> None:
    block = _begin(pool, "power", "n2")
    pool.cluster.kill_node("n2")
    pool.gate.open()
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert pool.outcomes("power") == undisturbed, out
    assert _lost(pool, "power", "n2") == 1


def test_srun_is_not_believed_when_the_last_node_dies(pool: Pool, undisturbed: Outcomes) -> None:
    pool.gate.close()
    pool.make("alone", *TASKS)
    block = pool.start("source env.sh; rollpool submit alone --nodes 1 --nodelist n3")
    wait_for(lambda: pool.held("alone"), "n3 is in an episode", block)
    pool.cluster.kill_node("n3")
    pool.gate.open()
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert block.returncode == 1, out
    assert "missing: plane never_succeed bench_demo_plane_clean: " in out
    assert 0 < len(pool.outcomes("alone")) < TOTAL
    code, out = pool.shell("source env.sh; rollpool submit alone --nodes 3")
    assert code == 0, out
    assert pool.outcomes("alone") == undisturbed


def test_a_node_freezes_for_longer_than_its_lease(pool: Pool, undisturbed: Outcomes) -> None:
    block = _begin(pool, "frozen", "n2")
    pool.cluster.freeze("n2")
    pool.gate.open()
    wait_for(lambda: _lost(pool, "frozen", "n2"), "another node takes the episode", block)
    pool.cluster.thaw("n2")
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert pool.outcomes("frozen") == undisturbed, out
    wait_for(lambda: _stopped(pool, "frozen", "n2"), "the thawed worker stops")
    assert pool.outcomes("frozen") == undisturbed


def test_a_node_cut_off_goes_on_writing(pool: Pool, undisturbed: Outcomes) -> None:
    block = _begin(pool, "cut", "n3")
    pool.cluster.partition("n3")
    cut = time.time()
    pool.gate.open()
    wait_for(
        lambda: any(r.host == "n3" and r.finished > cut for r in pool.rows("cut")),
        "n3 goes on", block,
    )  # fmt: skip
    pool.cluster.heal("n3")
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert pool.outcomes("cut") == undisturbed, out
    rows = Counter((r.manifest, r.position) for r in pool.rows("cut") if r.success is not None)
    assert len(rows) == TOTAL


def test_the_controller_is_restarted(pool: Pool, undisturbed: Outcomes) -> None:
    block = _begin(pool, "controller", "n1")
    pool.cluster.restart_ctld()
    pool.gate.open()
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
        wait_for(lambda rows=rows: len(pool.rows(run)) >= rows, f"{rows} rows", block)
        pool.cluster.kill_node(node)
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert pool.outcomes(run) == two_hundred, out
    kinds = {row.error["kind"] for row in pool.rows(run) if row.error}
    assert kinds <= {"lost"}, kinds
