"""Which GPUs this node has, from ``nvidia-smi``; no answer means none."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

_DEADLINE_S = 20.0
_QUERY = ("nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader")


@dataclass(frozen=True)
class Gpu:
    """One GPU: its name and compute capability, e.g. ``("NVIDIA GB10", (12, 1))``."""

    name: str
    capability: tuple[int, int]

    @property
    def blackwell(self) -> bool:
        """Compute capability 10 to 12: B200 and GB200, Thor, RTX 50 and GB10."""
        return 10 <= self.capability[0] <= 12


def list_gpus() -> list[Gpu]:
    """The GPUs of this node. Without a driver, or with one that hangs, an empty list."""
    try:
        answer = subprocess.run(
            _QUERY, capture_output=True, text=True, timeout=_DEADLINE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return parse(answer.stdout)


def parse(text: str) -> list[Gpu]:
    """The lines ``name, major.minor``; others are left out."""
    lines = re.findall(r"^(.+), *(\d+)\.(\d+) *$", text, flags=re.MULTILINE)
    return [Gpu(name, (int(major), int(minor))) for name, major, minor in lines]
