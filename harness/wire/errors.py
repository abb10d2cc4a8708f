"""What can go wrong on the wire; every one is a ``RollpoolError`` in plain words."""

from __future__ import annotations

from harness.errors import RollpoolError


class ProtocolError(RollpoolError):
    """The bytes, or the order they came in, are not what the two sides agreed on."""


class ConnectionLost(ProtocolError):
    """The peer closed the connection, or it broke."""


class DeadlinePassed(ProtocolError):
    """The peer was silent for longer than the caller was willing to wait."""


class RemoteError(RollpoolError):
    """The peer answered that it could not do what was asked.

    Attributes:
        kind: ``"policy"`` (the policy raised or returned nonsense) or ``"protocol"``.
        message: what the peer said, one line.
        traceback: the peer's traceback, or ``""``.
    """

    def __init__(self, asked: str, kind: str, message: str, traceback: str = "") -> None:
        super().__init__(asked, f"the peer answered {kind} error: {message}", "see the peer's log")
        self.kind, self.message, self.traceback = kind, message, traceback
