"""On what, and with what, a figure was measured."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import harness
from bench.peers import environment
from harness.nodes.store_folder import file_system
from harness.paths import CODE


def describe() -> dict[str, Any]:
    """``cpu cores memory_gb system filesystem load versions commit``."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory),
        "system": platform.platform(),
        "filesystem": file_system(Path(tempfile.gettempdir())),
        "load": round(os.getloadavg()[0], 1),
        "commit": _commit(),
        "versions": {
            "rollpool": harness.__version__, "Python": platform.python_version(),
            "numpy": np.__version__, "duckdb": duckdb.__version__,
            **{f"{name} (peers)": version for name, version in environment.versions().items()},
        },
    }  # fmt: skip


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _commit() -> str:
    done = subprocess.run(
        ["git", "-C", str(CODE), "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip() or "unknown"
