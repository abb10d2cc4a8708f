"""Nodes that stage from a real NFS mount to their own disk and run from there, two at once: each
episode once, though the folder of results was missing when both of them looked first."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from harness.foundations.variables import VARIABLES
from tests.nfs.test_nfs import machines, shared
from tests.staging.test_staged_run import Installation

__all__ = ["shared"]  # a fixture of theirs

pytestmark = pytest.mark.slow


def test_cold_then_warm_from_nfs(shared: Path) -> None:
    there = Installation(shared / "export")
    meshes = there.home / "assets" / "meshes"
    meshes.mkdir(parents=True)
    for number in range(300):
        (meshes / f"{number}.obj").write_bytes(number.to_bytes(8, "big") * 500)
    variables = {
        **there.env, "DXVLA_LOCAL": "/tmp/dxvla_local", "LEASE_TTL": "30", "EVAL_TEST_NUM": "4",
        "ROLLPOOL_ENVS": f"{there.home}/envs",
    }  # fmt: skip
    given = [f"{k}={v}" for k, v in variables.items() if k in VARIABLES or k == "PYTHONPATH"]
    start = shlex.join(["env", *given, "bash", "scripts/slurm_eval_node.sh"])
    script = [
        "set -e", f"cd {there.home}", "export HOME=/tmp", start, start,
        "diff -r assets/meshes /tmp/dxvla_local/assets/meshes@*[0-9a-f]/",
    ]  # fmt: skip
    said = machines(shared, "vers=4.2", "bash", "-c", "\n".join(script))
    for machine in ("machine1", "machine2"):
        lines = [line for line in said.splitlines() if line.startswith(machine)]
        ready = [line for line in lines if "base ready in /tmp/dxvla_local" in line]
        assert [": 0 warm, 4 copied" in line for line in ready] == [True, False], said
        assert ": 4 warm, 0 copied" in ready[1], said
    rows = there.rows()
    told = [(row.seed, row.attempt, row.host, row.outcome, row.error) for row in rows]
    assert sorted(row.seed for row in rows) == [1, 2, 3, 4], told
    assert {row.outcome for row in rows} == {"success"}
