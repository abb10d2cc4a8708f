"""Nobody meets a download of several GB unwarned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts.lib.torch_source import CUDA_WARNING, describe

CUDA_NEEDS = ["filelock", 'nvidia-cudnn-cu13==9.1; platform_system == "Linux"']


def report(url: str, version: str = "2.13.0", needs: list[str] | None = None) -> dict[str, Any]:
    metadata = {"name": "torch", "version": version, "requires_dist": needs or ["filelock"]}
    return {"install": [{"metadata": metadata, "download_info": {"url": url}}]}


def test_a_wheel_on_disk(tmp_path: Path) -> None:
    wheel = tmp_path / "torch 2.whl"
    wheel.write_bytes(bytes(3_000_000))
    found = describe(report(wheel.as_uri(), "2.13.0+cpu"), "x86_64")
    assert found == "  torch 2.13.0+cpu (from disk, 3 MB)"


@pytest.mark.parametrize(("machine", "warned"), [("x86_64", True), ("aarch64", False)])
def test_a_cuda_build_is_announced(machine: str, warned: bool) -> None:
    found = describe(report("https://index.example/torch.whl", needs=CUDA_NEEDS), machine)
    assert found.splitlines()[0] == "  torch 2.13.0 (from index.example)"
    assert (CUDA_WARNING in found) is warned


def test_nothing_to_install() -> None:
    assert describe({"install": []}, "x86_64") == ""
