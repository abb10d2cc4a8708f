"""Length-prefixed frames on a stream socket.

A frame is a 4-byte big-endian length and that many bytes. Promises: reads are exact, a frame is
never larger than the caller's limit, no call lasts longer than its deadline, and the payload is
received into one block of memory, without a copy on the way.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Sequence

import numpy as np

from harness.wire.errors import ConnectionLost, DeadlinePassed, ProtocolError

#: No message of ours is larger: three 4K pictures and then some.
FRAME_LIMIT = 256 * 1024 * 1024
_LENGTH = struct.Struct(">I")
#: Arrays start on such a boundary of the frame, frames on one of the stream, and memory to receive
#: into lies in the same way: between addresses that differ in their last bits the kernel's copies
#: take up to four times as long.
ALIGNMENT = 64
_VECTORS_A_CALL = 512  # the kernel takes 1024 at most (IOV_MAX)
_REUSE_LIMIT = 64 * 1024 * 1024
_NOTHING = memoryview(b"")
#: Bytes asked for when a frame's length is not known yet: a reply, or what comes before pictures.
#: More would drive out of the processor's nearest cache what reads them.
_AT_ONCE = 8 * 1024
#: The kernel is told of a wait of so long, over and over where it takes longer: to tell it anew
#: before each call would take a system call.
_TICK_S = 10.0


class Deadline:
    """A point in monotonic time, and what is awaited until then."""

    def __init__(self, seconds: float, waiting_for: str) -> None:
        self.end = time.monotonic() + seconds
        self.seconds, self.waiting_for = seconds, waiting_for

    def remaining(self) -> float:
        """Seconds left; raises DeadlinePassed instead of returning zero or less."""
        left = self.end - time.monotonic()
        if left > 0:
            return left
        raise DeadlinePassed(
            self.waiting_for,
            f"nothing complete within {self.seconds:g} s",
            "look at the peer's log: it hangs, or needs a longer deadline",
        )

    def bound(self, sock: socket.socket) -> None:
        """The next call on ``sock`` waits until then, or for a tick. Raises DeadlinePassed."""
        wait_s = min(self.remaining(), _TICK_S)
        if sock.gettimeout() != wait_s:
            sock.settimeout(wait_s)


def padding(end: int) -> int:
    """Bytes from ``end`` in a payload to the next boundary of its frame."""
    return -(_LENGTH.size + end) % ALIGNMENT


class Memory:
    """The block frames are received into: fresh pages cost more than the copy they hold.

    A block is used again only when nothing refers to it any more, neither the caller nor an
    array, so views handed out stay valid for as long as anyone holds them.
    """

    def __init__(self) -> None:
        self._block, self._start = np.empty(0, np.uint8), 0
        self._unshared = sys.getrefcount(self._block)

    def at_least(self, size: int) -> memoryview:
        """A block of ``size`` bytes or more, on a boundary."""
        shared = sys.getrefcount(self._block) > self._unshared
        if shared or len(self._block) < size + ALIGNMENT:
            self._block = np.empty(size + ALIGNMENT, np.uint8)
            self._start = -self._block.ctypes.data % ALIGNMENT
        block = self._block
        if size > _REUSE_LIMIT:
            self._block = np.empty(0, np.uint8)
        return block.data[self._start :]

    def payload(self, size: int) -> memoryview:
        """Memory for a payload, lying as it does within its frame."""
        return self.at_least(_LENGTH.size + size)[_LENGTH.size :][:size]


def send_frame(sock: socket.socket, parts: Sequence[memoryview], deadline: Deadline) -> None:
    """Send ``parts`` as one frame, without joining them first."""
    size = sum(map(len, parts))
    if size > FRAME_LIMIT:
        raise _too_large(size, FRAME_LIMIT)
    pending, left = [memoryview(_LENGTH.pack(size)), *parts], _LENGTH.size + size
    while True:
        deadline.bound(sock)
        try:
            sent = sock.sendmsg(pending[:_VECTORS_A_CALL])
        except OSError as error:
            if _is_tick(error):
                continue
            raise _lost(deadline.waiting_for, str(error)) from error
        left -= sent
        if not left:
            return
        pending = _after(pending, sent)


class Inbox:
    """The frames that come from ``sock``, one after the other; the last one may be on its way: its
    payload is there from the start, and filled as far as somebody has asked for, or farther."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._memory = sock, Memory()
        self._early = b""  # of the next frame: it came with the end of the last one
        self._payload = _NOTHING
        self._got, self._deadline = 0, Deadline(0, "")

    def whole(self, limit: int, first: Deadline, rest_s: float | None = None) -> memoryview:
        """The payload of the next frame, once all of it has arrived; else as ``frame``."""
        payload = self.frame(limit, first, rest_s)
        self.rest()
        return payload

    def frame(self, limit: int, first: Deadline, rest_s: float | None = None) -> memoryview:
        """The payload of the next frame, once its length has arrived.

        ``first`` bounds the wait for that, and for the whole of it where ``rest_s`` is not given;
        else so many seconds from then on do: a long pause between frames is normal, one within a
        frame is not.
        """
        memory, got = self._memory.at_least(_AT_ONCE), len(self._early)
        memory[:got] = self._early
        while got < _LENGTH.size:
            got += _receive(self._sock, memory[got:_AT_ONCE], first)
        (size,) = _LENGTH.unpack_from(memory)
        if size > limit:
            raise _too_large(size, limit)
        end = _LENGTH.size + size
        self._early = bytes(memory[end:got]) if got > end else b""
        if end > len(memory):
            begun, memory = memory, self._memory.at_least(end)
            memory[:got] = begun[:got]
        self._payload, self._got = memory[_LENGTH.size : end], got - _LENGTH.size
        if got < end:
            self._deadline = first if rest_s is None else Deadline(rest_s, first.waiting_for)
        return self._payload

    def need(self, size: int) -> None:
        """Wait until the first ``size`` bytes of the payload are there."""
        while self._got < size:
            self._got += _receive(self._sock, self._payload[self._got :], self._deadline)

    def rest(self) -> None:
        """Wait until all of it is there, and forget it: a large one may be freed after use."""
        self.need(len(self._payload))
        self._payload = _NOTHING


def _receive(sock: socket.socket, into: memoryview, deadline: Deadline) -> int:
    """How many bytes came; none is no end, but a tick."""
    deadline.bound(sock)
    try:
        count = sock.recv_into(into)
    except OSError as error:
        if _is_tick(error):
            return 0
        raise _lost(deadline.waiting_for, str(error)) from error
    if count == 0:
        raise _lost(deadline.waiting_for, "the peer closed the connection")
    return count


def _is_tick(error: OSError) -> bool:
    """Whether only the kernel's wait is over; a network that was given up has a number."""
    return isinstance(error, TimeoutError) and error.errno is None


def _after(parts: list[memoryview], sent: int) -> list[memoryview]:
    """What is left of ``parts`` once their first ``sent`` bytes are gone."""
    for index, part in enumerate(parts):
        if sent < len(part):
            return [part[sent:], *parts[index + 1 :]]
        sent -= len(part)
    return []


def _lost(waiting_for: str, found: str) -> ConnectionLost:
    return ConnectionLost(waiting_for, found, "look at the peer's log: it may have died")


def _too_large(size: int, limit: int) -> ProtocolError:
    return ProtocolError(
        "a frame within the size limit",
        f"{size} bytes, the limit is {limit}",
        "check that both sides speak this wire and agree on what is sent",
    )
