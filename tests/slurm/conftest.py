"""One cluster for all tests of this folder, with an installation on its shared folder.

A machine that cannot have one (no root, no packages) skips these tests and says why; where ``CI``
is set that is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from harness.foundations.metrics_files import read_rows
from harness.foundations.records import Row, counted
from harness.foundations.variables import VARIABLES
from harness.paths import CODE, RunPaths
from tests.fakes.gate import Gate
from tests.slurm.cluster import Cluster, unavailable
from tests.waiting import DEADLINE_S, held, wait_for

SEEDS = range(1, 7)
#: What a user types, but for the run's name and numbers.
BLOCK = (
    "source env.sh; STUDY_RUN={run} srun --nodes={nodes} --ntasks-per-node=1 --gres=gpu:{gpus} "
    "--kill-on-bad-exit=0 --no-kill bash scripts/slurm_eval_node.sh"
)
#: What a user's checkout has on the shared folder.
INSTALLED = ("harness", "scripts", "policy", "orchestrators", "tests/fakes")

#: (scene, task, seed) -> what counts of an episode.
Outcomes = Mapping[tuple[str, str, int], tuple[str, int | None, str | None]]


class Pool:
    """A cluster, and what a user of it has."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.home = f"{cluster.shared}/home"
        self.gate = Gate(self.outside("gate"))
        for name in INSTALLED:
            shutil.copytree(
                CODE / name, self.outside(name), ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in ("env.sh", "organize_results.py"):
            shutil.copy(CODE / name, self.outside(name))
        clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        self.env = {
            **clean,
            "ROLLPOOL_ENVS": str(Path(sys.prefix).parent),
            "SIMULATOR": "tests.fakes.pointsim:make",
            "POLICY_NAME": "expert",
            "BENCH_CONFIG": "clean",
            "ROBOTWIN_PY": sys.executable,
            "XVLA_PY": sys.executable,
            "SEEDS_ROOT": "bank",
            "LEASE_TTL": "4",
            "DXVLA_STAGE": "0",
            "EVAL_DOCTOR": "0",  # the GPUs of these nodes are no GPUs
            "EVAL_VIDEO": "none",
            "POINTSIM_GATE": f"{self.home}/gate",
        }

    def outside(self, name: str) -> Path:
        """A file of the home, as the test sees it."""
        return self.cluster.outside(f"{self.home}/{name}")

    def paths(self, run: str) -> RunPaths:
        return RunPaths(self.outside(f"runs/{run}"))

    def queue(self, *tasks: str, seeds: range = SEEDS, configs: str = "clean") -> str:
        """A queue file of these tasks in both scenes, with banks for each configuration."""
        lines = []
        for task in tasks:
            for scene in ("plane", "hill"):
                lines.append(f"{scene} {task}\n")
                for config in configs.split():
                    bank = self.outside(f"bank/{task}/bench_demo_{scene}_{config}.txt")
                    bank.parent.mkdir(parents=True, exist_ok=True)
                    bank.write_text(" ".join(map(str, seeds)))
        self.outside("wanted.txt").write_text("".join(lines))
        return "wanted.txt"

    def make(self, run: str, *tasks: str, seeds: range = SEEDS) -> None:
        """A run directory with its queue, as a user makes it."""
        queue = self.queue(*tasks, seeds=seeds)
        self.paths(run).root.mkdir(parents=True)
        self.paths(run).results.mkdir()
        shutil.copy(self.outside(queue), self.paths(run).queue)

    def shell(self, script: str, timeout: float = DEADLINE_S, **env: str) -> tuple[int, str]:
        """Exit code and output of a user's shell on the login host."""
        argv = ("bash", "-c", script)
        return self.cluster.run(*argv, env={**self.env, **env}, cwd=self.home, timeout=timeout)

    def start(self, script: str, **env: str) -> subprocess.Popen[str]:
        """The same in the background."""
        argv = ("bash", "-c", script)
        return self.cluster.popen(argv, env={**self.env, **env}, cwd=self.home)

    def rows(self, run: str) -> list[Row]:
        return list(read_rows(self.paths(run).results))

    def held(self, run: str) -> set[str]:
        """The hosts of a run that are in the middle of an episode, and stay so."""
        return {beat["host"] for beat in held(self.gate, self.paths(run).workers)}

    def outcomes(self, run: str) -> Outcomes:
        return {
            (row.scene, row.task, row.seed): (row.outcome, row.steps, row.state_hash)
            for row in counted(self.rows(run)).values()
        }


class Jobs:
    """The cluster's jobs, for one that ``wait_for`` cannot ask for its process: over when there are
    none. What they print is in the run's logs."""

    def __init__(self, pool: Pool, run: str) -> None:
        self._cluster, self._logs = pool.cluster, pool.paths(run).logs

    @property
    def id(self) -> str:
        """Of the only one."""
        (job,) = self._ids()
        return job

    def cancel(self, *options: str) -> None:
        self._cluster.call("scancel", *options, self.id)

    def wait(self) -> None:
        """Until they are gone, by themselves."""
        wait_for(lambda: not self._ids(), "the jobs end")

    def poll(self) -> int | None:
        return None if self._ids() else 0

    def kill(self) -> None:
        self._cluster.run("scancel", "--user=root")

    def communicate(self, *, timeout: float) -> tuple[str, None]:
        return "\n".join(log.read_text() for log in self._logs.glob("slurm-*.out")), None

    def _ids(self) -> list[str]:
        return self._cluster.call("squeue", "-h", "-o", "%i").split()


@pytest.fixture(scope="session")
def _cluster() -> Iterator[Cluster]:
    if reason := unavailable():
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _pool(_cluster: Cluster) -> Pool:
    return Pool(_cluster)


@pytest.fixture
def pool(_pool: Pool) -> Iterator[Pool]:
    """The pool with all its nodes well; what a test has broken is mended after it."""
    yield _pool
    _pool.gate.open()
    _pool.cluster.mend()
