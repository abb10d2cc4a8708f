"""One read-only installation, several people: runs of their own, and a run they share."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.foundations.metrics_files import read_rows
from harness.foundations.variables import VARIABLES
from harness.paths import CODE

GROUP, ANN, BEN, EVE = 61000, 61001, 61002, 61003
DEADLINE_S = 90.0

#: Python may lie in root's home, which is closed: in a mount namespace of the call's own, an open
#: folder with Python alone takes its place. Then the command, with the usual umask.
OPEN_THE_WAY = """
closed="$0" python="$1"
shift
if [ "$closed" ]; then
  mount --bind "$python" /mnt
  mount -t tmpfs -o mode=755 none "$closed"
  mkdir -p "$python"
  mount --bind /mnt "$python"
fi
umask 022
exec "$@"
"""


class Institute:
    """People with a group (Eve is not in it), an installation that none of them may write to."""

    def __init__(self, folder: Path) -> None:
        self.install, self.runs = folder / "install", folder / "shared_runs"
        for name in ("harness", "scripts", "policy/expert", "tests/fakes"):
            shutil.copytree(CODE / name, self.install / name)
        bank = self.install / "seeds" / "bank" / "reach_goal" / "bench_demo_plane_clean.txt"
        bank.parent.mkdir(parents=True)
        bank.write_text("1 2 3 4")
        (self.install / "queue.txt").write_text("plane reach_goal\n")
        self.runs.mkdir()
        os.chown(self.runs, ANN, GROUP)
        self.runs.chmod(0o2775)
        clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        self.env = {
            **clean, "EVAL_ROOT": str(self.install), "RUNS_ROOT": str(self.runs),
            "SIMULATOR": "tests.fakes.pointsim:make", "POLICY_NAME": "expert",
            "BENCH_CONFIG": "clean", "ROBOTWIN_PY": sys.executable, "XVLA_PY": sys.executable,
            "SEEDS_ROOT": "seeds/bank", "EVAL_VIDEO": "none", "LEASE_TTL": "4",
            "PYTHONPATH": str(self.install), "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nonexistent",
        }  # fmt: skip

    def call(self, person: int, *arguments: str, **env: str) -> tuple[int, str]:
        """``rollpool`` by a person with the usual umask of 022."""
        groups = [] if person == EVE else [GROUP]
        identity = [f"--reuid={person}", f"--regid={person}", "--clear-groups"]
        if groups:
            identity[-1] = f"--groups={GROUP}"
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", OPEN_THE_WAY, closed_folder(), sys.base_prefix,
             "setpriv", *identity, sys.executable, "-m", "harness.cli", *arguments],
            env={**self.env, **env}, cwd="/", capture_output=True, text=True, timeout=DEADLINE_S,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def wrote(self) -> list[Path]:
        """What in the installation belongs to anybody but root."""
        return [p for p in self.install.rglob("*") if p.lstat().st_uid != 0]


def closed_folder() -> str:
    """The folder on the way to this Python that is not for everybody, if any."""
    way = Path(sys.base_prefix).parents
    return next((str(p) for p in reversed(way) if not p.stat().st_mode & 0o001), "")


@pytest.fixture
def institute(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Institute]:
    if os.geteuid() != 0:
        if os.environ.get("CI"):
            raise AssertionError("several people need root")
        pytest.skip("several people need root")
    folder = Path(f"/var/tmp/rollpool-group-{os.getpid()}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    try:
        institute = Institute(folder)
        code, out = institute.call(ANN, "list", "policies")
        if code:
            pytest.skip(f"this Python is root's alone: {out.splitlines()[-1]}")
        yield institute
    finally:
        shutil.rmtree(folder)


def test_a_run_of_one_s_own(institute: Institute, tmp_path: Path) -> None:
    own = institute.install.parent / "ben"
    own.mkdir()
    os.chown(own, BEN, BEN)
    queue = str(institute.install / "queue.txt")
    code, out = institute.call(BEN, "run", "mine", "--queue", queue, RUNS_ROOT=str(own))
    assert code == 0, out
    assert (own / "mine" / "token").stat().st_mode & 0o777 == 0o600
    assert institute.wrote() == []
    assert list(institute.runs.iterdir()) == []


def test_a_run_that_a_group_shares(institute: Institute) -> None:
    queue = str(institute.install / "queue.txt")
    code, out = institute.call(ANN, "run", "ours", "--queue", queue, "--test-num", "2")
    assert code == 0, out
    run = institute.runs / "ours"
    token = run / "token"
    assert (token.stat().st_mode & 0o777, token.stat().st_gid) == (0o640, GROUP)
    code, out = institute.call(BEN, "run", "ours", "--queue", queue, "--test-num", "4")
    assert code == 0, out
    rows = list(read_rows(run / "eval_result"))
    assert len(rows) == 4
    owners = {path.stat().st_uid for path in (run / "workers").iterdir()}
    assert owners == {ANN, BEN}


def test_whoever_is_not_of_the_group_is_refused(institute: Institute) -> None:
    queue = str(institute.install / "queue.txt")
    assert institute.call(ANN, "prepare", "ours", "--queue", queue)[0] == 0
    code, out = institute.call(EVE, "work", "ours")
    assert code == 2
    assert "is its owner's alone" in out and "Traceback" not in out
    assert json.loads((institute.runs / "ours" / "run.json").read_text())["format"] == 1
