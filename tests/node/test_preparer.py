"""Of many that start at once one prepares; a dead one is replaced."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import RollpoolError
from harness.paths import CODE, RunPaths
from harness.preparer import prepare_once

#: Prepares by writing its name, slowly enough for the others to come.
STARTER = """
import sys, time
from pathlib import Path
from harness.paths import RunPaths
from harness.preparer import prepare_once
root, name = Path(sys.argv[1]), sys.argv[2]
def prepare():
    with (root / "prepared_by").open("a") as file:
        file.write(name + "\\n")
    time.sleep(0.5)
    (root / "ready").touch()
prepare_once(RunPaths(root), 2.0, (root / "ready").exists, prepare)
"""


def start(root: Path, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", STARTER, str(root), name], cwd=CODE)


def test_of_many_one_prepares(tmp_path: Path) -> None:
    starters = [start(tmp_path, str(number)) for number in range(6)]
    assert [starter.wait(60) for starter in starters] == [0] * 6
    assert len((tmp_path / "prepared_by").read_text().split()) == 1


def test_what_is_prepared_is_left_alone(tmp_path: Path) -> None:
    def never() -> None:
        raise AssertionError

    assert not prepare_once(RunPaths(tmp_path), 1.0, lambda: True, never)
    assert list(tmp_path.iterdir()) == []


def test_a_preparer_that_fails_leaves_it_to_the_next(tmp_path: Path) -> None:
    def fail() -> None:
        raise RollpoolError("queue.txt line 1", "no such task", "correct it")

    for _ in range(2):
        with pytest.raises(RollpoolError, match="no such task"):
            prepare_once(RunPaths(tmp_path), 1.0, lambda: False, fail)
    done: list[bool] = []
    assert prepare_once(RunPaths(tmp_path), 1.0, lambda: bool(done), lambda: done.append(True))
    assert len(list((tmp_path / "preparing").iterdir())) == 3


def test_a_preparer_that_never_said_a_word_is_replaced_after_the_ttl(tmp_path: Path) -> None:
    (tmp_path / "preparing" / "0-0.4").mkdir(parents=True)
    done: list[bool] = []
    assert prepare_once(RunPaths(tmp_path), 0.5, lambda: bool(done), lambda: done.append(True))
    assert (tmp_path / "preparing" / "0-0.5").is_dir()


def test_a_run_that_nobody_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RollpoolError, match="make it with its queue: mkdir -p"):
        prepare_once(RunPaths(tmp_path / "none"), 1.0, lambda: False, lambda: None)
