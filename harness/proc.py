"""What /proc says of a process: enough to recognise it from another one on the same machine.

Promises: a process that is believed gone is gone, or is a zombie that does nothing any more. Where
/proc cannot be read, or shows another namespace than one's own, nothing is believed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process as another one on the same machine can recognise it."""

    boot_id: str
    pid_ns: str  # empty where /proc shows another namespace's processes: then nothing is proof
    pid: int
    start_time: int

    @classmethod
    def this(cls) -> Process:
        pid = os.getpid()
        try:
            boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            own = os.readlink("/proc/self") == str(pid)
            return cls(boot_id, os.readlink("/proc/self/ns/pid") if own else "", pid, started(pid))
        except OSError:
            return cls("", "", pid, 0)


def started(pid: int) -> int:
    """When process ``pid`` started, in ticks since boot; 0 if there is no such living process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    state, *fields = stat.rpartition(")")[2].split()
    return 0 if state in "ZX" else int(fields[18])
