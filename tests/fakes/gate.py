"""A gate in the way of the point simulator's episodes, so that a test acts in the middle of them.

While it is closed, an episode waits in its first step, unless its seed is one of the first that
pass. So what a worker has begun it is still at, and the run is not over, however slow or quick the
machine is; and there is a row, since whoever begins a cell begins with its first seed. A step that
waits is no progress: STALL_TIMEOUT goes on meanwhile.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

#: Longer than any test waits for anything. A simulator that a test has forgotten raises then.
DEADLINE_S = 600.0


class Gate:
    """A file that tests and simulators share; simulators find it by ``POINTSIM_GATE``."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def close(self, passing: int = 1) -> None:
        """From now on episodes of greater seeds than ``passing`` wait."""
        new = self._file.with_name(f"{self._file.name}.new")
        new.write_text(str(passing))
        os.replace(new, self._file)

    def open(self) -> None:
        """Let them go on. Harmless where it is open."""
        self._file.unlink(missing_ok=True)

    def holds(self, seed: int) -> bool:
        """Whether an episode of that seed has to wait."""
        try:
            return seed > int(self._file.read_text())
        except FileNotFoundError:
            return False

    def wait(self, seed: int) -> None:
        """Until an episode of that seed may go on. Raises ``TimeoutError``."""
        end = time.monotonic() + DEADLINE_S
        while self.holds(seed):
            if time.monotonic() > end:
                raise TimeoutError(f"{self._file} is closed for {DEADLINE_S:.0f} s")
            time.sleep(0.01)
