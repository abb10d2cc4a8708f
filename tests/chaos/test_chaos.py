"""Real worker processes under every fault, and each episode counted once (see __main__.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = ["unshare", "--mount", "--fork", "--kill-child"]


@pytest.mark.slow
def test_five_hundred_faults(capsys: pytest.CaptureFixture[str]) -> None:
    """More by hand: python -m tests.chaos --faults 5000 --seed 7."""
    mounts = os.geteuid() == 0 and not subprocess.run([*NAMESPACE, "true"], check=False).returncode
    done = subprocess.run(
        [*(NAMESPACE if mounts else []), sys.executable, "-m", "tests.chaos", "--faults", "500",
         "--seed", "1", *(["--mounts"] if mounts else [])],
        cwd=ROOT, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    with capsys.disabled():
        print(
            f"[{done.stdout.strip()}{'' if mounts else ' (the disk was left in peace: no root)'}]"
        )
    assert done.returncode == 0, done.stdout + done.stderr
