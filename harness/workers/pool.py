"""The workers of one machine: start them, wait for them, say how each ended.

Promises: the workers end with this process, whatever ends it; a signal to it is passed on, so that
they give their leases back, and they are killed after a grace time.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

from harness.errors import EXIT_LATER, EXIT_OK
from harness.leases.heartbeat import WorkerId
from harness.runs.run import Run
from harness.workers import children
from harness.workers.stopping import handled

#: For a worker to abandon its episode and give its lease back.
GRACE_S = 30.0
_POLL_S = 0.1


@dataclass(frozen=True)
class Slot:
    """The place of one worker: what to call it, and what it is given beside the run's settings."""

    name: str
    env: Mapping[str, str] = field(default_factory=dict)


def run_pool(run: Run, slots: Sequence[Slot], say: Callable[[str], None] | None = None) -> int:
    """Run a lease worker in each slot until all have ended; returns the highest exit code.

    Args:
        say: gets a line for each worker that ends; by default those that end badly are on stderr.
    """
    pool = Pool(run, slots)
    with handled(pool.stop):
        try:
            codes = pool.wait(say)
        finally:
            pool.kill()
    if say is None:
        pool.report(codes)
    return max(codes, default=EXIT_OK)


class Pool:
    """Worker processes of this machine, started at once: those of ``rollpool <command> RUN``."""

    def __init__(self, run: Run, slots: Sequence[Slot], command: str = "work") -> None:
        self._stopping: float | None = None
        self._slots, self._folder = slots, run.paths.logs
        # Nodes share the folder of logs: a name of one's own, so that no file has two writers.
        own = WorkerId.new()
        self._logs = [run.paths.log(own, f"pool{number}") for number in range(len(slots))]
        argv = children.module(sys.executable, "harness.cli", command, run.paths.name)
        env = {**children.environment(), **run.settings.exports()}
        self._workers = [
            children.spawn(argv, log, {**env, **slot.env})
            for slot, log in zip(slots, self._logs, strict=True)
        ]

    def wait(self, say: Callable[[str], None] | None = None) -> list[int]:
        """Until all have ended; their exit codes, 128 + n for one that signal n has ended."""
        codes: dict[int, int] = {}
        while len(codes) < len(self._workers):
            late = self._stopping and time.monotonic() - self._stopping > GRACE_S
            for number, worker in enumerate(self._workers):
                if number not in codes and (late or children.exited(worker)):
                    code = children.end(worker, grace_s=0)
                    codes[number] = code if code >= 0 else 128 - code
                    if say:
                        say(self._ended(number, codes[number]))
            time.sleep(_POLL_S)
        return [codes[number] for number in range(len(codes))]

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Pass a signal on. An impatient second ^C kills; a second TERM does not, since SLURM may
        send one to each process and a script pass on its own."""
        if self._stopping is not None:
            if number == signal.SIGINT:
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

    def report(self, codes: Sequence[int]) -> None:
        """Those that ended badly, with the last words of the first, on stderr."""
        bad = [number for number, code in enumerate(codes) if code]
        if bad and self._stopping is not None:
            print("rollpool: stopped; run the same command again to go on", file=sys.stderr)
            return
        if bad:
            words = children.last_lines(self._logs[bad[0]]) or ["it said nothing"]
            print(
                f"rollpool: {len(bad)} of {len(codes)} workers ended with exit codes "
                f"{[codes[number] for number in bad]}: {words[-1]}; see {self._folder}",
                file=sys.stderr,
            )

    def _ended(self, number: int, code: int) -> str:
        how = {EXIT_OK: "ended", EXIT_LATER: "ended for want of time"}.get(code, "ended badly")
        if self._stopping is not None and code in (128 + signal.SIGTERM, 128 + signal.SIGINT):
            how = "stopped"
        words = children.last_lines(self._logs[number]) if code else []
        said = f": {words[-1].removeprefix('rollpool: ')}" if words else ""
        return f"{self._slots[number].name} {how}, exit code {code}{said}"
