"""Reversed roles: a simulator listens, and the model comes to it.

Promises: whoever does not know the run's token is turned away and learns nothing, and waiting goes
on; without a token it listens on loopback alone; every wait has a deadline. The connection that
comes of it carries the same conversation as ever, with the simulator asking.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from harness.errors import RollpoolError
from harness.inference.greeting import STRANGER_LIMIT, knows, refusal
from harness.wire import Connection, ConnectionLost, DeadlinePassed, ProtocolError

#: For a caller to say who it is.
GREETING_DEADLINE_S = 10.0
_TICK_S = 1.0


class NobodyCame(RollpoolError):
    """No model of this run within the deadline; the words say who was turned away."""


class ModelListener:
    """Listens from the start, on any free port where ``port`` is 0. Raises ``RollpoolError``."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._token = token
        try:
            self._listener = socket.create_server((host, port))
        except OSError as error:
            raise RollpoolError(
                f"listen on {host}:{port}", str(error), "correct SIM_SERVER_HOST, SIM_SERVER_PORT"
            ) from error
        self.host, self.port = self._listener.getsockname()[:2]
        if not token and not self.host.startswith("127."):
            self._listener.close()
            raise RollpoolError(
                f"listen on {host}:{port}", "no token was given", "give one, or use 127.0.0.1"
            )

    def accept(
        self, deadline_s: float, answer_s: float, waiting: Callable[[], None]
    ) -> tuple[Connection, str, int]:
        """A model of this run, and from where it came.

        Args:
            answer_s: the deadline of the connection's answers from then on.
            waiting: called about once a second.

        Raises:
            NobodyCame: none did in time.
        """
        end, turned_away = time.monotonic() + deadline_s, ""
        while (left := end - time.monotonic()) > 0:
            self._listener.settimeout(min(left, _TICK_S))
            waiting()
            try:
                sock, (host, port, *_) = self._listener.accept()
            except TimeoutError:
                continue
            connection = Connection(sock, GREETING_DEADLINE_S)
            try:
                self._greet(connection)
            except ProtocolError as error:
                turned_away = f"; {host} was turned away: {error.found}"
                connection.close()
                continue
            connection.deadline_s = answer_s
            return connection, host, port
        raise NobodyCame(
            f"a model for {self.host}:{self.port}",
            f"none came within {deadline_s:.0f} s{turned_away}",
            "start one: MODEL_AS_CLIENT=1 rollpool serve RUN",
        )

    def close(self) -> None:
        self._listener.close()

    def _greet(self, connection: Connection) -> None:
        limit, connection.limit = connection.limit, STRANGER_LIMIT
        try:
            message = connection.receive()
            if message["type"] != "join" or not knows(self._token, message):
                raise ProtocolError(
                    "join", "the token is not this run's", "check the host, port and run"
                )
        except (ConnectionLost, DeadlinePassed):
            raise
        except ProtocolError as error:
            connection.reply(refusal(error))
            raise
        connection.reply({"type": "ok"})
        connection.limit = limit
