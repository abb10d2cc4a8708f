"""Real processes on a real directory, some of them killed over an episode."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from harness.foundations.metrics_files import read_rows
from harness.foundations.records import counted
from harness.paths import RunPaths
from tests.lease.world import World

SIZE = 500
SCRIPT = Path(__file__).with_name("chaos_worker.py")
ROOT = SCRIPT.parents[2]


class Process:
    def __init__(self, run: Path, hold: int = 0) -> None:
        self.run = subprocess.Popen(
            [sys.executable, "-u", str(SCRIPT), str(run), str(SIZE), str(hold)], cwd=ROOT,
            env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def until(self, what: str) -> list[list[str]]:
        """What it says, up to the line that begins with ``what``."""
        assert self.run.stdout
        said = []
        for line in self.run.stdout:
            said.append(line.split())
            if said[-1][0] == what:
                return said
        raise AssertionError(f"it ended without {what!r}: {said}")


def test_killed_workers_cost_no_episode(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    victims, heirs = [Process(tmp_path, hold=h) for h in (3, 40)], []
    try:
        held = dict(victim.until("holding")[-1][1:] for victim in victims)
        heirs = [Process(tmp_path) for _ in range(2)]
        for heir in heirs:
            heir.until("waiting")  # all the rest has run
        killed = time.monotonic()
        for victim in victims:
            victim.run.kill()
        said = [line for heir in heirs for line in heir.until("ended")]
    finally:
        for process in [*victims, *heirs]:
            process.run.kill()
            process.run.communicate()
    buried = [line for line in said if line[0] == "buried"]
    with capsys.disabled():
        print(f"[taken over {max(float(b[3]) for b in buried) - killed:.2f} s after kill -9]")
    # The victims' TTL is a minute. They were still their parent's zombies when they were buried.
    assert {worker: position for _, worker, position, _ in buried} == held
    rows = list(read_rows(RunPaths(tmp_path).results))
    best = counted(rows)
    assert sorted(p for _, p in best) == list(range(SIZE))
    assert all(row.outcome == World.expected(p) for (_, p), row in best.items())
    runs = Counter(row.position for row in rows if row.error is None)
    assert set(runs.values()) == {1}
