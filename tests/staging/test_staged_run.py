"""A whole run from the node's own disk, through the script that SLURM starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from harness.foundations.metrics_files import read_rows
from harness.foundations.records import Row
from harness.foundations.variables import VARIABLES
from harness.paths import CODE

pytestmark = pytest.mark.slow
DEADLINE_S = 120.0


class Installation:
    """A checkout of its own on the "shared" folder, with environments that weigh nothing: their
    packages are this Python's."""

    def __init__(self, folder: Path) -> None:
        self.home, self.local = folder / "home", folder / "local"
        for name in ("harness", "scripts", "policy/expert", "tests/fakes", "orchestrators"):
            there = self.home / name
            if (CODE / name).is_dir():
                shutil.copytree(CODE / name, there, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("env.sh", "organize_results.py"):
            shutil.copy(CODE / name, self.home)
        for name in ("toolkit", "tabletop", "model"):
            self._environment(self.home / "envs" / name)
        bank = self.home / "bank" / "reach_goal" / "bench_demo_plane_clean.txt"
        bank.parent.mkdir(parents=True)
        bank.write_text("1 2 3 4")
        (self.home / "runs" / "r").mkdir(parents=True)
        (self.home / "runs" / "r" / "queue.txt").write_text("plane reach_goal\n")
        (self.home / "checkpoints" / "net").mkdir(parents=True)
        (self.home / "checkpoints" / "net" / "weights").write_text("w" * 1000)
        clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        self.env = {
            **clean, "STUDY_RUN": "r", "SIMULATOR": "tests.fakes.pointsim:make",
            "POLICY_NAME": "expert", "BENCH_CONFIG": "clean", "SEEDS_ROOT": "bank",
            "EVAL_TEST_NUM": "2", "EVAL_VIDEO": "none", "LEASE_TTL": "4", "CKPT_NAME": "net",
            "DXVLA_LOCAL": str(self.local), "PYTHONPATH": str(self.home), "EVAL_DOCTOR": "0",
        }  # fmt: skip

    def node(self, **env: str) -> subprocess.CompletedProcess[str]:
        """What SLURM would start on a node."""
        return subprocess.run(
            ["bash", str(self.home / "scripts" / "slurm_eval_node.sh")],
            env={**self.env, **env}, cwd=self.home, capture_output=True, text=True,
            timeout=DEADLINE_S, check=False,
        )  # fmt: skip

    def rows(self) -> list[Row]:
        return list(read_rows(self.home / "runs" / "r" / "eval_result"))

    @staticmethod
    def _environment(folder: Path) -> None:
        import venv

        venv.create(folder, with_pip=False, symlinks=True)
        (site,) = folder.glob("lib/python3*/site-packages")
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    assert sys.prefix != sys.base_prefix, "the tests run in the toolkit's environment"
    return Installation(tmp_path)


def test_a_run_from_the_node_s_own_disk(installation: Installation) -> None:
    refs = installation.home / "hf" / "hub" / "models--owner--net" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("0123")
    installation.env |= {"HF_HOME": str(installation.home / "hf"), "GIANT_BACKBONES": "owner/net"}
    policy = installation.home / "policy" / "expert" / "deploy_policy.py"
    told = (
        "import os; print('hub', os.environ['HF_HUB_OFFLINE'], os.listdir(os.environ['HF_HOME']))"
    )
    policy.write_text(f"{policy.read_text()}\n{told}\n")
    done = installation.node()
    assert done.returncode == 0, done.stdout + done.stderr
    assert [row.outcome for row in installation.rows()] == ["success"] * 2
    assert "weights net: 0.0 MB in 1 files" in done.stdout
    (log,) = (installation.home / "runs" / "r" / "logs").glob("*.model.log")
    (started,) = [line for line in log.read_text().splitlines() if "=== started" in line]
    assert f"{installation.local}/roots/" in started
    assert "/envs/model/bin/python" in started
    assert "hub 1 ['hub']" in log.read_text().splitlines()

    again = installation.node(EVAL_TEST_NUM="3")
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.count(": warm, ") == 5
    assert len(installation.rows()) == 3
    assert len({row.code_hash for row in installation.rows()}) == 1

    policy.write_text(policy.read_text() + "\n# an edit\n")
    refused = installation.node(EVAL_TEST_NUM="4")
    assert refused.returncode == 2
    assert "set EVAL_CODE_CHANGE=mark" in refused.stderr + refused.stdout
    assert len(installation.rows()) == 3
    marked = installation.node(EVAL_TEST_NUM="4", EVAL_CODE_CHANGE="mark")
    assert marked.returncode == 0, marked.stdout + marked.stderr
    assert marked.stdout.count(": warm, ") == 5, "an edit arrives without staging again"
    assert len({row.code_hash for row in installation.rows()}) == 2


def test_a_node_whose_disk_is_too_small_says_so_and_runs_nothing(
    installation: Installation,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("a small disk needs root")
    small = installation.local
    small.mkdir()
    script = 'mount -t tmpfs -o size=50m,mode=755 none "$0" && exec bash "$1"'
    node = str(installation.home / "scripts" / "slurm_eval_node.sh")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, str(small), node],
        env=installation.env, cwd=installation.home, capture_output=True, text=True,
        timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"stage to {small}: 0.05 GB free" in done.stderr
    assert installation.rows() == []
