"""Several simulators on one worker's model server, and a pool of them on several servers."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
from collections import Counter
from pathlib import Path

import pytest

from harness.paths import RunPaths
from harness.runs import servers
from tests.e2e.conftest import SEEDS, Home
from tests.waiting import DEADLINE_S, wait_for

BATCHES = """
import os
import time
from pathlib import Path
import numpy as np

class Noisy:
    def infer(self, seen, session):
        if session.task == "reach_even" and session.seed == 3 and os.environ.get("KILLER"):
            os.kill(os.getpid(), 9)
        time.sleep(0.005)  # so that some come while others are answered
        actions = np.tile(seen["proprio"], (8, 1))
        actions[:, :2] += session.rng.normal(0, 0.05, (8, 2))
        return actions

    def infer_batch(self, seen, sessions):
        with open(Path(os.environ["EVAL_ROOT"]) / "batches", "a") as file:
            file.write(f"{len(seen)}\\n")
        return [self.infer(*each) for each in zip(seen, sessions)]

def get_model(usr_args):
    return Noisy()
"""


@pytest.fixture
def noisy(home: Home) -> Home:
    """With a policy that draws noise, and answers several simulators at once."""
    folder = home.path / "policy" / "noisy"
    folder.mkdir()
    (folder / "deploy_policy.py").write_text(BATCHES)
    (folder / "deploy_policy.yml").write_text("policy_name: noisy\nneeds: []\nchunk: 8\n")
    home.env["POLICY_NAME"] = "noisy"
    return home


@pytest.mark.slow
@pytest.mark.parametrize("batch", ["1", "4"])
def test_how_many_simulators_share_a_server_changes_no_result(noisy: Home, batch: str) -> None:
    queue = str(noisy.queue("reach_goal", "reach_even", "never_succeed"))
    code, _, err = noisy.call("run", "one", "--queue", queue)
    assert code == 0, err
    four = {"SIMS_PER_WORKER": "4", "MODEL_MAX_BATCH": batch}
    code, _, err = noisy.call("run", "four", "--queue", queue, **four)
    assert code == 0, err
    rows = noisy.rows("four")
    assert noisy.outcomes("four") == noisy.outcomes("one")
    assert len(rows) == 3 * 2 * len(SEEDS) and {row.attempt for row in rows} == {1}
    assert len({row.worker for row in rows}) == 1
    logs = [path.name for path in (noisy.path / "runs" / "four" / "logs").glob("*.sim?.log")]
    assert sorted(name.split(".")[-2] for name in logs) == ["sim0", "sim1", "sim2", "sim3"]
    assert (noisy.path / "batches").exists() == (batch == "4")


def test_a_dead_worker_is_buried_with_each_of_its_episodes(home: Home) -> None:
    home.gate.close()
    code, _, err = home.call("prepare", "r", "--queue", str(home.queue("never_succeed")))
    assert code == 0, err
    work = home.start("work", "r", SIMS_PER_WORKER="3")
    wait_for(lambda: len(home.held("r")) == 3, "all are in an episode", work)
    _, out, _ = home.call("status", "r")
    assert out.count("step ") == 3, out
    work.kill()
    work.communicate(timeout=DEADLINE_S)
    home.gate.open()
    code, _, err = home.call("work", "r", SIMS_PER_WORKER="2")
    assert code == 0, err
    rows = home.rows("r")
    assert Counter(r.error["kind"] for r in rows if r.error) == {"lost": 3}
    logs = {r.error["logs"]["simulator"].split(".")[-2] for r in rows if r.error}
    assert logs == {"sim0", "sim1", "sim2"}
    assert sum(r.error is None for r in rows) == 2 * len(SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("retries", ["0", "1"])
def test_an_episode_that_kills_the_server_is_found_out_and_costs_no_other(
    noisy: Home, retries: str
) -> None:
    """Its victims are tried again; on their last try they are alone."""
    queue = str(noisy.queue("reach_even", "reach_goal"))
    killer = {
        "KILLER": "1", "SIMS_PER_WORKER": "4", "EVAL_RETRIES": retries, "MODEL_MAX_BATCH": "4",
    }  # fmt: skip
    code, out, _ = noisy.call("run", "killer", "--queue", queue, **killer)
    assert code == 1 and "2 set aside" in out
    outcomes = noisy.outcomes("killer")
    assert {key[1:] for key, what in outcomes.items() if what[0] == "error"} == {("reach_even", 3)}
    assert len(outcomes) == 4 * len(SEEDS)


def test_a_stopped_worker_gives_all_its_leases_back(home: Home) -> None:
    home.gate.close()
    queue = str(home.queue("never_succeed"))
    process = home.start("run", "stop", "--queue", queue, SIMS_PER_WORKER="3")
    wait_for(lambda: len(home.held("stop")) == 3, "all are in an episode", process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_S)
    names = [p.name for p in (home.path / "runs" / "stop" / "queue.txt.leases").glob("*/*/*")]
    closed = {name.rpartition(".")[0] for name in names if name.count(".") == 2}
    assert {name for name in names if name.count(".") == 1} == closed
    assert all(row.error is None for row in home.rows("stop"))


@pytest.mark.slow
def test_simulators_of_a_server_that_is_killed_go_on_with_another(noisy: Home) -> None:
    noisy.gate.close()
    code, _, err = noisy.call("prepare", "r", "--queue", str(noisy.queue("never_succeed")))
    assert code == 0, err
    paths, host = RunPaths(noisy.path / "runs" / "r"), socket.gethostname()
    serving = [noisy.start("serve", "r", MODEL_SERVER_BIND="0.0.0.0") for _ in range(2)]
    wait_for(lambda: len(servers.published(paths, "model")) == 2, "both serve", *serving)
    work = noisy.start("work", "r", MODEL_SERVER_HOST=host, SIMS_PER_WORKER="4")
    wait_for(lambda: len(noisy.held("r")) == 4, "all are in an episode", work)
    os.kill(serving[0].pid, signal.SIGKILL)
    noisy.gate.open()
    _, err = work.communicate(timeout=DEADLINE_S)
    assert work.returncode == 0, err
    rows = noisy.rows("r")
    assert Counter(row.outcome for row in rows if row.error is None) == {"fail": 2 * len(SEEDS)}
    errors = [row for row in rows if row.error]
    assert 1 <= len(errors) <= 3, "its own simulators' episodes, and each of them once"
    assert {row.error["kind"] for row in errors if row.error} == {"protocol"}
    for process in serving:
        process.kill()
        process.communicate(timeout=DEADLINE_S)


def test_several_simulators_that_listen_are_refused(home: Home) -> None:
    code, _, err = home.call("run", "x", SIM_AS_SERVER="1", SIMS_PER_WORKER="2")
    assert code == 2 and "SIMS_PER_WORKER=2" in err
    assert not Path(home.path / "runs" / "x").exists()


@pytest.mark.slow
def test_a_simulator_that_no_model_comes_to_ends_with_the_run(home: Home) -> None:
    assert home.call("prepare", "r", "--queue", str(home.queue("reach_goal")))[0] == 0
    paths = RunPaths(home.path / "runs" / "r")
    waits = home.start("work", "r", SIM_AS_SERVER="1")
    wait_for(lambda: servers.published(paths, "simulator"), "it waits for a model", waits)
    assert home.call("work", "r")[0] == 0
    _, err = waits.communicate(timeout=DEADLINE_S)
    assert waits.returncode == 0, err


def test_the_batch_check_says_whether_batches_change_anything(noisy: Home) -> None:
    assert (
        noisy.call("prepare", "r", "--queue", str(noisy.queue("reach_goal", "reach_even")))[0] == 0
    )
    code, out, err = noisy.call("batch-check", "r")
    assert code == 0, err
    assert "in batches of up to 4" in out and ", 0 not" in out
    assert "alone and in company: 4 end in the same state, 0 not" in out
    assert not (noisy.path / "runs" / "r" / "servers").exists() and noisy.rows("r") == []


def test_the_batch_check_names_what_batches_change(noisy: Home) -> None:
    """A policy that gives one session's noise to another, and one that fails in company."""
    policy = noisy.path / "policy" / "noisy" / "deploy_policy.py"
    assert noisy.call("prepare", "r", "--queue", str(noisy.queue("reach_goal")))[0] == 0
    policy.write_text(BATCHES.replace("zip(seen, sessions)", "zip(seen, sessions[::-1])"))
    code, out, _ = noisy.call("batch-check", "r", "--batch", "2")
    assert code == 1 and "chunk 0 in a batch of 2: action " in out
    alone = BATCHES.replace("actions[:, :2] += session.rng", "return seen['expert'] #")
    policy.write_text(alone.replace("return [self.infer(", "return [0 * self.infer("))
    policy.with_suffix(".yml").write_text("policy_name: noisy\nneeds: [expert]\nchunk: 8\n")
    code, out, _ = noisy.call("batch-check", "r", "--batch", "2")
    assert code == 1 and "0 end in the same state, 2 not" in out
    assert re.search(r"plane/reach_goal seed 1: success after \d+ steps alone, fail after", out)


