"""What the rows say about each episode: settled, worth another try, or set aside.

Promises: the answer depends on the set of rows and decisions alone, not on their order or their
number (a row recorded twice spends nothing twice); an error spends its episode's budget once an
attempt; the death of a worker has a larger budget of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.foundations.records import Row
from harness.leases.decisions import Decisions, Verdict

#: The kind of error that says a worker died; whether the episode killed it, nobody knows.
LOST = "lost"


class Tried(Protocol):
    """The part of a row that is decided upon."""

    @property
    def manifest(self) -> str: ...
    @property
    def position(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def worker(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def error(self) -> Mapping[str, Any] | None: ...


@dataclass
class _Episode:
    settled: int = 0  # the highest attempt with an outcome
    attempts: int = 0
    errors: dict[int, Tried] = field(default_factory=dict)  # attempt -> its row
    hosts: dict[str, int] = field(default_factory=dict)  # where it went wrong -> last attempt

    def add(self, row: Tried) -> None:
        self.attempts = max(self.attempts, row.attempt)
        if row.error is None:
            self.settled = max(self.settled, row.attempt)
            return
        if _kind(row) != LOST:
            self.hosts[row.host] = max(row.attempt, self.hosts.get(row.host, 0))
        other = self.errors.get(row.attempt)
        if other is None or _telling(row) > _telling(other):
            self.errors[row.attempt] = row


#: What an episode without rows looks like; never added to. One that nobody decided about.
_UNTRIED, _UNDECIDED = _Episode(), Verdict()


def _telling(row: Tried) -> tuple[bool, str, str]:
    """Which of two error rows of one attempt to go by: the owner's own says more than its death."""
    assert row.error is not None
    return row.error["kind"] != LOST, row.error["kind"], row.worker


