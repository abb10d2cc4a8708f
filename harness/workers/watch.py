"""How an episode moves, and when that is too slow.

Promises: it is a fault to make no progress for ``STALL_TIMEOUT``, and not to be over within
``PER_TASK_TIMEOUT``; time in which the whole job stood still is neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.episodes.episode import error_result
from harness.foundations.settings import Settings

#: A longer gap between two looks counts no more than this: then the whole job stood still
#: (suspended by SLURM, say), the simulator with it.
SUSPENDED_S = 30.0


class Watch:
    """Of one episode, from now on.

    Args:
        clock: monotonic seconds.

    Attributes:
        phase, steps: where the episode is, by its last progress.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._stall_s, self._limit_s = settings["STALL_TIMEOUT"], settings["PER_TASK_TIMEOUT"]
        self._clock = clock
        self._began = self._looked = clock()
        self._running_s = self._moved = 0.0
        self.phase, self.steps = "reset", 0

    def moved(self, progress: dict[str, Any]) -> None:
        """It has: the simulator's ``progress`` message."""
        self._moved = self._running()
        self.phase, self.steps = progress["phase"], progress["step"]

    def fault(self) -> tuple[str, str] | None:
        """``(kind, message)`` when the episode must end now."""
        now, where = self._running(), f"in phase {self.phase!r} after {self.steps} steps"
        if now - self._moved > self._stall_s:
            return "stall", f"no progress for STALL_TIMEOUT={self._stall_s:g} s, {where}"
        if now > self._limit_s:
            return "timeout", f"not over within PER_TASK_TIMEOUT={self._limit_s:g} s, {where}"
        return None

    def error(self, kind: str, message: str) -> dict[str, Any]:
        """The result of the episode, which ended with a process: nobody knows its parts."""
        wall_s = self._clock() - self._began
        took = {"wall_s": wall_s, "profile": {"failed": wall_s}}
        return {**error_result(kind, message, ""), "steps": self.steps, **took}

    def _running(self) -> float:
        """Seconds since the episode began, without those in which the job was suspended."""
        now = self._clock()
        self._running_s += min(now - self._looked, SUSPENDED_S)
        self._looked = now
        return self._running_s
