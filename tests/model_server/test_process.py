"""The model server as a process: as the worker starts it, and by hand."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.episodes.channel import Channel, ChannelClosed
from harness.inference.model_client import ModelClient
from tests.model_server.serving import episode, observation

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "policy_model_server.py"
DEADLINE_S = 60

pytestmark = pytest.mark.e2e


@contextmanager
def started(arguments: Sequence[str], fds: Sequence[int] = ()) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *arguments],
        pass_fds=fds,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE_S)


@contextmanager
def as_worker(tmp_path: Path, **settings: Any) -> Iterator[tuple[Channel, subprocess.Popen[str]]]:
    file = tmp_path / "settings.json"
    values = {"policy_dir": str(ROOT / "policy" / "expert"), "token": "t", **settings}
    file.write_text(json.dumps({"usr_args": {"needs": ["expert"]}, **values}))
    ours, theirs = socket.socketpair()
    arguments = ["--settings", str(file), "--channel", str(theirs.fileno())]
    with started(arguments, [theirs.fileno()]) as process:
        theirs.close()
        channel = Channel(ours)
        yield channel, process
        channel.close()


def serving_at(process: subprocess.Popen[str]) -> tuple[str, int]:
    """Host and port from the line a server started by hand prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("serving "), line + process.communicate(timeout=DEADLINE_S)[1]
    host, port = line.split()[-1].split(":")
    return host, int(port)


def test_a_worker_gets_host_port_and_identity(tmp_path: Path) -> None:
    checkpoint = {"name": "c", "digest": "d"}
    with as_worker(tmp_path, checkpoint=checkpoint, settings_hash="h") as (channel, _):
        ready = channel.receive(DEADLINE_S)
        assert ready is not None and ready["say"] == "ready"
        assert ready["identity"]["checkpoint"] == checkpoint
        model = ModelClient(ready["host"], ready["port"], "t", "s", DEADLINE_S)
        assert model.hello == {"type": "hello", **ready["identity"], "clients": 0}
        model.reset(episode())
        expert = np.ones((4, 20), np.float32)
        assert (model.infer(0, observation(), None, expert)[0] == expert).all()
        model.close()


def test_it_ends_when_the_worker_is_gone(tmp_path: Path) -> None:
    with as_worker(tmp_path) as (channel, process):
        assert channel.receive(DEADLINE_S)
        channel.close()
        assert process.wait(DEADLINE_S) == 0


def test_sigterm_ends_it_in_mid_inference(tmp_path: Path) -> None:
    policy_dir = tmp_path / "sleepy"
    policy_dir.mkdir()
    (policy_dir / "deploy_policy.py").write_text(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "class M:\n"
        "    def infer(self, seen):\n"
        "        print('asleep', flush=True)\n"
        "        time.sleep(600)\n"
        "def get_model(usr_args): return M()\n"
    )
    with as_worker(tmp_path, policy_dir=str(policy_dir)) as (channel, process):
        ready = channel.receive(DEADLINE_S)
        assert ready is not None
        model = ModelClient(ready["host"], ready["port"], "t", "s", DEADLINE_S)
        model.reset(episode())
        seen = {"proprio": np.zeros(20, np.float32)}
        model._connection.send({"type": "infer", "session": "s", "observation": seen})
        assert process.stdout is not None and process.stdout.readline() == "asleep\n"
        process.terminate()
        assert process.wait(DEADLINE_S) == -signal.SIGTERM


def test_a_policy_that_does_not_load_is_refused_with_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "deploy_policy.py").write_text("def get_model(usr_args): raise OSError('torn')")
    with as_worker(tmp_path, policy_dir=str(tmp_path)) as (channel, process):
        refused = channel.receive(DEADLINE_S)
        assert refused is not None and refused["say"] == "refused"
        assert "OSError: torn" in refused["message"]
        with pytest.raises(ChannelClosed):
            channel.receive(DEADLINE_S)
        assert process.wait(DEADLINE_S) == 2
        assert process.stderr is not None
        assert "in get_model" in process.stderr.read()


def test_unknown_settings_are_refused(tmp_path: Path) -> None:
    with as_worker(tmp_path, tokn="x") as (channel, _):
        refused = channel.receive(DEADLINE_S)
        assert refused is not None and "unknown keys tokn" in refused["message"]


def test_by_hand(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("by hand\n")
    arguments = ["--policy_name", "template", "--token-file", str(token)]
    overrides = ["--overrides", "--chunk", "8", "--exec_actions", "5"]
    with started([*arguments, *overrides]) as process:
        model = ModelClient(*serving_at(process), "by hand", "s", DEADLINE_S)
        assert model.hello["policy"] == "template" and model.hello["chunk"] == 8
        model.reset(episode())
        actions, _ = model.infer(0, observation(0.5), None, None)
        assert actions.shape == (5, 20) and (actions == 0.5).all()
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--policy_name", "no_such"], "no such file"),
        (["--policy_name", "template", "--ckpt", "no_such"], "checkpoint 'no_such'"),
        (["--policy_name", "template", "--overrides", "--chunk"], "pairs of --key value"),
        (["--policy_name", "template", "--host", "0.0.0.0"], "no token"),
        (["--policy_name", "replay"], "names no file"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], found: str) -> None:
    with started(arguments) as process:
        _, complaint = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 2
        last = complaint.splitlines()[-1]
        assert last.startswith("model server: error: ") and found in last
