"""Runs of scripted episodes: made, extended, and held against what they should have come to."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from harness.canonical import Sealed, episode_line
from harness.foundations.metrics_files import read_rows
from harness.foundations.settings import resolve
from harness.paths import Root, RunPaths
from harness.reports.organize import organize
from harness.reports.results import RunReader
from harness.runs import population
from harness.runs.population import Cell
from harness.runs.run import open_run
from tests.chaos.episodes import succeeds

CELLS = [Cell("plane", f"task_{k}", "bench_demo_plane_clean") for k in range(4)]
#: Seeds of each cell that are sealed, if nobody says how many.
BANK = 1000


class Violation(AssertionError):
    """A promise was broken."""


class ScriptedRun:
    """``runs/<name>`` under ``root``, sealed, with the first ``selected`` seeds of each cell.

    Attributes:
        env: what a worker of it needs.
        bank: seeds of each cell that are sealed; no more can be selected.
    """

    def __init__(self, root: Path, name: str, ttl: float, selected: int, bank: int = BANK) -> None:
        self.root, self.name, self.bank = Root(root), name, bank
        self.paths: RunPaths = self.root.run(name)
        self.env = {
            "PATH": os.environ["PATH"], "EVAL_ROOT": str(root), "STUDY_RUN": name,
            "POLICY_NAME": "expert", "SIMULATOR": "fake", "BENCH_CONFIG": "clean",
            "EVAL_VIDEO": "none", "LEASE_TTL": str(ttl), "EVAL_RETRIES": "1000",
            "EVAL_LOST_RETRIES": "1000",
        }  # fmt: skip
        self.selected = 0
        settings, _ = resolve(self.env)
        open_run(settings.root, settings, create=True)
        self.paths.queue.write_text("".join(f"{c.scene} {c.task}\n" for c in CELLS))
        self._manifests = [
            population.seal(self.paths, cell, "fake", _bank(cell, bank)) for cell in CELLS
        ]
        self.select(selected)

    def select(self, count: int) -> None:
        """Fill in: select more seeds of each cell while workers run."""
        self.selected = min(count, self.bank)
        for manifest in self._manifests:
            population.select(self.paths, manifest, self.selected)

    def lines(self) -> int:
        """Rows so far, more or less."""
        return sum(f.read_bytes().count(b"\n") for f in self.paths.results.rglob("*.jsonl"))

    def check(self, once: bool = False) -> Counter[str]:
        """Every selected episode is counted once and rightly, or ``Violation``; returns the number
        of rows of each kind.

        Args:
            once: nothing disturbed it, so no episode has a second row.
        """
        results = RunReader(self.paths).gather()
        found = results.configs["clean"]
        wanted = Counter((c.task, seed) for c in CELLS for seed in _seeds(c, self.selected))
        if Counter((e.task, e.seed) for e in found.counted) != wanted or found.holes:
            raise Violation(f"not counted once each: holes {found.holes[:5]}")
        wrong = [e for e in found.counted if e.success != succeeds(e.seed)]
        if wrong:
            raise Violation(f"counted wrongly: {wrong[:5]}")
        not_torn = [p for p in results.problems if "torn last line" not in p]
        if not_torn:
            raise Violation(f"broken rows: {not_torn[:5]}")
        kinds = Counter(
            row.error["kind"] if row.error else "outcome" for row in read_rows(self.paths.results)
        )
        if once and kinds != {"outcome": wanted.total()}:
            raise Violation(f"an undisturbed run has rows {kinds} of {wanted.total()} episodes")
        return kinds

    def table(self) -> str:
        """The per-task table that ``organize_results.py`` writes."""
        organize(self.root, self.name, f"table_{self.name}", say=lambda text: None)
        return (self.root.report(f"table_{self.name}", "clean") / "results.csv").read_text()


def _seeds(cell: Cell, count: int) -> range:
    first = 100_000 * CELLS.index(cell)
    return range(first, first + count)


def _bank(cell: Cell, count: int) -> Sealed:
    return Sealed([episode_line(s, "go", {}) for s in _seeds(cell, count)])
