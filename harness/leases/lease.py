"""The claims on one manifest's positions, kept in names alone (see LEASES.md).

Promises: a claim has one owner, because ``mkdir`` has one winner, and it stands only if a listing
made after it shows no other open or finished claim over its positions; so claims of different
lengths never overlap unnoticed. Nothing is opened or renamed, and removed by ``compact`` alone.
Directories are listed by path. Not promised: that the owner lives, or that what a listing showed is
still so.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from pathlib import Path

from harness.leases.filesystem import Filesystem
from harness.leases.names import DONE, RELEASED, Claim, parse, shard_of, span


def touched_cells(leases: Path, fs: Filesystem) -> set[str]:
    """The cells in which somebody has begun."""
    return set(fs.names(leases))


class _Shard:
    """The names of one shard as last listed, and this worker's own since: as they are and as the
    markers of each claim."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.claims: dict[Claim, tuple[str, ...]] = {}


class LeaseBook:
    """A cached view of ``<leases>/<cell_dir>``: as of the last ``refresh`` of each shard.

    A listing costs what is new in it: names that were there before are not looked at again.

    Attributes:
        void: finished claims whose rows are missing; the reader of rows adds to it.
        shrunk: names that were seen have vanished: somebody removes leases.
        changed: claims of which names have come or gone; the reader of rows takes them out.
        floor: the attempt up to which claims over a position are an earlier generation's: they
            say nothing any more.
    """

    def __init__(self, leases: Path, cell_dir: str, fs: Filesystem | None = None) -> None:
        self.cell_dir = cell_dir
        self._leases, self._fs = leases, fs or Filesystem()
        self._shards: dict[int, _Shard] = {}
        self._folders: dict[int, Path] = {}
        self._covering: dict[int, list[Claim]] = {}
        self.void: set[Claim] = set()
        self.changed: set[Claim] = set()
        self.shrunk = False
        self.floor: Callable[[int], int] = lambda position: 0

    def touch(self) -> bool:
        """Make the directory of the cell. True for the one worker that comes first."""
        directory = self._leases / self.cell_dir
        try:
            return self._fs.mkdir(directory)
        except FileNotFoundError:
            self._fs.mkdir(self._leases)
            return self._fs.mkdir(directory)

    def touched(self) -> set[int]:
        """The shards in which somebody has claimed something."""
        names = self._fs.names(self._leases / self.cell_dir)
        return {int(name) for name in names if name.isdigit()}

    def refresh(self, shard: int) -> Collection[str]:
        """List ``shard``; returns its names."""
        listed = set(self._fs.names(self._folder(shard)))
        known = self._shards.setdefault(shard, _Shard())
        new = listed - known.names
        if len(listed) - len(new) == len(known.names):  # none has gone
            self._add(shard, new)
        else:
            self._forget(shard)
            self._add(shard, listed)
            self.shrunk |= not known.claims.keys() <= self._shards[shard].claims.keys()
        return listed

    def listed(self, shard: int) -> bool:
        """Whether ``shard`` was listed before, however long ago."""
        return shard in self._shards

    def covering(self, position: int) -> list[Claim]:
        """The claims over ``position``, the lowest attempt first."""
        covering = self._covering.get(position, [])
        floor = self.floor(position) if covering else 0
        return [claim for claim in covering if claim.attempt > floor] if floor else covering

    def marked(self, claim: Claim, marker: str) -> bool:
        return marker in self._seen(claim)

    def closed(self) -> set[Claim]:
        """The claims that ended without finishing."""
        return {claim for claim, markers in self._known() if markers and DONE not in markers}

    def ended_short(self, claim: Claim) -> bool:
        """Whether ``claim`` ended without finishing."""
        markers = self._seen(claim)
        return bool(markers) and DONE not in markers

    def finished(self, position: int) -> bool:
        """Whether a claim over ``position`` is marked done, and not known to be void."""
        return any(self.marked(c, DONE) and c not in self.void for c in self.covering(position))

    def done(self) -> set[Claim]:
        """The claims that are marked finished, the void ones included."""
        return {claim for claim, markers in self._known() if DONE in markers}

    def covered(self) -> Set[int]:
        """The positions over which there are claims."""
        return self._covering.keys()

    def open(self, position: int) -> list[Claim]:
        """The claims over ``position`` that carry no marker: it is taken while an owner lives."""
        return [claim for claim in self.covering(position) if not self._seen(claim)]

    def attempts(self, first: int, last: int) -> int:
        """The highest attempt at any of the positions, 0 if there was none."""
        covering = (self.covering(position) for position in range(first, last + 1))
        return max((claim.attempt for claims in covering for claim in claims), default=0)

    def try_claim(
        self, first: int, last: int, recorded: int, dead: Collection[Claim] = ()
    ) -> Claim | None:
        """Claim ``first..last``; None if somebody else has any of it. Refreshes the shard.

        Args:
            recorded: the highest attempt in the rows of these positions.
            dead: open claims over them whose owners were judged dead.
        """
        shard = shard_of(first)
        attempt = 1 + max(recorded, self.attempts(first, last))
        claim = Claim(self.cell_dir, shard, first, last, attempt)
        made = self._mkdir(claim)
        self.refresh(shard)
        if not made:
            return None
        self._shards[shard].names.add(claim.name)
        self._meet(claim)
        if self._seen(claim) or self._contested(claim, dead):
            # Whoever lists second sees the first, so one of two that overlap backs off. At worst
            # both do.
            self.finish(claim, RELEASED)
            return None
        return claim

    def finish(self, claim: Claim, marker: str) -> None:
        """Close ``claim``. Its rows are on disk before. Doing it twice changes nothing."""
        name = f"{claim.name}.{marker}"
        file = self._folder(claim.shard) / name
        try:
            self._fs.create(file)
        except FileNotFoundError:
            self._make_shard(claim.shard)
            self._fs.create(file)
        self._meet(claim, marker)
        self._shards[claim.shard].names.add(name)

    def compact(self, shard: int, found: Iterable[str], over: Callable[[int], bool]) -> int:
        """Say in a few names what the names ``found`` in ``shard`` say; returns how many are fewer.

        Nothing is done while any claimed position is not ``over``, by decisions and rows read after
        the names: whoever made one of them had heard of a decision that has to be heard here, too.
        What others may still add or list meanwhile is not touched and changes no conclusion: the
        new names stand before the old go.
        """
        old = {name for name in found if parse(self.cell_dir, shard, name)}
        covered = sorted(p for p in span(shard) if self.covering(p))
        if not all(over(position) for position in covered):
            return 0
        new = set()
        for _, group in itertools.groupby(enumerate(covered), lambda item: item[1] - item[0]):
            positions = [position for _, position in group]
            first, last = positions[0], positions[-1]
            summary = Claim(self.cell_dir, shard, first, last, self.attempts(first, last))
            new.add(f"{summary.name}.{DONE}")
        if len(new) >= len(old):
            return 0
        folder = self._folder(shard)
        for name in sorted(new - old):
            self._fs.create(folder / name)
        # The claims go before their markers, so that none looks open in between.
        for name in sorted(old - new, key=lambda name: name.count(".")):
            self._fs.remove(folder / name)
        return len(old) - len(new)

    def _folder(self, shard: int) -> Path:
        if shard not in self._folders:
            self._folders[shard] = self._leases / self.cell_dir / str(shard)
        return self._folders[shard]

    def _seen(self, claim: Claim) -> Collection[str]:
        """The markers of ``claim``; none where it is not known."""
        shard = self._shards.get(claim.shard)
        return shard.claims.get(claim, ()) if shard else ()

    def _meet(self, claim: Claim, *markers: str) -> None:
        """``claim`` is real, and so are its ``markers``, even if the last listing does not show
        them; and a marker whose claim was removed still says what it says."""
        claims = self._shards.setdefault(claim.shard, _Shard()).claims
        if claim not in claims:
            claims[claim] = ()
            self._cover(claim)
        claims[claim] += markers
        self.changed.add(claim)

    def _known(self) -> Iterator[tuple[Claim, tuple[str, ...]]]:
        return (item for shard in self._shards.values() for item in shard.claims.items())

    def _contested(self, claim: Claim, dead: Collection[Claim]) -> bool:
        for position in range(claim.first, claim.last + 1):
            others = [other for other in self.covering(position) if other != claim]
            # A number that is not the highest was chosen from a view that is out of date.
            outdated = any(other.attempt >= claim.attempt for other in others)
            taken = any(not self._seen(other) and other not in dead for other in others)
            if outdated or taken or self.finished(position):
                return True
        return False

    def _mkdir(self, claim: Claim) -> bool:
        path = self._folder(claim.shard) / claim.name
        try:
            return self._fs.mkdir(path)
        except FileNotFoundError:
            self._make_shard(claim.shard)
            return self._fs.mkdir(path)

    def _make_shard(self, shard: int) -> None:
        try:
            self._fs.mkdir(self._folder(shard))
        except FileNotFoundError:
            self.touch()
            self._fs.mkdir(self._folder(shard))

    def _add(self, shard: int, names: Collection[str]) -> None:
        """Take in names that were not there before."""
        self._shards[shard].names.update(names)
        for name in names:
            if parsed := parse(self.cell_dir, shard, name):
                self._meet(*parsed)

    def _forget(self, shard: int) -> None:
        self._shards[shard] = _Shard()
        for position in span(shard):
            self._covering.pop(position, None)

    def _cover(self, claim: Claim) -> None:
        for position in range(claim.first, claim.last + 1):
            covering = self._covering.setdefault(position, [])
            bisect.insort(covering, claim, key=lambda claim: claim.attempt)
