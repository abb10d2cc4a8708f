"""What SLURM gave a process, and how long it may last. The one module that reads ``SLURM_*``.

Promises: outside a SLURM job every question has an answer that fits a workstation. Not promised:
anything of a worker's identity; a requeued job has the job id and the ranks of the one before.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

_NAMES = {
    "job": "SLURM_JOB_ID",
    "restart": "SLURM_RESTART_COUNT",
    "node": "SLURMD_NODENAME",
    "rank": "SLURM_PROCID",
}
_SQUEUE_DEADLINE_S = 20.0
_LEFT = re.compile(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)")
#: What SLURM writes instead of devices where a job has none.
_NO_DEVICES = ("", "NoDevFiles", "-1")


@dataclass(frozen=True)
class Allocation:
    """What one task has on its node."""

    node: str
    inside: bool  # a SLURM job
    gpus: tuple[str, ...] | None  # as CUDA_VISIBLE_DEVICES names them; None: nobody has said
    cpus: int
    alone: bool  # no other task on this node has the same GPUs


def identity(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """``job restart node rank`` as far as they are set; empty outside SLURM. For people: a worker's
    identity never rests on them, since a requeued job has the same ones."""
    source = os.environ if environ is None else environ
    return {key: source[name] for key, name in _NAMES.items() if name in source}


def allocation(environ: Mapping[str, str] | None = None) -> Allocation:
    """The GPUs and CPUs that this task may use."""
    source = os.environ if environ is None else environ
    inside = "SLURM_JOB_ID" in source
    visible = source.get("CUDA_VISIBLE_DEVICES", "" if inside else None)
    gpus = None if visible is None else () if visible in _NO_DEVICES else tuple(visible.split(","))
    cpus = source.get("SLURM_CPUS_PER_TASK") or source.get("SLURM_CPUS_ON_NODE")
    return Allocation(
        node=source.get("SLURMD_NODENAME", os.uname().nodename),
        inside=inside,
        gpus=gpus,
        cpus=int(cpus) if inside and cpus else len(os.sched_getaffinity(0)),
        alone=source.get("SLURM_LOCALID", "0") == "0" or "SLURM_GPUS_PER_TASK" in source,
    )


def time_left(environ: Mapping[str, str] | None = None) -> float | None:
    """Seconds until this job reaches its time limit; None outside a job, without a limit, or where
    ``squeue`` does not answer. SLURM tells a duration, so no two clocks are compared."""
    source = os.environ if environ is None else environ
    if "SLURM_JOB_ID" not in source:
        return None
    command = ("squeue", "--noheader", f"--jobs={source['SLURM_JOB_ID']}", "--format=%L")
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_SQUEUE_DEADLINE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return seconds(answer.stdout)


def seconds(text: str) -> float | None:
    """``[days-]hours:minutes:seconds`` as SLURM writes it; None for ``UNLIMITED`` and the like."""
    match = _LEFT.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + rest)
