"""The two scripts, as a user runs them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.workers import children
from harness.workers.server_process import ModelServerProcess
from tests.processes.conftest import POINTSIM, TOKEN


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(children.ROOT / "scripts" / script), *map(str, arguments)],
        env=children.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )


def by_hand(
    server: ModelServerProcess, folder: Path, task: str, *more: object
) -> subprocess.CompletedProcess[str]:
    token = folder / "token"
    token.write_text(TOKEN + "\n")
    cell = ["--scene", "plane", "--task", task, "--task_config", "bench_demo_plane_clean"]
    where = ["--port", server.port, "--token-file", token, "--simulator", POINTSIM]
    return run("eval_policy_client.py", *where, *cell, "--seed", 4, *more)


def result_of(output: str) -> dict[str, object]:
    result: dict[str, object] = json.loads(output[output.index("{\n") :])
    return result


def test_an_episode_by_hand(expert: ModelServerProcess, tmp_path: Path) -> None:
    video = tmp_path / "out.mp4"
    done = by_hand(expert, tmp_path, "reach_goal", "--video", video)
    assert (done.returncode, done.stderr) == (0, "")
    assert "policy expert, instruction: move to the mark 4" in done.stdout
    assert "step 8 of at most 40: infer" in done.stdout
    result = result_of(done.stdout)
    assert result["outcome"] == "success" and result["video"] == str(video) and video.exists()


def test_an_error_by_hand_shows_its_traceback(expert: ModelServerProcess, tmp_path: Path) -> None:
    done = by_hand(expert, tmp_path, "raise_in_step")
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "simulator error: RuntimeError" in done.stderr
    assert result_of(done.stdout)["outcome"] == "error"


def test_what_cannot_be_run_is_one_line(expert: ModelServerProcess, tmp_path: Path) -> None:
    done = by_hand(expert, tmp_path, "no_such_task")
    assert done.returncode == 2
    assert done.stderr.startswith("eval_policy_client: error: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("theirs", [TOKEN, "another run's"])
def test_reversed_roles_by_hand(tmp_path: Path, theirs: str) -> None:
    (tmp_path / "mine").write_text(TOKEN)
    (tmp_path / "theirs").write_text(theirs)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = str(children.ROOT / "scripts" / "policy_model_server.py")
    argv = [sys.executable, script, "--policy_name", "expert", "--connect", str(port)]
    model = subprocess.Popen(
        [*argv, "--token-file", tmp_path / "theirs"], env=children.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    cell = ["--scene", "plane", "--task", "reach_goal", "--task_config", "bench_demo_plane_clean"]
    where = ["--listen", port, "--token-file", tmp_path / "mine", "--simulator", POINTSIM]
    client = subprocess.Popen(
        [sys.executable, str(children.ROOT / "scripts" / "eval_policy_client.py"),
         *map(str, [*where, *cell, "--seed", 4])],
        env=children.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    said, _ = model.communicate(timeout=120)
    if theirs != TOKEN:
        client.kill()
        client.communicate()
        assert model.returncode == 2 and "the token is not this run's" in said
        return
    out, _ = client.communicate(timeout=120)
    assert client.returncode == 0 and result_of(out)["outcome"] == "success", out
    assert model.returncode == 0 and said.endswith("it left\n"), said


def precollect(out: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    where = ["--out", out, "--simulator", POINTSIM, "--python", sys.executable]
    return run("precollect_eval_seeds.py", *where, *arguments)


def test_a_bank_holds_the_first_seeds_the_expert_solves(tmp_path: Path) -> None:
    choice = [
        "--scenes",
        "plane",
        "--tasks",
        "reach_goal",
        "reach_even",
        "--configs",
        "clean",
        "d6",
    ]
    done = precollect(tmp_path, *choice, "--first", 41, "--count", 4, "--jobs", 2)
    assert (done.returncode, done.stderr) == (0, "")
    assert "[4/4]" in done.stdout and "solved 4/8 (50%)" in done.stdout
    files = {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.glob("*/*.txt")}
    assert files == {
        "reach_goal/bench_demo_plane_clean.txt": "41 42 43 44\n",
        "reach_goal/bench_demo_plane_d6.txt": "41 42 43 44\n",
        "reach_even/bench_demo_plane_clean.txt": "42 44 46 48\n",
        "reach_even/bench_demo_plane_d6.txt": "42 44 46 48\n",
    }


def test_a_bank_is_continued_and_left_alone_when_complete(tmp_path: Path) -> None:
    choice = ["--scenes", "plane", "--tasks", "reach_even", "--first", 40]
    precollect(tmp_path, *choice, "--count", 2)
    bank = tmp_path / "reach_even" / "bench_demo_plane_clean.txt"
    assert bank.read_text() == "40 42\n"
    precollect(tmp_path, *choice, "--count", 4)
    assert bank.read_text() == "40 42 44 46\n"
    before = bank.stat()
    done = precollect(tmp_path, *choice, "--count", 3)
    assert done.returncode == 0 and "4 seeds, complete before" in done.stdout
    assert (bank.stat().st_ino, bank.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_cell_that_crashes_the_simulator_costs_that_cell_alone(tmp_path: Path) -> None:
    tasks = ["crash_in_step", "never_succeed", "reach_goal"]
    done = precollect(tmp_path, "--tasks", *tasks, "--count", 1)  # in two scenes, one by one
    assert done.returncode == 1
    assert "INCOMPLETE plane.crash_in_step" in done.stderr and "SIGSEGV" in done.stderr
    assert "INCOMPLETE plane.never_succeed" in done.stderr
    banks = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.glob("*/*.txt"))
    assert banks == [f"reach_goal/bench_demo_{scene}_clean.txt" for scene in ("hill", "plane")]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--tasks", "reach_gaol"], "reach_goal"),
        (["--scenes", "plain"], "plane"),
        (["--configs", "d7"], "d7"),
    ],
)
def test_a_name_that_is_not_there_gets_a_suggestion(
    tmp_path: Path, arguments: list[str], says: str
) -> None:
    done = precollect(tmp_path, *arguments)
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1
