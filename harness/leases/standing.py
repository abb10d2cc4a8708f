"""How one manifest stands: its claims (names) and its rows, put together as one worker knows them.

Promises: names are listed before rows are read, so a finished claim whose rows are missing is found
out (it is void) and not believed; what the rows settle is settled, whatever happens to the leases.
Rows are read on joining, and again only when a claim ended without finishing, names vanished or
somebody decided something.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from harness.foundations.records import Row
from harness.leases.budget import Budget
from harness.leases.lease import LeaseBook
from harness.leases.names import SHARD, Claim, shard_of
from harness.runs.population import Manifest


class Standing:
    """One manifest's selected positions.

    Args:
        rows: reads the rows of this manifest's cell from disk.
        minibatch: positions to a claim, at most; 0 for a whole shard.
    Attributes:
        touched: somebody has begun it.
        shards_touched: those in which somebody has claimed something, as last listed.
        left: shard -> the positions that are neither settled nor set aside nor marked finished;
            positions that are held by somebody are among them.
    A position is reckoned anew when its names, its rows or decisions change, and never else.
    """

    def __init__(
        self, manifest: Manifest, positions: Sequence[int], book: LeaseBook, budget: Budget,
        rows: Callable[[], Iterable[Row]], minibatch: int = 1,
    ) -> None:  # fmt: skip
        self.manifest, self.book, self.budget = manifest, book, budget
        self.touched = self.joined = False
        self.shards_touched: set[int] = set()
        self.left: dict[int, list[int]] = {}
        self._fresh: dict[int, list[int]] = {}
        self.minibatch = minibatch
        self._rows, self._width = rows, min(minibatch or SHARD, SHARD)
        self._selected = frozenset(positions)
        self._all: dict[int, list[int]] = {}
        for position in sorted(positions):
            self._all.setdefault(shard_of(position), []).append(position)
        self._accounted: set[Claim] = set()
        book.floor = self.floor

    @property
    def complete(self) -> bool:
        return self.joined and not self.left

    def confirm(self) -> bool:
        """Whether it is complete by the rows alone; reads them, where names said it first."""
        if self.complete and not all(self.recorded_over(p) for p in self._selected):
            self.load()
        return self.complete

    def begin(self) -> None:
        """Join a cell whose directory was just made: there is nothing to list."""
        self.touched = self.joined = True
        self.load()

    def refresh(self) -> None:
        """See what others have done in all shards that are not over; joins if need be."""
        mine = self.left if self.joined else self._all
        self.shards_touched = touched = self.book.touched()
        # One that was listed before and is not there any more was removed: that is news, too.
        shards = [shard for shard in mine if shard in touched or self.book.listed(shard)]
        for shard in shards:
            self.book.refresh(shard)
        if not self.joined:
            self.begin()
        self.digest()

    def refresh_shard(self, shard: int) -> None:
        self.book.refresh(shard)
        self.digest()

    def digest(self) -> None:
        """Take in what listings have shown."""
        changed = self.book.changed
        if self.book.shrunk or any(map(self.book.ended_short, changed - self._accounted)):
            self.load()
            return
        while changed:
            claim = changed.pop()
            self._reckon(range(claim.first, claim.last + 1))

    def load(self) -> None:
        """Read the rows again, after the names that are known by now."""
        closed, done = self.book.closed(), self.book.done()
        for row in self._rows():
            if row.manifest == self.manifest.hash:
                self.budget.add(row)
        self._accounted, self.book.shrunk = closed, False
        self.book.changed.clear()
        self.book.void = {claim for claim in done if not self._backed(claim)}
        known = self._selected & (self.budget.known(self.manifest.hash) | self.book.covered())
        over = {position for position in known if self.over(position)}
        self.left = self._all_but(over)
        self._fresh = self._all_but({p for p in known if p in over or not self._untried(p)})

    def recorded(self, row: Row) -> None:
        """A row that this worker has put on disk."""
        self.budget.add(row)
        self._reckon((row.position,))

    def finish(self, claim: Claim, marker: str) -> None:
        """Close a claim of which all rows are known here."""
        self.book.finish(claim, marker)
        self._accounted.add(claim)
        self.book.changed.discard(claim)
        self._reckon(range(claim.first, claim.last + 1))

    def floor(self, position: int) -> int:
        """The attempt up to which names and rows are an earlier generation's."""
        return self.budget.floor(self.manifest.hash, position)

    def over(self, position: int) -> bool:
        """Whether nobody need run it, by rows or by a finished claim that is not void."""
        return self.recorded_over(position) or self.book.finished(position)

    def recorded_over(self, position: int) -> bool:
        """Whether the rows alone say that nobody need run it."""
        return self.budget.over(self.manifest.hash, position)

    def fresh(self, shard: int) -> Sequence[int]:
        """The positions of ``shard`` that nobody holds and that have never gone wrong."""
        self.digest()
        return self._fresh.get(shard, ())

    def left_of(self, claim: Claim) -> Sequence[int]:
        """The positions of ``claim`` that are left."""
        left = self.left.get(claim.shard, [])
        begin = bisect.bisect_left(left, claim.first)
        return left[begin : bisect.bisect_right(left, claim.last, begin)]

    def fresh_count(self) -> int:
        return sum(map(len, self._fresh.values()))

    def attempts(self, first: int, last: int) -> int:
        """The highest attempt in the rows of these positions."""
        positions = range(first, last + 1)
        return max(self.budget.attempts(self.manifest.hash, position) for position in positions)

    def runs(
        self, positions: Sequence[int], start: float = 0.0, at_most: int = SHARD
    ) -> Iterator[tuple[int, int]]:
        """``(first, last)`` of the batches to be had of ``positions``, which are of one shard:
        neighbours, cut at multiples of the minibatch, where that is too many at their halves, and
        so on, so that workers who see the same name the same or parts of it.

        Args:
            start: where among them to begin, from 0 to 1; what lies before comes last.
            at_most: positions to a batch.
        """
        cut = int(start * len(positions))
        while cut > 0 and self._together(positions[cut - 1], positions[cut], at_most):
            cut -= 1
        first = last = None
        for position in (*positions[cut:], *positions[:cut]):
            if first is None or last is None or not self._together(last, position, at_most):
                if first is not None and last is not None:
                    yield first, last
                first = position
            last = position
        if first is not None and last is not None:
            yield first, last

    def _together(self, position: int, following: int, at_most: int) -> bool:
        return following == position + 1 and not self._begins(following, at_most)

    def _begins(self, position: int, at_most: int) -> bool:
        """Whether a batch is cut before ``position``."""
        offset, size = position % SHARD % self._width, self._width
        while offset and size > at_most:
            half = (size + 1) // 2
            offset, size = (offset - half, size - half) if offset >= half else (offset, half)
        return not offset

    def _backed(self, claim: Claim) -> bool:
        positions = self._selected.intersection(range(claim.first, claim.last + 1))
        return all(map(self.recorded_over, positions))

    def _reckon(self, positions: Iterable[int]) -> None:
        """See what has become of ``positions``."""
        for position in self._selected.intersection(positions):
            left = not self.over(position)
            _keep(self.left, position, left)
            _keep(self._fresh, position, left and self._untried(position))

    def _untried(self, position: int) -> bool:
        return not (self.book.open(position) or self.budget.failed(self.manifest.hash, position))

    def _all_but(self, positions: Collection[int]) -> dict[int, list[int]]:
        shards = self._all.items()
        rest = ((shard, [p for p in of if p not in positions]) for shard, of in shards)
        return {shard: of for shard, of in rest if of}


def _keep(shards: dict[int, list[int]], position: int, belongs: bool) -> None:
    """``position`` is in its shard's list, which is in order, or it is not."""
    shard = shard_of(position)
    positions = shards.get(shard, [])
    at = bisect.bisect_left(positions, position)
    if belongs == (positions[at : at + 1] == [position]):
        return
    if belongs:
        positions.insert(at, position)
        shards[shard] = positions
    elif len(positions) > 1:
        del positions[at]
    else:
        del shards[shard]
