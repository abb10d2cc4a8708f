"""What the rows say about each episode: settled, worth another try, or set aside.

Promises: the answer depends on the set of rows alone, not on their order or their number (a row
recorded twice spends nothing twice); an error spends its episode's budget once an attempt; the
death of a worker has a larger budget of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.records import Row

#: The kind of error that says a worker died; whether the episode killed it, nobody knows.
LOST = "lost"


@dataclass
class _Episode:
    settled: bool = False
    attempts: int = 0
    errors: dict[int, Row] = field(default_factory=dict)  # attempt -> its row
    hosts: set[str] = field(default_factory=set)  # on which it went wrong

    def add(self, row: Row) -> None:
        self.attempts = max(self.attempts, row.attempt)
        if row.error is None:
            self.settled = True
            return
        if _kind(row) != LOST:
            self.hosts.add(row.host)
        other = self.errors.get(row.attempt)
        if other is None or _telling(row) > _telling(other):
            self.errors[row.attempt] = row


#: What an episode without rows looks like; never added to.
_UNTRIED = _Episode()


def _telling(row: Row) -> tuple[bool, str, str]:
    """Which of two error rows of one attempt to go by: the owner's own says more than its death."""
    assert row.error is not None
    return row.error["kind"] != LOST, row.error["kind"], row.worker


class Budget:
    """The rows of a run, or of a part of it, as decisions.

    Args:
        retries: an episode is set aside after 1 + this many errors.
        lost_retries: the same for the deaths of workers that ran it.
    """

    def __init__(self, retries: int, lost_retries: int) -> None:
        self._retries, self._lost_retries = retries, lost_retries
        self._episodes: dict[tuple[str, int], _Episode] = {}

    def add(self, row: Row) -> None:
        self._episodes.setdefault((row.manifest, row.position), _Episode()).add(row)

    def settled(self, manifest: str, position: int) -> bool:
        """Whether the episode has a success or a fail."""
        return self._get(manifest, position).settled

    def attempts(self, manifest: str, position: int) -> int:
        """The highest attempt recorded, 0 if none."""
        return self._get(manifest, position).attempts

    def has(self, manifest: str, position: int, attempt: int) -> bool:
        """Whether the episode needs no row that says how this attempt went wrong."""
        episode = self._get(manifest, position)
        return episode.settled or attempt in episode.errors

    def failed(self, manifest: str, position: int) -> bool:
        """Whether the episode has gone wrong before."""
        return bool(self._get(manifest, position).errors)

    def error_hosts(self, manifest: str, position: int) -> set[str]:
        """The hosts on which the episode went wrong; deaths do not count against a host."""
        return self._get(manifest, position).hosts

    def quarantined(self, manifest: str, position: int) -> str | None:
        """Why the episode is set aside; None while it is not."""
        episode = self._get(manifest, position)
        if episode.settled or not episode.errors:
            return None
        kinds = Counter(_kind(row) for row in episode.errors.values())
        lost = kinds[LOST]
        spent = kinds.total() - lost > self._retries or lost > self._lost_retries
        if not spent:
            return None
        last = episode.errors[max(episode.errors)]
        counts = ", ".join(f"{kind} x{n}" for kind, n in sorted(kinds.items()))
        hosts = ", ".join(sorted({row.host for row in episode.errors.values()}))
        message = (last.error or {}).get("message", "")
        return f"{kinds.total()} errors ({counts}) on {hosts}; the last: {message}"

    def over(self, manifest: str, position: int) -> bool:
        """Whether nobody need run the episode: it is settled or set aside."""
        return self.settled(manifest, position) or bool(self.quarantined(manifest, position))

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


def _kind(row: Row) -> str:
    error: Mapping[str, object] = row.error or {}
    return str(error.get("kind", ""))
