"""The slow tail with real processes: how long a run takes beside the least that it could."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.foundations.metrics_files import read_rows
from tests.chaos.runs import CELLS, ScriptedRun

ROOT = Path(__file__).resolve().parents[2]
WORKERS = 4


@pytest.mark.slow
def test_four_workers_share_the_long_episodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Log-normal episodes of 0.3 s in the median and up to 6 s, in four cells; on a busy machine
    they take longer, and so does the least."""
    run = ScriptedRun(tmp_path, "tail", 30.0, 30)
    subprocess.run(
        [sys.executable, "-m", "tests.chaos.node", str(tmp_path), "tail", "--logs", str(tmp_path),
         "--workers", str(WORKERS), "--faults", "0"],
        cwd=ROOT, env={**run.env, "SCRIPTED_MEDIAN_S": "0.3"}, timeout=300, check=True,
    )  # fmt: skip
    run.check(once=True)
    rows = list(read_rows(run.paths.results))
    assert len(rows) == len(CELLS) * 30
    took = max(row.finished for row in rows) - min(row.started for row in rows)
    seconds = [row.finished - row.started for row in rows]
    least = max(sum(seconds) / WORKERS, max(seconds))
    with capsys.disabled():
        print(f"[{took:.1f} s, at least {least:.1f}: {took / least:.2f}; {os.cpu_count()} cpus]")
    assert took < 1.6 * least
