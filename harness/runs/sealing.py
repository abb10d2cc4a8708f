"""Sealing one cell's bank: which manifest it becomes, whoever of many seals it.

Promises: a bank that is sealed is never sealed again, and one that is sealed elsewhere is taken
over byte for byte; what slow sealing has come to is recorded as it goes, so whoever dies loses the
last part alone, and what it had of the next bank while that was published; of two that seal the
same part the first one's lines stand.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.canonical import Sealed, canonical_json, seed_of
from harness.errors import RollpoolError
from harness.foundations.atomic import publish_once
from harness.leases.filesystem import Filesystem
from harness.paths import RunPaths
from harness.runs import population
from harness.runs.population import Cell, Manifest
from harness.runs.preparer import SEAL, Piece, Preparer, asking
from harness.runs.reuse import Source

#: The manifest's lines of the first of these seeds, one at least (``SimulatorProcess.seal``).
SealLines = Callable[[Cell, Sequence[int]], Sealed]

#: What a death may cost, but for the seeds that one request is about.
_RECORD_S = 30.0
#: Seeds to a request at most; the simulator answers when ``REQUEST_S`` are over.
_REQUEST = 1024
REQUEST_S = 5.0


def work_name(cell: Cell, seeds: Sequence[int]) -> str:
    """What the sealing of a bank is called in ``preparing/``."""
    digest = hashlib.sha256(canonical_json(list(seeds)).encode()).hexdigest()
    return f"{cell.name}.{SEAL}{digest[:12]}"


class Sealing:
    """The bank ``seeds`` of ``cell`` as shared work (``preparer.Work``).

    Args:
        source: a manifest of another run to take over instead of asking the simulator.
        simulator: gives the simulator's name.
    """

    def __init__(
        self, paths: RunPaths, preparer: Preparer, cell: Cell, seeds: Sequence[int],
        seal: SealLines, simulator: Callable[[], str], source: Source | None = None,
    ) -> None:  # fmt: skip
        self.cell, self.seeds = cell, seeds
        self.manifest: Manifest | None = None
        self._paths, self._preparer, self._source = paths, preparer, source
        self._name = work_name(cell, seeds)
        self._seal, self._simulator = seal, simulator

    def over(self) -> bool:
        if self.manifest is None:
            self.manifest = self._found()
        return self.manifest is not None

    def advance(self) -> bool:
        if self._source is not None:
            self._preparer.begin()
            self.manifest = self._source.copy_to(self._paths)
            return True
        with contextlib.ExitStack() as held:
            piece = held.enter_context(self._preparer.piece(self._name, 0, 0, self.over))
            if piece is None:
                return False
            sealed, simulator = self._sealed(piece), self._simulator()
            # A disk is slow: the simulator is asked for the next bank meanwhile.
            self._preparer.end_behind(held, lambda: self._publish(piece, simulator, sealed))
        return True

    def _publish(self, piece: Piece, simulator: str, sealed: Sealed) -> None:
        if piece.held():
            self.manifest = population.seal(self._paths, self.cell, simulator, sealed)

    def _found(self) -> Manifest | None:
        """A manifest that begins with these seeds: sealed is sealed, whatever the simulator says
        today."""
        for manifest in population.load(self._paths, self.cell):
            if manifest.episodes.seeds()[: len(self.seeds)] == list(self.seeds):
                return manifest
        return None

    def _sealed(self, piece: Piece) -> Sealed:
        """The lines of all seeds, those that are recorded among them."""
        parts = Parts(self._preparer.folder(self._name))
        fresh: list[str] = []
        limit, recorded = 0, time.monotonic()
        while (done := len(parts.lines) + len(fresh)) < len(self.seeds):
            if fresh and time.monotonic() - recorded > _RECORD_S and piece.held():
                parts.add(fresh)
                fresh, recorded = [], time.monotonic()
                continue
            lines, limit = self._asked(self.seeds[done : done + _REQUEST])
            fresh += lines
        return Sealed(parts.lines + fresh, limit)

    def _asked(self, seeds: Sequence[int]) -> Sealed:
        with asking(f"seal {self.cell.name}"):
            sealed = self._seal(self.cell, seeds)
        found = list(map(seed_of, sealed.lines))
        if not found or found != list(seeds[: len(found)]):
            raise RollpoolError(
                f"seal {self.cell.name}", "the simulator sealed other seeds than were asked for",
                "mend its adapter's `seal`",
            )  # fmt: skip
        return sealed


class Parts:
    """Lines that were recorded while a bank was sealed, in files ``part<k>.jsonl`` of
    ``folder``: part k goes on where part k - 1 ends, so of two that write part k the second has to
    follow the first."""

    def __init__(self, folder: Path) -> None:
        self.lines: list[str] = []
        self._folder, self._count = folder, 0
        names = Filesystem().names(folder)
        while self._next().name in names:
            self._read()

    def add(self, lines: Sequence[str]) -> None:
        """Record ``lines``, or take what somebody else has recorded in their place."""
        publish_once(self._next(), "\n".join([*lines, ""]).encode())
        self._read()

    def _next(self) -> Path:
        return self._folder / f"part{self._count}.jsonl"

    def _read(self) -> None:
        self.lines += self._next().read_text().splitlines()
        self._count += 1
