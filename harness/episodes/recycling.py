"""When a simulator's process has done enough: what its libraries leak ends with it.

Asked between episodes alone. A limit that is not given is never reached.
"""

from __future__ import annotations

import os

_MB = 2**20


class Recycling:
    """The limits of one process.

    Args:
        episodes: played in it.
        mb: of memory that it holds (resident, without processes that it started).
    """

    def __init__(self, episodes: int | None = None, mb: int | None = None) -> None:
        self._episodes, self._mb = episodes, mb
        self._played = 0

    def due(self) -> str:
        """After an episode: why the process should end; "" where it should not."""
        self._played += 1
        if self._episodes is not None and self._played >= self._episodes:
            return f"it has played {self._played} episodes"
        if self._mb is not None and (held := resident_mb()) >= self._mb:
            return f"it holds {held:.0f} MB"
        return ""


def resident_mb() -> float:
    """Memory of this process, as Linux counts it."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        pages = int(statm.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MB
