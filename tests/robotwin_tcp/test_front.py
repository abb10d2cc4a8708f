"""Our model server, answering a classic client: what upstream's server gets wrong, it does not."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from harness.fronts import robotwin
from harness.policies.contract import Observation, Session
from tests.robotwin_tcp.peers import Client, fronted, receive

ROOT = Path(__file__).resolve().parents[2]
FORM: dict[str, Any] = yaml.safe_load((ROOT / "policy/robotwin_tcp/deploy_policy.yml").read_text())
IMAGES = [np.full((2, 3, 3), k, np.uint8) for k in range(3)]
STATE = np.arange(20, dtype=np.float64) / 8


class Counts:
    """(2, 20): the state, the head camera's value, how many chunks this episode has had."""

    needs = ()

    def infer(self, observation: Observation, session: Session) -> np.ndarray:
        if observation["instruction"] == "raise":
            raise ValueError("the policy's own words")
        session.memory["n"] = session.memory.get("n", 0) + 1
        chunk = np.tile(observation["state"]["qpos"], (2, 1))
        chunk[:, -2] = observation["images"]["head"][0, 0, 0]
        chunk[:, -1] = session.memory["n"]
        return chunk


def chunk_of(model: Client) -> np.ndarray:
    """A policy module's ``eval``, as RoboPRO's users have it."""
    if model.observation_window is None:
        model.set_language("go")
    model.update_observation_window(IMAGES, STATE)
    return model.get_action()[: model.pi0_step]


def test_a_users_own_evaluation_runs_unchanged() -> None:
    with fronted(Counts(), FORM) as port:
        model = Client(port, pi0_step=1)
        model.reset_model()
        assert model.observation_window is None
        first = chunk_of(model)
        assert first.shape == (1, 20) and first.dtype == np.float32
        assert first[0].tolist() == [*STATE[:18], 0, 1]
        assert model.observation_window is True  # the language is not sent again
        assert chunk_of(model)[0, -1] == 2
        model.reset_obsrvationwindows()
        assert chunk_of(model)[0, -1] == 1


def test_two_clients_share_no_state() -> None:
    with fronted(Counts(), FORM) as port:
        one, other = Client(port, pi0_step=9), Client(port, pi0_step=9)
        assert [int(chunk_of(one)[0, -1]) for _ in range(3)] == [1, 2, 3]
        assert chunk_of(other)[0, -1] == 1
        other.reset_model()
        assert chunk_of(one)[0, -1] == 4


def test_replies_are_byte_for_byte_upstreams() -> None:
    class Two:
        needs = ()

        def infer(self, observation: Observation) -> np.ndarray:
            return np.tile(np.array([0.5, -1]), (1, 10))

    form = {"reset": "reset_model", "infer": [{"method": "get_action", "arguments": []}]}
    with fronted(Two(), form) as port, socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b'\0\0\0\x23{"cmd": "reset_model", "obs": null}')
        assert receive(sock) == b'{"res": null}'
        sock.sendall(b'\0\0\0\x22{"cmd": "get_action", "obs": null}')
        assert receive(sock) == (
            b'{"res": {"__numpy_array__": true, '
            b'"data": "AAAAPwAAgL8AAAA/AACAvwAAAD8AAIC/AAAAPwAAgL8AAAA/AACAvwAAAD8AAIC/AAAAPwAA'
            b'gL8AAAA/AACAvwAAAD8AAIC/AAAAPwAAgL8=", "dtype": "float32", "shape": [1, 20]}}'
        )


def test_a_request_in_single_bytes_is_a_request() -> None:
    with fronted(Counts(), FORM) as port:
        assert chunk_of(Client(port, drips=True, pi0_step=1))[0, -1] == 1


def test_errors_are_told_and_the_connection_goes_on() -> None:
    with fronted(Counts(), FORM) as port:
        model = Client(port, pi0_step=1)
        model.set_language("raise")
        model.update_observation_window(IMAGES, STATE)
        reply = model.call("get_action")
        assert "the policy's own words" in reply["error"]
        assert "raise ValueError(" in reply["traceback"]
        model.reset_model()
        assert chunk_of(model)[0, -1] == 1


@pytest.mark.parametrize("method", ["__init__", "_backend", "call", "infer", "close", None, 7, {}])
def test_only_the_forms_methods_exist(method: Any) -> None:
    with fronted(Counts(), FORM) as port:
        model = Client(port, pi0_step=1)
        reply = model.call(method)
        assert "no such method" in reply["error"] and "get_action" in reply["error"]
        assert chunk_of(model)[0, -1] == 1


def test_arguments_that_do_not_fit_are_told() -> None:
    with fronted(Counts(), FORM) as port:
        model = Client(port)

        def told(obs: Any) -> str:
            return model.call("update_observation_window", obs)["error"]

        assert "2 arguments: 1 came" in told(STATE)
        assert "0.1 of an observation" in told({"_args": [IMAGES[:1], STATE]})
        assert "a picture at 0.0: shape (20,)" in told({"_args": [[STATE] * 3, STATE]})


def test_nonsense_ends_nothing_but_its_own_connection() -> None:
    with fronted(Counts(), FORM) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
            sock.sendall(b"\0\0\0\x03{]}")
            assert b'"error"' in receive(sock)
            sock.sendall(b"\xff\xff\xff\xff")  # a frame of 4 GB
            assert receive(sock) == b""
        assert chunk_of(Client(port, pi0_step=1))[0, -1] == 1


def test_what_is_no_argument_is_an_answer_too() -> None:
    form = {
        "reset": "reset_model",
        "infer": [{"method": "act", "arguments": [{"array": "proprio"}]}],
    }
    with fronted(Counts(), form) as port:
        model = Client(port)
        assert "too large" in model.call("act", 10**400)["error"]
        model.reset_model()  # the connection goes on


def test_a_calls_memory_is_free_when_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses, answer = list[int](), robotwin.answer

    def noted(methods: robotwin.Methods, payload: memoryview) -> dict[str, Any]:
        addresses.append(np.frombuffer(payload, np.uint8).ctypes.data)
        return answer(methods, payload)

    monkeypatch.setattr(robotwin, "answer", noted)
    with fronted(Counts(), FORM) as port:
        model = Client(port)
        model.reset_model()
        model.reset_model()
    assert addresses == addresses[:1] * 2


def test_the_command_serves_a_policy_and_takes_its_port_again_at_once(tmp_path: Path) -> None:
    form = {
        "reset": "reset_model",
        "infer": [{"method": "act", "arguments": [{"array": "proprio"}]}],
    }
    (tmp_path / "form.yml").write_text(yaml.safe_dump(form))
    command = [
        sys.executable, "scripts/policy_model_server.py", "--policy_name", "random",
        "--protocol", "robotwin-tcp", "--form", str(tmp_path / "form.yml"), "--port",
    ]  # fmt: skip
    port = "0"
    for _ in range(2):
        with subprocess.Popen(
            [*command, port], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert line.startswith("serving random to classic clients on 127.0.0.1:"), line
            port = line.rsplit(":", 1)[1].strip()
            model = Client(int(port))
            actions = model.act(np.zeros(20, np.float32))
            assert actions.shape == (30, 20) and actions.any()
            server.kill()
    refused = subprocess.run(
        [*command, "0", "--host", "0.0.0.0"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert refused.returncode == 2 and "--open" in refused.stderr
