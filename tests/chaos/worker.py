"""A real lease worker around episodes of milliseconds, on which faults can be inflicted.

Everything is the product's own (``harness.workers.worker``) but the rig, whose episodes are known
before.

Signals disturb it from within, where nobody outside could: see ``SIGNALS``. Settings come from the
environment, as for any worker.
"""

from __future__ import annotations

import functools
import os
import random
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

#: What each signal does. SIGKILL, SIGSTOP and SIGCONT do what they always do.
SIGNALS = {
    "jump": signal.SIGUSR1,  # this process's wall clock jumps by up to a day, either way
    "hide": signal.SIGUSR2,  # a third of all names do not show in its listings for a while
    "lose": signal.SIGRTMIN,  # the answer to its next mkdir or create gets lost
    "freeze_at_row": signal.SIGRTMIN + 1,  # it stops between its last check and its next row
}


class Trouble:
    """What was inflicted and has not struck yet."""

    clock_s = 0.0
    hidden_until = 0.0
    lose_answer = freeze_at_row = False

    def signalled(self, number: int, frame: FrameType | None) -> None:
        if number == SIGNALS["jump"]:
            self.clock_s += random.uniform(-86400, 86400)
        elif number == SIGNALS["hide"]:
            self.hidden_until = time.monotonic() + random.uniform(0.2, 3.0)
        elif number == SIGNALS["lose"]:
            self.lose_answer = True
        else:
            self.freeze_at_row = True


TROUBLE = Trouble()
for _number in SIGNALS.values():  # before anything that takes time is imported
    signal.signal(_number, TROUBLE.signalled)

import harness.runs.run  # noqa: E402
import harness.workers.recorder  # noqa: E402
import harness.workers.worker  # noqa: E402
from harness.errors import RollpoolError  # noqa: E402
from harness.foundations.records import Row  # noqa: E402
from harness.foundations.settings import resolve  # noqa: E402
from harness.leases.filesystem import Filesystem  # noqa: E402
from harness.runs.population import Cell  # noqa: E402
from harness.runs.run import Run, open_run  # noqa: E402
from harness.simulators.contract import Episode  # noqa: E402
from tests.chaos.episodes import duration, result  # noqa: E402


class Rig:
    """Stands for model server and simulator."""

    def __init__(self, run: Run, worker: str) -> None:
        self._playing: dict[int, tuple[Episode, float]] = {}
        self._looks = 0

    def standing(self, seat: int) -> bool:
        return True

    prepare = standing

    def steps(self, seat: int) -> int:
        return self._looks

    def versions(self, seat: int) -> dict[str, str]:
        return {"simulator": "fake"}

    def begin(self, seat: int, episode: Episode, attempt: int, video: Path | None) -> None:
        self._playing[seat] = episode, time.monotonic() + duration(episode.seed)

    def wait(self, seconds: float) -> dict[int, dict[str, Any]]:
        self._looks += 1
        time.sleep(min(seconds, 0.02))
        now = time.monotonic()
        over = [seat for seat, (_, end) in self._playing.items() if end <= now]
        return {seat: result(self._playing.pop(seat)[0]) for seat in over}

    def abandon(self) -> None:
        self._playing = {}

    close = abandon


class Recorder(harness.workers.recorder.Recorder):
    """May freeze when its worker has been told that its batch is still its own."""

    def append(self, cell: Cell, row: Row) -> None:
        if TROUBLE.freeze_at_row:
            TROUBLE.freeze_at_row = False
            os.kill(os.getpid(), signal.SIGSTOP)
        super().append(cell, row)


#: Forked workers need not hash the code anew: it is known where they were forked.
harness.runs.run.code_hash = functools.cache(harness.runs.run.code_hash)  # type: ignore[assignment]


def disturb_filesystem() -> None:
    """Every listing may hide names, every creation lose its answer."""
    names, mkdir, create = Filesystem.names, Filesystem.mkdir, Filesystem.create

    def hiding(self: Filesystem, directory: Path) -> list[str]:
        seen = names(self, directory)
        if time.monotonic() < TROUBLE.hidden_until and "leases" in str(directory):
            return [name for name in seen if random.random() > 0.3]
        return seen

    def answer(true: bool) -> bool:
        if not TROUBLE.lose_answer:
            return true
        TROUBLE.lose_answer = False
        if random.random() < 0.5:
            raise OSError("the answer was lost")
        return False

    Filesystem.names = hiding  # type: ignore[method-assign]
    Filesystem.mkdir = lambda self, d: answer(mkdir(self, d))  # type: ignore[method-assign]
    Filesystem.create = lambda self, f, data=b"": answer(create(self, f, data))  # type: ignore


def main() -> int:
    """Work on the run that the environment names; the exit code of ``rollpool work``."""
    harness.workers.worker.Rig = Rig  # type: ignore[misc,assignment]
    harness.workers.worker.Recorder = Recorder  # type: ignore[misc]
    disturb_filesystem()
    true_time = time.time
    time.time = lambda: true_time() + TROUBLE.clock_s
    try:
        settings, _ = resolve()
        return harness.workers.worker.work(open_run(settings.root, settings, create=False))
    except RollpoolError as error:
        print(f"refused: {error}", file=sys.stderr)
        return error.exit_code
