"""JSON lines over an inherited socket: how the worker and its children talk.

A channel is not stdout, which simulators print to. Promises: a message is whole or it does not
arrive; every wait has a deadline; when the other end is gone, both directions say so at once.
Not promised: concurrency (one thread speaks, and one listens).
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Mapping
from typing import Any

#: A longer line is garbage: a seal of a whole bank with large reset objects stays far below.
MAX_LINE = 64 * 2**20
#: A peer that does not take a message for this long is as good as gone.
SEND_DEADLINE_S = 60.0


class ChannelClosed(Exception):
    """The other end is gone, or sent something that is not a message."""


class Channel:
    """One end of the socket. Messages are JSON objects."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(SEND_DEADLINE_S)
        self._sock = sock
        self._pending = bytearray()

    @classmethod
    def inherited(cls, descriptor: int) -> Channel:
        """The end that a parent passed on as ``--channel FD``; not passed on any further."""
        sock = socket.socket(fileno=descriptor)
        sock.set_inheritable(False)
        return cls(sock)

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(self, message: Mapping[str, Any]) -> None:
        """Raises ChannelClosed when the other end is gone or does not listen."""
        try:
            self._sock.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise ChannelClosed(f"could not send: {error}") from error

    def receive(self, timeout_s: float | None) -> dict[str, Any] | None:
        """The next message; None when there is none within ``timeout_s`` (None: wait for ever,
        for a child whose parent may have nothing to say). Raises ChannelClosed at the end."""
        if self._sock.fileno() < 0:
            raise ChannelClosed("this end is closed")
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0:
            searched = len(self._pending)
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._sock], [], [], left)[0]:
                return None
            self._pending += self._read()
            if len(self._pending) > MAX_LINE:
                raise ChannelClosed(f"a message longer than {MAX_LINE} bytes")
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return _parse(line)

    def close(self) -> None:
        self._sock.close()

    def _read(self) -> bytes:
        try:
            data = self._sock.recv(1 << 16)
        except OSError as error:
            raise ChannelClosed(f"could not receive: {error}") from error
        if not data:
            raise ChannelClosed("the other end closed")
        return data


def _parse(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError as error:
        raise ChannelClosed(f"not a JSON line: {line[:80]!r}") from error
    if not isinstance(message, dict):
        raise ChannelClosed(f"not a JSON object: {line[:80]!r}")
    return message
