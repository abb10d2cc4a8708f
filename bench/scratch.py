"""Whole runs for measuring: an ``EVAL_ROOT`` of their own, with the simulator that costs nothing.

Promises: what ``rollpool`` does there touches nothing of this checkout and needs no environment but
the toolkit's; everything is gone when the context ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.zero.simulator import CONFIG, SCENE, TASKS
from harness.canonical import Sealed, episode_line
from harness.errors import RollpoolError
from harness.foundations.metrics_files import read_rows
from harness.foundations.records import Row
from harness.foundations.settings import resolve
from harness.foundations.variables import VARIABLES
from harness.paths import CODE, Root
from harness.runs import population
from harness.runs.population import Cell, Manifest
from harness.runs.run import Run, open_run

DEADLINE_S = 600.0


class Scratch:
    """A temporary root; use it as a context."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        shutil.copytree(CODE / "bench" / "zero" / "policy", self.path / "policy" / "zero")
        clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        self.env = {
            **clean, "EVAL_ROOT": str(self.path), "PYTHONPATH": str(CODE),
            "SIMULATOR": "bench.zero.simulator:make", "POLICY_NAME": "zero",
            "BENCH_CONFIG": "clean", "SIM_PY": sys.executable, "MODEL_PY": sys.executable,
            "EVAL_VIDEO": "none", "EVAL_CODE_CHANGE": "mark",
        }  # fmt: skip

    def command(self, *arguments: str) -> list[str]:
        """``rollpool`` with these arguments."""
        return [sys.executable, "-m", "harness.cli", *arguments]

    def rollpool(self, *arguments: str, **env: str) -> str:
        """What it printed. Raises ``RollpoolError`` with its words where it fails."""
        done = subprocess.run(
            self.command(*arguments), env={**self.env, **env}, cwd=self.path,
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        if done.returncode:
            words = " | ".join((done.stderr or done.stdout).splitlines()[-4:])
            raise RollpoolError(f"rollpool {' '.join(arguments)}", words, "see above")
        return done.stdout

    def wanted(self, tasks: Sequence[str], seeds: int) -> list[str]:
        """Arguments for ``rollpool prepare`` or ``run``: these tasks, so many seeds of each."""
        queue = self.path / f"queue-{len(tasks)}.txt"
        queue.write_text("".join(f"{SCENE} {task}\n" for task in tasks))
        bank = self.path / f"bank-{seeds}"
        for task in tasks:
            file = bank / task / f"{CONFIG}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(" ".join(map(str, range(seeds))))
        return ["--queue", str(queue), "--seeds", str(bank)]

    def sealed(
        self, run: str, tasks: int, seeds: int, **settings: str
    ) -> tuple[Run, list[Manifest]]:
        """A run that is prepared without a simulator."""
        of, _ = resolve({**self.env, "STUDY_RUN": run, **settings})
        opened = open_run(of.root, of, create=True)
        opened.paths.queue.write_text("".join(f"{SCENE} {task}\n" for task in TASKS[:tasks]))
        lines = Sealed([episode_line(k, "do nothing", {}) for k in range(seeds)])
        cells = [Cell(SCENE, task, CONFIG) for task in TASKS[:tasks]]
        manifests = [population.seal(opened.paths, cell, "nothing", lines) for cell in cells]
        return opened, [population.select(opened.paths, m, seeds) for m in manifests]

    def rows(self, run: str) -> list[Row]:
        return list(read_rows(Root(self.path).run(run).results))

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()


def span(rows: Sequence[Row]) -> float:
    """Seconds from the first episode's beginning to the last one's end."""
    return max(row.finished for row in rows) - min(row.started for row in rows)
