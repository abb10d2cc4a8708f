"""Which build of torch pip is about to install, in one line, from pip's own dry-run report.

A plain index serves x86-64 Linux a CUDA build of several GB, which nobody should meet unwarned.
Runs in the model environment: standard library only.

    python scripts/lib/torch_source.py REPORT.json
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

CUDA_WARNING = (
    "  CUDA build: about 3 GB to download and 6 GB on disk. The built-in policies need a CPU only: "
    "to have the small build, interrupt and set ROLLPOOL_TORCH to a CPU wheel's path or point "
    "PIP_INDEX_URL or PIP_FIND_LINKS to where one is"
)


def describe(report: dict[str, Any], machine: str) -> str:
    """One or two lines about the torch in an installation report; empty when it has none."""
    for item in report["install"]:
        if item["metadata"]["name"].lower() == "torch":
            break
    else:
        return ""
    url = urlsplit(item["download_info"]["url"])
    local = Path(unquote(url.path))
    if url.scheme == "file":
        size = f"from disk, {local.stat().st_size / 1e6:.0f} MB"
    else:
        size = f"from {url.hostname}"
    line = f"  torch {item['metadata']['version']} ({size})"
    needs = item["metadata"].get("requires_dist", [])
    cuda = machine == "x86_64" and any(need.startswith(("nvidia-", "cuda-")) for need in needs)
    return f"{line}\n{CUDA_WARNING}" if cuda else line


if __name__ == "__main__":
    print(describe(json.loads(Path(sys.argv[1]).read_text()), platform.machine()))
