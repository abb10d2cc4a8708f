"""The same chaos where names are really stale: NFS clients, and FUSE mounts that cache.

Skipped, with the reason, where such mounts cannot be made; under CI that is a failure.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.foundations.variables import VARIABLES
from tests.chaos.runs import ScriptedRun
from tests.nfs.machines import unavailable

ROOT = Path(__file__).resolve().parents[2]
PRIVATE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
TTL = 5.0

pytestmark = pytest.mark.slow


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every machine sees: /tmp is each one's own."""
    if reason := unavailable():
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="rollpool-nfs-", dir="/var/tmp"))
    for name in ("export", "work"):
        (folder / name).mkdir()
    yield folder
    shutil.rmtree(folder)


def machines(shared: Path, options: str, *command: str) -> str:
    """Run a command on two NFS clients at once; what they said."""
    return _run(
        *PRIVATE, "--net", sys.executable, "-m", "tests.nfs.machines",
        str(shared / "export"), str(shared / "work"), "--options", options, "--", *command,
    )  # fmt: skip


def _run(*command: str) -> str:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=480, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


def _variables(run: ScriptedRun) -> list[str]:
    return [f"{name}={value}" for name, value in run.env.items() if name in VARIABLES]


def _node(root: Path, run: ScriptedRun, logs: Path, faults: int, seed: str) -> str:
    command = [
        "env", *_variables(run), sys.executable, "-m", "tests.chaos.node", str(root), run.name,
        "--logs", str(logs), "--workers", "2", "--faults", str(faults), "--every", "0.6",
        "--deadline", "200",
    ]  # fmt: skip
    return f"{shlex.join(command)} --seed {seed}"


@pytest.mark.parametrize("options", ["vers=4.2", "vers=4.2,actimeo=3"])
def test_two_nfs_clients_in_chaos(
    shared: Path, options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ScriptedRun(shared / "export", "nfs", TTL, 100)
    node = _node(shared / "export", run, shared / "work", 20, "$MACHINE")
    said = machines(shared, options, "bash", "-c", node)
    _report(capsys, options, said, run)


def test_stale_fuse_mounts_in_chaos(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two mounts of one folder, each with attributes, names and missing names cached for 3 s."""
    run = ScriptedRun(shared / "export", "fuse", TTL, 150)
    script = ["set -e", f"cd {shlex.quote(str(shared))}"]
    for k in (1, 2):
        script += [
            f"mkdir mount{k}",
            "bindfs -o attr_timeout=3,entry_timeout=3,negative_timeout=3,auto_cache,"
            f"ac_attr_timeout=0 export mount{k}",
        ]
    script += [f"cd {shlex.quote(str(ROOT))}"]
    nodes = (_node(shared / f"mount{k}", run, shared / "work", 40, str(k)) for k in (1, 2))
    script += [f"{node} & pid{k}=$!" for k, node in enumerate(nodes)]
    script += ["wait $pid0", "wait $pid1"]
    said = _run(*PRIVATE, "bash", "-c", "\n".join(script))
    _report(capsys, "bindfs", said, run)


def _report(capsys: pytest.CaptureFixture[str], what: str, said: str, run: ScriptedRun) -> None:
    kinds = run.check()
    with capsys.disabled():
        faults = " ".join(line for line in said.splitlines() if "{" in line)
        print(f"[{what}: {faults}; rows {dict(kinds)}]")


def test_nfs_operations_of_a_claim(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A claim is mkdir, listing, marker: three calls, and a handful of operations on the wire, a
    third more than bare mkdir and create."""
    (shared / "export" / "1").mkdir()
    (shared / "export" / "2").mkdir()
    command = f"{sys.executable} -m bench.lease_costs --nfs --folder {shared}/export/$MACHINE"
    said = machines(shared, "vers=4.2", "bash", "-c", command)
    for line in said.splitlines():
        cost = json.loads(line.partition(": ")[2])
        claim, pair = ({k: round(n, 2) for k, n in cost[of].items()} for of in ("claim", "pair"))
        with capsys.disabled():
            print(f"[{sum(claim.values()):.1f} NFS operations a claim: {claim}; beside a bare pair "
                  f"of {sum(pair.values()):.1f}: {cost['claims / pairs']}]")  # fmt: skip
        assert sum(claim.values()) < 10
        assert sum(claim.values()) < 1.6 * sum(pair.values())
