"""The sign of life of a worker, and what it holds: a small record, rewritten at every beat.

Promises: a worker whose supervising loop hangs, or that cannot write, stops beating and is told so
(``check``) before anybody may take its work. Who reads the record is ``observer``.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from harness.errors import RollpoolError
from harness.leases.filesystem import Filesystem
from harness.paths import RunPaths

#: A heartbeat as read from disk; its keys are in DESIGN.md.
Record: TypeAlias = Mapping[str, Any]

#: Bytes of a record for each seat, padded: a rewrite in place never changes the file's length.
SIZE = 2048

#: What a worker does is what the busiest of its seats does.
_STATES = ("running", "starting", "idle", "ended")

#: The start of a process of another user, where nobody may know it.
HIDDEN = -1


def holdings(record: Record) -> list[dict[str, Any]]:
    """``seat claim episode step`` of each seat of the worker."""
    own = {key: record[key] for key in ("claim", "episode", "step")}
    return [{"seat": n, **held} for n, held in enumerate([own, *record.get("others", [])])]


class WorkerId(str):
    """``<host>-<pid>-<16 hex digits>``: new for every process, never SLURM's word alone."""

    @classmethod
    def new(cls) -> WorkerId:
        host = re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname())
        return cls(f"{host}-{os.getpid()}-{secrets.token_hex(8)}")


@dataclass(frozen=True)
class Process:
    """A process as another one on the same machine can recognise it."""

    boot_id: str
    pid_ns: str  # empty where /proc shows another namespace's processes: then nothing is proof
    pid: int
    start_time: int

    @classmethod
    def this(cls) -> Process:
        pid = os.getpid()
        try:
            boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            own = os.readlink("/proc/self") == str(pid)
            return cls(boot_id, os.readlink("/proc/self/ns/pid") if own else "", pid, started(pid))
        except OSError:
            return cls("", "", pid, 0)


