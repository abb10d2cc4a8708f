"""One mp4 an episode, streamed to ffmpeg while the episode runs.

Promises: a video with its final name is whole (ffmpeg ended well and counted every frame given to
it); until then it has a hidden temporary name; whatever goes wrong with ffmpeg or the disk, the
episode goes on and ``finish`` says None. The caller waits for the encoder only when the bounded
queue is full, and not beyond a deadline. Not promised: that a killed process tidies up. Its
temporary file is removed by the next writer in that directory, or by ``remove_abandoned``.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:  # whoever starts a simulator need not wait for it
    import numpy as np

FPS = 10
#: 32 frames of 640x480 are 28 MiB.
QUEUE_FRAMES = 32
#: For the encoder to take one more frame, and to write the end of the file.
FRAME_DEADLINE_S, FINISH_DEADLINE_S = 30.0, 60.0

_SHIPPED = "toolkit/lib/python3*/site-packages/imageio_ffmpeg/binaries/ffmpeg-*"
_PART = re.compile(r"^\..+\.(?P<host>[^.]+)-(?P<pid>\d+)\.part\.mp4$")


def find_ffmpeg() -> str | None:
    """The ffmpeg that imageio-ffmpeg ships (it has libx264, others may not), here or in the
    toolkit's environment, else the one on PATH."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return str(get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        shipped = Path(sys.prefix).parent.glob(_SHIPPED)  # environments stand side by side
        return next(map(str, shipped), None) or shutil.which("ffmpeg")


