"""What children have started ends when this process is killed.

The kernel kills a child with its parent (``PR_SET_PDEATHSIG``), but not what the child has started:
a simulator's planners would go on, and keep the GPU's memory, where no cgroup ends them. So each
process that has children has a guard, a shell of 1 MB, which learns their groups from a pipe and
from the pipe's end that this process is gone. Promises: then the groups end within moments. Not
promised: that what moved to another group ends, or that the guard is not killed itself.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import IO

# Signals that are meant for every process of a job do not end it early.
_SCRIPT = """
trap '' HUP INT TERM
groups=
while read -r sign group; do
  others=
  for known in $groups; do [ "$known" = "$group" ] || others="$others $known"; done
  groups=$others
  [ "$sign" = - ] || groups="$groups $group"
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"""

#: The guard of the process with that id: a fork has none of its own yet.
_guards: dict[int, IO[bytes]] = {}


def watch(group: int) -> None:
    """End ``group`` when this process ends."""
    if os.getpid() not in _guards:
        _guards.clear()
        guard = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, cwd="/", bufsize=0,
        )  # fmt: skip
        assert guard.stdin is not None
        guard.returncode = 0  # it outlives this process, so nobody waits for it
        _guards[os.getpid()] = guard.stdin
    _tell(f"+ {group}\n")


def forget(group: int) -> None:
    """It has ended, and its number may soon be another's."""
    if os.getpid() in _guards:
        _tell(f"- {group}\n")


def _tell(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # somebody killed the guard: then there is none
        _guards[os.getpid()].write(line.encode())
