"""A server and its clients: identity, sessions kept apart, errors that are answers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.errors import RollpoolError
from harness.inference.model_client import ModelClient
from harness.inference.model_server import ModelServer, Settings
from harness.inference.serving import Conversation, Service
from harness.policies import Session
from harness.policies.adapt import Adapted
from harness.policies.wrappers import wrap
from harness.wire import ConnectionLost, DeadlinePassed, ProtocolError, RemoteError, connect
from tests.model_server.serving import DECLARED, client, episode, observation, serving
from tests.waiting import wait_for


class Counts:
    """Answers with how often it was asked in this session, and the session's own noise."""

    def infer(self, seen: Any, session: Session) -> np.ndarray:
        count = session.memory["count"] = session.memory.get("count", 0) + 1
        actions = np.full((2, 20), count, np.float32)
        actions[1] = session.rng.random()
        return actions


class Raises:
    def infer(self, seen: Any) -> np.ndarray:
        if seen["proprio"][0] == 1:
            raise FloatingPointError("the model diverged")
        if seen["proprio"][0] == 3:
            raise SystemExit("as a script would")
        return np.full((1, 20), np.nan if seen["proprio"][0] == 2 else 0.5)


@pytest.mark.parametrize("codec", ["binary", "classic"])
def test_an_episode_over_the_wire(codec: str) -> None:
    saw: dict[str, Any] = {}

    class Looks:
        def infer(self, seen: Any) -> np.ndarray:
            saw.update(seen)
            return np.tile(seen["proprio"], (3, 1))

    with serving(Looks()) as server:
        model = client(server, codec=codec)
        assert model.hello["policy"] == "test" and model.hello["protocol"] == 1
        assert (model.hello["action_kind"], model.hello["chunk"]) == ("ee6d", 30)
        model.reset(episode())
        last = np.arange(20, dtype=np.float32)
        actions, served = model.infer(4, observation(0.25), last, None)
        assert actions.shape == (3, 20) and actions.dtype == np.float32
        assert (actions == 0.25).all() and 0 <= served.infer_s < 10 and 0 <= served.wait_s < 10
        model.close()
    assert (saw["images"]["countertop"] == 7).all() and saw["instruction"] == "go"
    assert (saw["last_action"] == last).all() and saw["expert"] is None
    assert not saw["proprio"].flags.writeable


def test_a_wrong_token_is_refused_and_the_server_goes_on() -> None:
    with serving(Counts()) as server:
        for token in ("", "secreT", "секрет"):
            with pytest.raises(RemoteError, match="token"):
                client(server, token=token)
        client(server).close()


def test_another_protocol_is_refused() -> None:
    with serving(Counts()) as server, connect(server.host, server.port, 10) as connection:
        with pytest.raises(RemoteError, match="protocol 2"):
            connection.ask({"type": "hello", "protocol": 2, "token": "secret"}, "hello")
        with pytest.raises(ConnectionLost):
            connection.receive()


def test_a_client_refuses_a_server_of_another_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.inference.model_server.PROTOCOL", 2)
    monkeypatch.setattr(Conversation, "_hello", lambda self, _: {"type": "hello", "protocol": 2})
    with serving(Counts()) as server, pytest.raises(ProtocolError, match="protocol 2"):
        client(server)


@pytest.mark.parametrize("request_type", ["reset", "infer", "close"])
def test_nothing_is_served_before_hello(request_type: str) -> None:
    with (
        serving(Counts()) as server,
        connect(server.host, server.port, 10) as connection,
        pytest.raises(RemoteError, match="hello"),
    ):
        connection.ask({"type": request_type}, "ok")


@pytest.mark.parametrize(
    "words",
    [
        {"type": "eval"},
        {"type": "hello", "protocol": np.zeros(2), "token": "secret"},
        {"type": "hello", "protocol": 1, "token": np.zeros(2)},
    ],
    ids=["unknown", "protocol", "token"],
)
def test_a_stranger_has_one_try_and_learns_nothing(
    words: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Counts()) as server, connect(server.host, server.port, 10) as connection:
        with pytest.raises(RemoteError) as raised:
            connection.ask(words, "hello")
        assert (raised.value.kind, raised.value.traceback) == ("protocol", "")
        with pytest.raises(ConnectionLost):
            connection.receive()
    assert not capsys.readouterr().err


def test_a_stranger_cannot_send_much() -> None:
    with serving(Counts()) as server, connect(server.host, server.port, 10) as connection:
        connection.sock.sendall((10**6).to_bytes(4, "big"))
        reply = connection.receive()
        assert reply["type"] == "error" and "limit" in reply["message"]
        with pytest.raises(ConnectionLost):
            connection.receive()


