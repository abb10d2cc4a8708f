"""A shell to try the scripts' parts in: nothing of the caller's environment but a plain PATH."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """``shell(script, *args, **variables)`` runs bash on a script text in an empty HOME."""
    home = tmp_path / "home"
    home.mkdir()

    def run(script: str, *args: object, **variables: object) -> subprocess.CompletedProcess[str]:
        env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        return subprocess.run(
            ["/bin/bash", "-c", script, "bash", *map(str, args)],
            env={**env, **{name: str(value) for name, value in variables.items()}},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run
