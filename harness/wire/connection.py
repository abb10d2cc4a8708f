"""One peer of a conversation: whole messages in, whole messages out, each within its deadline.

A connection serves one thread at a time. After any error but ``RemoteError`` it is of no further
use and must be closed.
"""

from __future__ import annotations

import contextlib
import socket
import time
from types import TracebackType
from typing import Any

from harness.wire import binary, classic
from harness.wire.arrays import malformed
from harness.wire.errors import ConnectionLost, RemoteError
from harness.wire.frames import FRAME_LIMIT, Deadline, Inbox, send_frame

_RETRY_S = 0.2


class Connection:
    """Messages over ``sock``, which it owns from now on.

    Args:
        sock: a connected stream socket.
        deadline_s: the longest any send, or any receive once its frame has begun, may take.
        codec: what requests are sent in; replies go out in the codec of the last request.
    """

    def __init__(self, sock: socket.socket, deadline_s: float, codec: str = "binary") -> None:
        self.sock, self.deadline_s, self.codec = sock, deadline_s, codec
        self.limit = FRAME_LIMIT
        self._inbox = Inbox(sock)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            prepare(sock)

    def send(self, message: dict[str, Any]) -> None:
        """Send a request (``type`` hello, reset, infer, close)."""
        request = binary.encode if self.codec == "binary" else classic.encode_request
        self._send(request(message), message["type"])

    def reply(self, message: dict[str, Any]) -> None:
        """Answer the request received last."""
        answer = binary.encode if self.codec == "binary" else classic.encode_reply
        self._send(answer(message), "reply")

    def receive(self, idle_s: float | None = None) -> dict[str, Any]:
        """The next message; ``idle_s`` (else ``deadline_s``) bounds the wait for it to begin."""
        wait = self.deadline_s if idle_s is None else idle_s
        first = Deadline(wait, "receive a message")
        payload = self._inbox.frame(self.limit, first, self.deadline_s)
        self._inbox.need(min(1, len(payload)))
        try:
            if payload[:1].tobytes() == b"R":
                self.codec, message = "binary", binary.decode(payload, self._inbox.need)
            else:
                self._inbox.rest()
                self.codec, message = "classic", classic.decode(payload)
        finally:
            self._inbox.rest()  # what makes no sense has come, too, before it is answered
        if not isinstance(message.get("type"), str):
            raise malformed("a message without a type")
        return message

    def ask(self, message: dict[str, Any], expect: str) -> dict[str, Any]:
        """Send a request and return its reply, of type ``expect``.

        Raises:
            RemoteError: the peer answered ``error``.
            ProtocolError: it answered nothing in time, or something else.
        """
        self.send(message)
        reply = self.receive()
        if reply["type"] == "error":
            asked = f"ask for {message['type']}"
            kind, text = str(reply.get("kind")), str(reply.get("message"))
            raise RemoteError(asked, kind, text, str(reply.get("traceback") or ""))
        if reply["type"] != expect:
            raise malformed(f"reply {reply['type'][:80]!r} to {message['type']!r}")
        return reply

    def gone(self) -> bool:
        """Whether the peer has closed, as far as can be told without waiting."""
        try:
            self.sock.settimeout(0)
            return self.sock.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, parts: list[memoryview], what: str) -> None:
        send_frame(self.sock, parts, Deadline(self.deadline_s, f"send {what}"))


def prepare(sock: socket.socket) -> None:
    """Set a TCP socket up for frames that are written whole and asked for one at a time."""
    # Nagle's wait for more could only delay them.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    with contextlib.suppress(AttributeError, OSError):  # another system, or the peer has left
        if sock.getsockname()[0] == sock.getpeername()[0]:
            # Within one machine there is no congestion, and nothing to pace. By what they take for
            # one when a process had to wait, BBR and at times CUBIC stay at half the speed.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def connect(
    host: str, port: int, deadline_s: float, codec: str = "binary", connect_s: float | None = None
) -> Connection:
    """A connection to ``host:port``; a refused attempt is repeated for ``connect_s`` (else for
    ``deadline_s``)."""
    patience = deadline_s if connect_s is None else connect_s
    end = time.monotonic() + patience
    while True:
        try:
            left = max(end - time.monotonic(), 0.001)
            sock = socket.create_connection((host, port), timeout=left)
            return Connection(sock, deadline_s, codec)
        except OSError as error:
            if time.monotonic() + _RETRY_S >= end or isinstance(error, socket.gaierror):
                raise ConnectionLost(
                    f"connect to {host}:{port}",
                    f"{error} for {patience:g} s",
                    "check that the server runs there, and its log",
                ) from error
            time.sleep(_RETRY_S)