def test_without_a_token_a_classic_client_may_skip_hello() -> None:
    with (
        serving(Counts(), token="") as server,
        connect(server.host, server.port, 10, "classic") as connection,
    ):
        connection.ask({"type": "reset"}, "ok")
        seen = {"proprio": np.zeros(20, np.float32)}
        reply = connection.ask({"type": "infer", "observation": seen}, "actions")
        assert reply["actions"][0, 0] == 1


@pytest.mark.parametrize("junk", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\4RPB3", b"\0\0\0\2[]"])
def test_junk_costs_a_connection_and_no_more(junk: bytes) -> None:
    with serving(Counts()) as server:
        with socket.create_connection((server.host, server.port), 10) as stranger:
            stranger.sendall(junk)
            with contextlib.suppress(ConnectionResetError):  # it hangs up on unread junk
                while stranger.recv(4096):
                    pass
        client(server).close()


def test_a_silent_stranger_is_shown_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Conversation, "HELLO_DEADLINE_S", 0.02)
    with (
        serving(Counts()) as server,
        socket.create_connection((server.host, server.port), 10) as stranger,
    ):
        assert stranger.recv(1) == b""


def test_sessions_do_not_see_each_other() -> None:
    with serving(Counts()) as server:
        one, other = client(server, "same name"), client(server, "same name")
        one.reset(episode(1))
        other.reset(episode(2))
        chunks = [one.infer(0, observation(), None, None)[0] for _ in range(3)]
        chunk, _ = other.infer(0, observation(), None, None)
        assert [c[0, 0] for c in chunks] == [1, 2, 3] and chunk[0, 0] == 1
        assert chunk[1, 0] != chunks[0][1, 0]
        one.close()
        other.close()


def test_reset_begins_again_with_the_same_noise() -> None:
    with serving(Counts()) as server:
        model = client(server)
        runs = []
        for session in ("a", "b"):
            model.session = session
            model.reset(episode())
            runs.append([model.infer(0, observation(), None, None)[0] for _ in range(2)])
        assert np.array_equal(runs[0], runs[1])
        model.close()


def test_a_policy_error_is_an_answer_with_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(Raises()) as server:
        model = client(server)
        model.reset(episode())
        with pytest.raises(RemoteError, match="FloatingPointError: the model diverged") as raised:
            model.infer(0, observation(1), None, None)
        assert raised.value.kind == "policy"
        assert "raise FloatingPointError" in raised.value.traceback
        with pytest.raises(RemoteError, match="nan at action 0") as raised:
            model.infer(0, observation(2), None, None)
        assert raised.value.kind == "policy"
        with pytest.raises(RemoteError, match="SystemExit: as a script would") as raised:
            model.infer(0, observation(3), None, None)
        assert raised.value.kind == "policy"
        actions, _ = model.infer(0, observation(0), None, None)  # the connection goes on
        assert (actions == 0.5).all()
        model.close()
    assert "FloatingPointError" in capsys.readouterr().err


@pytest.mark.parametrize(
    "request_",
    [{"type": "infer", "session": "x"}, {"type": "reset", "episode": 3}, {"type": "eval"}],
)
def test_a_request_that_makes_no_sense_is_a_protocol_error(request_: dict[str, Any]) -> None:
    with serving(Counts()) as server:
        model = client(server)
        model.reset(episode())
        with pytest.raises(RemoteError) as raised:
            model._connection.ask(request_, "ok")
        assert raised.value.kind == "protocol"
        model.infer(0, observation(), None, None)
        model.close()


def test_open_sessions_are_counted() -> None:
    with serving(Counts()) as server:
        model = client(server)
        ask: Callable[..., Any] = model._connection.ask
        for number in range(64):
            ask({"type": "reset", "session": str(number), "episode": {}}, "ok")
        with pytest.raises(RemoteError, match="64 are open"):
            ask({"type": "reset", "session": "one more", "episode": {}}, "ok")
        model.close()


class Stateful:
    """Keeps the episode in itself, as a model that knows no sessions does."""

    def reset(self, episode: Session) -> None:
        self.seed = episode.seed

    def infer(self, seen: Any) -> np.ndarray:
        return np.full((1, 20), self.seed)


def test_a_stateful_model_serves_one_session_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Stateful()) as server:
        one, other = client(server, "one"), client(server, "other")
        one.reset(episode(1))
        with monkeypatch.context() as soon, pytest.raises(RemoteError, match="in use") as raised:
            soon.setattr(Service, "HANDOVER_S", 0.02)
            other.reset(episode(2))
        assert raised.value.kind == "protocol"
        assert one.infer(0, observation(), None, None)[0][0, 0] == 1
        one.session = "one more"
        one.reset(episode(3))  # its own next episode
        assert one.infer(0, observation(), None, None)[0][0, 0] == 3
        one.close()
        other.reset(episode(2))
        assert other.infer(0, observation(), None, None)[0][0, 0] == 2
        other.close()