def remove_abandoned(directory: Path, owner_dead: bool = False) -> None:
    """Remove the temporary files of processes of this host that are gone; of all with
    ``owner_dead``, for a directory whose one writer is known to be dead."""
    for path in directory.glob(".*.part.mp4"):
        name = _PART.match(path.name)
        if owner_dead or (name and name["host"] == _host() and not _alive(int(name["pid"]))):
            path.unlink(missing_ok=True)


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class VideoWriter:
    """Frames in, one mp4 out. Use ``add``, then ``finish`` or ``discard``."""

    def __init__(self, path: Path, ffmpeg: str) -> None:
        self._path, self._ffmpeg = path, ffmpeg
        self._part = path.with_name(f".{path.stem}.{_host()}-{os.getpid()}.part.mp4")
        self._frames: queue.Queue[np.ndarray | None] = queue.Queue(QUEUE_FRAMES)
        self._spare: deque[np.ndarray] = deque()  # fresh memory costs more than the copy into it
        self._added, self._shape = 0, (0, 0, 0)
        self._broken: str | None = None
        self._encoder: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._progress: IO[bytes] | None = None

    def add(self, frame: np.ndarray) -> None:
        """``frame``: ``(H, W, 3)`` uint8, the same size each time. Never raises for the video."""
        if self._broken is None and self._thread is None:
            self._start(frame)
        if self._broken is None and (frame.shape != self._shape or frame.dtype != "uint8"):
            self._give_up(f"a frame of {frame.shape} {frame.dtype} after {self._shape}")
        if self._broken is None:
            self._put(frame)

    def _put(self, frame: np.ndarray) -> None:
        if self._spare:
            copy = self._spare.pop()
            copy[:] = frame
        else:
            copy = frame.copy()
        try:
            self._frames.put(copy, timeout=FRAME_DEADLINE_S)
            self._added += 1
        except queue.Full:
            self._give_up(f"ffmpeg took no frame for {FRAME_DEADLINE_S:.0f} s")

    def finish(self) -> Path | None:
        """Close the video and give it its name; None, and a line in the log, if it is not whole."""
        if self._encoder is None:
            self._give_up("it has no frames")
        else:
            self._end()
        if self._broken is None:
            try:
                _sync(self._part)
                os.replace(self._part, self._path)
            except OSError as error:
                self._give_up(str(error))
        if self._broken:
            self.discard()
            return None
        self._close_progress()
        return self._path

    def discard(self) -> None:
        """Leave nothing behind. Harmless at any time, and twice; never raises for the video."""
        self._broken = self._broken or "discarded"
        try:
            self._kill()
            self._close_progress()
            self._part.unlink(missing_ok=True)
        except (OSError, queue.Full) as error:
            print(f"video {self._part}: not removed: {error!r}", file=sys.stderr, flush=True)

    def _close_progress(self) -> None:
        if self._progress is not None:
            self._progress.close()

    def _start(self, frame: np.ndarray) -> None:
        self._shape = frame.shape
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            remove_abandoned(self._path.parent)
            self._progress = tempfile.TemporaryFile()
            self._encoder = subprocess.Popen(
                self._command(), stdin=subprocess.PIPE, stdout=self._progress
            )
        except OSError as error:
            self._give_up(f"{self._ffmpeg} did not start: {error}")
            return
        self._thread = threading.Thread(target=self._feed, name="video", daemon=True)
        self._thread.start()

    def _command(self) -> list[str]:
        height, width = self._shape[:2]
        source = f"-f rawvideo -pix_fmt rgb24 -s {width}x{height} -r {FPS} -i pipe:0"
        # yuv420p needs even sides; one thread, because the simulator needs the other cores.
        target = (
            "-an -vf pad=ceil(iw/2)*2:ceil(ih/2)*2 -c:v libx264 -preset veryfast -threads 1 "
            "-pix_fmt yuv420p -movflags +faststart -progress pipe:1 -f mp4"
        )
        quiet = "-hide_banner -loglevel error -nostats -y"
        return [self._ffmpeg, *quiet.split(), *source.split(), *target.split(), str(self._part)]

    def _feed(self) -> None:
        """The writer thread: frames to ffmpeg until None, then a wait for its end (one with a
        deadline would look for it in ever longer intervals). After a failure it drains the queue,
        so that ``add`` never waits for a dead encoder."""
        assert self._encoder is not None and self._encoder.stdin is not None
        pipe = self._encoder.stdin
        while (frame := self._frames.get()) is not None:
            if self._broken is None:
                try:
                    pipe.write(frame.data)
                except OSError as error:
                    self._give_up(f"ffmpeg is gone: {error}")
                self._spare.append(frame)
        try:
            pipe.close()
        except OSError as error:
            self._give_up(f"ffmpeg is gone: {error}")
        self._encoder.wait()

    def _end(self) -> None:
        assert self._encoder is not None and self._thread is not None
        try:
            self._frames.put(None, timeout=FINISH_DEADLINE_S)
        except queue.Full:
            self._give_up(f"ffmpeg took no frame for {FINISH_DEADLINE_S:.0f} s")
            return
        self._thread.join(FINISH_DEADLINE_S)
        status = self._encoder.returncode
        if status is None:
            self._give_up(f"ffmpeg did not finish within {FINISH_DEADLINE_S:.0f} s")
            return
        counted = self._counted()
        if status or counted != self._added:
            self._give_up(f"ffmpeg ended with {status}, {counted} of {self._added} frames")

    def _counted(self) -> int | None:
        """The frames ffmpeg says it wrote; None without its word that it came to the end."""
        assert self._progress is not None
        self._progress.seek(0)
        report = self._progress.read().decode(errors="replace")
        counts = re.findall(r"^frame=\s*(\d+)", report, re.MULTILINE)
        return int(counts[-1]) if counts and "progress=end" in report else None

    def _give_up(self, reason: str) -> None:
        if self._broken is None:
            self._broken = reason
            print(f"video {self._path.name}: not made: {reason}", file=sys.stderr, flush=True)

    def _kill(self) -> None:
        if self._encoder is None:
            return
        self._encoder.kill()
        self._encoder.wait()
        if self._thread is not None and self._thread.is_alive():
            # The pipe is broken now, so the thread drains the queue and takes the end mark.
            self._frames.put(None, timeout=FINISH_DEADLINE_S)
            self._thread.join(FINISH_DEADLINE_S)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
