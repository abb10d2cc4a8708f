"""The workers of one machine: start them, wait for them, say how each ended.

Promises: the workers end with this process, whatever ends it; a signal to it is passed on, so that
they give their leases back, and they are killed after a grace time.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType

from harness import children
from harness.errors import EXIT_OK
from harness.run import Run

#: For a worker to abandon its episode and give its lease back.
GRACE_S = 30.0
_POLL_S = 0.1


def run_pool(run: Run, workers: int) -> int:
    """Run ``workers`` lease workers until all have ended; returns the highest exit code."""
    pool = Pool(run, workers)
    before = {n: signal.signal(n, pool.stop) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        return pool.wait()
    finally:
        pool.kill()
        for number, handler in before.items():
            signal.signal(number, handler)


class Pool:
    """Worker processes of this machine, started at once."""

    def __init__(self, run: Run, workers: int) -> None:
        self._stopping: float | None = None
        self._log = run.paths.logs / f"pool-{os.getpid()}.log"
        argv = [sys.executable, "-m", "harness.cli", "work", run.paths.name]
        env = {**children.environment(), **run.settings.exports()}
        self._workers = [children.spawn(argv, self._log, env) for _ in range(workers)]

    def wait(self) -> int:
        """Until all have ended. Names those that ended badly on stderr."""
        while not all(children.exited(worker) for worker in self._workers):
            if self._stopping and time.monotonic() - self._stopping > GRACE_S:
                break
            time.sleep(_POLL_S)
        codes = [children.end(worker, grace_s=0) for worker in self._workers]
        self._report(codes)
        return max((code if code >= 0 else 128 - code for code in codes), default=EXIT_OK)

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Pass a signal on; the second one kills."""
        if self._stopping is not None:
            self.kill()
            return
        self._stopping = time.monotonic()
        for worker in self._workers:
            if not children.exited(worker):
                os.kill(worker.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End what still lives."""
        for worker in self._workers:
            children.end(worker, grace_s=0)

    def _report(self, codes: Sequence[int]) -> None:
        bad = [code for code in codes if code]
        if bad:
            words = children.last_lines(self._log) or ["they said nothing"]
            print(
                f"rollpool: {len(bad)} of {len(codes)} workers ended with exit codes {bad}: "
                f"{words[-1]}; see {self._log.parent}",
                file=sys.stderr,
            )
