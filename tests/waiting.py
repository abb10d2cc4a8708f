"""Waits of tests that disturb real processes: for what is certain to come, and for nothing else."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from harness.leases.heartbeat import Record, holdings
from harness.leases.observer import Observer
from tests.fakes.gate import Gate

#: Far beyond what anything takes on a machine that is busy with other things.
DEADLINE_S = 300.0
_LAST_WORDS_S = 10.0


class Maker(Protocol):
    """What has to bring something about, as a ``Popen`` is."""

    def poll(self) -> int | None: ...
    def kill(self) -> None: ...
    def communicate(self, *, timeout: float) -> tuple[Any, Any]: ...


def wait_for(condition: Callable[[], object], what: str, *makers: Maker) -> None:
    """Poll until a condition holds that stays true, or true until the test acts.

    Raises ``AssertionError`` with what the makers printed: at once when one of them has ended
    without it, or at the deadline.
    """
    end = time.monotonic() + DEADLINE_S
    while True:
        over = [maker for maker in makers if maker.poll() is not None]
        if condition():
            return
        if over or time.monotonic() > end:
            break
        time.sleep(0.02)
    how = "who had to has ended" if over else f"not within {DEADLINE_S:.0f} s"
    raise AssertionError("\n".join([f"{what}: {how}", *map(_last_words, makers)]))


def _last_words(maker: Maker) -> str:
    maker.kill()
    try:
        said = maker.communicate(timeout=_LAST_WORDS_S)
    except subprocess.TimeoutExpired as late:  # a child of its own lives on, with its pipes
        said = (late.output, late.stderr)
    texts = (text.decode(errors="replace") if isinstance(text, bytes) else text for text in said)
    return "\n".join(text for text in texts if text)


def beats(workers: Path) -> list[Record]:
    """The heartbeats in a run's folder of them."""
    observer = Observer(workers, ttl=DEADLINE_S)
    observer.look_again()
    return list(observer.records().values())


def held(gate: Gate, workers: Path) -> list[Record]:
    """The heartbeats of those who are at an episode that waits at the gate, one for each; those
    whom something has ended meanwhile are among them."""
    return [
        {**beat, **seat}
        for beat in beats(workers)
        for seat in holdings(beat)
        if seat["episode"] and gate.holds(seat["episode"]["seed"])
    ]
