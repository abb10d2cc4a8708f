"""Each check tells what is wrong in plain words, and keeps a node out only where it must."""

from __future__ import annotations

import itertools
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.episodes.rendering import Backend, Findings
from harness.foundations.gpus import Gpu
from harness.foundations.slurm import Allocation
from harness.leases.filesystem import Filesystem
from harness.nodes import node_checks
from harness.nodes.node_checks import Finding

GB10, A100 = Gpu("NVIDIA GB10", (12, 1)), Gpu("NVIDIA A100", (8, 0))


def given(*gpus: str) -> Allocation:
    return Allocation(node="n1", inside=True, gpus=gpus, cpus=4, alone=True)


def words(finding: Finding, level: str, *parts: str) -> None:
    assert finding.level == level, finding
    for part in parts:
        assert part in str(finding)
    assert finding.todo or level == "ok"


def test_gpus() -> None:
    words(node_checks.gpus(given("0", "1"), [A100]), "failure", "SLURM gave 2", "NVIDIA A100")
    words(node_checks.gpus(given("0"), []), "failure", "nvidia-smi sees none")
    words(node_checks.gpus(given(), [A100]), "warning", "gave none", "--gres=gpu:1")
    words(node_checks.gpus(given("0"), [A100, A100]), "ok", "1 of 2")
    outside = Allocation(node="n1", inside=False, gpus=None, cpus=4, alone=True)
    words(node_checks.gpus(outside, []), "ok", "0 on this node")


def test_rendering() -> None:
    software = Findings(Backend("cpu", "GPU: llvmpipe (LLVM 15)", ""), {})
    none = Findings(None, {"cuda": "no driver", "cpu": "the picture shows nothing"})
    words(node_checks.rendering(software, [], True), "ok", "llvmpipe")
    words(node_checks.rendering(software, [A100], True), "failure", "in software", "NVIDIA A100")
    pretended = Findings(Backend("cuda", "GPU: llvmpipe", ""), {})
    words(node_checks.rendering(pretended, [A100], True), "failure", "in software")
    words(node_checks.rendering(none, [], True), "failure", "cpu: the picture shows nothing")
    words(node_checks.rendering(none, [], False), "warning")
    hardware = Findings(Backend("cuda", "GPU: NVIDIA A100", ""), {})
    words(node_checks.rendering(hardware, [A100], True), "ok", "A100")


def test_oidn_does_nothing_on_blackwell() -> None:
    words(node_checks.denoiser("oidn", [GB10]), "warning", "does nothing on NVIDIA GB10")
    words(node_checks.denoiser("oidn", [A100]), "ok", "oidn")
    words(node_checks.denoiser("optix", [GB10]), "ok")


def test_the_simulator_has_to_be_the_pinned_one() -> None:
    here = {"simulator": "sapien 3.0.3"}
    words(node_checks.pin(here, "sapien 3.0.3"), "ok", "3.0.3")
    words(node_checks.pin(here, "sapien 3.0.0b1"), "failure", "the pin is sapien 3.0.0b1")
    words(node_checks.pin(here, ""), "ok")


def test_disk(tmp_path: Path) -> None:
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    places = {"node": tmp_path / "not" / "there", "runs": tmp_path}
    words(node_checks.disk(places, needed=1), "ok", "node ", "runs ")
    words(node_checks.disk(places, needed=free * 2), "warning", "rollpool clean")
    words(node_checks.disk(places, needed=free * 20), "failure")


def test_ffmpeg(tmp_path: Path) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho ' V....D libx264'\n")
    program.chmod(0o755)
    words(node_checks.ffmpeg(str(program), True), "ok")
    program.write_text("#!/bin/sh\necho nothing\n")
    words(node_checks.ffmpeg(str(program), True), "failure", "has no libx264")
    words(node_checks.ffmpeg(None, True), "failure", "there is none")
    words(node_checks.ffmpeg(None, False), "warning")


def test_a_good_folder_is_left_as_it_was(tmp_path: Path) -> None:
    words(node_checks.shared_folder(tmp_path), "ok", "one winner")
    assert list(tmp_path.iterdir()) == []


class TwoWinners(Filesystem):
    """Of two that make a directory at once both are told they did."""

    def __init__(self) -> None:
        self._calls, self._lock = itertools.count(), threading.Lock()

    def mkdir(self, directory: Path) -> bool:
        won = super().mkdir(directory)
        with self._lock:
            return won or next(self._calls) == 3


class StaleListing(Filesystem):
    def names(self, directory: Path) -> list[str]:
        return []


@pytest.mark.parametrize(
    ("fs", "said"), [(TwoWinners(), "had 2 winners"), (StaleListing(), "listing does not show")]
)
def test_a_folder_that_leases_cannot_stand_on(tmp_path: Path, fs: Any, said: str) -> None:
    words(node_checks.shared_folder(tmp_path, fs), "failure", said)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    words(node_checks.shared_folder(tmp_path / "absent"), "failure", "No such file")


def test_a_clock_that_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_checks, "_clock_offset", lambda trial: -90.0)
    words(node_checks.shared_folder(tmp_path), "warning", "-90 s off")
