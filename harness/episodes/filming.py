"""The pictures that an episode has taken of it, and what they cost it."""

from __future__ import annotations

from pathlib import Path

from harness.episodes.video import FPS, VideoWriter
from harness.simulators.contract import Simulator
from harness.stopwatch import Stopwatch


class Filming:
    """Takes a picture every so many steps, where there is something to take it with."""

    def __init__(
        self,
        sim: Simulator,
        watch: Stopwatch,
        path: Path | None,
        camera: str,
        ffmpeg: str | None,
    ) -> None:
        self._sim, self._watch, self._camera = sim, watch, camera
        self._every = max(1, round(sim.control_hz / FPS))
        self._recorded_at = -1
        self._writer: VideoWriter | None = None
        if path is None:
            return
        if ffmpeg is None or camera not in sim.cameras:
            lack = "no ffmpeg was found" if ffmpeg is None else f"no camera {camera!r} here"
            print(f"video {path.name}: not made: {lack}", flush=True)
        else:
            self._writer = VideoWriter(path, ffmpeg)

    def record(self, step: int, due: bool = False) -> None:
        if self._writer and step != self._recorded_at and (due or step % self._every == 0):
            self._recorded_at = step
            with self._watch.part("render"):
                frame = self._sim.frame(self._camera)
            with self._watch.part("encode"):
                self._writer.add(frame)

    def finish(self, step: int) -> str | None:
        """With the moment the episode ended as the last picture."""
        self.record(step, due=True)
        with self._watch.part("encode"):
            path = self._writer.finish() if self._writer else None
        self._writer = None
        return None if path is None else str(path)

    def discard(self) -> None:
        with self._watch.part("encode"):
            if self._writer:
                self._writer.discard()
