"""``policy/robotwin_tcp``, the classic client, against a server with upstream's habits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from harness.errors import RollpoolError
from harness.policies import Policy, PolicyError, Session, load_policy
from harness.wire import RemoteError
from harness.wire.calls import ClassicCalls
from tests.model_server.serving import client, episode, serving
from tests.robotwin_tcp.peers import Upstream

FOLDER = Path(__file__).resolve().parents[2] / "policy" / "robotwin_tcp"
DEADLINE_S = 60.0
WINDOW = np.arange(14, dtype=np.float32)


class Pi0:
    """The methods of a pi0 policy; its state is the episode's, and everybody's."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.language: Any = None
        self.window: Any = None
        self.secret = "attributes are no methods"
        self.go = threading.Event()

    def reset_model(self) -> None:
        self.calls.append("reset")
        self.language = self.window = None

    def set_language(self, language: str) -> None:
        self.calls.append("language")
        self.language = language

    def update_observation_window(self, images: list[np.ndarray], state: np.ndarray) -> None:
        self.calls.append("window")
        self.window = (images, state)

    def get_action(self) -> np.ndarray:
        if self.language == "raise":
            raise ValueError("the model's own words")
        if self.language == "wait":
            self.go.wait(DEADLINE_S)
        if self.language == "nonsense":
            return {"actions": 1}  # type: ignore[return-value]
        return np.tile(self.window[1], (3, 1)).astype(np.float32)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream(Pi0())
    yield server
    server.close()


def load(server: Upstream, **more: Any) -> Policy:
    settings = yaml.safe_load((FOLDER / "deploy_policy.yml").read_text())
    settings |= {"server": f"127.0.0.1:{server.port}", "deadline_s": 10, "connect_s": 10, **more}
    settings.pop("exec_actions")
    return load_policy(FOLDER, settings, {})


def seen(instruction: str = "go") -> dict[str, Any]:
    names = ("head", "left_wrist", "right_wrist")
    images = {name: np.full((2, 3, 3), k, np.uint8) for k, name in enumerate(names)}
    return {
        "images": images,
        "state": {"qpos": WINDOW},
        "instruction": instruction,
        "proprio": WINDOW,
        "last_action": None,
    }


def session(seed: int = 1) -> Session:
    return Session.begin("s", {"task": "t", "seed": seed})


def test_an_episode_is_the_calls_of_the_form(upstream: Upstream) -> None:
    policy = load(upstream)
    assert policy.cameras == ["head", "right_wrist", "left_wrist"]
    policy.reset(session())
    for _ in range(2):
        actions = policy.infer(seen(), session())
        assert actions.tolist() == np.tile(WINDOW, (3, 1)).tolist()
    policy.reset(session())
    policy.infer(seen("another"), session())
    assert upstream.model.calls == [
        "reset", "language", "window", "window", "reset", "language", "window",
    ]  # fmt: skip
    images, state = upstream.model.window
    assert [int(image[0, 0, 0]) for image in images] == [0, 2, 1]  # head, right, left
    assert state.dtype == np.float32 and upstream.model.language == "another"


def test_requests_are_byte_for_byte_upstreams(upstream: Upstream) -> None:
    calls = ClassicCalls("127.0.0.1", upstream.port, 10, 10)
    calls.call("set_language", "go")
    image = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    calls.call("update_observation_window", [image], np.array([0.5, -1], np.float32))
    assert upstream.received == [
        b'{"cmd": "set_language", "obs": "go"}',
        b'{"cmd": "update_observation_window", "obs": {"_args": [[{"__numpy_array__": true, '
        b'"data": "AAECAwQF", "dtype": "uint8", "shape": [1, 2, 3]}], {"__numpy_array__": true, '
        b'"data": "AAAAPwAAgL8=", "dtype": "float32", "shape": [2]}]}}',
    ]
    calls.call("reset_model")
    assert upstream.received[-1] == b'{"cmd": "reset_model", "obs": null}'
    calls.close()


def test_an_answer_in_single_bytes_is_an_answer() -> None:
    upstream = Upstream(Pi0(), drips=True)
    policy = load(upstream)
    policy.reset(session())
    assert policy.infer(seen(), session()).shape == (3, 14)
    upstream.close()


def test_what_the_server_raises_is_told_and_costs_one_episode(
    upstream: Upstream, capfd: pytest.CaptureFixture[str]
) -> None:
    policy = load(upstream)
    policy.reset(session())
    with pytest.raises(PolicyError, match="the model's own words"):
        policy.infer(seen("raise"), session())
    assert "raise ValueError(" in capfd.readouterr().err
    # Its server has closed the connection, and nobody knows what state it kept.
    with pytest.raises(PolicyError, match="lost in this episode"):
        policy.infer(seen(), session())
    policy.reset(session())
    assert policy.infer(seen(), session()).shape == (3, 14)


def test_a_server_that_died_between_two_episodes_is_found_again(upstream: Upstream) -> None:
    policy = load(upstream)
    policy.reset(session())
    policy.infer(seen(), session())
    upstream.drop()
    policy.reset(session())
    assert policy.infer(seen(), session()).shape == (3, 14)
    upstream.drop()
    with pytest.raises(PolicyError, match="classic server"):
        policy.infer(seen(), session())


def test_a_deadline_ends_a_call_and_its_late_answer_meets_nobody(upstream: Upstream) -> None:
    policy = load(upstream, deadline_s=0.5)
    policy.reset(session())
    with pytest.raises(PolicyError, match=r"within 0\.5 s"):
        policy.infer(seen("wait"), session())
    upstream.model.go.set()
    policy.reset(session())
    assert policy.infer(seen(), session()).tolist() == np.tile(WINDOW, (3, 1)).tolist()


def test_an_answer_without_actions_is_no_chunk(upstream: Upstream) -> None:
    policy = load(upstream)
    policy.reset(session())
    with pytest.raises(PolicyError, match="actions of get_action"):
        policy.infer(seen("nonsense"), session())
    named = load(upstream, answer="actions", action_dim=1)
    named.reset(session())
    assert named.infer(seen("nonsense"), session()).tolist() == [[1]]


def test_one_simulator_at_a_time_since_the_state_is_shared(upstream: Upstream) -> None:
    policy = load(upstream, infer=[{"method": "get_action"}], begin=[], needs=[], action_dim=14)
    assert policy.exclusive
    with serving(policy) as server:
        first, second = client(server, "a"), client(server, "b")
        first.reset(episode())
        server._service.HANDOVER_S = 0.2  # type: ignore[misc]
        with pytest.raises(RemoteError, match="is in use"):
            second.reset(episode())
        first.close()
        server._service.HANDOVER_S = 5.0  # type: ignore[misc]
        second.reset(episode())
        second.close()


def test_no_server_is_said_at_once(upstream: Upstream) -> None:
    upstream.close()
    with pytest.raises(RollpoolError, match=r"connect to 127\.0\.0\.1"):
        load(upstream, connect_s=0.3)


def test_a_reply_that_is_none_is_refused() -> None:
    class Odd:
        def reset_model(self) -> None: ...

    upstream = Upstream(Odd())
    policy = load(upstream)
    policy.reset(session())
    with pytest.raises(PolicyError, match="has no attribute"):
        policy.infer(seen(), session())
    upstream.close()
