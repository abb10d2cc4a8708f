"""Seeds that the simulator's expert solves: how a bank is made, and what runs without one.

A scene that cannot be solved says nothing about a policy, so RoboTwin-like benchmarks skip it. That
search belongs before a run: while a run scores, what is found would depend on who was first.

Promises of ``Scan``: the first solvable seeds in order are found, and no more blocks checked than
one process alone would check, however many share it; each seed has one verdict, the first that was
published; who dies loses one block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.foundations.atomic import publish_once
from harness.leases.filesystem import Filesystem
from harness.runs.population import Cell
from harness.runs.preparer import SCAN, Preparer, asking

#: Whether the expert solves each of these seeds (``SimulatorProcess.check``).
Check = Callable[[Cell, Sequence[int]], Sequence[bool]]

#: Where RoboTwin's own scan begins (its ``seed`` 0).
FIRST_SEED = 100_000
#: Seeds tried for each one wanted, before a cell is given up.
MAX_TRIES = 4
#: Seeds to a claim, a divisor of a shard's positions. RoboTwin's expert takes 10 to 60 s for one.
BLOCK = 4

_VERDICTS = re.compile(r"(\d+)-\d+\.json")


def find(check: Check, cell: Cell, first: int, count: int) -> tuple[list[int], int]:
    """Up to ``count`` solvable seeds from ``first`` upwards, and how many were tried.

    Fewer are found where the expert solves less than one in ``MAX_TRIES``.
    """
    found: list[int] = []
    tried = 0
    while len(found) < count and tried < MAX_TRIES * count:
        block = range(first + tried, first + tried + count - len(found))
        verdicts = check(cell, block)
        found += [seed for seed, solved in zip(block, verdicts, strict=True) if solved]
        tried += len(block)
    return found, tried


class Scan:
    """The search for ``count`` solvable seeds of ``cell`` from ``first`` upwards, as shared work
    (``preparer.Work``): a position is a seed's distance from ``FIRST_SEED``."""

    def __init__(
        self, preparer: Preparer, cell: Cell, check: Check, first: int, count: int
    ) -> None:
        self.cell = cell
        self._preparer, self._check, self._first, self._count = preparer, check, first, count
        self._name = f"{cell.name}.{SCAN}"
        self._verdicts = Verdicts(preparer.folder(self._name))

    def over(self) -> bool:
        return self.seeds() is not None

    def seeds(self) -> list[int] | None:
        """What was found, fewer where the expert solves too few; None while it is not known."""
        self._verdicts.refresh()
        found: list[int] = []
        for block in self._blocks():
            solved = self._solved(block)
            if solved is None:
                return None
            found += solved
            if len(found) >= self._count:
                break
        return found[: self._count]

    def advance(self) -> bool:
        possible = 0  # seeds found, if those under way are all solved: then no more are needed
        for block in self._blocks():
            solved = self._solved(block)
            if solved is None and self._checked(block):
                return True
            possible += BLOCK if solved is None else len(solved)
            if possible >= self._count:
                return False
        return False

    def _checked(self, block: int) -> bool:
        """Whether this process has checked the block now."""
        name, last = self._name, block + BLOCK - 1
        with self._preparer.piece(name, block, last, lambda: self._known(block)) as piece:
            if piece is None:
                return False
            seeds = range(FIRST_SEED + block, FIRST_SEED + block + BLOCK)
            with asking(f"check {self.cell.name}"):
                verdicts = self._check(self.cell, seeds)
            self._verdicts.record(piece.claim.shard, block, verdicts)
        return True

    def _known(self, block: int) -> bool:
        self._verdicts.refresh()
        return block in self._verdicts.known

    def _solved(self, block: int) -> list[int] | None:
        """The solvable seeds in the block, of those that are searched; None while not known."""
        verdicts = self._verdicts.known.get(block)
        if verdicts is None:
            return None
        seeds = range(FIRST_SEED + block, FIRST_SEED + block + BLOCK)
        pairs = zip(seeds, verdicts, strict=True)
        return [seed for seed, solved in pairs if solved and seed >= self._first]

    def _blocks(self) -> range:
        first = self._first - FIRST_SEED
        return range(first - first % BLOCK, first + MAX_TRIES * self._count, BLOCK)


class Verdicts:
    """Block -> whether the expert solves each of its seeds: ``<shard>/<first>-<last>.json`` in
    ``folder``. ``known`` is as of the last ``refresh``."""

    def __init__(self, folder: Path) -> None:
        self.known: dict[int, list[bool]] = {}
        self._folder, self._fs = folder, Filesystem()

    def refresh(self) -> None:
        for shard in self._fs.names(self._folder):
            for name in self._fs.names(self._folder / shard):
                match = _VERDICTS.fullmatch(name)
                if match and int(match[1]) not in self.known:
                    data = self._fs.read(self._folder / shard / name)
                    self.known[int(match[1])] = json.loads(data)

    def record(self, shard: int, block: int, verdicts: Sequence[bool]) -> None:
        """Publish what was found, unless somebody has: then that stands."""
        file = self._folder / str(shard) / f"{block}-{block + BLOCK - 1}.json"
        publish_once(file, json.dumps([bool(verdict) for verdict in verdicts]).encode())
