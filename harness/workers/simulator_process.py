"""The worker's handle on one simulator client process.

Promises: every wait has a deadline; a client that dies, or was killed, leaves neither a process of
its group nor a half video; its death is a ``ProcessDied`` with its last words. One request at a
time; ``start_episode`` and ``poll`` let one thread watch several clients (``fileno`` for select).
"""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.canonical import Sealed
from harness.episodes.channel import Channel, ChannelClosed
from harness.episodes.rendering import driver_environment
from harness.episodes.video import remove_abandoned
from harness.errors import Declined, RollpoolError
from harness.simulators.contract import DEMO, Episode
from harness.workers import children

if TYPE_CHECKING:
    from harness.runs.population import Cell

#: Importing a simulator and starting its renderer, on a slow shared filesystem.
READY_DEADLINE_S = 300.0
#: Between two signs of life while it seals, checks or describes.
SILENCE_DEADLINE_S = 300.0
QUIT_DEADLINE_S = 5.0
#: For a hung process to print its stacks before it is killed.
_STACKS_S = 0.2


class SimulatorProcess:
    """Starts at once; ``ready`` waits for it, and so does every request.

    Args:
        python: the simulator's interpreter.
        simulator: as ``harness.simulators.load`` takes it, with ``options``.
        log: where everything it prints is appended.
        ffmpeg: for videos; None for none.
        recycle: episodes, and MB of memory, after which it ends by itself: once that is said, it
            is not ``alive`` any more.
        env: the base of its environment (default: this process's).
    """

    def __init__(
        self,
        python: str | Path,
        simulator: str,
        log: Path,
        *,
        options: Mapping[str, Any] | None = None,
        ffmpeg: str | None = None,
        video_camera: str = DEMO,
        threads: int = 1,
        recycle: tuple[int | None, int | None] = (None, None),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._what, self._log = f"simulator {simulator!r}", log
        self._versions: dict[str, str] | None = None
        self._deadline = time.monotonic() + READY_DEADLINE_S
        self._video: Path | None = None
        self._leaves = False
        ours, theirs = socket.socketpair()
        with theirs:
            argv = children.module(python, "harness.episodes.simulator_client")
            argv += ["--channel", str(theirs.fileno())]
            argv += ["--simulator", simulator, "--options", json.dumps(dict(options or {}))]
            argv += ["--video-camera", video_camera]
            argv += ["--ffmpeg", ffmpeg] if ffmpeg else []
            for limit, value in zip(("episodes", "mb"), recycle, strict=True):
                argv += [] if value is None else [f"--recycle-{limit}", str(value)]
            environment = children.environment(env, threads, **driver_environment())
            self.proc = children.spawn(argv, log, environment, [theirs.fileno()])
        self._channel = Channel(ours)

    @property
    def versions(self) -> dict[str, str]:
        """As ``ready`` returns them; empty before it is."""
        return self._versions or {}

    def started(self) -> bool:
        """Whether it is ready, without waiting. Raises ``RollpoolError`` where it is late."""
        if self._versions is None and (message := self.poll(0)) and message["say"] == "ready":
            self._versions = message["versions"]
        if self._versions is None and time.monotonic() > self._deadline:
            raise self._hung("start", READY_DEADLINE_S)
        return self._versions is not None

    def ready(self, deadline_s: float = READY_DEADLINE_S) -> dict[str, str]:
        """The versions it runs, once it has started."""
        if self._versions is None:
            self._versions = self._await("ready", "start", deadline_s)["versions"]
        return self._versions

    def describe(self) -> dict[str, Any]:
        """``name action_kinds cameras control_hz cells task_configs versions``: what there is to
        run; ``action_kinds`` maps a kind to ``{"dim", "low", "high"}``, the native one first,
        ``cells`` is a list of ``[scene, task]``, ``task_configs`` maps a scene to names."""
        return self._request({"do": "describe"}, "described")

    def seal(self, cell: Cell, seeds: Sequence[int], within_s: float = math.inf) -> Sealed:
        """The manifest's line of each seed, in order; no further one after ``within_s``."""
        asked = {"seeds": list(seeds), "within_s": within_s}
        answer = self._request({"do": "seal", **_names(cell), **asked}, "sealed")
        return Sealed(answer["lines"], answer["step_limit"])

    def check(self, cell: Cell, seeds: Sequence[int]) -> list[bool]:
        """Whether the simulator's expert solves each seed."""
        verdicts: list[bool] = self._request(
            {"do": "check", **_names(cell), "seeds": list(seeds)}, "checked"
        )["ok"]
        return verdicts

    def probe(self, episode: Episode, steps: int) -> str:
        """The state hash after ``steps`` actions of the expert."""
        request = {"do": "probe", "episode": asdict(episode), "steps": steps}
        answer = self._request(request, "probed")
        return str(answer["state_hash"])

    def conform(self, part: str, deadline_s: float = SILENCE_DEADLINE_S, **arguments: Any) -> Any:
        """What a part of ``harness.episodes.conformance`` answers. Raises ``RollpoolError`` with
        the adapter's own words where it raised, or took longer than ``deadline_s``."""
        self.ready()
        self._send({"do": "conform", "part": part, **arguments})
        return self._await("conformed", part, deadline_s)["answer"]

    def hang(self, episode: Episode, deadline_s: float) -> None:
        """Bring it into ``episode`` and never out of it again; ``kill`` is all that is left."""
        self.ready()
        self._send({"do": "conform", "part": "hang", "episode": asdict(episode)})
        self._await("progress", "reset", deadline_s)

    def listen(self, host: str, port: int, token: str) -> tuple[str, int]:
        """Reversed roles: listen for models; returns where. Raises ``RollpoolError``."""
        message = {"do": "listen", "host": host, "port": port, "token": token}
        answer = self._request(message, "listening")
        return answer["host"], answer["port"]

    def await_model(self, server: Mapping[str, Any], deadline_s: float) -> str:
        """Wait for a model; "" once one is there, else what to say of it. ``server``: as
        ``start_episode`` takes it.

        Raises:
            RollpoolError: one came that serves something else.
        """
        message = {"do": "await", **server, "deadline_s": deadline_s}
        return str(self._request(message, "met")["words"])

    def start_episode(
        self,
        episode: Episode,
        attempt: int,
        server: Mapping[str, Any],
        video: Path | None = None,
        only_failures: bool = False,
    ) -> None:
        """Begin; ``poll`` tells how it goes. ``server``: ``{"host", "port", "token", "session",
        "expect", "answer_s"}``, the session of this episode's own. ``only_failures``: drop the
        video of a success."""
        self.ready()
        self._video = video
        self._send(
            {
                "do": "run",
                "episode": asdict(episode),
                "attempt": attempt,
                "video": str(video) if video else None,
                "only_failures": only_failures,
                "server": dict(server),
            }
        )

    def poll(self, timeout_s: float) -> dict[str, Any] | None:
        """The next ``progress`` or ``ended`` message; None if there is none within ``timeout_s``.

        Raises:
            ProcessDied: it crashed; nothing of it is left.
            Declined: it refused; of an episode, because policy and simulator do not fit together.
        """
        try:
            message = children.receive(self._channel, self.proc, timeout_s)
        except ChannelClosed as closed:
            raise self._died() from closed
        if message and message["say"] == "refused":
            raise Declined(self._what, message["message"], f"its log is {self._log}")
        if message and message["say"] == "ended":
            self._video, self._leaves = None, bool(message.get("leaves"))
        return message

    def fileno(self) -> int:
        return self._channel.fileno()

    def alive(self) -> bool:
        return not self._leaves and not children.exited(self.proc)

    def kill(self, stacks: bool = True) -> None:
        """End it now, after it printed its ``stacks`` to the log: it hangs, or takes too long."""
        if stacks and self.alive() and self._versions is not None:
            os.kill(self.proc.pid, signal.SIGUSR1)  # Popen.send_signal would reap it
            time.sleep(_STACKS_S)
        children.end(self.proc, grace_s=0)
        self._tidy()

    def close(self) -> None:
        """Let it quit, and end it if it does not. Harmless when it has ended already."""
        try:
            self._channel.send({"do": "quit"})
            deadline = time.monotonic() + QUIT_DEADLINE_S
            while self._channel.receive(max(0.0, deadline - time.monotonic())):
                pass  # what it still had to say
        except ChannelClosed:
            pass  # it has quit, or died: either way it is ended below
        children.end(self.proc)
        self._tidy()

    def __enter__(self) -> SimulatorProcess:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None:
            self.close()
        else:
            children.end(self.proc, grace_s=0)
            self._tidy()

    def _request(self, message: dict[str, Any], answer: str) -> dict[str, Any]:
        self.ready()
        self._send(message)
        return self._await(answer, str(message["do"]), SILENCE_DEADLINE_S)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._channel.send(message)
        except ChannelClosed as closed:
            raise self._died() from closed

    def _await(self, answer: str, asked: str, silence_s: float) -> dict[str, Any]:
        while (message := self.poll(silence_s)) is not None:
            if message["say"] == answer:
                return message
        raise self._hung(asked, silence_s)

    def _hung(self, asked: str, silence_s: float) -> RollpoolError:
        self.kill()
        return RollpoolError(
            f"{self._what}: {asked}",
            f"no sign of life for {silence_s:.0f} s, so it was killed",
            f"its stacks are at the end of {self._log}",
        )

    def _died(self) -> children.ProcessDied:
        error = children.death(self.proc, self._what, self._log)
        self._tidy()
        return error

    def _tidy(self) -> None:
        self._channel.close()
        if self._video is not None:
            remove_abandoned(self._video.parent)
            self._video = None


def _names(cell: Cell) -> dict[str, str]:
    return {"scene": cell.scene, "task": cell.task, "task_config": cell.task_config}
