"""Model and simulator on different nodes of a cluster, over the nodes' own addresses."""

from __future__ import annotations

import functools
from collections import Counter

import pytest

from harness.runs import servers
from tests.slurm.conftest import BLOCK, SEEDS, Pool
from tests.waiting import DEADLINE_S, wait_for

pytestmark = pytest.mark.slow

#: Longer cuts cost an attempt, and so does waiting at the gate; one may do so in several.
CUT = {"STALL_TIMEOUT": "3", "EVAL_RETRIES": "99"}
#: A node for the models; whatever is left is asked for by name.
SERVE = "source env.sh; srun --nodelist=n1 --nodes=1 --ntasks=1 rollpool serve {run}"


def _prepared(pool: Pool, run: str, **env: str) -> None:
    pool.gate.close()
    code, out = pool.shell(
        f"source env.sh; rollpool prepare {run} --queue {pool.queue('never_succeed')}", **env
    )
    assert code == 0, out


def _simulators(run: str) -> str:
    return BLOCK.format(run=run, nodes=2, gpus=1).replace("srun ", "srun --nodelist=n[2-3] ")


def _whole(pool: Pool, run: str) -> bool:
    rows = [row for row in pool.rows(run) if row.success is not None]
    counts = Counter((row.scene, row.seed) for row in rows)
    return len(counts) == 2 * len(SEEDS) and set(counts.values()) == {1}


@pytest.mark.parametrize("reversed_roles", [False, True])
def test_simulators_of_two_nodes_and_a_model_of_a_third(pool: Pool, reversed_roles: bool) -> None:
    run = f"apart{reversed_roles:d}"
    _prepared(pool, run)
    if reversed_roles:
        there, here = {"MODEL_AS_CLIENT": "1"}, {"SIM_AS_SERVER": "1", "SIM_SERVER_HOST": "0.0.0.0"}
    else:
        there, here = {"MODEL_SERVER_BIND": "0.0.0.0"}, {"MODEL_SERVER_HOST": "n1"}
    serving = pool.start(SERVE.format(run=run), **there)
    block = pool.start(_simulators(run), **here)
    wait_for(lambda: pool.held(run) == {"n2", "n3"}, "both are in episodes", block, serving)
    pool.gate.open()
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert block.returncode == 0, out
    assert _whole(pool, run) and len(pool.rows(run)) == 2 * len(SEEDS)
    assert {row.host for row in pool.rows(run)} == {"n2", "n3"}
    out, _ = serving.communicate(timeout=DEADLINE_S)
    assert serving.returncode == 0 and "nothing is left to run" in out, out


def test_a_simulator_s_node_is_cut_off_from_the_model_and_healed(pool: Pool) -> None:
    _prepared(pool, "cable", **CUT)
    serving = pool.start(SERVE.format(run="cable"), **CUT, MODEL_SERVER_BIND="0.0.0.0")
    published = functools.partial(servers.published, pool.paths("cable"), "model")
    wait_for(published, "the model serves", serving)
    block = pool.start(_simulators("cable"), **CUT, MODEL_SERVER_HOST="n1")
    wait_for(lambda: "n2" in pool.held("cable"), "n2 is in an episode", block)
    pool.cluster.partition("n2")
    pool.gate.open()
    wait_for(
        lambda: any(row.error and row.host == "n2" for row in pool.rows("cable")),
        "n2 notices", block,
    )  # fmt: skip
    pool.cluster.heal("n2")
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert _whole(pool, "cable"), out
    kinds = {row.error["kind"] for row in pool.rows("cable") if row.error}
    assert kinds <= {"stall", "protocol", "lost"}, kinds
    serving.communicate(timeout=DEADLINE_S)
    assert serving.returncode == 0
