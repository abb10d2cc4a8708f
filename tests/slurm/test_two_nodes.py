"""Model and simulator on different nodes of a cluster, over the nodes' own addresses."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.runs import servers
from tests.slurm.conftest import BLOCK, DEADLINE_S, SEEDS, Pool, wait_for

pytestmark = pytest.mark.slow

#: Longer cuts cost an attempt, and one may be cut off in several.
ENV = {"POINTSIM_STEP_S": "0.02", "STALL_TIMEOUT": "3", "EVAL_RETRIES": "9"}
#: A node for the models; whatever is left is asked for by name.
SERVE = "source env.sh; srun --nodelist=n1 --nodes=1 --ntasks=1 rollpool serve {run}"


def _prepared(pool: Pool, run: str) -> None:
    code, out = pool.shell(
        f"source env.sh; rollpool prepare {run} --queue {pool.queue('never_succeed')}", **ENV
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
    serving = pool.start(SERVE.format(run=run), **ENV, **there)
    code, out = pool.shell(_simulators(run), **ENV, **here)
    assert code == 0, out
    assert _whole(pool, run) and len(pool.rows(run)) == 2 * len(SEEDS)
    assert {row.host for row in pool.rows(run)} == {"n2", "n3"}
    out, _ = serving.communicate(timeout=DEADLINE_S)
    assert serving.returncode == 0 and "nothing is left to run" in out, out


def test_a_simulator_s_node_is_cut_off_from_the_model_and_healed(pool: Pool) -> None:
    _prepared(pool, "cable")
    serving = pool.start(SERVE.format(run="cable"), **ENV, MODEL_SERVER_BIND="0.0.0.0")
    wait_for(lambda: servers.published(pool.paths("cable"), "model"), "the model serves")
    block = pool.start(_simulators("cable"), **ENV, MODEL_SERVER_HOST="n1")
    wait_for(lambda: any(row.host == "n2" for row in pool.rows("cable")), "n2 has a row")
    pool.cluster.partition("n2")
    wait_for(
        lambda: (
            any(row.error and row.host == "n2" for row in pool.rows("cable"))
            or _whole(pool, "cable")
        ),
        "n2 notices, or n3 is done with everything",
    )
    pool.cluster.heal("n2")
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert _whole(pool, "cable"), out
    kinds = {row.error["kind"] for row in pool.rows("cable") if row.error}
    assert kinds <= {"stall", "protocol", "lost"}, kinds
    serving.communicate(timeout=DEADLINE_S)
    assert serving.returncode == 0