def test_the_batch_check_says_what_a_batch_raises(noisy: Home) -> None:
    policy = noisy.path / "policy" / "noisy" / "deploy_policy.py"
    policy.write_text(BATCHES.replace("return [self.infer(", 'raise ValueError("no room") #'))
    assert noisy.call("prepare", "r", "--queue", str(noisy.queue("reach_goal")))[0] == 0
    code, _, err = noisy.call("batch-check", "r")
    assert code == 2 and "asked in batches of 4, it raised ValueError: no room" in err
    log = re.search(r"its log is (\S+)", err)
    assert log and "deploy_policy.py" in Path(log[1]).read_text()
    shutil.rmtree(Path(log[1]).parents[1])


def test_the_batch_check_of_a_policy_that_does_not_batch_plays_nothing(home: Home) -> None:
    assert home.call("prepare", "r", "--queue", str(home.queue("hang_in_step")))[0] == 0
    code, out, err = home.call("batch-check", "r")
    assert code == 0, err
    assert out == "policy expert answers one simulator after the other: nothing to compare\n"


@pytest.mark.parametrize("option", ["--batch=1", "--batch=-1", "--tolerance=-1", "--tolerance=nan"])
def test_what_would_compare_nothing_is_refused(noisy: Home, option: str) -> None:
    code, _, err = noisy.call("batch-check", "r", option)
    assert code == 2 and f"argument {option.partition('=')[0]}:" in err


