"""Whether one more episode fits in before the job ends.

Promises: never a verdict without a time limit, or before an episode was measured. An episode is
expected to take as long as all but the slowest tenth of those measured: one that would not end is
left to others, and a rare slow one does not send workers home half an hour early. What was begun
in vain costs its time and nothing else: the worker is told to stop, and gives it back.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable

#: To write the row, close processes and give the lease back.
MARGIN_S = 5.0


class JobEnd:
    """The end of the job that this process runs in.

    Args:
        left_s: seconds until then; None where there is no end.
        clock: monotonic seconds.
    """

    def __init__(self, left_s: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._end = None if left_s is None else clock() + left_s
        self._clock = clock
        self._measured: list[float] = []

    @property
    def limited(self) -> bool:
        """Whether there is an end."""
        return self._end is not None

    def measured(self, seconds: float) -> None:
        """An episode took so long."""
        bisect.insort(self._measured, seconds)

    @property
    def expected_s(self) -> float | None:
        """How long the next episode may take; None as long as none was measured."""
        count = len(self._measured)
        return self._measured[(9 * count + 9) // 10 - 1] if count else None

    def verdict(self) -> str | None:
        """Why no further episode should be begun, if so."""
        expected = self.expected_s
        if self._end is None or expected is None:
            return None
        left = self._end - self._clock()
        if left >= expected + MARGIN_S:
            return None
        return (
            f"the job ends in {max(0.0, left):.0f} s, and an episode takes up to {expected:.0f} s"
        )
