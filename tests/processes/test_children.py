"""Children end with their parent, with their group, and within their time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.errors import RollpoolError
from harness.workers import children
from tests.waiting import wait_for

Spawn = Callable[..., "subprocess.Popen[bytes]"]


def running(pid: int) -> bool:
    """Neither gone nor a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    started = []

    def start(code: str, *arguments: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-c", textwrap.dedent(code), *arguments]
        started.append(children.spawn(argv, tmp_path / "log", children.environment()))
        return started[-1]

    yield start
    for proc in started:
        children.end(proc, 0)


def said(tmp_path: Path, word: str) -> Callable[[], bool]:
    return lambda: word in children.last_lines(tmp_path / "log")


def test_it_ends_at_term_and_is_reaped(spawn: Spawn, tmp_path: Path) -> None:
    proc = spawn("import time; print('up'); time.sleep(600)")
    wait_for(said(tmp_path, "up"), "it is up")
    assert children.end(proc, 10) == -signal.SIGTERM
    assert not Path(f"/proc/{proc.pid}").exists()
    assert children.end(proc, 10) == -signal.SIGTERM


def test_its_end_is_seen_where_the_parent_was_started_deaf_to_it(
    spawn: Spawn, tmp_path: Path
) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        proc = spawn("raise SystemExit(3)")
        wait_for(lambda: children.exited(proc), "it ends")
        assert children.end(proc) == 3
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_deaf_to_term_it_is_killed(spawn: Spawn, tmp_path: Path) -> None:
    proc = spawn(
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('up'); time.sleep(600)"
    )
    wait_for(said(tmp_path, "up"), "it is up")
    assert children.end(proc, 0.05) == -signal.SIGKILL


@pytest.mark.parametrize("ends_first", [True, False])
def test_its_own_children_end_with_it(spawn: Spawn, tmp_path: Path, ends_first: bool) -> None:
    proc = spawn(
        """
        import signal, subprocess, sys, time
        child = subprocess.Popen(
            [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN);"
             "print('up'); time.sleep(600)"])
        print(child.pid)
        time.sleep(0 if sys.argv[1] == "True" else 600)
        """,
        str(ends_first),
    )
    wait_for(said(tmp_path, "up"), "it is up")
    grandchild = int(next(line for line in children.last_lines(tmp_path / "log") if line != "up"))
    if ends_first:
        wait_for(lambda: children.exited(proc), "it ends")
    assert running(grandchild)
    children.end(proc, 0.2)
    wait_for(lambda: not running(grandchild), "it ends, too")


def test_the_kernel_kills_it_with_its_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                """
            import sys, time
            from pathlib import Path
            from harness.workers import children
            argv = [sys.executable, "-c", "import os, time; print(os.getpid()); time.sleep(600)"]
            children.spawn(argv, Path(sys.argv[1]), children.environment())
            time.sleep(600)
            """
            ),
            str(tmp_path / "log"),
        ],
        env=children.environment(),
    )
    wait_for(lambda: children.last_lines(tmp_path / "log"), "it says something")
    child = int(children.last_lines(tmp_path / "log")[0])
    parent.kill()
    parent.wait()
    wait_for(lambda: not running(child), "it ends, too")


def test_what_its_children_started_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """One child has ended before, in good order: its group is no longer the parent's to kill."""
    code = """
        import sys, time
        from pathlib import Path
        from harness.workers import children
        log, env = Path(sys.argv[1]), children.environment()
        children.end(children.spawn([sys.executable, "-c", ""], log, env), 10)
        argv = ["sh", "-c", "trap '' TERM; sleep 600 & echo $!; wait"]
        children.spawn(argv, log, env)
        time.sleep(600)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "log")],
        env=children.environment(),
    )
    wait_for(lambda: children.last_lines(tmp_path / "log"), "it says something")
    grandchild = int(children.last_lines(tmp_path / "log")[0])
    assert running(grandchild)
    parent.kill()
    parent.wait()
    wait_for(lambda: not running(grandchild), "it ends, too")


def test_it_reads_nothing_and_inherits_only_what_it_is_given(spawn: Spawn, tmp_path: Path) -> None:
    held = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(held, True)
    try:
        proc = spawn(
            """
            import os, sys
            print(repr(sys.stdin.read()))
            # the listing itself holds one
            print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1])
            """
        )
        wait_for(lambda: children.exited(proc), "it ends")
    finally:
        os.close(held)
    assert children.last_lines(tmp_path / "log") == ["''", "[0, 1, 2]"]


def test_only_the_main_thread_may_start_one(tmp_path: Path) -> None:
    refusals = []

    def start() -> None:
        try:
            children.spawn(["true"], tmp_path / "log", {})
        except RollpoolError as error:
            refusals.append(str(error))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert refusals and "main thread" in refusals[0]


def test_a_death_tells_how_its_last_words_and_the_log(spawn: Spawn, tmp_path: Path) -> None:
    spawn("print('words of an earlier process')").wait()
    proc = spawn("import os; print('so it goes'); os.kill(os.getpid(), 11)")
    message = str(children.death(proc, "the model server", tmp_path / "log"))
    assert "SIGSEGV: so it goes;" in message and str(tmp_path / "log") in message
    assert "earlier" not in message
    proc = spawn("raise SystemExit(7)")
    message = str(children.death(proc, "the model server", tmp_path / "log"))
    assert "exit code 7: it printed nothing" in message


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    proc = children.spawn(["/nowhere/python"], tmp_path / "log", children.environment())
    assert "cannot run /nowhere/python" in str(children.death(proc, "a child", tmp_path / "log"))


def test_the_environment_is_the_users_with_what_makes_runs_equal() -> None:
    base = {"PYTHONPATH": "/theirs", "VK_ICD_FILENAMES": "/icd.json", "OMP_NUM_THREADS": "64"}
    env = children.environment(base, threads=2, ADDED="1")
    assert env["PYTHONPATH"] == f"{children.ROOT}{os.pathsep}/theirs"
    assert env["VK_ICD_FILENAMES"] == "/icd.json" and env["ADDED"] == "1"
    assert {env[f"{name}_NUM_THREADS"] for name in ("OMP", "MKL", "OPENBLAS")} == {"2"}
    assert env["PYTHONUNBUFFERED"] == "1"
    assert children.environment(env)["PYTHONPATH"] == env["PYTHONPATH"]


def test_a_module_is_this_checkouts_wherever_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "__init__.py").write_text("")
    (tmp_path / "harness" / "rotations.py").write_text("print('another checkout')")
    (tmp_path / "queue.py").write_text("raise SystemExit('a file called queue.py')")
    (tmp_path / "mine.py").write_text("import queue, sys; print('mine', sys.argv[1:])")
    monkeypatch.chdir(tmp_path)
    for name, words in (("harness.rotations", []), ("mine", ["mine ['a', '--b']"])):
        argv = children.module(sys.executable, name, "a", "--b")
        proc = children.spawn(argv, tmp_path / "log", children.environment())
        wait_for(lambda proc=proc: children.exited(proc), "it ends")
        assert children.end(proc) == 0
        assert children.last_lines(tmp_path / "log") == words