def test_one_episode_has_no_company(noisy: Home) -> None:
    queue = noisy.queue("reach_goal", seeds=range(1, 2))
    queue.write_text("plane reach_goal\n")
    assert noisy.call("prepare", "r", "--queue", str(queue))[0] == 0
    code, _, err = noisy.call("batch-check", "r")
    assert code == 2 and "it takes 2 episodes, and 1 are sealed" in err


def test_the_batch_check_takes_each_selected_episode_once(noisy: Home) -> None:
    """Of a bank that was enlarged the first are sealed twice, and the last is not selected."""
    for seeds, first in ((range(1, 3), "2"), (range(1, 5), "3")):
        queue = noisy.queue("never_succeed", seeds=seeds)
        queue.write_text("plane never_succeed\n")
        code, _, err = noisy.call("prepare", "r", "--queue", str(queue), "--test-num", first)
        assert code == 0, err
    code, out, err = noisy.call("batch-check", "r")
    assert code == 0, err
    assert re.findall(r"seed (\d) alone", out) == ["1", "2", "3"]


def test_a_batch_check_that_is_terminated_leaves_nothing(noisy: Home) -> None:
    assert noisy.call("prepare", "r", "--queue", str(noisy.queue("never_succeed")))[0] == 0
    left = noisy.path / "tmp"
    left.mkdir()
    noisy.gate.close()
    process = noisy.start("batch-check", "r", TMPDIR=str(left))
    wait_for(lambda: any(left.glob("*/logs/*.sim0.log")), "a simulator starts", process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 128 + signal.SIGTERM and not list(left.iterdir())
