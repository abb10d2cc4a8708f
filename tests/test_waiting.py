"""What tests wait with: a wait that cannot be fulfilled ends, with what was said."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests import waiting
from tests.fakes.gate import Gate
from tests.waiting import wait_for


def started(script: str) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(["sh", "-c", script], text=True, start_new_session=True, **pipes)


def test_it_ends_with_who_had_to_fulfil_it() -> None:
    with pytest.raises(AssertionError, match=r"(?s)it comes: who had to.*so it goes.*and so on"):
        wait_for(lambda: False, "it comes", started("echo so it goes; echo and so on >&2"))


def test_what_its_maker_did_before_its_end_counts(tmp_path: Path) -> None:
    process = started(f"touch {tmp_path}/done")
    process.communicate()
    wait_for((tmp_path / "done").exists, "it comes", process)


def test_it_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "DEADLINE_S", 0.0)
    process = started("exec sleep inf")
    with pytest.raises(AssertionError, match="it comes: not within 0 s"):
        wait_for(lambda: False, "it comes", process)
    assert process.returncode == -signal.SIGKILL


def test_who_keeps_the_pipes_open_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_LAST_WORDS_S", 0.2)
    process = started("sleep inf & echo so it goes")
    try:
        with pytest.raises(AssertionError, match="so it goes"):
            wait_for(lambda: False, "it comes", process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)


def test_a_gate_holds_those_behind_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(tmp_path / "gate")
    assert not gate.holds(1)
    gate.close(passing=2)
    assert [gate.holds(seed) for seed in (1, 2, 3)] == [False, False, True]
    gate.wait(2)
    monkeypatch.setattr("tests.fakes.gate.DEADLINE_S", 0.0)
    with pytest.raises(TimeoutError):
        gate.wait(3)
    gate.open()
    gate.wait(3)
