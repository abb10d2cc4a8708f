"""``rollpool run`` end to end: each episode is counted once, whatever happens on the way."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from harness.foundations.records import Row
from harness.paths import RunPaths
from tests.e2e.conftest import SEEDS, Home
from tests.waiting import DEADLINE_S, beats, wait_for

TASKS = ("reach_goal", "reach_even", "never_succeed")


def _kill_everything(root: Path) -> None:
    """SIGKILL to every process of this run, workers and children alike."""
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"EVAL_ROOT={root}\0".encode() in environ.read_bytes():
                os.kill(int(environ.parent.name), signal.SIGKILL)


def test_an_undisturbed_run_plays_each_episode_once(home: Home) -> None:
    code, out, err = home.call("run", "calm", "--queue", str(home.queue(*TASKS)), "--workers", "3")
    assert code == 0, err
    rows = home.rows("calm")
    assert len(rows) == len(TASKS) * 2 * len(SEEDS)
    assert {row.attempt for row in rows} == {1}
    assert Counter(row.outcome for row in rows) == {"success": 18, "fail": 18}
    assert f"{len(rows)} of {len(rows)} episodes done" in out
    assert_profiles_add_up(rows)


def assert_profiles_add_up(rows: list[Row]) -> None:
    """A row's profile accounts for all the time since its worker's last row, by another clock."""
    ends: dict[str, float] = {}
    passed, measured = 0.0, Counter[str]()
    for row in sorted(rows, key=lambda row: row.finished):
        if row.worker in ends:
            passed += row.finished - ends[row.worker]
            measured.update(row.profile)
        else:
            assert row.profile["start"] > 0
        ends[row.worker] = row.finished
    assert measured.total() == pytest.approx(passed, rel=0.03)
    assert {"claim", "write", "reset", "simulate", "expert", "wire", "infer"} <= set(measured)


@pytest.mark.slow
def test_simulators_that_are_recycled_play_the_same(home: Home) -> None:
    queue = ("--queue", str(home.queue("reach_goal", "never_succeed")))
    home.call("run", "one", *queue)
    code, _, err = home.call(
        "run", "many", *queue, SIM_RECYCLE_EPISODES="5", EVAL_MINIBATCH="4", SIM_RECYCLE_MB="100000"
    )
    assert code == 0, err

    def played(run: str) -> list[tuple[object, ...]]:
        rows = sorted(home.rows(run), key=lambda row: (row.manifest, row.position))
        return [(row.position, row.outcome, row.steps, row.state_hash) for row in rows]

    assert played("many") == played("one")
    (log,) = (home.path / "runs" / "many" / "logs").glob("*.sim0.log")
    assert log.read_text().count("to begin anew: it has played 5 episodes") == 4


def test_a_finished_run_has_nothing_to_do(home: Home) -> None:
    home.call("run", "again", "--queue", str(home.queue("reach_goal")))
    before = home.rows("again")
    code, out, _ = home.call("run", "again")
    assert code == 0
    assert "resuming: 12 of 12 episodes have their result already" in out
    assert home.rows("again") == before


@pytest.mark.slow
def test_the_next_run_begins_with_the_longest_task(home: Home) -> None:
    queue = str(home.queue("reach_goal", "never_succeed", seeds=range(1, 3)))
    begun = []
    for run in ("first", "second"):
        code, _, err = home.call("run", run, "--queue", queue, POINTSIM_STEP_S="0.005")
        assert code == 0, err
        begun.append(min(home.rows(run), key=lambda row: row.started).task)
    assert begun == ["reach_goal", "never_succeed"]
    logs = (home.path / "runs" / "second" / "logs").glob("*.log")
    assert any("longest first, by 8 earlier episodes" in log.read_text() for log in logs)


def test_durations_that_cannot_be_kept_stop_nobody(home: Home) -> None:
    (home.path / "runs" / "durations.json").mkdir(parents=True)
    code, _, err = home.call("run", "lost", "--queue", str(home.queue("reach_goal")))
    assert code == 0, err
    logs = (home.path / "runs" / "lost" / "logs").glob("*.log")
    assert any("WARNING write" in log.read_text() for log in logs)


def test_more_seeds_and_other_batches_add_only_what_is_missing(home: Home) -> None:
    queue = str(home.queue("reach_goal"))
    home.call("run", "fill", "--queue", queue, EVAL_TEST_NUM="2")
    first = home.rows("fill")
    code, _, err = home.call("run", "fill", EVAL_TEST_NUM="5", EVAL_MINIBATCH="0")
    assert code == 0, err
    rows = home.rows("fill")
    assert len(first) == 4
    assert len(rows) == 10
    assert len({(row.manifest, row.position) for row in rows}) == 10


@pytest.mark.slow
def test_killed_three_times_and_rerun_the_tables_are_those_of_an_unbroken_run(home: Home) -> None:
    queue = str(home.queue(*TASKS))
    home.call("run", "unbroken", "--queue", queue, "--workers", "2")
    workers = RunPaths(home.path / "runs" / "broken").workers
    for passing in (1, 3, 5):
        home.gate.close(passing)
        dead = {beat["worker"] for beat in beats(workers)}
        process = home.start("run", "broken", "--queue", queue, "--workers", "2")
        wait_for(
            lambda dead=dead: len({beat["worker"] for beat in home.held("broken")} - dead) == 2,
            "both workers are in an episode", process,
        )  # fmt: skip
        _kill_everything(home.path)
        process.communicate()
    assert 0 < len(home.rows("broken")) < len(home.rows("unbroken"))
    home.gate.open()
    code, _, err = home.call("run", "broken", "--workers", "2")
    assert code == 0, err
    assert home.outcomes("broken") == home.outcomes("unbroken")


@pytest.mark.slow
def test_faulty_simulators_are_retried_then_set_aside_and_never_counted_as_failures(
    home: Home,
) -> None:
    queue = str(
        home.queue("reach_goal", "crash_once", "raise_once", "crash_in_step", seeds=range(1, 3))
    )
    (home.path / "scratch").mkdir()
    code, out, _ = home.call("run", "faulty", "--queue", queue, "--workers", "2")
    assert code == 1
    outcomes = home.outcomes("faulty")
    assert {k[1] for k, v in outcomes.items() if v[0] == "success"} == {
        "reach_goal", "crash_once", "raise_once",
    }  # fmt: skip
    assert {v[0] for k, v in outcomes.items() if k[1] == "crash_in_step"} == {"error"}
    tries = Counter(row.task for row in home.rows("faulty"))
    assert tries == {"reach_goal": 4, "crash_once": 8, "raise_once": 8, "crash_in_step": 12}
    assert "4 set aside" in out
    row = next(row for row in home.rows("faulty") if row.task == "crash_in_step")
    assert row.error is not None
    assert row.error["kind"] == "crash"
    assert "SIGSEGV" in row.error["message"]
    for log in row.error["logs"].values():
        assert (home.path / "runs" / "faulty" / log).is_file()


@pytest.mark.slow
def test_a_hung_simulator_is_killed_and_its_episode_tried_again(home: Home) -> None:
    queue = str(home.queue("hang_once", seeds=range(1, 2)))
    (home.path / "scratch").mkdir()
    code, _, err = home.call("run", "hung", "--queue", queue, STALL_TIMEOUT="3")
    assert code == 0, err
    kinds = Counter(row.error["kind"] if row.error else row.outcome for row in home.rows("hung"))
    assert kinds == {"stall": 2, "success": 2}


def test_a_stopped_run_gives_its_leases_back(home: Home) -> None:
    home.gate.close()
    process = home.start("run", "stop", "--queue", str(home.queue("never_succeed")))
    wait_for(lambda: home.held("stop"), "it is in an episode", process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_S)
    home.gate.open()
    done = len(home.rows("stop"))
    leases = home.path / "runs" / "stop" / "queue.txt.leases"
    names = [path.name for path in leases.glob("*/*/*")]
    open_claims = {n for n in names if n.count(".") == 1} - {
        n.rpartition(".")[0] for n in names if n.count(".") == 2
    }
    assert not open_claims
    code, _, err = home.call("run", "stop")
    assert code == 0, err
    assert len(home.rows("stop")) == 12 > done
    assert all(row.error is None for row in home.rows("stop"))


STEPPED = """
import os
import subprocess
from pathlib import Path

