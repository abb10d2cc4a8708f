"""Length-prefixed frames on a stream socket.

A frame is a 4-byte big-endian length and that many bytes. Promises: reads are exact, a frame is
never larger than the caller's limit, no call lasts longer than its deadline, and the payload is
received into one block of memory, without a copy on the way.
"""

from __future__ import annotations

import math
import os
import re
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


def _bytes_a_wake(system: str, release: str) -> int:
    """Of a large frame so many bytes are awaited at a time: to wake for each segment takes a fifth
    longer. Before 4.18 Linux does not make room for so much, and other systems may not."""
    numbers = re.match(r"(\d+)\.(\d+)", release)
    able = system == "Linux" and numbers and tuple(map(int, numbers.groups())) >= (4, 18)
    return 256 * 1024 if able else 1


_BYTES_A_WAKE = _bytes_a_wake(os.uname().sysname, os.uname().release)
#: Where so many do not come in this time, any are welcome: a small window, or a kernel that is
#: short of memory, may never hold so many, and before 5.14 it does not say so.
_PATIENCE_S = 0.05


class Deadline:
    """A point in monotonic time, and what is awaited until then."""

    def __init__(self, seconds: float, waiting_for: str) -> None:
        self.end = time.monotonic() + seconds
        self.seconds, self.waiting_for = seconds, waiting_for

    def remaining(self) -> float:
        """Seconds left; raises DeadlinePassed instead of returning zero or less."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise self.passed()
        return left

    def passed(self) -> DeadlinePassed:
        return DeadlinePassed(
            self.waiting_for,
            f"nothing complete within {self.seconds:g} s",
            "look at the peer's log: it hangs, or needs a longer deadline",
        )


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

    def take(self, size: int) -> np.ndarray:
        """``(size,)`` uint8 for a payload: a frame's length before it would be on a boundary."""
        shared = sys.getrefcount(self._block) > self._unshared
        if shared or len(self._block) < size + ALIGNMENT:
            self._block = np.empty(size + ALIGNMENT, np.uint8)
            self._start = (_LENGTH.size - self._block.ctypes.data) % ALIGNMENT
        block = self._block
        if size > _REUSE_LIMIT:
            self._block = np.empty(0, np.uint8)
        return block[self._start : self._start + size]


def send_frame(sock: socket.socket, parts: Sequence[memoryview], deadline: Deadline) -> None:
    """Send ``parts`` as one frame, without joining them first."""
    size = sum(len(part) for part in parts)
    if size > FRAME_LIMIT:
        raise _too_large(size, FRAME_LIMIT)
    pending = [memoryview(_LENGTH.pack(size)), *parts]
    while pending:
        try:
            sock.settimeout(deadline.remaining())
            sent = sock.sendmsg(pending[:_VECTORS_A_CALL])
        except TimeoutError:
            raise deadline.passed() from None
        except OSError as error:
            raise _lost(deadline.waiting_for, str(error)) from error
        pending = _after(pending, sent)


class Frame:
    """A frame that is on its way: its payload is ``(n,)`` uint8 from the start, and filled as far
    as somebody has asked for, or farther."""

    def __init__(self, sock: socket.socket, payload: np.ndarray, deadline: Deadline) -> None:
        self.payload = payload
        self._sock, self._deadline, self._got = sock, deadline, 0
        self._piece = _BYTES_A_WAKE
        self._awaited = 1  # bytes to be there before the kernel says that any are

    def need(self, size: int) -> None:
        """Wait until its first ``size`` bytes are there."""
        while self._got < size:
            self._await(min(size - self._got, self._piece))
            patience_s = _PATIENCE_S if self._awaited > 1 else math.inf
            into = self.payload.data[self._got :]
            count = _receive(self._sock, into, self._deadline, patience_s)
            if not count:
                self._piece = 1
            self._got += count
        self._await(1)

    def _await(self, count: int) -> None:
        if count == self._awaited:
            return
        try:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
        except OSError as error:
            raise _lost(self._deadline.waiting_for, str(error)) from error
        self._awaited = count

    def whole(self) -> np.ndarray:
        """The payload, once all of it is there."""
        self.need(len(self.payload))
        return self.payload


def begin_frame(
    sock: socket.socket,
    memory: Memory,
    limit: int,
    first: Deadline,
    rest_s: float,
) -> Frame:
    """The next frame, once its length has arrived.

    ``first`` bounds the wait for that, ``rest_s`` that for the whole of it afterwards: a long pause
    between frames is normal, one within a frame is not.
    """
    prefix, got = memoryview(bytearray(_LENGTH.size)), 0
    while got < len(prefix):
        got += _receive(sock, prefix[got:], first)
    (size,) = _LENGTH.unpack(prefix)
    if size > limit:
        raise _too_large(size, limit)
    return Frame(sock, memory.take(size), Deadline(rest_s, first.waiting_for))


def _receive(
    sock: socket.socket, into: memoryview, deadline: Deadline, patience_s: float = math.inf
) -> int:
    """How many bytes came: at least one, or none within ``patience_s``."""
    left = deadline.remaining()
    try:
        sock.settimeout(min(left, patience_s))
        count = sock.recv_into(into)
    except TimeoutError:
        if patience_s < left:
            return 0
        raise deadline.passed() from None
    except OSError as error:
        raise _lost(deadline.waiting_for, str(error)) from error
    if count == 0:
        raise _lost(deadline.waiting_for, "the peer closed the connection")
    return count


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
