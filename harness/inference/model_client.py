"""The simulator's end of the wire: ask a model server for chunks of actions.

Promises: a server of another run, or one that speaks another protocol, is refused at once; every
request ends within its deadline; an answer that is an error raises ``RemoteError``, whose ``kind``
tells the policy's fault from the wire's. One thread at a time.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from harness.simulators.contract import Episode, Observation
from harness.wire import Connection, ProtocolError, connect

PROTOCOL = 1


class Served(NamedTuple):
    """What the server says of the seconds an answer took it."""

    infer_s: float = 0.0  # the policy itself
    wait_s: float = 0.0  # for its turn, or for others of its batch

    def of(self, trip_s: float) -> dict[str, float]:
        """The parts of a round trip: what the server does not account for is ``wire``."""
        wire_s = max(0.0, trip_s - self.infer_s - self.wait_s)
        return {"infer": self.infer_s, "wait": self.wait_s, "wire": wire_s}


class ModelClient:
    """A connection to the model server at ``host:port``.

    Args:
        token: the run's shared secret, "" where the server asks for none.
        session: the name of the first session; assign another before the ``reset`` that begins it.
        deadline_s: the longest to connect, and to wait for any one answer, inference included.
        codec: "binary", or "classic" for a peer that speaks RoboTwin's JSON.
        expect: what its hello has to say, e.g. ``{"run": ..., "server": ...}``: on a port that was
            used again another run's server may listen.
        connect_s: the longest to connect, where that is less.
        connection: to a model that came by itself; ``host`` and ``port`` then say from where.

    Attributes:
        hello: what the server serves: ``protocol run server policy checkpoint settings_hash
            code_hash action_kind action_dim chunk needs cameras exclusive batches clients``.
    """

    def __init__(
        self,
        host: str,
        port: int,
        token: str,
        session: str,
        deadline_s: float,
        codec: str = "binary",
        *,
        expect: Mapping[str, Any] | None = None,
        connection: Connection | None = None,
        connect_s: float | None = None,
    ) -> None:
        self.session = session
        self._begun: str | None = None
        self._connection = connection or connect(host, port, deadline_s, codec, connect_s)
        client = f"{socket.gethostname()}-{os.getpid()}"
        greeting = {"type": "hello", "protocol": PROTOCOL, "token": token, "client": client}
        try:
            self.hello: dict[str, Any] = self._connection.ask(greeting, "hello")
            if self.hello.get("protocol") != PROTOCOL:
                raise _other_protocol(host, port, self.hello.get("protocol"))
            for name, value in (expect or {}).items():
                if self.hello.get(name) != value:
                    raise _another(host, port, name, self.hello.get(name), value)
        except BaseException:
            self._connection.close()
            raise

    def reset(self, episode: Episode) -> None:
        """Begin ``episode`` in ``session``; the session begun before it ends."""
        if self._begun not in (None, self.session):
            self._end()
        fields = asdict(episode)
        self._connection.ask({"type": "reset", "session": self.session, "episode": fields}, "ok")
        self._begun = self.session

    def infer(
        self,
        step: int,
        observation: Observation,
        last_action: np.ndarray | None,
        expert: np.ndarray | None,
    ) -> tuple[np.ndarray, Served]:
        """``((n, D) float32 read-only actions, what they took the server)``.

        Args:
            step: actions executed so far.
            last_action: the last of them, None before the first.
            expert: the privileged expert's chunk where the policy needs it.
        """
        seen = {
            "images": dict(observation.images),
            "proprio": observation.proprio,
            "state": dict(observation.state),
            "instruction": observation.instruction,
            "last_action": last_action,
            "expert": expert,
        }
        request = {"type": "infer", "session": self.session, "step": step, "observation": seen}
        reply = self._connection.ask(request, "actions")
        return reply["actions"], Served(float(reply["infer_s"]), float(reply.get("wait_s", 0.0)))

    def gone(self) -> bool:
        """Whether the server has closed the connection between two requests."""
        return self._connection.gone()

    def close(self) -> None:
        """End the connection, and with it the session: the server forgets both. Nothing is asked,
        since a server that hangs would not answer."""
        self._connection.close()

    def _end(self) -> None:
        self._connection.ask({"type": "close", "session": self._begun}, "ok")
        self._begun = None


def _other_protocol(host: str, port: int, found: Any) -> ProtocolError:
    return ProtocolError(
        f"model server at {host}:{port}",
        f"it speaks protocol {found!r}, this client {PROTOCOL}",
        "use the same version of the toolkit on both sides",
    )


def _another(host: str, port: int, name: str, found: Any, value: Any) -> ProtocolError:
    return ProtocolError(
        f"model server at {host}:{port}",
        f"its {name} is {found!r}, not {value!r}: it is another run's, or an older one",
        "start the run's own server anew, or correct host and port",
    )