class Budget:
    """The rows of a run, or of a part of it, as decisions.

    Args:
        retries: an episode is set aside after 1 + this many errors, one of them made alone where
            episodes share a model.
        lost_retries: the same for the deaths of workers that ran it.
        decisions: what people decided; refreshed by whoever holds them.
    """

    def __init__(self, retries: int, lost_retries: int, decisions: Decisions | None = None) -> None:
        self._retries, self._lost_retries = retries, lost_retries
        self._decisions = decisions
        self._episodes: dict[tuple[str, int], _Episode] = {}

    def add(self, row: Tried) -> None:
        self._episodes.setdefault((row.manifest, row.position), _Episode()).add(row)

    def known(self, manifest: str) -> set[int]:
        """The positions of which there are rows or decisions."""
        decided = self._decisions.episodes() if self._decisions else ()
        return {position for of, position in (*self._episodes, *decided) if of == manifest}

    def settled(self, manifest: str, position: int) -> bool:
        """Whether the episode has a success or a fail."""
        return self._get(manifest, position).settled > self.floor(manifest, position)

    def floor(self, manifest: str, position: int) -> int:
        """Attempts up to this one are an earlier generation's."""
        return self._verdict(manifest, position).floor

    def attempts(self, manifest: str, position: int) -> int:
        """The highest attempt recorded or decided upon, 0 if none."""
        recorded = self._get(manifest, position).attempts
        return max(recorded, self.floor(manifest, position))

    def has(self, manifest: str, position: int, attempt: int) -> bool:
        """Whether the episode needs no row that says how this attempt went wrong."""
        tried = attempt in self._get(manifest, position).errors
        old = attempt <= self.floor(manifest, position)
        return tried or old or self.settled(manifest, position)

    def failed(self, manifest: str, position: int) -> bool:
        """Whether the episode has gone wrong before."""
        return bool(self._errors(manifest, position))

    def error_hosts(self, manifest: str, position: int) -> set[str]:
        """The hosts on which the episode went wrong; deaths do not count against a host."""
        hosts = self._get(manifest, position).hosts
        spent = self._forgiven(manifest, position) if hosts else 0
        return {host for host, attempt in hosts.items() if attempt > spent}

    def quarantined(self, manifest: str, position: int) -> str | None:
        """Why the episode is set aside; None while it is not."""
        if self.settled(manifest, position):
            return None
        if skipped := self._verdict(manifest, position).skipped:
            return skipped
        errors = self._errors(manifest, position)
        if not errors:
            return None
        kinds = Counter(_kind(row) for row in errors)
        lost = kinds[LOST]
        if kinds.total() - lost <= self._bearable(errors) and lost <= self._lost_retries:
            return None
        last = max(errors, key=lambda row: row.attempt)
        counts = ", ".join(f"{kind} x{n}" for kind, n in sorted(kinds.items()))
        hosts = ", ".join(sorted({row.host for row in errors}))
        message = (last.error or {}).get("message", "")
        return f"{kinds.total()} errors ({counts}) on {hosts}; the last: {message}"

    def last_try(self, manifest: str, position: int) -> bool:
        """Whether the episode has gone wrong, and would be set aside if it did so once more."""
        errors = self._errors(manifest, position)
        lost = sum(_kind(row) == LOST for row in errors)
        own, bearable = len(errors) - lost, self._bearable(errors)
        return bool(errors) and (own >= bearable or lost >= self._lost_retries)

    def _bearable(self, errors: list[Tried]) -> int:
        """How many errors an episode may have, deaths of workers apart: one at least, where that
        may be what another episode did. It gets a try alone."""
        own = [row.error for row in errors if row.error and _kind(row) != LOST]
        shared = own and all(error.get("shared") for error in own)
        return max(self._retries, 1) if shared else self._retries

    def over(self, manifest: str, position: int) -> bool:
        """Whether nobody need run the episode: it is settled or set aside."""
        return self.settled(manifest, position) or bool(self.quarantined(manifest, position))

    def _errors(self, manifest: str, position: int) -> list[Tried]:
        """The error rows that spend its budget."""
        errors = self._get(manifest, position).errors
        if not errors:
            return []
        spent = self._forgiven(manifest, position)
        return [row for attempt, row in errors.items() if attempt > spent]

    def _forgiven(self, manifest: str, position: int) -> int:
        """Errors of attempts up to this one spend nothing."""
        verdict = self._verdict(manifest, position)
        return max(verdict.floor, verdict.forgiven)

    def _verdict(self, manifest: str, position: int) -> Verdict:
        return self._decisions.of(manifest, position) if self._decisions else _UNDECIDED

    def _get(self, manifest: str, position: int) -> _Episode:
        return self._episodes.get((manifest, position), _UNTRIED)


class Streak:
    """Tells a broken worker (a sick GPU, a full disk) from broken episodes, tasks and policies.

    Args:
        episodes, tasks: so many different ones in error, with nothing settled in between, are too
            many. One broken task, however many seeds it has, is no reason for a worker to stop;
            what the policy raised is the policy's, on any worker.
    """

    def __init__(self, episodes: int = 8, tasks: int = 4) -> None:
        self._episodes, self._tasks = episodes, tasks
        self._failed: dict[tuple[str, int], Row] = {}

    def add(self, row: Row) -> None:
        """A row of this worker's own making (not one it recorded for the dead)."""
        if row.error is None:
            self._failed.clear()
        elif _kind(row) != "policy":
            self._failed[row.manifest, row.position] = row

    @property
    def verdict(self) -> str | None:
        """Why this worker should stop; None while it need not."""
        rows = self._failed.values()
        tasks = {row.task for row in rows}
        if len(rows) < self._episodes or len(tasks) < self._tasks:
            return None
        kinds = ", ".join(sorted({_kind(row) for row in rows}))
        return f"{len(rows)} episodes of {len(tasks)} tasks in a row ended in error ({kinds})"


def _kind(row: Tried) -> str:
    error: Mapping[str, object] = row.error or {}
    return str(error.get("kind", ""))
