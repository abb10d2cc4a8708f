"""Each command against the point simulator, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.commands.queue_file import select
from harness.errors import RollpoolError
from harness.workers.simulator_process import SimulatorProcess
from tests.cli.conftest import Rollpool

CELLS = [("study", "put_cup"), ("study", "press_bell"), ("office", "put_cup")]


def test_list(rollpool: Rollpool) -> None:
    assert rollpool("list", "scenes").out.split() == ["hill", "plane"]
    assert "plane reach_goal" in rollpool("list", "tasks").out.splitlines()
    assert "bench_demo_hill_d6" in rollpool("list", "configs").out.splitlines()
    assert "expert" in rollpool("list", "policies").out.splitlines()
    assert {"tabletop", "metaworld"} <= set(rollpool("list", "simulators").out.split())
    assert "demo" in rollpool("list", "profiles").out.split()


def test_list_checkpoints(rollpool: Rollpool, home: Path) -> None:
    done = rollpool("list", "checkpoints")
    assert done.code == 2 and "there are none" in done.err
    (home / "checkpoints" / "k320").mkdir(parents=True)
    (home / "policy" / "expert" / "checkpoints").mkdir()
    (home / "policy" / "expert" / "checkpoints" / "tiny.safetensors").touch()
    assert rollpool("list", "checkpoints").out.split() == ["k320", "tiny"]


def test_simulator_environment_that_is_not_there(
    rollpool: Rollpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBOTWIN_PY", "/nowhere/python")
    done = rollpool("list", "scenes")
    assert done.code == 2 and "no Python at SIM_PY=/nowhere/python" in done.err


def test_filters() -> None:
    assert select(CELLS, ["*"], ["put_*"]) == [("office", "put_cup"), ("study", "put_cup")]
    assert select(CELLS, ["study"], ["press_bell", "put_cup"]) == [
        ("study", "press_bell"), ("study", "put_cup"),
    ]  # fmt: skip
    with pytest.raises(RollpoolError, match=r"filter 'ofice': no such name; the names are office"):
        select(CELLS, ["ofice"], ["*"])
    with pytest.raises(RollpoolError, match="no scene has such a task"):
        select(CELLS, ["office"], ["press_bell"])


def test_queue_file(rollpool: Rollpool, home: Path) -> None:
    assert rollpool("queue", "--scene", "hill", "--task", "reach_*", "-o", "mine.txt").code == 0
    assert (home / "mine.txt").read_text() == "hill reach_even\nhill reach_goal\n"
    assert rollpool("queue", "--scene", "hill", "--task", "reach_*", "-o", "mine.txt").code == 0
    done = rollpool("queue", "-o", "mine.txt")
    assert done.code == 2 and "it is there already, with other lines" in done.err
    assert rollpool("queue", "--task", "reach_goal").out == "hill reach_goal\nplane reach_goal\n"


def test_prepare(rollpool: Rollpool, home: Path) -> None:
    done = rollpool("prepare", "demo", "--queue", "queue.txt", "--test-num", "2")
    assert (done.code, done.err) == (0, "")
    assert "run demo: 2 cells, 4 episodes" in done.out
    again = rollpool("prepare", "demo", "--queue", "queue.txt", "--test-num", "3")
    assert "sealing" not in again.out and "2 cells, 6 episodes" in again.out


def test_a_log_that_no_place_is_left_for_in_the_run_stays_where_it_was(
    rollpool: Rollpool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(home))
    (home / "runs" / "demo").mkdir(parents=True)
    (home / "runs" / "demo" / "logs").touch()
    assert rollpool("prepare", "demo", "--queue", "queue.txt").code == 0
    assert len(list(home.glob("prepare-*/simulator.log"))) == 1


def test_who_is_interrupted_while_sealing_waits_for_no_simulator(
    rollpool: Rollpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would finish the seeds that it was asked for first."""

    def interrupted(*of: object) -> None:
        raise KeyboardInterrupt

    def waits(*of: object) -> None:
        raise AssertionError("it was asked to quit")

    monkeypatch.setattr(SimulatorProcess, "seal", interrupted)
    monkeypatch.setattr(SimulatorProcess, "close", waits)
    assert rollpool("prepare", "demo", "--queue", "queue.txt").code == 130


def test_prepare_seals_no_settings_before_all_is_checked(rollpool: Rollpool, home: Path) -> None:
    done = rollpool("prepare", "demo", "--queue", "queue.txt", "--config", "clen")
    assert done.code == 2 and "BENCH_CONFIG=clen" in done.err
    assert not (home / "runs" / "demo" / "run.json").exists()
    assert rollpool("prepare", "demo", "--queue", "queue.txt").code == 0


def test_other_code_adds_no_episode_to_a_run_that_has_rows(rollpool: Rollpool, home: Path) -> None:
    assert rollpool("run", "demo", "--queue", "queue.txt", "--test-num", "1").code == 0
    population = sorted((home / "runs" / "demo" / "manifests").rglob("*"))
    with (home / "policy" / "expert" / "deploy_policy.py").open("a") as code:
        code.write("# edited\n")
    for command in ("prepare", "run"):
        done = rollpool(command, "demo", "--test-num", "3")
        assert done.code == 2 and "EVAL_CODE_CHANGE=mark" in done.err
    done = rollpool("serve", "demo")
    assert done.code == 2 and "EVAL_CODE_CHANGE=mark" in done.err
    assert sorted((home / "runs" / "demo" / "manifests").rglob("*")) == population


