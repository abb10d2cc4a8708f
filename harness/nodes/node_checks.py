"""What can be wrong with a node, each question by itself, answered in plain words.

A check returns a ``Finding``; it never raises for what it looks for. ``failure`` keeps the node out
of a run, since its rows would be wrong or lost; a ``warning`` is something to know.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.episodes.rendering import Findings
from harness.errors import RollpoolError
from harness.foundations.atomic import publish_once
from harness.foundations.gpus import Gpu
from harness.foundations.slurm import Allocation
from harness.leases.filesystem import Filesystem

Level = Literal["ok", "warning", "failure"]

#: Below this a node's disk fills within a run; below a tenth of it, within an episode.
DISK_BYTES = 2 * 10**9
#: Row times of two nodes are read side by side; nothing is decided by them.
CLOCK_S = 5.0
_ROUNDS, _CONTENDERS = 10, 8
_SOFTWARE = ("llvmpipe", "lavapipe", "swiftshader", "swrast")


@dataclass(frozen=True)
class Finding:
    """One answer: what was looked at, how it stands, in words; and what to do unless it is ok."""

    check: str
    level: Level
    words: str
    todo: str = ""

    def __str__(self) -> str:
        todo = f"; {self.todo}" if self.todo else ""
        return f"{self.level:8} {self.check}: {self.words}{todo}"


def gpus(given: Allocation, found: Sequence[Gpu]) -> Finding:
    """Whether the GPUs that SLURM gave are there."""
    names = ", ".join(gpu.name for gpu in found) or "none"
    if given.gpus is None or not given.inside:
        return Finding("GPUs", "ok", f"{len(found)} on this node ({names})")
    if len(given.gpus) > len(found):
        return Finding(
            "GPUs", "failure", f"SLURM gave {len(given.gpus)}, nvidia-smi sees {names}",
            "drain the node: its driver lost a GPU",
        )  # fmt: skip
    if found and not given.gpus:
        return Finding(
            "GPUs", "warning", f"{len(found)} on this node ({names}), SLURM gave none of them",
            f"ask for them: --gres=gpu:{len(found)}",
        )  # fmt: skip
    return Finding("GPUs", "ok", f"SLURM gave {len(given.gpus)} of {len(found)} ({names})")


def rendering(findings: Findings, found: Sequence[Gpu], needed: bool) -> Finding:
    """Whether cameras give pictures that are not black, and on hardware where there is some."""
    backend = findings.backend
    if backend is None:
        reasons = "; ".join(f"{device}: {why}" for device, why in findings.refused.items())
        level: Level = "failure" if needed else "warning"
        return Finding(
            "rendering", level, f"no device gives a picture ({reasons})",
            "run: bash scripts/setup.sh system; or evaluate policies without cameras",
        )  # fmt: skip
    words = f"on {backend.device}: {backend.summary}"
    software = backend.device == "cpu" or any(n in backend.summary.lower() for n in _SOFTWARE)
    if found and software:
        return Finding(
            "rendering", "failure", f"in software {words}, though there is {found[0].name}",
            "install its Vulkan driver, or name it in VK_ICD_FILENAMES",
        )  # fmt: skip
    return Finding("rendering", "ok", f"a picture that shows something, {words}")


def denoiser(chosen: str | None, found: Sequence[Gpu]) -> Finding:
    """Whether the denoiser that is asked for does anything here."""
    blackwell = [gpu.name for gpu in found if gpu.blackwell]
    if chosen == "oidn" and blackwell:
        return Finding(
            "denoiser", "warning", f"DXVLA_DENOISER=oidn does nothing on {blackwell[0]}, silently",
            "set DXVLA_DENOISER=optix",
        )  # fmt: skip
    return Finding("denoiser", "ok", chosen or "none asked for")


def pin(versions: Mapping[str, str], wanted: str) -> Finding:
    """Whether the simulator is the version that the numbers belong to."""
    here = versions.get("simulator", "unknown")
    if wanted and here != wanted:
        return Finding(
            "simulator", "failure", f"{here}, the pin is {wanted}",
            "run scripts/setup.sh, or stage the node again",
        )  # fmt: skip
    return Finding("simulator", "ok", here)


def disk(places: Mapping[str, Path], needed: int = DISK_BYTES) -> Finding:
    """Whether what is written during a run has room."""
    free = {name: _free(place) for name, place in places.items()}
    words = ", ".join(f"{name} {size / 1e9:.1f} GB free" for name, size in free.items())
    worst = min(free.values(), default=needed)
    if worst < needed:
        level: Level = "failure" if worst < needed / 10 else "warning"
        return Finding("disk", level, words, "free it: rollpool clean tells what can go")
    return Finding("disk", "ok", words)


def ffmpeg(program: str | None, needed: bool) -> Finding:
    """Whether videos can be written."""
    try:
        if program is None:
            raise OSError("there is none")
        done = subprocess.run(
            [program, "-hide_banner", "-encoders"], capture_output=True, text=True, timeout=30,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if "libx264" not in done.stdout:
            raise OSError(f"{program} has no libx264")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("ffmpeg", "failure" if needed else "warning", str(error),
                       "run scripts/setup.sh toolkit, or put ffmpeg on PATH")  # fmt: skip
    return Finding("ffmpeg", "ok", str(program))


def shared_folder(folder: Path, fs: Filesystem | None = None) -> Finding:
    """Whether ``folder`` keeps what leases stand on: one winner of a mkdir and of a link, a listing
    that shows at once what is there. Leaves nothing behind."""
    fs, trial = fs or Filesystem(), folder / f".trial-{secrets.token_hex(8)}"
    try:
        trial.mkdir()
        try:
            wrong = _contend(fs, trial)
            offset = _clock_offset(trial)
        finally:
            shutil.rmtree(trial, ignore_errors=True)
    except (OSError, RollpoolError) as error:
        return Finding("shared folder", "failure", f"{folder}: {error}", "make it writable")
    if wrong:
        return Finding(
            "shared folder", "failure", f"{folder}: {wrong}",
            "keep runs on another filesystem: episodes would run twice here",
        )  # fmt: skip
    if abs(offset) > CLOCK_S:
        return Finding(
            "shared folder", "warning", f"its clock is {offset:+.0f} s off this node's",
            "set the node's clock: times in rows and logs mislead",
        )  # fmt: skip
    return Finding("shared folder", "ok", f"{folder}: one winner, fresh listings, clock "
                   f"{offset:+.1f} s")  # fmt: skip


def _contend(fs: Filesystem, trial: Path) -> str:
    """What is wrong with many hands reaching for one name; "" if nothing is."""
    with ThreadPoolExecutor(_CONTENDERS) as hands:
        for number in range(_ROUNDS):
            name, link = f"claim{number}", trial / f"link{number}"
            won = list(hands.map(fs.mkdir, [trial / name] * _CONTENDERS))
            if sum(won) != 1:
                return f"mkdir of one name had {sum(won)} winners of {_CONTENDERS}"
            if name not in fs.names(trial):
                return "a listing does not show a directory that was just made"
            words = [str(hand).encode() for hand in range(_CONTENDERS)]
            linked = list(hands.map(publish_once, [link] * _CONTENDERS, words))
            if sum(linked) != 1:
                return f"link to one name had {sum(linked)} winners of {_CONTENDERS}"
    return ""


def _clock_offset(trial: Path) -> float:
    """Seconds that the file server's clock is ahead of this machine's."""
    file, before = trial / "clock", time.time()
    file.write_bytes(b"x")
    after = time.time()
    there = os.stat(file).st_mtime
    return 0.0 if before - 0.1 <= there <= after + 0.1 else there - after


def _free(place: Path) -> int:
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free
