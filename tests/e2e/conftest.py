"""Whole runs as real processes, in a root of their own, with the point simulator."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.foundations.metrics_files import read_rows
from harness.foundations.records import Row, counted
from harness.foundations.variables import VARIABLES
from harness.leases.heartbeat import Record
from harness.paths import CODE, RunPaths
from tests.fakes.gate import Gate
from tests.waiting import DEADLINE_S, held

LAUNCHER = CODE / "scripts" / "rollpool"
SEEDS = range(1, 7)


class Home:
    """An ``EVAL_ROOT`` with a queue of six cells of six seeds, and the command to run in it."""

    def __init__(self, path: Path) -> None:
        self.path, self.gate = path, Gate(path / "gate")
        clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        self.env = {
            **clean,
            "EVAL_ROOT": str(path),
            "SIMULATOR": "tests.fakes.pointsim:make",
            "POLICY_NAME": "expert",
            "BENCH_CONFIG": "clean",
            "ROBOTWIN_PY": sys.executable,
            "XVLA_PY": sys.executable,
            "SEEDS_ROOT": str(path / "bank"),
            "EVAL_VIDEO": "none",
            "LEASE_TTL": "5",
            "POINTSIM_SCRATCH": str(path / "scratch"),
            "POINTSIM_GATE": str(path / "gate"),
            # Somebody may edit the checkout while a run of it goes on.
            "EVAL_CODE_CHANGE": "mark",
        }

    def queue(self, *tasks: str, seeds: range = SEEDS) -> Path:
        """A queue of these tasks in both scenes, with their banks."""
        lines = []
        for task in tasks:
            for scene in ("plane", "hill"):
                lines.append(f"{scene} {task}\n")
                bank = self.path / "bank" / task / f"bench_demo_{scene}_clean.txt"
                bank.parent.mkdir(parents=True, exist_ok=True)
                bank.write_text(" ".join(map(str, seeds)))
        file = self.path / "wanted.txt"
        file.write_text("".join(lines))
        return file

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "harness.cli", *arguments],
            env={**self.env, "PYTHONPATH": str(CODE), **env},
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def call(self, *arguments: str, **env: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr of ``rollpool``; it must end within the deadline."""
        with self.start(*arguments, **env) as process:
            try:
                out, err = process.communicate(timeout=DEADLINE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # leaving the context would wait for it
                raise
        return process.returncode, out, err

    def rows(self, run: str) -> list[Row]:
        return list(read_rows(self.path / "runs" / run / "eval_result"))

    def held(self, run: str) -> list[Record]:
        """Who is in the middle of an episode, and stays so (see ``waiting.held``)."""
        return held(self.gate, RunPaths(self.path / "runs" / run).workers)

    def outcomes(self, run: str) -> Mapping[tuple[str, str, int], tuple[object, ...]]:
        """(scene, task, seed) -> what counts of it."""
        return {
            (row.scene, row.task, row.seed): (row.outcome, row.steps, row.state_hash)
            for row in counted(self.rows(run)).values()
        }


@pytest.fixture
def home(tmp_path: Path) -> Home:
    shutil.copytree(CODE / "policy" / "expert", tmp_path / "policy" / "expert")
    shutil.copytree(CODE / "policy" / "random", tmp_path / "policy" / "random")
    return Home(tmp_path)
