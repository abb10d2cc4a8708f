"""The episodes of a run as one decides about them: what is recorded, set aside or under way.

Promises: the attempt a decision speaks of is the highest that anybody had begun when it was made,
by rows, by names of leases or by heartbeats; whoever begins later is of what comes after.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.foundations.metrics_files import read_rows
from harness.leases.budget import Budget
from harness.leases.decisions import RETRY, SKIP, Decisions, decide
from harness.leases.filesystem import Filesystem
from harness.leases.heartbeat import holdings
from harness.leases.lease import LeaseBook
from harness.leases.names import Claim
from harness.leases.observer import Observer
from harness.paths import RunPaths
from harness.reports.results import sealed_cells
from harness.runs import population
from harness.runs.population import Manifest
from harness.simulators.contract import Episode


@dataclass(frozen=True)
class Standing:
    """How one selected episode stands. ``aside``: why it is set aside, if it is."""

    episode: Episode
    attempt: int  # the highest that anybody has begun
    settled: bool
    failed: bool
    aside: str | None

    def concerned(self, do: str) -> bool:
        """Whether the decision would change anything."""
        if do == RETRY:
            return not self.settled and (self.failed or self.aside is not None)
        if do == SKIP:
            return not self.settled
        return self.attempt > 0

    def __str__(self) -> str:
        said = "has its result" if self.settled else self.aside or f"{self.attempt} attempts so far"
        e = self.episode
        return f"{e.scene}/{e.task} {e.task_config} seed {e.seed}: {said}"


class Chooser:
    """Raises ``RollpoolError`` where the run holds nothing sealed."""

    def __init__(self, paths: RunPaths, limits: tuple[int, int]) -> None:
        self.paths, self._limits, self._fs = paths, limits, Filesystem()

    def standings(self) -> Iterator[Standing]:
        """Every selected episode: names first, then rows, as whoever joins does."""
        manifests = [
            m for cell in sealed_cells(self.paths) for m in population.load(self.paths, cell)
        ]
        books = {manifest.hash: self._book(manifest) for manifest in manifests}
        named = self._named()
        decisions = Decisions(self.paths.decisions)
        decisions.refresh()
        budget = Budget(*self._limits, decisions)
        for row in read_rows(self.paths.results):
            budget.add(row)
        for manifest in manifests:
            book = books[manifest.hash]
            under_way = [claim for claim in named if claim.cell_dir == book.cell_dir]
            for position in population.selected_positions(manifest):
                claims = [claim for claim in under_way if claim.covers(position)]
                yield Standing(
                    manifest.episodes[position],
                    max(
                        budget.attempts(manifest.hash, position), book.attempts(position, position),
                        *(claim.attempt for claim in claims), 0,
                    ),
                    budget.settled(manifest.hash, position),
                    budget.failed(manifest.hash, position),
                    budget.quarantined(manifest.hash, position),
                )  # fmt: skip

    def decide(self, do: str, chosen: Sequence[Standing], by: str, why: str) -> Path:
        """Publish the decision; returns its file."""
        episodes = {(s.episode.manifest, s.episode.position): s.attempt for s in chosen}
        return decide(self.paths.decisions, do, episodes, by, why)

    def rename_leases(self, decision: Path) -> Path | None:
        """Put the leases aside, under the number of the reset; None where there are none.

        Not needed, since what they say is an earlier generation's; it keeps listings short. Whoever
        holds one of them finds its name gone, as if somebody had removed it.
        """
        renamed = self.paths.leases.with_name(f"{self.paths.leases.name}.before-{decision.stem}")
        with contextlib.suppress(FileNotFoundError):
            self.paths.leases.rename(renamed)
            return renamed
        return None

    def _book(self, manifest: Manifest) -> LeaseBook:
        name = self.paths.lease_dir(manifest.cell.name, manifest.hash).name
        book = LeaseBook(self.paths.leases, name, self._fs)
        for shard in book.touched():
            book.refresh(shard)
        return book

    def _named(self) -> list[Claim]:
        observer = Observer(self.paths.workers, ttl=60.0)
        observer.look()
        held = (each for record in observer.records().values() for each in holdings(record))
        names = (each["claim"] for each in held if each["claim"])
        return [claim for name in names if (claim := _parse(name))]


def _parse(text: str) -> Claim | None:
    cell_dir, shard, name = text.rsplit("/", 2)
    return Claim.parse(cell_dir, int(shard), name)
