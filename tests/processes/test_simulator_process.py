"""Simulator clients as real processes, with the fake simulator's faults."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from harness.episodes.video import find_ffmpeg
from harness.errors import Declined, RollpoolError
from harness.workers import children
from harness.workers.children import ProcessDied
from harness.workers.server_process import ModelServerProcess
from tests.fakes.pointsim import STEP_LIMIT, PointSim
from tests.processes.conftest import StartSim, address, cell, episode, outcome
from tests.waiting import wait_for


def test_it_describes_seals_and_checks(start_sim: StartSim) -> None:
    sim = start_sim()
    described = sim.describe()
    assert described["name"] == "pointsim"
    assert ["plane", "reach_goal"] in described["cells"]
    assert "bench_demo_hill_d6" in described["task_configs"]["hill"]

    lines, step_limit = sim.seal(cell("reach_goal"), [7, 3])
    expected = PointSim().seal("plane", "reach_goal", "bench_demo_plane_clean", 7)
    assert json.loads(lines[0]) == {"seed": 7, **expected}
    assert (json.loads(lines[1])["seed"], step_limit) == (3, 40)
    assert sim.seal(cell("reach_goal"), [7, 3], within_s=0.0).lines == lines[:1]

    assert sim.check(cell("reach_even"), range(4)) == [True, False, True, False]
    assert sim.check(cell("raise_in_reset"), [1]) == [False]


def test_a_request_it_cannot_serve_is_refused_and_the_next_one_served(start_sim: StartSim) -> None:
    sim = start_sim()
    with pytest.raises(RollpoolError, match="no such cell in pointsim"):
        sim.seal(cell("no_such_task"), [1])
    with pytest.raises(Declined, match="seed 1: RuntimeError: pointsim was asked to raise in seal"):
        sim.seal(cell("raise_in_seal"), [1])
    assert sim.check(cell("raise_in_seal"), [1]) == [False]
    assert sim.seal(cell("reach_goal"), []).lines == []


def test_episodes_share_the_process_and_the_connection_but_nothing_else(
    start_sim: StartSim, expert: ModelServerProcess
) -> None:
    sim = start_sim()
    hashes = []
    for number, task in enumerate(["reach_goal", "raise_in_step", "never_succeed", "reach_goal"]):
        sim.start_episode(episode(task), 1, address(expert, f"s{number}"))
        result = outcome(sim)
        hashes.append(result["state_hash"])
        expected = {"reach_goal": "success", "never_succeed": "fail"}.get(task, "error")
        assert result["outcome"] == expected
        assert result["error"] is None or result["error"]["kind"] == "simulator"
    assert hashes[0] == hashes[3] != hashes[2]


def test_progress_comes_before_the_end(start_sim: StartSim, expert: ModelServerProcess) -> None:
    sim = start_sim()
    sim.start_episode(episode("never_succeed"), 1, address(expert))
    seen = []
    while (message := sim.poll(60)) and message["say"] == "progress":
        seen.append((message["phase"], message["step"]))
    assert {phase for phase, _ in seen} == {"reset", "observe", "infer", "step", "video"}
    assert [step for phase, step in seen if phase == "infer"] == [0, 0, 8, 16, 24, 32]
    assert message and message["result"]["steps"] == STEP_LIMIT
    assert sim.poll(0) is None


def test_a_video_is_made_where_it_was_asked_for(
    start_sim: StartSim, expert: ModelServerProcess, tmp_path: Path
) -> None:
    sim = start_sim(ffmpeg=find_ffmpeg())
    video = tmp_path / "videos" / "a.mp4"
    sim.start_episode(episode("reach_goal"), 1, address(expert), video)
    assert outcome(sim)["video"] == str(video) and video.stat().st_size > 500
    sim.start_episode(episode("reach_goal"), 1, address(expert), tmp_path / "b.mp4", True)
    assert outcome(sim)["video"] is None and not (tmp_path / "b.mp4").exists()


@pytest.mark.parametrize("task", ["crash_in_step", "crash_in_reset"])
def test_a_crash_says_how_and_where_and_leaves_no_half_video(
    start_sim: StartSim, expert: ModelServerProcess, tmp_path: Path, task: str
) -> None:
    sim = start_sim(ffmpeg=find_ffmpeg())
    sim.start_episode(episode(task), 1, address(expert), tmp_path / "videos" / "a.mp4")
    with pytest.raises(ProcessDied, match="SIGSEGV") as died:
        outcome(sim)
    assert "pointsim.py" in str(died.value), "the stack at the crash belongs to its last words"
    assert str(tmp_path / "sim.log") in str(died.value)
    assert not sim.alive() and not list(tmp_path.glob("videos/*"))
    with pytest.raises(ProcessDied):
        sim.describe()


def test_a_hung_one_is_killed_and_its_stack_is_in_the_log(
    start_sim: StartSim, expert: ModelServerProcess, tmp_path: Path
) -> None:
    sim = start_sim(ffmpeg=find_ffmpeg())
    sim.start_episode(episode("hang_in_step"), 1, address(expert), tmp_path / "videos" / "a.mp4")
    log = tmp_path / "sim.log"
    wait_for(lambda: "pointsim hangs" in log.read_text(), "it hangs")
    assert sim.alive()
    sim.kill()
    assert sim.proc.returncode == -signal.SIGKILL
    assert "_misbehave" in log.read_text()
    assert not list(tmp_path.glob("videos/.*")) and not list(tmp_path.glob("videos/*"))


def test_a_killed_one_is_replaced_by_the_next(
    start_sim: StartSim, expert: ModelServerProcess
) -> None:
    first = start_sim()
    first.ready()
    first.proc.kill()
    with pytest.raises(ProcessDied, match="SIGKILL"):
        first.describe()
    second = start_sim()
    second.start_episode(episode("reach_goal"), 2, address(expert))
    assert outcome(second)["outcome"] == "success"


def test_it_ends_when_the_worker_is_gone(start_sim: StartSim) -> None:
    sim = start_sim()
    sim.ready()
    sim._channel.close()  # as the kernel does for a worker that died
    assert children.wait_exited(sim.proc, 20)
    assert children.end(sim.proc) == 0


def test_it_quits_when_asked(start_sim: StartSim) -> None:
    sim = start_sim()
    sim.ready()
    sim.close()
    assert sim.proc.returncode == 0
    sim.close()


def test_it_quits_within_the_deadline_in_the_middle_of_an_episode(
    start_sim: StartSim, expert: ModelServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.workers.simulator_process.QUIT_DEADLINE_S", 0.7)
    sim = start_sim(env={**os.environ, "POINTSIM_STEP_S": "1"})  # so 40 s, with words all along
    sim.start_episode(episode("never_succeed"), 1, address(expert))
    assert sim.poll(60)
    sim.close()
    assert not sim.alive() and sim.proc.returncode != 0, "it quit by itself, after the episode"


def test_its_death_is_noticed_while_what_it_forked_lives(
    start_sim: StartSim, expert: ModelServerProcess
) -> None:
    sim = start_sim(simulator="tests.fakes.pointsim:make_with_helper")
    sim.start_episode(episode("crash_in_step"), 1, address(expert))
    with pytest.raises(ProcessDied, match="SIGSEGV"):
        outcome(sim)


def test_a_simulator_that_cannot_start_says_why(start_sim: StartSim) -> None:
    with pytest.raises(ProcessDied, match=r"no such simulator.*tabletop"):
        start_sim(simulator="no_such").ready()
    with pytest.raises(ProcessDied, match="unexpected keyword argument 'colour'"):
        start_sim(options={"colour": 1}).ready()


def test_no_answer_within_the_deadline_ends_it(start_sim: StartSim) -> None:
    sim = start_sim()
    with pytest.raises(RollpoolError, match="no sign of life"):
        sim.ready(deadline_s=0)
    assert not sim.alive()


def test_a_lost_model_server_is_a_protocol_error_and_the_next_one_serves(
    start_sim: StartSim, expert: ModelServerProcess, tmp_path: Path
) -> None:
    sim = start_sim()
    wrong = {**address(expert), "token": "another run's"}
    sim.start_episode(episode("reach_goal"), 1, wrong)
    result = outcome(sim)
    assert result["outcome"] == "error" and result["error"]["kind"] == "protocol"
    sim.start_episode(episode("reach_goal"), 2, address(expert))
    assert outcome(sim)["outcome"] == "success"


def test_a_machine_without_cameras_serves_a_policy_that_needs_none(
    start_sim: StartSim, expert: ModelServerProcess
) -> None:
    sim = start_sim(options={"cameras": False})
    sim.start_episode(episode("reach_goal"), 1, address(expert), Path("/nowhere/a.mp4"))
    result = outcome(sim)
    assert result["outcome"] == "success" and result["video"] is None
