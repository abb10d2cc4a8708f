"""What a process has started, in whatever group or session, and whether it outlives it.

Not promised: a process whose parent ended before it was asked for, which the kernel has given to
another one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

#: Where ``/proc/PID/stat`` has them, counted from the state.
_PARENT, _BEGAN = 1, 19
#: What was killed may take this long to be gone; how often it is looked for.
_KILLED_S, _LOOK_S = 2.0, 0.02


class Descendants:
    """The process ``ancestor`` and all that it has started so far, each with the moment it began:
    an identity that outlives the reuse of its id."""

    def __init__(self, ancestor: int) -> None:
        running = dict(_running())
        self._began = {pid: stat[_BEGAN] for pid, stat in running.items() if pid == ancestor}
        while more := {
            pid: stat[_BEGAN]
            for pid, stat in running.items()
            if pid not in self._began and int(stat[_PARENT]) in self._began
        }:
            self._began |= more

    def end(self) -> list[int]:
        """Kill those that still run a moment after they should have ended; returns their ids."""
        deadline = time.monotonic() + _KILLED_S
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left

    def _left(self) -> list[int]:
        return [pid for pid, stat in _running() if self._began.get(pid) == stat[_BEGAN]]


def _running() -> Iterator[tuple[int, list[str]]]:
    """Every process that is no zombie, with its ``/proc`` stat from the state on."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            stat = file.read_text().rpartition(")")[2].split()
            if stat[0] != "Z":
                yield int(file.parent.name), stat