def started(pid: int) -> int:
    """When process ``pid`` started, in ticks since boot; 0 if there is no such living process,
    ``HIDDEN`` if there is one that /proc does not show."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return HIDDEN if _exists(pid) else 0
    state, *fields = stat.rpartition(")")[2].split()
    return 0 if state in "ZX" else int(fields[18])


def _exists(pid: int) -> bool:
    """Asks the kernel: many clusters hide other users' processes in /proc (``hidepid``)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Heartbeat:
    """A worker's own record. ``start`` it, call ``alive`` from the supervising loop, ``end`` it.

    Args:
        interval: seconds between beats, TTL / 10 unless given.
        seats: how many claims it holds at most at a time, an episode each.
        slurm: job id, restart count and the like, for people.
    Raises ``RollpoolError`` where the record cannot be created.
    """

    def __init__(
        self, paths: RunPaths, worker: str, ttl: float, interval: float | None = None, *,
        slurm: Mapping[str, str] | None = None, fs: Filesystem | None = None,
        clock: Callable[[], float] = time.monotonic, process: Process | None = None,
        host: str = "", seats: int = 1,
    ) -> None:  # fmt: skip
        self.worker, self.ttl, self.interval = worker, ttl, interval or ttl / 10
        self.host = host or socket.gethostname()
        self._file, self._fs, self._clock = paths.heartbeat(worker), fs or Filesystem(), clock
        self._fields: dict[str, Any] = {
            "worker": worker, "host": self.host, **(process or Process.this()).__dict__,
            "ttl": ttl, "interval": self.interval, "slurm": dict(slurm or {}),
        }  # fmt: skip
        nothing = {"claim": None, "episode": None, "step": 0, "state": "starting"}
        self._seats: tuple[dict[str, Any], ...] = (nothing,) * seats
        self._counter = self._lapses = 0
        self._failure: OSError | None = None
        self._writing = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._beaten = self._alive = clock()
        self._create()

    def start(self) -> None:
        """Beat from a thread of its own from now on."""
        self._thread.start()

    def beat(self, *, seat: int = 0, **changes: Any) -> None:
        """Change ``claim``, ``episode``, ``step`` or ``state`` of a seat, and say so at once.

        A step alone waits for the next beat. A failed write does not raise here: the thread tries
        again, and ``check`` raises when it matters.
        """
        seats = list(self._seats)
        seats[seat] = {**seats[seat], **changes}
        self._say(tuple(seats), changes.keys())

    def holds(self, claim: str) -> bool:
        """Whether a seat of this worker's own has it, whatever anybody's listing shows."""
        return any(seat["claim"] == claim for seat in self._seats)

    def alive(self) -> None:
        """The supervising loop moves. Without this call for TTL / 2 the beats stop."""
        self._alive = self._clock()

    def tick(self) -> None:
        """One beat of the thread."""
        if self._clock() - self._alive <= self.ttl / 2:
            self._write(patience=0)

    @property
    def lapses(self) -> int:
        """How often, now included, nothing was on disk for TTL / 2: when it grew, a claim held
        over that time may have been taken by somebody else."""
        return self._lapses + (self._clock() - self._beaten > self.ttl / 2)

    def check(self) -> None:
        """Raise ``RollpoolError`` when writing has failed, or hung, for TTL / 2."""
        silent = self._clock() - self._beaten
        if silent > self.ttl / 2 and (self._failure or self._writing.locked()):
            raise RollpoolError(
                f"heartbeat {self._file}",
                f"not written for {silent:.0f} s ({self._failure or 'the write hangs'})",
                "the episode is stopped before its lease runs out; see to the filesystem",
            )

    def end(self) -> None:
        """The last beat: others need not wait for this worker."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(self.ttl / 2)
        self._say(tuple({**seat, "state": "ended"} for seat in self._seats), {"state"})

    def _say(self, seats: tuple[dict[str, Any], ...], changed: Set[str]) -> None:
        self._seats = seats  # as a whole: the thread may be writing
        if changed - {"step"}:
            self._write(patience=self.ttl / 2)

    def _run(self) -> None:
        while not self._stop.wait(self.interval):
            self.tick()

    def _create(self) -> None:
        try:
            self._fs.mkdir(self._file.parent)
            created = self._fs.create(self._file, self._encode())
        except OSError as error:
            raise RollpoolError(
                f"heartbeat {self._file}", str(error), "make the run directory writable"
            ) from error
        if not created:
            raise RollpoolError(
                f"heartbeat {self._file}", "it exists: two workers of one name",
                "start the worker again, every process takes a new name",
            )  # fmt: skip

    def _write(self, patience: float) -> None:
        if not self._writing.acquire(timeout=patience):
            return
        try:
            now = self._clock()
            self._counter += 1
            self._fs.rewrite(self._file, self._encode())
            self._lapses += now - self._beaten > self.ttl / 2
            self._beaten, self._failure = now, None
        except OSError as error:
            self._failure = error
        finally:
            self._writing.release()

    def _encode(self) -> bytes:
        seats, size = self._seats, SIZE * len(self._seats)
        text = self._text(seats)
        if len(text) > size:
            # The longest field, and one that the manifest holds anyway.
            text = self._text([
                {**seat, "episode": seat["episode"] and {**seat["episode"], "instruction": ""}}
                for seat in seats
            ])  # fmt: skip
        if len(text) > size:
            raise RollpoolError(
                "heartbeat", f"{len(text)} bytes, more than {size}", "shorten scene or task names"
            )
        return text.ljust(size).encode()

    def _text(self, seats: Sequence[Mapping[str, Any]]) -> str:
        state = min((seat["state"] for seat in seats), key=_STATES.index)
        first, *others = ({k: seat[k] for k in ("claim", "episode", "step")} for seat in seats)
        fields = {**self._fields, **first, "others": others, "state": state}
        return json.dumps({**fields, "counter": self._counter})
