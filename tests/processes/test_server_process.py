"""The model server as a process: up within its deadline, or its own words why not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from harness.errors import RollpoolError
from harness.workers import children
from harness.workers.children import ProcessDied
from harness.workers.server_process import ModelServerProcess
from tests.processes.conftest import TOKEN, StartSim, address, episode, outcome

USR_ARGS = {"action_kind": "ee6d", "action_dim": 20, "chunk": 4, "needs": [], "cameras": []}


def policy(folder: Path, body: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "deploy_policy.py").write_text(body)
    return folder


def server(folder: Path, tmp_path: Path, **options: Any) -> ModelServerProcess:
    log = tmp_path / "model.log"
    return ModelServerProcess(sys.executable, folder, USR_ARGS, {}, TOKEN, log, **options)


SICK = """
import os
import numpy as np

class Sick:
    def infer(self, observation, session):
        if session.seed == 1:
            raise ValueError("it is too much")
        if session.seed == 2:
            return np.full((4, 20), np.nan)
        if session.seed == 3:
            os.kill(os.getpid(), 9)
        return np.zeros((4, 20), np.float32)

def get_model(usr_args):
    print("loading the sick model")
    return Sick()
"""


def test_a_sick_policy_is_blamed_and_the_pipe_goes_on(tmp_path: Path, start_sim: StartSim) -> None:
    sim = start_sim()
    with server(policy(tmp_path / "sick", SICK), tmp_path) as sick:
        identity = sick.start(60)
        assert identity["policy"] == "sick" and identity["chunk"] == 4
        for seed, message in ((1, "it is too much"), (2, "finite"), (1, "it is too much")):
            sim.start_episode(episode("reach_goal", seed), 1, address(sick, f"s{seed}"))
            error = outcome(sim)["error"]
            assert error["kind"] == "policy" and message in error["message"].lower()
        assert "deploy_policy.py" in error["traceback"]
        sim.start_episode(episode("reach_goal", 5), 1, address(sick, "s5"))
        assert outcome(sim)["outcome"] == "fail"
    assert not sick.alive()


def test_a_policy_without_its_cameras_is_refused(tmp_path: Path, start_sim: StartSim) -> None:
    blind = start_sim(options={"cameras": False})
    seeing = {**USR_ARGS, "needs": ["images"], "cameras": ["countertop"]}
    folder = policy(tmp_path / "sick", SICK)
    log = tmp_path / "model.log"
    with ModelServerProcess(sys.executable, folder, seeing, {}, TOKEN, log) as sick:
        sick.start(60)
        blind.start_episode(episode("reach_goal"), 1, address(sick))
        with pytest.raises(RollpoolError, match="needs the cameras \\['countertop'\\]"):
            outcome(blind)


def test_a_server_that_dies_is_named_and_started_again(tmp_path: Path, start_sim: StartSim) -> None:
    sim = start_sim()
    with server(policy(tmp_path / "sick", SICK), tmp_path) as sick:
        sick.start(60)
        sim.start_episode(episode("reach_goal", 3), 1, address(sick))
        assert outcome(sim)["error"]["kind"] == "protocol"
        died = sick.died()
        assert isinstance(died, ProcessDied) and "SIGKILL: loading the sick model" in str(died)
        sick.start(60)
        sim.start_episode(episode("reach_goal", 4), 2, address(sick))
        assert outcome(sim)["outcome"] == "fail"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("def get_model(usr_args):\n    raise OSError('no weights there')", "no weights there"),
        ("import os\nos._exit(9)", "exit code 9"),
        ("get_models = 1", "no get_model"),
    ],
)
def test_a_policy_that_does_not_load_says_why(tmp_path: Path, body: str, says: str) -> None:
    broken = server(policy(tmp_path / "broken", body), tmp_path)
    with pytest.raises(RollpoolError, match=says) as error:
        broken.start(60)
    assert str(tmp_path / "model.log") in str(error.value)
    assert not broken.alive()


def test_one_that_has_died_is_named_whatever_it_is_asked_next(tmp_path: Path) -> None:
    """Also where nobody has noticed yet."""
    asks = (lambda: gone.join("127.0.0.1", 1), lambda: gone.left(5), lambda: gone.compare(1, 5))
    with server(policy(tmp_path / "sick", SICK), tmp_path, connects=True) as gone:
        for ask in asks:
            gone.start(60)
            assert gone._proc is not None
            gone._proc.kill()
            children.wait_exited(gone._proc, 20)
            with pytest.raises(ProcessDied, match="ended by SIGKILL"):
                ask()


def test_a_policy_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    slow = server(policy(tmp_path / "slow", "import time\ntime.sleep(600)"), tmp_path)
    with pytest.raises(RollpoolError, match="not ready within"):
        slow.start(0.2)
    assert not slow.alive()


def test_the_token_is_on_no_command_line_and_in_no_log(tmp_path: Path) -> None:
    with server(policy(tmp_path / "sick", SICK), tmp_path) as sick:
        sick.start(60)
        assert sick._proc is not None
        command = Path(f"/proc/{sick._proc.pid}/cmdline").read_bytes()
        assert TOKEN.encode() not in command
        settings = Path(
            command.split(b"\0")[command.split(b"\0").index(b"--settings") + 1].decode()
        )
        assert not settings.exists() and not settings.parent.exists()
    assert TOKEN not in (tmp_path / "model.log").read_text()
