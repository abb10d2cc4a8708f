"""The classic wire as its own tools use it: call a method of the peer's model by name.

A request is ``{"cmd": method, "obs": argument}``: null for no argument, ``{"_args": [...]}`` for
several (RoboPRO's extension); the reply is ``{"res": ...}`` or ``{"error", "traceback"}``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.wire import classic
from harness.wire.arrays import malformed
from harness.wire.connection import Connection, connect
from harness.wire.errors import RemoteError
from harness.wire.frames import Deadline, Inbox, send_frame

_SEVERAL = "_args"


def packed(arguments: Sequence[Any]) -> Any:
    """What stands in ``obs`` for these arguments."""
    if len(arguments) > 1:
        return {_SEVERAL: list(arguments)}
    return arguments[0] if arguments else None


def unpacked(obs: Any) -> list[Any]:
    """The arguments that stand in ``obs``."""
    if obs is None:
        return []
    if isinstance(obs, dict) and set(obs) == {_SEVERAL} and isinstance(obs[_SEVERAL], list):
        return obs[_SEVERAL]
    return [obs]


class ClassicCalls:
    """A connection to a classic policy server; one thread at a time.

    Args:
        deadline_s: the longest to wait for one answer, inference included.
        connect_s: how long a server that is not there yet is tried again.
    """

    def __init__(self, host: str, port: int, deadline_s: float, connect_s: float) -> None:
        self._where = f"{host}:{port}"
        self._connection: Connection = connect(host, port, deadline_s, "classic", connect_s)
        self._inbox = Inbox(self._connection.sock)

    def call(self, method: str, *arguments: Any) -> Any:
        """What the peer's ``method(*arguments)`` returned, arrays read-only.

        Raises:
            RemoteError: it raised; with the peer's own words and traceback.
            ProtocolError: it sent no answer in time, or none that makes sense. After either, close:
                a classic server leaves after an error, and a late answer would meet the next call.
        """
        deadline = Deadline(self._connection.deadline_s, f"{method} of {self._where}")
        request = classic.dump({"cmd": method, "obs": packed(arguments)})
        send_frame(self._connection.sock, request, deadline)
        reply = classic.load(self._inbox.whole(self._connection.limit, deadline))
        if isinstance(reply, dict) and "error" in reply:
            trace = str(reply.get("traceback") or "")
            raise RemoteError(f"call {method}", "policy", str(reply["error"]), trace)
        if not isinstance(reply, dict) or "res" not in reply:
            raise malformed(f"a reply to {method!r} with neither 'res' nor 'error'")
        return reply["res"]

    def gone(self) -> bool:
        """Whether the server has closed the connection."""
        return self._connection.gone()

    def close(self) -> None:
        self._connection.close()