class Stuck:
    """Never answers, until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def infer(self, seen: Any, session: Session) -> np.ndarray:
        self.go.wait(60)
        return np.zeros((1, 20))


def test_a_client_leaves_a_server_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, asked = Stuck(), list[Any]()
    with serving(stuck) as server:
        model = ModelClient(server.host, server.port, "secret", "s", 1.0)
        model.reset(episode(1))
        with pytest.raises(DeadlinePassed):
            model.infer(0, observation(), None, None)
        monkeypatch.setattr(model._connection, "ask", lambda *words: asked.append(words))
        model.close()
        stuck.go.set()
    assert not asked, "it would wait for its good-bye to be answered"


def test_a_client_sees_that_the_server_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Stateful()) as server:
        model = client(server)
        model.reset(episode(1))
        assert not model.gone()
        monkeypatch.setattr(Conversation, "IDLE_S", 0.01)
        assert model.infer(0, observation(), None, None)[0][0, 0] == 1
        wait_for(model.gone, "the server closes an idle connection")
        model.close()


def test_a_stateful_model_is_free_again_when_its_client_dies() -> None:
    with serving(Stateful()) as server:
        one, other = client(server, "one"), client(server, "other")
        one.reset(episode(1))
        one._connection.sock.close()  # as a killed process does
        other.reset(episode(2))
        other.close()


class Overlaps:
    """Knows how many threads were inside it at once."""

    def __init__(self, concurrent: bool, parties: int) -> None:
        self.concurrent = concurrent
        self.inside, self.most, self.counting = 0, 0, threading.Lock()
        self.together = threading.Barrier(parties)

    def infer(self, seen: Any, session: Session) -> np.ndarray:
        with self.counting:
            self.inside += 1
            self.most = max(self.most, self.inside)
        if self.concurrent:
            self.together.wait(10)
        with self.counting:
            self.inside -= 1
        return np.zeros((1, 20))


@pytest.mark.parametrize("concurrent", [True, False])
def test_infer_runs_alone_unless_the_policy_allows_more(concurrent: bool) -> None:
    model = Overlaps(concurrent, parties=3)

    def ask(server: ModelServer, name: str) -> None:
        simulator = client(server, name)
        simulator.reset(episode())
        for _ in range(5):
            simulator.infer(0, observation(), None, None)
        simulator.close()

    with serving(model) as server:
        threads = [threading.Thread(target=ask, args=(server, str(n))) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert model.most == (3 if concurrent else 1)


def test_a_port_in_use_is_said_so() -> None:
    with serving(Counts()) as server:
        settings = Settings(policy_dir="p", port=server.port)
        with pytest.raises(RollpoolError, match=f"listen on 127.0.0.1:{server.port}.*in use"):
            ModelServer(Adapted(Counts(), DECLARED), settings)


def test_without_a_token_only_loopback_is_served() -> None:
    with pytest.raises(RollpoolError, match="no token"):
        ModelServer(Adapted(Counts(), DECLARED), Settings(policy_dir="p", host="0.0.0.0"))


def test_a_server_that_is_gone_is_not_waited_for_as_long_as_an_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(ConnectionLost, match=r"refused for 0\.1 s"):
        ModelClient("127.0.0.1", port, "secret", "s", 60, connect_s=0.1)


def test_nobody_there_ends_at_the_deadline() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionLost, match="connect to"):
            ModelClient("127.0.0.1", free.getsockname()[1], "", "s", 0.05)


def test_smoothing_follows_what_the_client_executed() -> None:
    """The client cut the first chunk after one action: that one, not the chunk's end, counts."""

    class Climbs:
        def infer(self, seen: Any) -> np.ndarray:
            return np.arange(1, 4)[:, None].repeat(20, axis=1)

    policy = wrap(Adapted(Climbs(), DECLARED), {"action_smooth": 0.5})
    with serving(policy) as server:
        model = client(server)
        model.reset(episode())
        first, _ = model.infer(0, observation(), None, None)
        second, _ = model.infer(1, observation(), first[0], None)
        model.reset(episode())
        again, _ = model.infer(0, observation(), None, None)
        model.close()
    assert first[:, 0].tolist() == [1, 2, 3]
    assert second[:, 0].tolist() == [1, 2, 3]  # 0.5 * 1 + 0.5 * 1
    assert (again == first).all()
