"""What a worker should run next.

Order: its own cell, then the one that would end last (``order``); after that what went wrong
elsewhere, and what the dead have left behind.

Promises: ``None`` means that rows and decisions say of every selected episode that it is settled or
set aside; an undisturbed claim costs a handful of filesystem calls however long the queue is; in an
undisturbed run no episode is handed out twice. Not promised: exclusiveness after a
freeze, a lost answer, or removed leases. There the reader's counting rule keeps the tables right,
and ``may_record`` keeps the waste small.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.foundations.records import Row
from harness.leases.budget import Streak
from harness.leases.durations import Durations
from harness.leases.filesystem import Filesystem
from harness.leases.heartbeat import Heartbeat
from harness.leases.lease import LeaseBook
from harness.leases.names import DONE, RELEASED, SHORT, Claim
from harness.leases.observer import Observer
from harness.leases.order import Order
from harness.leases.standing import Standing
from harness.leases.takeover import Lost, Takeover
from harness.runs.population import Cell, Manifest


@dataclass(frozen=True)
class Batch:
    """Episodes to run now, in this order. Give it back with ``Claims.finish``."""

    claim: Claim
    manifest: Manifest
    positions: tuple[int, ...]

    @property
    def cell(self) -> Cell:
        return self.manifest.cell

    @property
    def attempt(self) -> int:
        return self.claim.attempt


@dataclass(frozen=True)
class Wait:
    """Nothing to run now, but others hold what may come back. Ask again in ``seconds``."""

    seconds: float
    episodes: int


class Claims:
    """One worker's way through the queue, or that of one of its seats.

    Args:
        standings: the manifests, in queue order.
        record_lost: see ``Lost``.
        durations: how long episodes take; rows are added to it as they are recorded here.
        news: asks whether people have decided anything since it was last asked.
        seat: which of the worker's it is; they share standings and heartbeat.
    Attributes:
        streak: whether this worker fails so steadily that it should stop.
    """

    def __init__(
        self, standings: Sequence[Standing], leases: Path, heartbeat: Heartbeat,
        observer: Observer, record_lost: Callable[[Lost], Row], *,
        durations: Durations | None = None, news: Callable[[], bool] = lambda: False,
        seat: int = 0, fs: Filesystem | None = None, clock: Callable[[], float] = time.monotonic,
        chance: random.Random | None = None,
    ) -> None:  # fmt: skip
        self.streak = Streak()
        self.durations = durations or Durations()
        self._standings = standings
        self._by_manifest = {standing.manifest.hash: standing for standing in standings}
        self._heartbeat, self._observer = heartbeat, observer
        self._takeover = Takeover(heartbeat, observer, record_lost)
        self._news, self._clock, self._chance = news, clock, chance or random.Random()
        self._order = Order(
            standings, self.durations, observer, leases, fs or Filesystem(), self._chance
        )
        self._seat = seat
        self._asked = clock()
        self._mine: Standing | None = None
        self._shard: int | None = None
        self._ahead: Iterator[int] = iter(())
        self._start = 0.0
        self._unknown = False  # how long an episode of that cell takes
        self._lapses = 0
        self._idle = False
        self._read = 0.0  # when rows were last read for no reason but waiting

    def next(self) -> Batch | Wait | None:
        """The next batch; a ``Wait``; or None when there is nothing left to run for anybody."""
        if self._clock() - self._asked >= self._heartbeat.interval:
            self._take_news()
        while True:
            for stage in (self._own, self._elsewhere, self._left_over):
                if batch := stage():
                    return batch
            if not all(s.complete for s in self._standings) or self._nothing_left():
                return self._idly()

    def _idly(self) -> Wait | None:
        if not self._idle:
            self._heartbeat.beat(seat=self._seat, claim=None, episode=None, state="idle")
            self._idle, self._read = True, self._clock()
        left = [s for s in self._standings if not s.complete]
        if not left:
            return None
        if self._clock() - self._read > self._heartbeat.ttl:
            # Rows of a frozen worker come without news in the names.
            self._read = self._clock()
            self._load(left)
        # Asking costs listings in each cell that is left, and many may wait for the same few.
        seconds = min(self._heartbeat.interval, 0.9 + len(left) / 10)
        seconds *= 0.5 + self._chance.random() / 2
        seconds = min(seconds, self._observer.due_s())
        return Wait(seconds, sum(len(positions) for s in left for positions in s.left.values()))

    def _nothing_left(self) -> bool:
        """Whether rows and decisions say so, too: a name may have been made by somebody who had not
        heard of the last decision."""
        return not self._take_news() and all(s.confirm() for s in self._standings)

    def _take_news(self) -> bool:
        """Whether people have decided anything; if so, what is left is reckoned anew."""
        self._asked = self._clock()
        if not self._news():
            return False
        self._load(standing for standing in self._standings if standing.joined)
        return True

    def _load(self, standings: Iterable[Standing]) -> None:
        """Read rows again: of a long queue that takes its time, in which the worker moves and its
        other seats hold leases."""
        for standing in standings:
            standing.load()
            self._heartbeat.alive()

    def may_record(self, batch: Batch) -> bool:
        """Whether the batch is still this worker's. Ask before an episode's row is written; where
        it says no, drop the episode and give the batch back as released."""
        lapses = self._heartbeat.lapses
        standing = self._by_manifest[batch.manifest.hash]
        if any(standing.floor(position) >= batch.attempt for position in batch.positions):
            return False
        if lapses == self._lapses:
            return True
        # Before the listing, see Takeover.live_again.
        self._heartbeat.beat(seat=self._seat, state="running")
        book = standing.book
        book.refresh(batch.claim.shard)
        if book.marked(batch.claim, RELEASED) or self._taken(book, batch.claim):
            return False
        self._lapses = lapses
        return True

    def recorded(self, row: Row) -> None:
        """A row of this worker's is on disk."""
        self._by_manifest[row.manifest].recorded(row)
        self.durations.add(row)
        self.streak.add(row)

    def last_try(self, batch: Batch, position: int) -> bool:
        """Whether an episode went wrong before, and one error more would set it aside."""
        return self._by_manifest[batch.manifest.hash].budget.last_try(batch.manifest.hash, position)

    def finish(self, batch: Batch, marker: str | None = None) -> None:
        """Close the batch, after its rows are on disk.

        Args:
            marker: ``released`` to give back what has not run (preemption, shutdown); by default
                the recorded rows decide between ``done`` and ``short``.
        """
        standing = self._by_manifest[batch.manifest.hash]
        over = all(standing.budget.over(batch.manifest.hash, p) for p in batch.positions)
        standing.finish(batch.claim, marker or (DONE if over else SHORT))

    def _own(self) -> Batch | None:
        if self._unknown and self._mine and self.durations.known(self._mine.manifest.cell):
            self._unknown = False
            if self._observer.seats() > 1:
                self._mine = None  # others may be longer, or not timed yet
        while self._mine is not None:
            if self._shard is not None:
                batch = self._from_shard(self._mine, self._shard, self._mine.fresh)
                if batch:
                    return batch
            self._shard = next(self._ahead, None)
            if self._shard is None:
                self._mine = None
            elif self._mine.book.listed(self._shard):
                self._mine.refresh_shard(self._shard)
        return None

    def _elsewhere(self) -> Batch | None:
        self._order.look()
        # A name that is there and that no listing shows must not keep this worker here; each cell
        # may turn out to be begun by others, and to have nothing left.
        for _ in range(1 + 2 * len(self._standings)):
            standing = self._order.last_to_end()
            if standing is None:
                return None
            if standing.touched:
                self._join(standing)
            elif standing.book.touch():
                standing.begin()
                self._adopt(standing, sorted(standing.left), 0.0)
            else:
                standing.touched = True
            if batch := self._own():
                return batch
        return None

    def _join(self, standing: Standing) -> None:
        # Whoever joins starts where nobody is, or at random: two that walk side by side would lose
        # half of their races.
        touched = standing.shards_touched
        shards = sorted(standing.left, key=lambda s: (s in touched, self._chance.random()))
        self._adopt(standing, shards, self._chance.random())

    def _left_over(self) -> Batch | None:
        self._observer.look()
        for standing in self._standings:
            for shard in list(standing.left):
                takeable = functools.partial(self._takeable_of, standing)
                if batch := self._from_shard(standing, shard, takeable):
                    return batch
        return None

    def _adopt(self, standing: Standing, shards: Sequence[int], start: float) -> None:
        self._mine, self._ahead, self._shard, self._start = standing, iter(shards), None, start
        self._unknown = not self.durations.known(standing.manifest.cell)

    def _takeable_of(self, standing: Standing, shard: int) -> Sequence[int]:
        return [p for p in standing.left.get(shard, ()) if self._takeover.free(standing, p)]

    def _from_shard(
        self, standing: Standing, shard: int, wanted: Callable[[int], Sequence[int]]
    ) -> Batch | None:
        tried: set[tuple[int, int]] = set()
        while True:
            runs = standing.runs(wanted(shard), self._start, self._order.at_most(standing))
            run = next((run for run in runs if run not in tried), None)
            if run is None:
                return None
            tried.add(run)
            if batch := self._claim(standing, *run):
                return batch
            # Whoever came first walks on from there: go on where nobody is.
            self._start = self._chance.random()

    def _claim(self, standing: Standing, first: int, last: int) -> Batch | None:
        began, self._lapses = self._clock(), self._heartbeat.lapses
        book = standing.book
        dead = {claim for p in range(first, last + 1) for claim in book.open(p)}
        claim = book.try_claim(first, last, standing.attempts(first, last), dead)
        standing.digest()
        if claim is None:
            return None
        if dead and self._takeover.live_again(dead):
            standing.finish(claim, RELEASED)
            return None
        self._heartbeat.beat(
            seat=self._seat, claim=str(claim), episode=None, step=0, state="running"
        )
        self._idle = False
        if self._clock() - began > self._heartbeat.ttl / 2:
            self._lapses = -1  # no record named the claim for so long: look before trusting it
        if dead:
            self._takeover.bury(standing, dead)
        batch = Batch(claim, standing.manifest, tuple(standing.left_of(claim)))
        if batch.positions and self.may_record(batch):
            return batch
        self.finish(batch, RELEASED if batch.positions else DONE)
        return None

    @staticmethod
    def _taken(book: LeaseBook, mine: Claim) -> bool:
        covering = (c for p in range(mine.first, mine.last + 1) for c in book.covering(p))
        return any(claim.attempt > mine.attempt for claim in covering)
