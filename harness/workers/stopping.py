"""SIGTERM and SIGINT, as the processes of a run take them.

Promises: a worker stops where it looks (``check``), or where the signal comes while it starts what
takes minutes (``at_once``); where a child has died, the signal that ended both is waited for, since
SLURM signals every process of a step, in any order.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

#: The errors that come of a process's end, and how long the signals of one step may lie apart.
_OF_A_DEATH, _TOGETHER_S = ("crash", "protocol"), 0.5
_LOOK_S = 0.01


class Stopped(BaseException):
    """A signal asked this worker to end."""


@contextlib.contextmanager
def handled(stop: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """``stop`` takes SIGTERM and SIGINT meanwhile."""
    before = {n: signal.signal(n, stop) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Stopping:
    """Whether a worker has been asked to end: ``number`` is the signal, None before."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._now = False

    def taken(self, number: int, frame: FrameType | None) -> None:
        """For ``handled``."""
        self.number = number
        if self._now:
            raise Stopped

    def check(self) -> None:
        """Raises ``Stopped`` if a signal has come."""
        if self.number is not None:
            raise Stopped

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """A signal raises ``Stopped`` here as it comes, or came before."""
        self._now = True
        try:
            self.check()
            yield
        finally:
            self._now = False

    def check_after(self, kind: str) -> None:
        """The same after an error of this kind: where it is of a process's end, the signal that
        ended it may come here a moment later."""
        end = time.monotonic() + (_TOGETHER_S if kind in _OF_A_DEATH else 0.0)
        while self.number is None and time.monotonic() < end:
            time.sleep(_LOOK_S)
        self.check()
