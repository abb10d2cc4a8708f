"""What a video takes of the episode that is filmed: 300 frames of 640 x 480.

The episode is 300 times a step that keeps one core busy for 20 ms, with a picture after each. What
is taken is the time that its thread spends on the video: on every picture, and on the end of the
file. imageio's writer is called as its documentation shows, from the episode's own thread.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import imageio.v2 as imageio
import numpy as np

from bench.measuring import Effort, Figure, Goal, Series, interleaved
from bench.subject import seconds
from bench.zero.simulator import picture
from harness.episodes.video import FPS, VideoWriter, find_ffmpeg
from harness.errors import RollpoolError

TITLE = "a video: share of the episode's time"
FRAMES, STEP_S = 300, 0.02


def measure(effort: Effort) -> Figure:
    frames = filmed(min(FRAMES, effort.of(FRAMES * 3, least=6)))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        subjects = {
            "rollpool": partial(ours, Path(folder), frames),
            "imageio": partial(theirs, Path(folder), frames),
        }
        taken = interleaved(subjects, effort.rounds)
    series = tuple(Series(name, "%", values) for name, values in taken.items())
    goal = Goal(f"taken by the video, {len(frames)} frames", taken["rollpool"], 2.0, "%")
    return Figure(TITLE, series, (goal,))


def filmed(count: int) -> list[np.ndarray]:
    """A block that moves over a table."""
    table = picture(640)[:480]
    frames = [table.copy() for _ in range(count)]
    for number, frame in enumerate(frames):
        left = 10 + number * 2 % 560
        frame[200:260, left : left + 60] = (200, 40, 40)
    return frames


def share(
    frames: list[np.ndarray], add: Callable[[np.ndarray], object], end: Callable[[], object]
) -> float:
    """Percent of the episode's time that ``add`` and ``end`` took."""
    began, taken = time.perf_counter(), 0.0
    for frame in frames:
        over = time.thread_time() + STEP_S
        while time.thread_time() < over:
            pass
        taken += seconds(partial(add, frame))
    taken += seconds(end)
    return 100 * taken / (time.perf_counter() - began)


def ours(folder: Path, frames: list[np.ndarray]) -> float:
    ffmpeg = find_ffmpeg()
    if ffmpeg is None:
        raise RollpoolError("bench video", "no ffmpeg", "bash scripts/setup.sh toolkit")
    writer, file = VideoWriter(folder / "ours.mp4", ffmpeg), folder / "ours.mp4"
    file.unlink(missing_ok=True)
    taken = share(frames, writer.add, writer.finish)
    if not file.exists():
        raise RollpoolError("bench video", "the video is not whole", "see above")
    return taken


def theirs(folder: Path, frames: list[np.ndarray]) -> float:
    writer: Any = imageio.get_writer(folder / "theirs.mp4", fps=FPS)
    return share(frames, writer.append_data, writer.close)
