"""Who is alive: what one process concludes about all the others.

Workers are judged by *change* of their heartbeats, on the observer's own monotonic clock: no clock
is ever compared with another machine's.

Promises: an observer that was frozen itself concludes nothing; proof of a death (same boot, same
pid namespace, process gone) is believed at once.
Not promised: that a worker judged dead is dead. It may be frozen, and write again later.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from harness.leases.filesystem import Filesystem
from harness.leases.heartbeat import HIDDEN, Process, Record, holdings, started
from harness.leases.names import Claim

#: Records of those that are dead by silence are read at every fifth look alone: twice a TTL.
_RARELY = 5


class _Sighting:
    """What an observer has seen of one worker."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.unchanged = 0.0  # seconds, on the observer's clock, that the counter stood still
        self.gone = False  # proven; such a record is never read again

    @property
    def final(self) -> bool:
        return self.gone or self.record["state"] == "ended"

    @property
    def dead(self) -> bool:
        return self.final or bool(self.unchanged >= self.record["ttl"])


class Observer:
    """What one process concludes about all the others. Judgements are as of the last ``look``."""

    def __init__(
        self, workers: Path, ttl: float, *, fs: Filesystem | None = None,
        clock: Callable[[], float] = time.monotonic, process: Process | None = None,
        started: Callable[[int], int] = started,
    ) -> None:  # fmt: skip
        self.ttl, self.interval = ttl, ttl / 10
        self._workers, self._fs, self._clock = workers, fs or Filesystem(), clock
        self._self, self._started = process or Process.this(), started
        self._seen: dict[str, _Sighting] = {}
        self._owners: dict[str, str] = {}
        self._unnamed: dict[str, float] = {}
        self._looked: float | None = None
        self._looks = 0
        self._unreadable: set[str] = set()

    def look(self) -> None:
        """See who has moved. Call it as often as you like: the records are read once an interval,
        processes of this machine are looked up each time."""
        now = self._clock()
        if self._looked is None or now - self._looked >= self.interval:
            gap = now - self._looked if self._looked is not None else 0.0
            self._looked = now
            self._read_all(gap)
        for worker, sighting in self._seen.items():
            if not sighting.final and self._proven_gone(sighting.record):
                self._read(worker)  # its last word, that may be newer than the last look
                sighting.gone = True
        self._name_owners()

    def due_s(self) -> float:
        """Seconds until the records are to be read again. Whoever waits longer credits the silent
        with less than has passed, and finds them dead later than it might."""
        if self._looked is None:
            return 0.0
        return max(0.0, self._looked + self.interval - self._clock())

    def look_again(self) -> None:
        """Read at once every record that may have changed: before a judgement is acted upon."""
        self._read_those(lambda worker: not (worker in self._seen and self._seen[worker].final))
        self._name_owners()

    def records(self) -> dict[str, Record]:
        """Worker -> its last record, the dead included."""
        return {worker: sighting.record for worker, sighting in self._seen.items()}

    def dead(self, worker: str) -> bool:
        """Whether ``worker`` ended, is proven gone, or stood still for its own TTL."""
        return worker in self._seen and self._seen[worker].dead

    def seats(self) -> int:
        """How many seats there are of workers that are not known to be dead."""
        return sum(len(holdings(s.record)) for s in self._seen.values() if not s.dead)

    def live_hosts(self) -> set[str]:
        return {s.record["host"] for s in self._seen.values() if not s.dead}

    def owner(self, claim: Claim) -> Record | None:
        """The record that names ``claim``, of a living worker or a dead one; its ``seat episode
        step`` are those of the seat that holds it."""
        worker = self._owners.get(str(claim))
        if worker is None:
            return None
        record = self._seen[worker].record
        held = (each for each in holdings(record) if each["claim"] == str(claim))
        return {**record, **next(held, {})}

    def abandoned(self, claim: Claim) -> bool:
        """Whether nobody works on ``claim`` any more: its owner is dead, or no record has named it
        for TTL since this was first asked."""
        worker = self._owners.get(str(claim))
        if worker is None:
            return self._unnamed.setdefault(str(claim), 0.0) >= self.ttl
        self._unnamed.pop(str(claim), None)
        return self.dead(worker)

    def _name_owners(self) -> None:
        # The living go last, and win: where leases were removed, a name is given a second time.
        sightings = sorted(self._seen.items(), key=lambda item: not item[1].dead)
        self._owners = {
            held["claim"]: worker
            for worker, s in sightings for held in holdings(s.record) if held["claim"]
        }  # fmt: skip

    def _read_all(self, gap: float) -> None:
        self._looks += 1
        for sighting in self._seen.values():
            sighting.unchanged += self._credit(gap, sighting.record["interval"])
        for claim in self._unnamed:
            self._unnamed[claim] += self._credit(gap, self.interval)
        self._read_those(self._due)

    def _read_those(self, wanted: Callable[[str], bool]) -> None:
        for name in self._fs.names(self._workers):
            worker, _, suffix = name.rpartition(".")
            if suffix == "json" and wanted(worker):
                self._read(worker)

    def _due(self, worker: str) -> bool:
        """Whether its record may have changed: never that of one that is gone. Who is dead by
        silence alone may thaw, and must be seen to before a claim of its would seem abandoned."""
        seen = self._seen.get(worker)
        if seen is None:
            return worker not in self._unreadable or self._looks % _RARELY == 0
        return not seen.dead or (not seen.final and self._looks % _RARELY == 0)

    @staticmethod
    def _credit(gap: float, interval: float) -> float:
        """A gap longer than an interval says that this observer slept, not that the others did."""
        return min(gap, interval)

    def _read(self, worker: str) -> None:
        try:
            record = json.loads(self._fs.read(self._workers / f"{worker}.json"))
        except (OSError, ValueError):
            self._unreadable.add(worker)
            return  # unlinked, unreachable or half written: it has not moved
        sighting = self._seen.setdefault(worker, _Sighting(record))
        if record["counter"] != sighting.record["counter"]:
            sighting.unchanged = 0.0
        sighting.record = record

    def _proven_gone(self, record: Record) -> bool:
        here = self._self
        if not here.pid_ns or (record["boot_id"], record["pid_ns"]) != (here.boot_id, here.pid_ns):
            return False
        return self._started(record["pid"]) not in (record["start_time"], HIDDEN)
