"""Real worker processes under every fault, and each episode counted once (see __main__.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = ["unshare", "--mount", "--fork", "--kill-child"]


def _own_mounts() -> bool:
    """Whether a disk of its own can be filled and made read-only here: root, mostly."""
    return not os.geteuid() and not subprocess.run([*NAMESPACE, "true"], check=False).returncode


@pytest.mark.slow
def test_five_hundred_faults(capsys: pytest.CaptureFixture[str]) -> None:
    """More by hand: python -m tests.chaos --faults 5000 --seed 7."""
    command = [sys.executable, "-m", "tests.chaos", "--faults", "500", "--seed", "1"]
    if _own_mounts():
        command = [*NAMESPACE, *command, "--mounts"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False
    )
    with capsys.disabled():
        print(f"[{done.stdout.strip()}]")
    assert done.returncode == 0, done.stdout + done.stderr
