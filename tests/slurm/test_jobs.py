"""Jobs that SLURM ends: cancelled, preempted, out of time. Nothing is lost, nothing is blamed."""

from __future__ import annotations

import json

import pytest

from tests.slurm.conftest import BLOCK, DEADLINE_S, SEEDS, Pool, wait_for

pytestmark = pytest.mark.slow

SLOW = {"POINTSIM_STEP_S": "0.05"}
TOTAL = 2 * len(SEEDS)


def _job(pool: Pool) -> str:
    wait_for(lambda: pool.cluster.call("squeue", "-h", "-t", "running", "-o", "%i"), "a job")
    return pool.cluster.call("squeue", "-h", "-t", "running", "-o", "%i").split()[0]


def _open_claims(pool: Pool, run: str) -> set[str]:
    names = [path.name for path in pool.paths(run).leases.glob("*/*/*")]
    closed = {name.rpartition(".")[0] for name in names if name.count(".") == 2}
    return {name for name in names if name.count(".") == 1} - closed


def _restarts(pool: Pool, run: str) -> set[str]:
    slurm = [json.loads(beat)["slurm"] for beat in pool.heartbeats(run)]
    return {of.get("restart", "0") for of in slurm if of}


def _whole(pool: Pool, run: str) -> bool:
    return len(pool.outcomes(run)) == TOTAL


def _errors(pool: Pool, run: str) -> list[object]:
    return [row.error for row in pool.rows(run) if row.error]


def test_scancel_gives_the_work_back(pool: Pool) -> None:
    pool.make("cancel", "never_succeed")
    block = pool.start(BLOCK.format(run="cancel", nodes=4, gpus=1), **SLOW)
    wait_for(lambda: pool.rows("cancel"), "the first row")
    pool.cluster.call("scancel", _job(pool))
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert block.returncode != 0
    assert "GPU 0 stopped, exit code 143" in out and "badly" not in out, out
    assert not _open_claims(pool, "cancel")
    assert all('"ended"' in beat for beat in pool.heartbeats("cancel"))
    done = len(pool.rows("cancel"))
    assert done < TOTAL
    code, out = pool.shell(BLOCK.format(run="cancel", nodes=4, gpus=1))
    assert code == 0, out
    assert _whole(pool, "cancel") and not _errors(pool, "cancel")


def test_scancel_of_a_batch_job_gives_the_work_back(pool: Pool) -> None:
    pool.make("batch", "never_succeed")
    pool.shell("source env.sh; rollpool submit batch --mode requeue --nodes 2", **SLOW)
    wait_for(lambda: pool.rows("batch"), "the first row")
    pool.cluster.call("scancel", _job(pool))
    wait_for(lambda: not pool.cluster.call("squeue", "-h"), "the job is gone")
    assert not _open_claims(pool, "batch")
    assert not _errors(pool, "batch") and not _whole(pool, "batch")


def test_preempted_it_is_requeued_and_goes_on(pool: Pool) -> None:
    pool.make("low", "never_succeed")
    submit = "source env.sh; rollpool submit low --nodes 4 --partition low --slurm=--exclusive"
    code, out = pool.shell(f"{submit} --mode requeue", **SLOW)
    assert code == 0, out
    wait_for(lambda: pool.rows("low"), "the first row")
    pool.cluster.call("srun", "-p", "high", "--nodes=4", "--exclusive", "true")
    assert not _whole(pool, "low")
    wait_for(lambda: _whole(pool, "low"), "it goes on")
    assert _restarts(pool, "low") == {"0", "1"}
    assert not _errors(pool, "low")


def test_out_of_time_it_requeues_itself(pool: Pool) -> None:
    pool.make("time", "never_succeed")
    pool.shell("source env.sh; rollpool submit time --nodes 2 --mode requeue", **SLOW)
    wait_for(lambda: pool.rows("time"), "the first row")
    pool.cluster.call("scancel", "--signal=USR1", "--batch", _job(pool))
    wait_for(lambda: _whole(pool, "time"), "it begins again")
    assert _restarts(pool, "time") == {"0", "1"}
    assert not _errors(pool, "time")
    wait_for(lambda: not pool.cluster.call("squeue", "-h"), "the job ends")


def test_a_batch_job_needs_nothing_of_the_environment(pool: Pool) -> None:
    pool.make("exported", "reach_goal")
    submit = "source env.sh; rollpool submit exported --nodes 2 --mode sbatch"
    code, out = pool.shell(submit, SBATCH_EXPORT="NONE")
    assert code == 0, out
    wait_for(lambda: not pool.cluster.call("squeue", "-h"), "the job ends")
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
    assert "Comment=it's # one" in pool.cluster.call("scontrol", "show", "job", _job(pool))
    wait_for(lambda: not pool.cluster.call("squeue", "-h"), "it gives up")
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
