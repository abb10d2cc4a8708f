"""Which cell a worker goes to when its own has nothing new to give: the one that would end last.

Promises: cells that nobody has timed come first, since they may be long, by their step limits and
then in queue order; then the longest, so that short episodes are left to fill the gaps at the end.
Who is quick comes back sooner and so takes more; nobody waits while an episode is left that nobody
has begun. A cell is listed only while what is known of it lets it win, so that in a long queue few
are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

from harness.leases.durations import Durations
from harness.leases.filesystem import Filesystem
from harness.leases.lease import touched_cells
from harness.leases.names import SHARD
from harness.leases.observer import Observer
from harness.leases.standing import Standing
from harness.runs.population import selected_positions

#: The longest episode of a cell may take so many times what one is expected to.
_LONGEST = 3.0


class Order:
    """One worker's view of what to begin, or join, next."""

    def __init__(
        self, standings: Sequence[Standing], durations: Durations, observer: Observer, leases: Path,
        fs: Filesystem, chance: random.Random,
    ) -> None:  # fmt: skip
        self._standings, self._durations, self._observer = standings, durations, observer
        self._leases, self._fs, self._chance = leases, fs, chance

    def look(self) -> None:
        """See which cells others have begun."""
        if all(standing.touched for standing in self._standings):
            return
        names = touched_cells(self._leases, self._fs)
        for standing in self._standings:
            standing.touched |= standing.book.cell_dir in names

    def last_to_end(self) -> Standing | None:
        """The cell that would end last if nobody joined it, as seen now, of those that have
        anything new; None where none has."""
        last, its_end = None, 0.0
        for at_most, standing in self._candidates():
            if last is not None and its_end >= at_most:
                break
            end = self._end(standing)
            if end > its_end:
                last, its_end = standing, end
        return last

    def at_most(self, standing: Standing) -> int:
        """How many episodes of a cell to claim at once: nobody takes more than half of an equal
        share of what is left, so that the last batches are small, nor more than one of a cell that
        nobody has timed. Who claims whole cells, or is alone, does so to the end."""
        if standing.minibatch < 2 or (workers := self._observer.seats()) < 2:
            return SHARD
        if not self._durations.known(standing.manifest.cell):
            return 1
        seconds = self._durations.seconds
        left = sum(seconds(s.manifest.cell) * _fresh(s) for s in self._standings if not s.complete)
        return max(1, int(left / workers / 2 / seconds(standing.manifest.cell)))

    def _candidates(self) -> list[tuple[float, Standing]]:
        """When each would end at the latest, by what is known without listing it."""
        open_cells = [standing for standing in self._standings if not standing.complete]
        keyed = [
            # Who begins a cell goes by step limits, then by the queue; who joins does so at random.
            (-self._at_most(standing), self._rank(standing), number)
            for number, standing in enumerate(open_cells)
        ]
        return [(-negative, open_cells[number]) for negative, _, number in sorted(keyed)]

    def _rank(self, standing: Standing) -> float:
        return self._chance.random() if standing.touched else -standing.manifest.step_limit - 1.0

    def _at_most(self, standing: Standing) -> float:
        if not standing.touched:
            return self._end_untouched(standing)
        return self._when(standing, _fresh(standing), 1)  # somebody is in it

    def _end(self, standing: Standing) -> float:
        """The same, seen to; 0 where it has nothing new."""
        if not standing.touched:
            return self._end_untouched(standing)
        standing.refresh()
        unmeasured = not self._durations.measured(standing.manifest.cell)
        if standing.fresh_count() and unmeasured and standing.book.done():
            standing.load()  # others have measured it since
        fresh = standing.fresh_count()
        return self._when(standing, fresh, _workers_in(standing)) if fresh else 0.0

    def _end_untouched(self, standing: Standing) -> float:
        if not self._durations.known(standing.manifest.cell):
            return math.inf
        return self._when(standing, _size(standing), 0)

    def _when(self, standing: Standing, fresh: int, workers: int) -> float:
        """Seconds until ``fresh`` episodes are over, shared with those that are in the cell."""
        seconds = self._durations.seconds(standing.manifest.cell)
        return seconds * (fresh / (workers + 1) + _LONGEST)


def _size(standing: Standing) -> int:
    return len(selected_positions(standing.manifest))


def _fresh(standing: Standing) -> int:
    """Episodes that nobody has begun, as far as is known without listing."""
    return standing.fresh_count() if standing.joined else _size(standing)


def _workers_in(standing: Standing) -> int:
    left = (position for positions in standing.left.values() for position in positions)
    return len({claim for position in left for claim in standing.book.open(position)})
