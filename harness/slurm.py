"""What SLURM tells a process about itself. The one module that reads ``SLURM_*``."""

from __future__ import annotations

import os
from collections.abc import Mapping

_NAMES = {
    "job": "SLURM_JOB_ID",
    "restart": "SLURM_RESTART_COUNT",
    "node": "SLURMD_NODENAME",
    "rank": "SLURM_PROCID",
}


def identity(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """``job restart node rank`` as far as they are set; empty outside SLURM. For people: a worker's
    identity never rests on them, since a requeued job has the same ones."""
    source = os.environ if environ is None else environ
    return {key: source[name] for key, name in _NAMES.items() if name in source}
