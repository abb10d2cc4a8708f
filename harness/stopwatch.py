"""Where the time went: seconds by part, between two laps.

Each part is measured on its own, by its beginning and its end, and what lies between parts is
``other``: so a lap adds up to the time that passed, and ``other`` says how much of it nobody has
measured. Parts do not overlap: the caller begins none within another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType

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
        self._clock = clock
        self._began = clock()
        self._seconds: dict[str, float] = {}

    def part(self, name: str) -> _Part:
        """A context; the time within it counts as ``name``."""
        return _Part(self, name)

    def add(self, name: str, seconds: float) -> None:
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def take(self, lap: Mapping[str, float]) -> None:
        """A lap that somebody else ran within this one; its ``other`` is this one's, too."""
        for name, seconds in lap.items():
            if name != OTHER:
                self.add(name, seconds)

    def now(self) -> float:
        return self._clock()

    def lap(self) -> dict[str, float]:
        """Seconds of each part since the last lap, to the microsecond, ``other`` included and what
        took none left out; the next lap begins."""
        now = self._clock()
        found, self._seconds = self._seconds, {}
        passed, self._began = now - self._began, now
        found[OTHER] = max(0.0, passed - sum(found.values()))
        rounded = {name: round(seconds, 6) for name, seconds in found.items()}
        return {name: seconds for name, seconds in rounded.items() if seconds}


class _Part:
    __slots__ = ("_began", "_name", "_watch")

    def __init__(self, watch: Stopwatch, name: str) -> None:
        self._watch, self._name = watch, name

    def __enter__(self) -> None:
        self._began = self._watch.now()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.add(self._name, self._watch.now() - self._began)