def test_a_worker_that_is_refused_does_not_look_dead(rollpool: Rollpool, home: Path) -> None:
    assert rollpool("prepare", "demo", "--queue", "queue.txt").code == 0
    with (home / "runs" / "demo" / "queue.txt").open("a") as queue:
        queue.write("plane raise_in_step\n")
    done = rollpool("work", "demo")
    assert done.code == 2 and "plane raise_in_step is not sealed yet" in done.err
    beats = [json.loads(f.read_text()) for f in (home / "runs" / "demo" / "workers").iterdir()]
    assert [beat["state"] for beat in beats] == ["ended"] * 2


def test_a_wrong_queue_never_stands_in_a_run(rollpool: Rollpool, home: Path) -> None:
    (home / "queue.txt").write_text("plane reach_goal\nplane reach_gaol\n")
    done = rollpool("prepare", "demo", "--queue", "queue.txt")
    assert done.code == 2
    assert "queue.txt line 2: 'plane reach_gaol': no task 'reach_gaol' in scene 'plane'" in done.err
    assert "pick one of: reach_goal" in done.err
    assert not (home / "runs").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("prepare", "demo", "--queue", "queue.txt", "--policy", "nosuch"),
        ("prepare", "demo", "--queue", "queue.txt", "--ckpt", "nosuch"),
        ("prepare", "demo", "--queue", "queue.txt", "--seeds", "nosuch"),
        ("prepare", "demo", "--queue", "nosuch.txt"),
        ("run", "demo", "--queue", "queue.txt", "--test-num", "9"),
        ("episode", "plane", "reach_goal", "3", "--run", "nosuch", "--out", "runs"),
        ("episode", "plane", "reach_gaol", "3", "--out", "runs"),
    ],
)
def test_what_is_refused_leaves_nothing(
    rollpool: Rollpool, home: Path, arguments: tuple[str, ...]
) -> None:
    assert rollpool(*arguments).code == 2
    assert not list(home.glob("runs/*"))


def test_a_simulator_that_dies_leaves_its_log(
    rollpool: Rollpool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(home))
    monkeypatch.setattr("tempfile.tempdir", None)
    done = rollpool("prepare", "demo", "--queue", "queue.txt", "--simulator", "no.such:thing")
    (log,) = home.glob("prepare-*/simulator.log")
    assert done.code == 2 and str(log) in done.err
    assert not (home / "runs").exists()


def test_episode_by_hand(rollpool: Rollpool, home: Path) -> None:
    done = rollpool("episode", "plane", "reach_goal", "3")
    assert done.code == 0 and "SUCCESS after" in done.out
    folder = home / "runs" / "by_hand" / "plane.reach_goal.seed3"
    assert json.loads((folder / "result.json").read_text())["success"] is True
    assert (folder / "video.mp4").stat().st_size > 0


def test_an_episode_by_hand_needs_one_simulator(
    rollpool: Rollpool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMS_PER_WORKER", "3")
    assert rollpool("episode", "plane", "reach_goal", "3", "--video", "none").code == 0
    folder = home / "runs" / "by_hand" / "plane.reach_goal.seed3"
    assert [path.name for path in folder.rglob("*.sim?.log")] == ["episode.sim0.log"]


def test_episode_in_error_shows_its_traceback(rollpool: Rollpool, home: Path) -> None:
    done = rollpool("episode", "plane", "raise_in_step", "3", "--video", "none", "--out", "here")
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.out
    assert "ERROR (simulator): RuntimeError: pointsim was asked to raise in step" in done.out
    assert (home / "here" / "plane.raise_in_step.seed3" / "result.json").exists()


def test_episode_of_a_run_is_the_sealed_one(rollpool: Rollpool, home: Path) -> None:
    rollpool("prepare", "demo", "--queue", "queue.txt")
    before = sorted((home / "runs" / "demo").rglob("*"))
    done = rollpool("episode", "hill", "reach_even", "2", "--run", "demo", "--video", "none")
    assert done.code == 0 and "bench_demo_hill_clean seed 2" in done.out
    assert sorted((home / "runs" / "demo").rglob("*")) == before
    done = rollpool("episode", "hill", "reach_even", "9", "--run", "demo")
    assert done.code == 2 and "not sealed in this run; its seeds are 1, 2, 3" in done.err


@pytest.mark.slow
def test_a_run_from_queue_to_tables(rollpool: Rollpool, home: Path) -> None:
    done = rollpool("run", "demo", "--queue", "queue.txt", "--workers", "2")
    assert done.code == 0, done.err
    assert "run demo: 6 of 6 episodes done" in done.out
    again = rollpool("run", "demo", "--workers", "1")
    assert again.code == 0
    assert "resuming: 6 of 6 episodes have their result already" in again.out
    status = json.loads(rollpool("status", "demo", "--json").out)
    assert (status["total"]["done"], status["workers_alive"]) == (6, 0)
    tables = rollpool("organize", "demo", "point")
    assert tables.code == 0
    assert "TOTAL" in (home / "runs" / "point" / "results.txt").read_text()
    assert (home / "runs" / "point" / "plane" / "reach_goal" / "seed1.mp4").exists()


@pytest.mark.slow
def test_a_run_with_an_episode_that_always_fails(rollpool: Rollpool, home: Path) -> None:
    (home / "queue.txt").write_text("plane reach_goal\nplane raise_in_step\n")
    done = rollpool(
        "run",
        "demo",
        "--queue",
        "queue.txt",
        "--workers",
        "1",
        "--test-num",
        "1",
        "--video",
        "none",
    )
    assert done.code == 1 and "1 set aside" in done.out
    tables = rollpool("organize", "demo", "point")
    assert tables.code == 1 and "P A R T I A L" in tables.out
    assert "plane/raise_in_step seed 1: set aside; 3 errors (simulator x3)" in tables.out
