"""Whoever is not of this run is turned away, on either side of the connection."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from harness.errors import RollpoolError
from harness.inference.model_client import PROTOCOL, ModelClient
from harness.inference.model_listener import ModelListener
from harness.inference.model_server import ModelServer, Settings
from harness.policies.adapt import Adapted
from harness.wire import ProtocolError, RemoteError, connect
from tests.model_server.serving import DECLARED

TOKEN = "the run's"


class Still:
    """A model that never moves."""

    def infer(self, observation: Any) -> Any:
        raise AssertionError("nobody asks it")


def policy_of() -> Adapted:
    return Adapted(Still(), DECLARED)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    settings = Settings(policy_dir="p", token=TOKEN, run="run1", server="worker1")
    server = ModelServer(policy_of(), settings)
    threading.Thread(target=server.serve, daemon=True).start()
    yield server
    server.close()


def greet(listening: ModelServer, token: str = TOKEN, **expect: str) -> dict[str, Any]:
    client = ModelClient("127.0.0.1", listening.port, token, "s", 5, expect=expect)
    client.close()
    return client.hello


def test_the_hello_says_whose_server_it_is(server: ModelServer) -> None:
    hello = greet(server, run="run1", server="worker1")
    assert (hello["run"], hello["server"], hello["clients"]) == ("run1", "worker1", 0)


@pytest.mark.parametrize("expect", [{"run": "run2"}, {"run": "run1", "server": "an older one"}])
def test_another_run_s_server_is_refused(server: ModelServer, expect: dict[str, str]) -> None:
    with pytest.raises(ProtocolError, match=r"is 'run1', not 'run2'|not 'an older one'"):
        greet(server, **expect)


def test_a_wrong_token_is_refused(server: ModelServer) -> None:
    with pytest.raises(RemoteError, match="the token is not this run's"):
        greet(server, token="another")


def test_clients_are_counted(server: ModelServer) -> None:
    first = ModelClient("127.0.0.1", server.port, TOKEN, "s", 5)
    assert greet(server)["clients"] == 1
    first.close()


def listening(token: str = TOKEN) -> ModelListener:
    return ModelListener("127.0.0.1", 0, token)


def test_a_simulator_that_listens_takes_models_of_its_run_alone(server: ModelServer) -> None:
    listener, heard = listening(), list[str]()

    def stranger() -> None:
        with connect("127.0.0.1", listener.port, 5) as connection:
            try:
                connection.ask({"type": "join", "protocol": PROTOCOL, "token": "no"}, "ok")
            except RemoteError as error:
                heard.append(str(error))
        server.join("127.0.0.1", listener.port)

    thread = threading.Thread(target=stranger)
    thread.start()
    connection, host, port = listener.accept(10, 5, lambda: None)
    client = ModelClient(host, port, TOKEN, "s", 5, expect={"run": "run1"}, connection=connection)
    assert client.hello["server"] == "worker1"
    client.close()
    thread.join(10)
    assert len(heard) == 1 and "the token is not this run's" in heard[0]
    listener.close()


def test_nobody_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    listener, ticks = listening(), list[int]()
    with pytest.raises(RollpoolError, match="none came within 0 s"):
        listener.accept(0.05, 5, lambda: ticks.append(1))
    assert ticks
    listener.close()


def turned_away(says: bytes, match: str) -> dict[str, Any] | None:
    """Who says this to a listener is turned away, and that is said; what it hears, if anything."""
    listener, heard = listening(), list[dict[str, Any]]()

    def stranger() -> None:
        with connect("127.0.0.1", listener.port, 5) as connection:
            connection.sock.sendall(says)
            with contextlib.suppress(ProtocolError):  # it may hear nothing
                heard.append(connection.receive())

    thread = threading.Thread(target=stranger)
    thread.start()
    with pytest.raises(RollpoolError, match=match):
        listener.accept(1, 5, lambda: None)
    thread.join(10)
    listener.close()
    return heard[0] if heard else None


def test_who_was_turned_away_is_said() -> None:
    turned_away(b"GET / HTTP/1.1\r\n\r\n", r"127\.0\.0\.1 was turned away")


def test_a_model_of_another_version_is_told() -> None:
    says = (60).to_bytes(4, "big") + b"RPB3".ljust(60)
    heard = turned_away(says, r"turned away: .*RPB3.*RPB4")
    assert heard and heard["type"] == "error" and "RPB3" in heard["message"]


def test_without_a_token_only_loopback() -> None:
    with pytest.raises(RollpoolError, match="no token was given"):
        ModelListener("0.0.0.0", 0, "")
    with pytest.raises(RollpoolError, match="no token was given"):
        ModelServer(policy_of(), Settings(policy_dir="p", host="0.0.0.0"))
    ModelListener("127.0.0.1", 0, "").close()
