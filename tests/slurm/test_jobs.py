"""Jobs that SLURM ends: cancelled, preempted, out of time. Nothing is lost, nothing is blamed."""

from __future__ import annotations

import json

import pytest

from tests.slurm.conftest import BLOCK, SEEDS, Jobs, Pool
from tests.waiting import DEADLINE_S, beats, wait_for

pytestmark = pytest.mark.slow

TOTAL = 2 * len(SEEDS)


def _open_claims(pool: Pool, run: str) -> set[str]:
    names = [path.name for path in pool.paths(run).leases.glob("*/*/*")]
    closed = {name.rpartition(".")[0] for name in names if name.count(".") == 2}
    return {name for name in names if name.count(".") == 1} - closed


def _restarts(pool: Pool, run: str) -> set[str]:
    slurm = [beat["slurm"] for beat in beats(pool.paths(run).workers)]
    return {of.get("restart", "0") for of in slurm if of}


def _whole(pool: Pool, run: str) -> bool:
    return len(pool.outcomes(run)) == TOTAL


def _errors(pool: Pool, run: str) -> list[object]:
    return [row.error for row in pool.rows(run) if row.error]


def _submit(pool: Pool, run: str, nodes: int, *options: str) -> Jobs:
    """A job of which every node is in the middle of an episode; the gate is closed."""
    pool.gate.close()
    pool.make(run, "never_succeed")
    given = f"--nodes {nodes} --mode requeue {' '.join(options)}"
    code, out = pool.shell(f"source env.sh; rollpool submit {run} {given}")
    assert code == 0, out
    jobs = Jobs(pool, run)
    wait_for(lambda: len(pool.held(run)) == nodes, "all nodes are in an episode", jobs)
    return jobs


def test_scancel_gives_the_work_back(pool: Pool) -> None:
    pool.gate.close()
    pool.make("cancel", "never_succeed")
    block = pool.start(BLOCK.format(run="cancel", nodes=4, gpus=1))
    wait_for(lambda: len(pool.held("cancel")) == 4, "all nodes are in an episode", block)
    Jobs(pool, "cancel").cancel()
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert block.returncode != 0
    assert "GPU 0 stopped, exit code 143" in out and "badly" not in out, out
    assert not _open_claims(pool, "cancel")
    assert {beat["state"] for beat in beats(pool.paths("cancel").workers)} == {"ended"}
    assert 0 < len(pool.rows("cancel")) < TOTAL
    pool.gate.open()
    code, out = pool.shell(BLOCK.format(run="cancel", nodes=4, gpus=1))
    assert code == 0, out
    assert _whole(pool, "cancel") and not _errors(pool, "cancel")


def test_scancel_of_a_batch_job_gives_the_work_back(pool: Pool) -> None:
    jobs = _submit(pool, "batch", 2)
    jobs.cancel()
    jobs.wait()
    assert not _open_claims(pool, "batch")
    assert not _errors(pool, "batch") and not _whole(pool, "batch")


def test_preempted_it_is_requeued_and_goes_on(pool: Pool) -> None:
    jobs = _submit(pool, "low", 4, "--partition low", "--slurm=--exclusive")
    pool.cluster.call("srun", "-p", "high", "--nodes=4", "--exclusive", "true")
    wait_for(lambda: "1" in _restarts(pool, "low"), "it begins again", jobs)
    pool.gate.open()
    wait_for(lambda: _whole(pool, "low"), "it goes on", jobs)
    assert _restarts(pool, "low") == {"0", "1"}
    assert not _errors(pool, "low")


def test_out_of_time_it_requeues_itself(pool: Pool) -> None:
    jobs = _submit(pool, "time", 2)
    jobs.cancel("--signal=USR1", "--batch")
    wait_for(lambda: "1" in _restarts(pool, "time"), "it begins again", jobs)
    pool.gate.open()
    wait_for(lambda: _whole(pool, "time"), "it goes on", jobs)
    assert _restarts(pool, "time") == {"0", "1"}
    assert not _errors(pool, "time")
    jobs.wait()


def test_a_batch_job_needs_nothing_of_the_environment(pool: Pool) -> None:
    pool.make("exported", "reach_goal")
    submit = "source env.sh; rollpool submit exported --nodes 2 --mode sbatch"
    code, out = pool.shell(submit, SBATCH_EXPORT="NONE")
    assert code == 0, out
    Jobs(pool, "exported").wait()
    (log,) = pool.paths("exported").logs.glob("slurm-*.out")
    assert _whole(pool, "exported"), log.read_text()


def test_a_step_needs_nothing_that_a_site_hands_on(pool: Pool) -> None:
    pool.make("handed", "reach_goal")
    code, out = pool.shell(
        "source env.sh; rollpool submit handed --nodes 2", SLURM_EXPORT_ENV="NONE"
    )
    assert code == 0 and _whole(pool, "handed"), out


def test_a_time_limit_below_an_episode_ends_the_requeueing(pool: Pool) -> None:
    pool.make("barren", "never_succeed")
    submit = "source env.sh; rollpool submit barren --nodes 1 --mode requeue --time 1"
    code, out = pool.shell(f"{submit} --slurm=--comment='it'\\''s # one'", POINTSIM_STEP_S="100")
    assert code == 0, out
    jobs = Jobs(pool, "barren")
    assert "Comment=it's # one" in pool.cluster.call("scontrol", "show", "job", jobs.id)
    jobs.wait()
    (log,) = pool.paths("barren").logs.glob("slurm-*.out")
    assert "not requeued: no episode ends within the time limit" in log.read_text()
    assert _restarts(pool, "barren") == {"0", "1"} and not pool.rows("barren")
    assert not _open_claims(pool, "barren")


def test_no_episode_is_begun_that_the_time_limit_would_cut_off(pool: Pool) -> None:
    pool.make("short", "never_succeed")
    code, out = pool.shell("source env.sh; rollpool submit short --nodes 1 --test-num 1")
    assert code == 0, out
    for file in pool.paths("short").results.rglob("_metrics.jsonl"):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        slow = "".join(json.dumps(row | {"wall_s": 100.0}) + "\n" for row in rows)
        file.write_text(slow)
    before = pool.rows("short")
    code, out = pool.shell("source env.sh; rollpool submit short --nodes 1 --test-num 6 --time 1")
    assert code == 1
    assert "and an episode takes up to 100 s" in out
    assert pool.rows("short") == before
    assert len(list(pool.paths("short").leases.glob("*/*/*.*"))) == 2 * len(before)
