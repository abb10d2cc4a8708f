"""The names that claims are kept in (see LEASES.md): what one says, and nothing of who holds it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

#: Positions a shard directory holds: with a marker each, it never has more than 256 batches' names.
SHARD = 128

#: What closes a claim: all of it settled; some of it not; given back.
DONE, SHORT, RELEASED = "done", "short", "released"

_MARKERS = (DONE, SHORT, RELEASED)

_CLAIM = re.compile(r"(\d+)-(\d+)\.(\d+)")


class Claim(NamedTuple):
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


def parse(cell_dir: str, shard: int, name: str) -> tuple[Claim] | tuple[Claim, str] | None:
    """The claim that ``name`` is of, and its marker, if it is one; None where it is neither."""
    base, _, marker = name.rpartition(".")
    if marker not in _MARKERS:
        claim = Claim.parse(cell_dir, shard, name)
        return claim and (claim,)
    claim = Claim.parse(cell_dir, shard, base)
    return claim and (claim, marker)


def shard_of(position: int) -> int:
    return position // SHARD


def span(shard: int) -> range:
    """The positions of ``shard``."""
    return range(shard * SHARD, (shard + 1) * SHARD)