class SignalledFirst(Expert):
    def infer(self, observation):
        mark = Path(os.environ["EVAL_ROOT"], "signalled")
        if not mark.exists():
            mark.touch()
            wait = f"while kill -0 {os.getpid()} 2>/dev/null; do :; done; kill -TERM {os.getppid()}"
            subprocess.Popen(["sh", "-c", wait], start_new_session=True)
            os.kill(os.getpid(), 15)
        return super().infer(observation)

def get_model(usr_args):
    return SignalledFirst()
"""


def test_a_signal_that_comes_to_a_child_first_costs_no_episode_a_try(home: Home) -> None:
    with (home.path / "policy" / "expert" / "deploy_policy.py").open("a") as file:
        file.write(STEPPED)
    queue = str(home.queue("reach_goal", seeds=range(1, 3)))
    assert home.call("prepare", "step", "--queue", queue)[0] == 0
    assert home.call("work", "step")[0] == 128 + signal.SIGTERM
    assert home.rows("step") == []
    code, _, err = home.call("work", "step")
    assert code == 0, err
    assert [row.error for row in home.rows("step")] == [None] * 4


SWAPPED = """
import os
from pathlib import Path

class DiesWithItsWeights(Expert):
    def __init__(self, weights):
        self.weights = Path(weights)

    def infer(self, observation):
        if self.weights.read_text() == "the run's":
            self.weights.write_text("somebody's later ones")
            os.kill(os.getpid(), 9)
        return super().infer(observation)

