"""Where the time went: seconds by part, between two laps.

Each part is measured on its own, by its beginning and its end, and what lies between parts is
``other``: so a lap adds up to the time that passed, and ``other`` says how much of it nobody has
measured. Parts do not overlap: the caller begins none within another.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping

#: In the order in which they are shown: the worker's, the simulator's, and those of the round trip
#: of an observation.
PARTS = (
    "start", "idle", "claim", "write", "handover", "failed",
    "reset", "simulate", "expert", "render", "encode", "score", "report",
    "wire", "wait", "infer", "other",
)  # fmt: skip

OTHER = PARTS[-1]


class Stopwatch:
    """Runs from the start; one thread's.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.now = clock
        self._began = clock()
        self._parts: defaultdict[str, Part] = defaultdict(lambda: Part(clock))

    def part(self, name: str) -> Part:
        """A context; the time within it counts as ``name``."""
        return self._parts[name]

    def add(self, name: str, seconds: float) -> None:
        self._parts[name].seconds += seconds

    def take(self, lap: Mapping[str, float]) -> None:
        """A lap that somebody else ran within this one; its ``other`` is this one's, too."""
        for name, seconds in lap.items():
            if name != OTHER:
                self.add(name, seconds)

    def lap(self) -> dict[str, float]:
        """Seconds of each part since the last lap, to the microsecond, ``other`` included and what
        took none left out; the next lap begins."""
        now = self.now()
        passed, self._began = now - self._began, now
        found = {name: part.seconds for name, part in self._parts.items()}
        for part in self._parts.values():
            part.seconds = 0.0
        found[OTHER] = max(0.0, passed - sum(found.values()))
        rounded = {name: round(seconds, 6) for name, seconds in found.items()}
        return {name: seconds for name, seconds in rounded.items() if seconds}


class Part:
    """Used again and again: entering one in a tight loop has to cost next to nothing."""

    __slots__ = ("_began", "_clock", "seconds")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self.seconds = clock, 0.0

    def __enter__(self) -> None:
        self._began = self._clock()

    def __exit__(self, *error: object) -> None:
        self.seconds += self._clock() - self._began
