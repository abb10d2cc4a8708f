"""The command in a root of its own, with the point simulator and the expert that ship for tests."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.cli import main
from harness.foundations.variables import VARIABLES
from harness.paths import CODE

POINTSIM = "tests.fakes.pointsim:make"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Rollpool = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``EVAL_ROOT``, with the expert's policy, a bank, and nothing else in the environment."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "EVAL_ROOT": tmp_path, "SIMULATOR": POINTSIM, "POLICY_NAME": "expert",
        "BENCH_CONFIG": "clean", "ROBOTWIN_PY": sys.executable, "XVLA_PY": sys.executable,
        "SEEDS_ROOT": tmp_path / "bank",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    shutil.copytree(CODE / "policy" / "expert", tmp_path / "policy" / "expert")
    for task in ("reach_goal", "reach_even", "raise_in_step"):
        for scene in ("plane", "hill"):
            bank = tmp_path / "bank" / task / f"bench_demo_{scene}_clean.txt"
            bank.parent.mkdir(parents=True, exist_ok=True)
            bank.write_text("1 2 3")
    (tmp_path / "queue.txt").write_text("plane reach_goal\nhill reach_even\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rollpool(home: Path, capfd: pytest.CaptureFixture[str]) -> Rollpool:
    """Runs the command in this process and returns its code and what it printed."""

    def call(*arguments: str) -> Outcome:
        capfd.readouterr()
        code = main(arguments)
        return Outcome(code, *capfd.readouterr())

    return call
