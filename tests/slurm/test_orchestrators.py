"""The drivers of several runs, on a cluster."""

from __future__ import annotations

import re

import pytest

from tests.slurm.conftest import Pool
from tests.waiting import DEADLINE_S, wait_for

pytestmark = pytest.mark.slow

CONFIGS = ("clean", "d6", "d15")


def test_a_sweep_survives_its_own_death(pool: Pool) -> None:
    queue = pool.queue("never_succeed", configs="clean d15")
    pool.queue("never_succeed", configs="d6", seeds=range(3, 5))
    pool.gate.close(passing=2)
    sweep = f"exec bash orchestrators/sweep.sh night {' '.join(CONFIGS)} -- --nodes 2 --gres gpu:1"
    env = {"QUEUE": queue, "EVAL_TEST_NUM": "2"}
    first = pool.start(sweep, **env)
    wait_for(lambda: pool.held("night_d6"), "a node is in an episode of d6", first)
    first.kill()
    first.wait()
    before = pool.rows("night_clean")
    pool.gate.open()
    code, out = pool.shell(sweep, **env)
    assert code == 0, out
    first.communicate(timeout=DEADLINE_S)
    assert pool.rows("night_clean") == before
    assert len(before) == 4
    for config in CONFIGS:
        assert len(pool.outcomes(f"night_{config}")) == 4
        assert re.search(rf"^night_{config} +0\.0 \[", out, re.MULTILINE), out


def test_a_dry_run_of_a_sweep_touches_nothing(pool: Pool) -> None:
    code, out = pool.shell(
        "bash orchestrators/sweep.sh --dry-run dry d6 d15 -- --nodes 2 --gres gpu:1",
        QUEUE="wanted_%.txt",
    )
    assert code == 0, out
    assert out.count("srun --job-name=dry_d") == 2 and "BENCH_CONFIG=d15" in out
    assert not pool.outside("runs/dry_d6").exists()


def test_an_incomplete_configuration_stops_no_other(pool: Pool) -> None:
    pool.queue("reach_goal")
    code, out = pool.shell(
        "bash orchestrators/sweep.sh gap nosuch clean -- --nodes 2",
        QUEUE="wanted.txt", EVAL_TEST_NUM="1",
    )  # fmt: skip
    assert code == 1
    assert "has no bench_demo_plane_nosuch" in out and "incomplete: gap_nosuch;" in out
    assert len(pool.outcomes("gap_clean")) == 2


def test_models_in_parallel_share_a_pool(pool: Pool) -> None:
    queue = pool.queue("never_succeed")
    command = (
        "bash orchestrators/parallel_models.sh duel "
        "expert:POLICY_NAME=expert random:POLICY_NAME=random,EVAL_RETRIES=1 -- --gres gpu:1"
    )
    env = {"QUEUE": queue, "POOL_NODES": "2", "EVAL_TEST_NUM": "5"}
    pool.gate.close()
    driver = pool.start(command, **env)
    wait_for(lambda: len(pool.held("duel_expert")) > 1, "two nodes are in episodes", driver)
    pool.gate.open()
    out, _ = driver.communicate(timeout=DEADLINE_S)
    assert driver.returncode == 0, out
    for label in ("expert", "random"):
        rows = pool.rows(f"duel_{label}")
        assert len(rows) == 10 and {row.policy for row in rows} == {label}
        assert re.search(rf"^duel_{label} +0\.0 \[", out, re.MULTILINE), out
    assert len({row.host for row in pool.rows("duel_expert")}) > 1
    code, out = pool.shell(command.replace("duel ", "--dry-run other "), **env)
    assert code == 0 and out.count("srun --job-name=other_") == 4
    assert out.count("== other_expert\nSTUDY_RUN=other_expert") == 2, out
    code, last = pool.shell(f"{command.replace('duel ', 'other ')} --dry-run", **env)
    assert (code, last) == (0, out)
    assert not pool.outside("runs/other_expert").exists()


def test_fill_in_adds_seeds_and_banks(pool: Pool) -> None:
    queue = pool.queue("reach_even")
    code, out = pool.shell(
        f"source env.sh; rollpool submit fill --queue {queue} --test-num 2 --nodes 2"
    )
    assert code == 0, out
    for scene in ("plane", "hill"):
        bank = pool.outside(f"more/reach_even/bench_demo_{scene}_clean.txt")
        bank.parent.mkdir(parents=True, exist_ok=True)
        bank.write_text("101 102 103")
    fill = "bash orchestrators/fill_in.sh"
    code, out = pool.shell(f"{fill} fill 4 -- --nodes 2 && {fill} fill 3 more -- --nodes 2")
    assert code == 0, out
    seeds = sorted(row.seed for row in pool.rows("fill") if row.scene == "plane")
    assert seeds == [1, 2, 3, 4, 101, 102, 103]
    assert re.search(r"^fill +42\.9 \[.* 14 ", out, re.MULTILINE), out
    moved = f"mkdir elsewhere && mv runs/fill elsewhere && {fill} --dry-run fill 5"
    code, out = pool.shell(moved, RUNS_ROOT="elsewhere")
    assert code == 0 and "STUDY_RUN=fill" in out, out
    code, out = pool.shell(f"{fill} --dry-run nosuch 4")
    assert code == 2 and "no such run" in out
