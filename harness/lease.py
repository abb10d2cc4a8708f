"""The claims on one manifest's positions, kept in names alone (see LEASES.md).

Promises: a claim has one owner, because ``mkdir`` has one winner, and it stands only if a listing
made after it shows no other open or finished claim over its positions; so claims of different
lengths never overlap unnoticed. Nothing is opened or renamed, and removed by ``compact`` alone.
Directories are listed by path. Not promised: that the owner lives, or that what a listing showed is
still so.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.filesystem import Filesystem

#: Positions a shard directory holds: with a marker each, it never has more than 256 batches' names.
SHARD = 128

#: What closes a claim: all of it settled; some of it not; given back.
DONE, SHORT, RELEASED = "done", "short", "released"

_MARKERS = (DONE, SHORT, RELEASED)

_CLAIM = re.compile(r"(\d+)-(\d+)\.(\d+)")


@dataclass(frozen=True)
class Claim:
    """A batch of sealed positions ``first..last`` and the number of the attempt at it."""

    cell_dir: str
    shard: int
    first: int
    last: int
    attempt: int

    @property
    def name(self) -> str:
        return f"{self.first}-{self.last}.{self.attempt}"

    def __str__(self) -> str:
        return f"{self.cell_dir}/{self.shard}/{self.name}"

    def path(self, leases: Path) -> Path:
        return leases / self.cell_dir / str(self.shard) / self.name

    def covers(self, position: int) -> bool:
        return self.first <= position <= self.last

    @classmethod
    def parse(cls, cell_dir: str, shard: int, name: str) -> Claim | None:
        """The claim of a directory name; None for a name that is no claim."""
        match = _CLAIM.fullmatch(name)
        return cls(cell_dir, shard, *map(int, match.groups())) if match else None


def shard_of(position: int) -> int:
    return position // SHARD


def touched_cells(leases: Path, fs: Filesystem) -> set[str]:
    """The cells in which somebody has begun."""
    return set(fs.names(leases))


class LeaseBook:
    """A cached view of ``<leases>/<cell_dir>``: as of the last ``refresh`` of each shard.

    Attributes:
        void: finished claims whose rows are missing; the reader of rows adds to it.
        shrunk: names that were seen have vanished: somebody removes leases.
        floor: the attempt up to which claims over a position are an earlier generation's: they
            say nothing any more.
    """

    def __init__(self, leases: Path, cell_dir: str, fs: Filesystem | None = None) -> None:
        self.cell_dir = cell_dir
        self._leases, self._fs = leases, fs or Filesystem()
        self._shards: dict[int, dict[Claim, set[str]]] = {}
        self._covering: dict[int, list[Claim]] = {}
        self.void: set[Claim] = set()
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

    def refresh(self, shard: int) -> dict[Claim, list[str]]:
        """List ``shard``; returns the names behind each claim."""
        found = self._names(shard)
        self._take_in(shard, found)
        return found

    def _take_in(self, shard: int, found: Mapping[Claim, Sequence[str]]) -> None:
        # A marker whose claim was removed still says what it says.
        claims = {
            claim: {name.rpartition(".")[2] for name in names} & {*_MARKERS}
            for claim, names in found.items()
        }
        self.shrunk |= not self._shards.get(shard, {}).keys() <= claims.keys()
        self._store(shard, claims)

    def listed(self, shard: int) -> bool:
        """Whether ``shard`` was listed before, however long ago."""
        return shard in self._shards

    def covering(self, position: int) -> list[Claim]:
        """The claims over ``position``, the lowest attempt first."""
        covering = self._covering.get(position, [])
        floor = self.floor(position)
        return [claim for claim in covering if claim.attempt > floor] if floor else covering

    def marked(self, claim: Claim, marker: str) -> bool:
        return marker in self._shards.get(claim.shard, {}).get(claim, ())

    def closed(self, *shards: int) -> set[Claim]:
        """The claims in ``shards`` (in all of them by default) that ended without finishing."""
        return self._with(lambda markers: bool(markers) and DONE not in markers, shards)

    def finished(self, position: int) -> bool:
        """Whether a claim over ``position`` is marked done, and not known to be void."""
        return any(self.marked(c, DONE) and c not in self.void for c in self.covering(position))

    def done(self) -> set[Claim]:
        """The claims that are marked finished, the void ones included."""
        return self._with(lambda markers: DONE in markers, ())

    def open(self, position: int) -> list[Claim]:
        """The claims over ``position`` that carry no marker: it is taken while an owner lives."""
        shard = self._shards.get(shard_of(position), {})
        return [claim for claim in self.covering(position) if not shard[claim]]

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
        if self._markers(claim) or self._contested(claim, dead):
            # Whoever lists second sees the first, so one of two that overlap backs off. At worst
            # both do.
            self.finish(claim, RELEASED)
            return None
        return claim

    def finish(self, claim: Claim, marker: str) -> None:
        """Close ``claim``. Its rows are on disk before. Doing it twice changes nothing."""
        path = claim.path(self._leases)
        file = path.with_name(f"{path.name}.{marker}")
        try:
            self._fs.create(file)
        except FileNotFoundError:
            self._make_shard(claim)
            self._fs.create(file)
        self._markers(claim).add(marker)

    def compact(
        self, shard: int, found: Mapping[Claim, Sequence[str]], over: Callable[[int], bool]
    ) -> int:
        """Say in a few names what the names ``found`` in ``shard`` say; returns how many are fewer.

        Nothing is done while any claimed position is not ``over``, by decisions and rows read after
        the names: whoever made one of them had heard of a decision that has to be heard here, too.
        What others may still add or list meanwhile is not touched and changes no conclusion: the
        new names stand before the old go.
        """
        old = {name: claim for claim, names in found.items() for name in names}
        covered = sorted(p for p in self._span(shard) if self.covering(p))
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
        folder = self._leases / self.cell_dir / str(shard)
        for name in sorted(new - old.keys()):
            self._fs.create(folder / name)
        # The claims go before their markers, so that none looks open in between.
        for name in sorted(old.keys() - new, key=lambda name: name.count(".")):
            self._fs.remove(folder / name)
        return len(old) - len(new)

    def _names(self, shard: int) -> dict[Claim, list[str]]:
        """The names behind each claim, as listed now."""
        found: dict[Claim, list[str]] = {}
        for name in self._fs.names(self._leases / self.cell_dir / str(shard)):
            base, _, marker = name.rpartition(".")
            claim = Claim.parse(self.cell_dir, shard, base if marker in _MARKERS else name)
            if claim:
                found.setdefault(claim, []).append(name)
        return found

    @staticmethod
    def _span(shard: int) -> range:
        return range(shard * SHARD, (shard + 1) * SHARD)

    def _markers(self, claim: Claim) -> set[str]:
        """The markers of ``claim``, which is real even if the last listing did not show it."""
        claims = self._shards.setdefault(claim.shard, {})
        if claim not in claims:
            self._store(claim.shard, {**claims, claim: set()})
        return self._shards[claim.shard][claim]

    def _with(self, which: Callable[[set[str]], bool], shards: Collection[int]) -> set[Claim]:
        names = (item for s in shards or self._shards for item in self._shards[s].items())
        return {claim for claim, markers in names if which(markers)}

    def _contested(self, claim: Claim, dead: Collection[Claim]) -> bool:
        for position in range(claim.first, claim.last + 1):
            others = [other for other in self.covering(position) if other != claim]
            # A number that is not the highest was chosen from a view that is out of date.
            outdated = any(other.attempt >= claim.attempt for other in others)
            taken = any(not self._markers(other) and other not in dead for other in others)
            if outdated or taken or self.finished(position):
                return True
        return False

    def _mkdir(self, claim: Claim) -> bool:
        path = claim.path(self._leases)
        try:
            return self._fs.mkdir(path)
        except FileNotFoundError:
            self._make_shard(claim)
            return self._fs.mkdir(path)

    def _make_shard(self, claim: Claim) -> None:
        directory = claim.path(self._leases).parent
        try:
            self._fs.mkdir(directory)
        except FileNotFoundError:
            self.touch()
            self._fs.mkdir(directory)

    def _store(self, shard: int, claims: dict[Claim, set[str]]) -> None:
        self._shards[shard] = claims
        for position in self._span(shard):
            self._covering.pop(position, None)
        for claim in sorted(claims, key=lambda claim: claim.attempt):
            for position in range(claim.first, claim.last + 1):
                self._covering.setdefault(position, []).append(claim)
