"""How one manifest stands: its claims (names) and its rows, put together as one worker knows them.

Promises: names are listed before rows are read, so a finished claim whose rows are missing is found
out (it is void) and not believed; what the rows settle is settled, whatever happens to the leases.
Rows are read on joining, and again only when a claim ended without finishing, names vanished or
somebody decided something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from harness.budget import Budget
from harness.lease import SHARD, Claim, LeaseBook, shard_of
from harness.population import Manifest
from harness.records import Row


class Standing:
    """One manifest's selected positions.

    Args:
        rows: reads the rows of this manifest's cell from disk.
        minibatch: positions to a claim; 0 for a whole shard.
    Attributes:
        touched: somebody has begun it.
        left: shard -> the positions that are neither settled nor set aside nor marked finished;
            positions that are held by somebody are among them.
    """

    def __init__(
        self, manifest: Manifest, positions: Sequence[int], book: LeaseBook, budget: Budget,
        rows: Callable[[], Iterable[Row]], minibatch: int = 1,
    ) -> None:  # fmt: skip
        self.manifest, self.book, self.budget = manifest, book, budget
        self.touched = self.joined = False
        self.left: dict[int, list[int]] = {}
        self._rows, self._width = rows, min(minibatch or SHARD, SHARD)
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
        if self.complete and not all(self.recorded_over(p) for s in self._all.values() for p in s):
            self.load()
        return self.complete

    def begin(self) -> None:
        """Join a cell whose directory was just made: there is nothing to list."""
        self.touched = self.joined = True
        self.load()

    def refresh(self) -> None:
        """See what others have done in all shards that are not over; joins if need be."""
        mine = self.left if self.joined else self._all
        touched = self.book.touched()
        # One that was listed before and is not there any more was removed: that is news, too.
        shards = [shard for shard in mine if shard in touched or self.book.listed(shard)]
        for shard in shards:
            self.book.refresh(shard)
        if not self.joined:
            self.begin()
        self.digest(*shards)

    def refresh_shard(self, shard: int) -> None:
        self.book.refresh(shard)
        self.digest(shard)

    def digest(self, *shards: int) -> None:
        """Take in what a listing of ``shards`` showed."""
        if self.book.shrunk or (shards and self.book.closed(*shards) - self._accounted):
            self.load()
        else:
            for shard in shards:
                self._prune(shard)

    def load(self) -> None:
        """Read the rows again, after the names that are known by now."""
        closed, done = self.book.closed(), self.book.done()
        for row in self._rows():
            if row.manifest == self.manifest.hash:
                self.budget.add(row)
        self._accounted, self.book.shrunk = closed, False
        self.book.void = {claim for claim in done if not self._backed(claim)}
        for shard in self._all:
            self._prune(shard)

    def recorded(self, row: Row) -> None:
        """A row that this worker has put on disk."""
        self.budget.add(row)
        self._drop(row.position)

    def finish(self, claim: Claim, marker: str) -> None:
        """Close a claim of which all rows are known here."""
        self.book.finish(claim, marker)
        self._accounted.add(claim)
        for position in range(claim.first, claim.last + 1):
            self._drop(position)

    def floor(self, position: int) -> int:
        """The attempt up to which names and rows are an earlier generation's."""
        return self.budget.floor(self.manifest.hash, position)

    def over(self, position: int) -> bool:
        """Whether nobody need run it, by rows or by a finished claim that is not void."""
        return self.recorded_over(position) or self.book.finished(position)

    def recorded_over(self, position: int) -> bool:
        """Whether the rows alone say that nobody need run it."""
        return self.budget.over(self.manifest.hash, position)

    def fresh(self, position: int) -> bool:
        """Whether nobody holds it and it has never gone wrong."""
        return not self.book.open(position) and not self.budget.failed(self.manifest.hash, position)

    def fresh_count(self) -> int:
        return sum(self.fresh(position) for left in self.left.values() for position in left)

    def attempts(self, first: int, last: int) -> int:
        """The highest attempt in the rows of these positions."""
        positions = range(first, last + 1)
        return max(self.budget.attempts(self.manifest.hash, position) for position in positions)

    def runs(
        self, shard: int, wanted: Callable[[int], bool], start: float = 0.0
    ) -> Iterator[tuple[int, int]]:
        """``(first, last)`` of the batches to be had in ``shard``: neighbours that are wanted, cut
        at multiples of the minibatch so that workers who see the same name the same.

        Args:
            start: where in the shard to begin, from 0 to 1; what lies before comes last.
        """
        positions = [position for position in self.left.get(shard, ()) if wanted(position)]
        found: list[tuple[int, int]] = []
        for position in positions:
            if found and position == found[-1][1] + 1 and position % SHARD % self._width:
                found[-1] = (found[-1][0], position)
            else:
                found.append((position, position))
        cut = int(start * len(found))
        yield from found[cut:] + found[:cut]

    def _backed(self, claim: Claim) -> bool:
        selected = set(self._all.get(claim.shard, ()))
        return all(
            self.recorded_over(position)
            for position in range(claim.first, claim.last + 1) if position in selected
        )  # fmt: skip

    def _prune(self, shard: int) -> None:
        self._keep(shard, [p for p in self._all.get(shard, ()) if not self.over(p)])

    def _drop(self, position: int) -> None:
        shard = shard_of(position)
        if self.over(position):
            self._keep(shard, [p for p in self.left.get(shard, ()) if p != position])

    def _keep(self, shard: int, left: list[int]) -> None:
        if left:
            self.left[shard] = left
        else:
            self.left.pop(shard, None)
