"""What a process started is found and ended, in whatever session it hides."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from harness.workers import descendants
from harness.workers.descendants import Descendants

#: Starts a process in a session of its own, says which, and waits.
STARTS_ONE = """
import subprocess, sys
apart = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
print(apart.pid, flush=True)
apart.wait()
"""


@pytest.fixture
def parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    monkeypatch.setattr(descendants, "_KILLED_S", 0.2)
    argv = [sys.executable, "-c", STARTS_ONE]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def the_one_it_started(parent: subprocess.Popen[str]) -> int:
    assert parent.stdout is not None
    return int(parent.stdout.readline())


def test_what_goes_on_without_its_parent_is_ended(parent: subprocess.Popen[str]) -> None:
    apart = the_one_it_started(parent)
    started = Descendants(parent.pid)
    parent.kill()
    parent.wait()
    assert started.end() == [apart]
    assert started.end() == []


def test_what_ends_with_its_parent_is_no_complaint(parent: subprocess.Popen[str]) -> None:
    apart = the_one_it_started(parent)
    started = Descendants(parent.pid)
    os.kill(apart, signal.SIGKILL)
    parent.wait()
    assert started.end() == []
