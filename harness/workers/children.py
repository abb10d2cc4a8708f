"""Child processes that never outlive their parent and always end.

Promises: a child leads a process group of its own, reads nothing, appends what it prints to its
log, and is killed by the kernel when its parent dies, even by SIGKILL; the rest of its group then
ends, too (``guard``). ``end`` leaves no process of the group behind and reaps the child. Not
promised: that a grandchild which moves to another group ends.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from harness.episodes.channel import Channel, ChannelClosed
from harness.errors import RollpoolError
from harness.workers import guard

ROOT = Path(__file__).resolve().parents[2]
TAIL_LINES, LINE_LIMIT = 16, 300
_POLL_S = 0.01
_KILL_DEADLINE_S = 30.0
#: A crash closes the channel before the process has ended: a core dump takes its time.
_DYING_DEADLINE_S = 5.0
#: How often a wait for a child's message looks whether there still is a child.
_LOOK_S = 1.0
_BANNER = "=== started "

# ``python -m`` would look in the current directory first. A user who stands in another checkout, or
# beside a file called queue.py, must not get that one: the current directory comes last.
_MODULE = (
    "import runpy, sys; sys.path.sort(key=lambda entry: entry == ''); sys.argv.pop(0); "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)

# Runs between fork and exec, in an interpreter of its own: code in a forked copy of a process with
# threads (``preexec_fn``) can deadlock. The parent may have died before the request reached the
# kernel, so its id is compared.
_LAUNCHER = """
import ctypes, os, sys
PR_SET_PDEATHSIG, SIGKILL = 1, 9
if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL) or os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone, or prctl failed")
try:
    os.execvpe(sys.argv[2], sys.argv[2:], os.environ)
except OSError as error:
    sys.exit(f"cannot run {sys.argv[2]}: {error}")
"""


class ProcessDied(RollpoolError):
    """A child ended by itself; the message holds how, its last words, and where its log is."""


def environment(
    base: Mapping[str, str] | None = None, threads: int = 1, **extra: str
) -> dict[str, str]:
    """What every child inherits: ``base`` (default: this process's environment, so a user's
    drivers, caches and library paths pass through), the package on the path, and what makes two
    runs equal: fixed thread counts and string hashes."""
    inherited = dict(os.environ if base is None else base)
    path = [str(ROOT), *filter(None, inherited.get("PYTHONPATH", "").split(os.pathsep))]
    counts = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)),
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        **{f"{library}_NUM_THREADS": str(threads) for library in counts},
        **extra,
    }


def module(python: str | Path, name: str, *arguments: str) -> list[str]:
    """The command that runs a module of this checkout, wherever it is started from."""
    return [str(python), "-c", _MODULE, name, *arguments]


def spawn(
    argv: Sequence[str], log: Path, env: Mapping[str, str], pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start ``argv``, which inherits ``pass_fds`` and no other descriptor.

    Raises:
        RollpoolError: called outside the main thread. The kernel kills the child when the
            *thread* that started it ends, so only the main thread lasts long enough.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RollpoolError(f"start {argv[0]}", "not in the main thread", "start children there")
    # Who starts us may ignore SIGCHLD, and we inherit that: no child's end could be awaited.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    command = " ".join(shlex.join(argv).split())
    with log.open("ab") as output:
        output.write(f"{_BANNER}{now}: {command}\n".encode())
        output.flush()
        proc = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(env),
            pass_fds=pass_fds,
            start_new_session=True,
        )
    guard.watch(proc.pid)
    return proc


def exited(proc: subprocess.Popen[bytes]) -> bool:
    """Whether the child has ended. It is left unreaped: while it is, its group's id is its own."""
    if proc.returncode is not None:
        return True
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, proc.pid, flags) is not None


def receive(
    channel: Channel, proc: subprocess.Popen[bytes], timeout_s: float
) -> dict[str, Any] | None:
    """``channel.receive``, which ends when the child does, too: what a child has forked may hold
    its end of the channel open for ever."""
    deadline = time.monotonic() + timeout_s
    while True:
        left = max(0.0, deadline - time.monotonic())
        gone = exited(proc)  # before the look, so that its last words are not missed
        message = channel.receive(min(left, _LOOK_S))
        if message is not None or (left <= _LOOK_S and not gone):
            return message
        if gone:
            raise ChannelClosed("the process has ended")


def end(proc: subprocess.Popen[bytes], grace_s: float = 5.0) -> int:
    """TERM, up to ``grace_s``, then KILL for the whole group; returns the exit status, reaped.

    Raises:
        RollpoolError: the kernel does not let it die (stuck in a device or a filesystem).
    """
    if proc.returncode is not None:
        return proc.returncode
    if grace_s > 0 and not exited(proc):
        _signal_group(proc, signal.SIGTERM)
        wait_exited(proc, grace_s)
    # Also after a clean end: what the child left behind in its group goes with it.
    _signal_group(proc, signal.SIGKILL)
    if not wait_exited(proc, _KILL_DEADLINE_S):
        raise RollpoolError(
            f"end process {proc.pid}",
            f"it outlives SIGKILL for {_KILL_DEADLINE_S:.0f} s, so it hangs in the kernel",
            "look at dmesg; the node may need a reboot",
        )
    guard.forget(proc.pid)
    return proc.wait()


def death(proc: subprocess.Popen[bytes], what: str, log: Path) -> ProcessDied:
    """The error for a child that ended, or is about to: it closed its channel. Ends and reaps the
    rest of its group."""
    wait_exited(proc, _DYING_DEADLINE_S)
    how = _how(end(proc, 0))
    words = " | ".join(last_lines(log)) or "it printed nothing"
    return ProcessDied(f"{what} (process {proc.pid})", f"{how}: {words}", f"see {log}")


def last_lines(log: Path) -> list[str]:
    """The last lines a process wrote to ``log`` since it was started."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 16384))
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    starts = [number for number, line in enumerate(lines) if line.startswith(_BANNER)]
    said = lines[starts[-1] + 1 :] if starts else lines
    return [line.strip()[:LINE_LIMIT] for line in said if line.strip()][-TAIL_LINES:]


def _how(status: int) -> str:
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


def _signal_group(proc: subprocess.Popen[bytes], number: int) -> None:
    # A group of zombies alone has no process left that could take a signal.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(proc.pid, number)


def wait_exited(proc: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the child ends within that time."""
    deadline = time.monotonic() + seconds
    while not exited(proc):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True