def get_model(usr_args):
    return DiesWithItsWeights(usr_args["checkpoint"])
"""


def test_weights_replaced_in_mid_run_are_never_counted(home: Home) -> None:
    policy = home.path / "policy" / "expert"
    with (policy / "deploy_policy.py").open("a") as file:
        file.write(SWAPPED)
    (home.path / "checkpoints").mkdir()
    (home.path / "checkpoints" / "net").write_text("the run's")
    queue = str(home.queue("reach_goal", seeds=range(1, 4)))
    code, _, err = home.call("run", "swapped", "--queue", queue, CKPT_NAME="net")
    assert code == 2 and "its content is sha256:" in err and "the run began with net" in err
    assert {row.outcome for row in home.rows("swapped")} == {"error"}


def test_removed_leases_lose_nothing(home: Home) -> None:
    import shutil

    home.call("run", "leases", "--queue", str(home.queue("reach_goal")))
    before = home.rows("leases")
    shutil.rmtree(home.path / "runs" / "leases" / "queue.txt.leases")
    code, _, err = home.call("run", "leases")
    assert code == 0, err
    assert home.rows("leases") == before


def test_a_second_launch_with_other_settings_is_refused(home: Home) -> None:
    home.call("run", "sealed", "--queue", str(home.queue("reach_goal")))
    code, _, err = home.call("run", "sealed", POLICY_NAME="random")
    assert code == 2
    assert "POLICY_NAME is expert in the run and random now" in err


@pytest.mark.slow
def test_decisions_about_a_run_are_worked_off_by_the_next(home: Home) -> None:
    queue = str(home.queue("reach_goal", "crash_in_step", seeds=range(1, 3)))
    code, _, _ = home.call("run", "decided", "--queue", queue, EVAL_RETRIES="0")
    assert code == 1
    assert Counter(row.task for row in home.rows("decided")) == {
        "reach_goal": 4, "crash_in_step": 4,
    }  # fmt: skip
    code, _, err = home.call("run", "decided", EVAL_RETRIES="3")
    assert code == 2 and "EVAL_RETRIES is 0 in the run and 3 now" in err
    assert home.call("retry", "decided", "--scene", "hill")[0] == 0
    home.call("run", "decided")
    assert Counter(row.scene for row in home.rows("decided") if row.error) == {
        "hill": 4, "plane": 2,
    }  # fmt: skip
    code, _, err = home.call("run", "decided", EVAL_RESUME_SEEDS="0")
    assert code == 2 and "rollpool reset decided --all" in err
    assert home.call("reset", "decided", "--all")[0] == 0
    assert home.call("skip", "decided", "--task", "crash_in_step")[0] == 0
    home.call("run", "decided", EVAL_RESUME_SEEDS="0")
    attempts = Counter(row.attempt for row in home.rows("decided") if row.task == "reach_goal")
    assert attempts == {1: 4, 2: 4}
    assert home.call("compact", "decided")[0] == 0
    assert len(list((home.path / "runs/decided/queue.txt.leases").glob("*/*/*"))) == 2
