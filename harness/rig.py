"""The two processes of one worker: a model server and a simulator client that plays episodes on it.

Promises: ``play`` returns a result whatever the processes do, within ``PER_TASK_TIMEOUT``: a crash,
a stall and a timeout are errors of the infrastructure and end what hangs. What can take minutes
(loading weights, starting a renderer) happens in ``start``, which is called while no lease is held.
Not promised: that the processes live after an episode in error; ask ``standing`` and start again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.children import ProcessDied, environment
from harness.episode import error_result
from harness.errors import RollpoolError
from harness.run import Run
from harness.server_process import ModelServerProcess
from harness.settings import policy_config
from harness.simulator_process import SimulatorProcess
from harness.simulators import rendering_options
from harness.simulators.contract import DEMO, Episode
from harness.video import find_ffmpeg

#: How often the supervising loop comes round while an episode runs.
POLL_S = 0.25

#: Called every time the loop comes round, with the steps executed so far; raises to abandon.
Tick = Callable[[int], None]


class Rig:
    """Not started yet; ``start`` before the first ``play``, and whenever not ``standing``.

    Args:
        worker: names the logs.
        clock: monotonic seconds.
    """

    def __init__(self, run: Run, worker: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._worker, self._clock = run, worker, clock
        self._sim: SimulatorProcess | None = None
        self._server = self._make_server()
        self.versions: dict[str, str] = {}

    @property
    def standing(self) -> bool:
        """Whether both processes live."""
        return self._sim is not None and self._sim.alive() and self._server.alive()

    def start(self) -> None:
        """Start what does not live. Raises ``RollpoolError`` with the process's own words."""
        if self._sim is None or not self._sim.alive():
            self._close_simulator()
            self._sim = self._make_simulator()
        if not self._server.alive():
            self._server.start()
        self.versions = self._sim.ready()

    def play(
        self, episode: Episode, attempt: int, video: Path | None, tick: Tick
    ) -> dict[str, Any]:
        """Run one episode; returns the result of ``harness.episode.run_episode``.

        Raises:
            RollpoolError: policy and simulator do not fit together; no episode can ever run.
        """
        assert self._sim is not None, "start it first"
        watch = _Watch(self._run.settings, self._clock)
        only_failures = self._run.settings["EVAL_VIDEO"] == "failures"
        try:
            self._sim.start_episode(episode, attempt, self._address(), video, only_failures)
            while (fault := watch.fault()) is None:
                tick(watch.steps)
                message = self._sim.poll(POLL_S)
                if message and message["say"] == "ended":
                    return self._checked(message["result"])
                if message:
                    watch.moved(message)
                elif not self._server.alive():
                    self._sim.kill()
                    return watch.error("crash", str(self._server.died()))
        except ProcessDied as died:
            return watch.error("crash", str(died))
        self._sim.kill()
        if watch.phase == "infer":
            self._server.kill()
        return watch.error(*fault)

    def abandon(self) -> None:
        """End the episode that runs, and the simulator with it, at once."""
        if self._sim is not None:
            self._sim.kill()

    def close(self) -> None:
        """End both processes."""
        self._close_simulator()
        self._server.close()

    def _checked(self, result: dict[str, Any]) -> dict[str, Any]:
        """A connection that was lost because the server died is the server's crash."""
        if result["outcome"] == "error" and not self._server.alive():
            result["error"] = {
                "kind": "crash",
                "message": str(self._server.died()),
                "traceback": "",
            }
        return result

    def _address(self) -> dict[str, Any]:
        host = self._run.settings["MODEL_SERVER_HOST"] or self._server.host
        session = secrets.token_hex(8)
        return {
            "host": host, "port": self._server.port, "token": self._run.token, "session": session
        }  # fmt: skip

    def _close_simulator(self) -> None:
        if self._sim is not None:
            self._sim.close()
            self._sim = None

    def _make_simulator(self) -> SimulatorProcess:
        settings, name = self._run.settings, self._run.settings["SIMULATOR"]
        python = _interpreter(settings["ROBOTWIN_PY"], "ROBOTWIN_PY", f"simulator {name!r}")
        pictures = settings["EVAL_VIDEO"] != "none" or "images" in self._needs()
        return SimulatorProcess(
            python,
            name,
            self._run.paths.log(self._worker, "sim0"),
            options=rendering_options(name, str(python)) if pictures else {},
            ffmpeg=find_ffmpeg() if settings["EVAL_VIDEO"] != "none" else None,
            video_camera=(settings["DXVLA_VIDEO_CAM"] or DEMO).removesuffix("_camera"),
            threads=settings["EVAL_THREADS"],
            env={**environment(), **settings.exports()},
        )

    def _make_server(self) -> ModelServerProcess:
        run, settings = self._run, self._run.settings
        policy = run.identity["policy"]
        checkpoint = str(run.checkpoint) if run.checkpoint else None
        return ModelServerProcess(
            _interpreter(settings["XVLA_PY"], "XVLA_PY", f"policy {policy!r}"),
            run.policy_dir,
            {**policy_config(run.root, policy), "policy_name": policy, "checkpoint": checkpoint},
            settings.knobs(),
            run.token,
            run.paths.log(self._worker, "model"),
            identity={
                "policy": policy,
                "checkpoint": run.identity["checkpoint"],
                "settings_hash": run.identity["settings_hash"],
            },
            host=settings["MODEL_SERVER_BIND"],
            threads=settings["EVAL_THREADS"],
            env={**environment(), **settings.exports()},
        )

    def _needs(self) -> list[str]:
        needs: list[str] = policy_config(self._run.root, self._run.identity["policy"])["needs"]
        return needs


class _Watch:
    """How one episode moves, and when that is too slow."""

    def __init__(self, settings: Any, clock: Callable[[], float]) -> None:
        self._stall_s, self._limit_s = settings["STALL_TIMEOUT"], settings["PER_TASK_TIMEOUT"]
        self._clock = clock
        self._began = self._moved = clock()
        self.phase, self.steps = "reset", 0

    def moved(self, progress: dict[str, Any]) -> None:
        self._moved = self._clock()
        self.phase, self.steps = progress["phase"], progress["step"]

    def fault(self) -> tuple[str, str] | None:
        """``(kind, message)`` when the episode must end now."""
        now, where = self._clock(), f"in phase {self.phase!r} after {self.steps} steps"
        if now - self._moved > self._stall_s:
            return "stall", f"no progress for STALL_TIMEOUT={self._stall_s:g} s, {where}"
        if now - self._began > self._limit_s:
            return "timeout", f"not over within PER_TASK_TIMEOUT={self._limit_s:g} s, {where}"
        return None

    def error(self, kind: str, message: str) -> dict[str, Any]:
        wall_s = self._clock() - self._began
        return {**error_result(kind, message, ""), "steps": self.steps, "wall_s": wall_s}


def _interpreter(python: Path, variable: str, what: str) -> Path:
    if not python.exists():
        raise RollpoolError(
            what, f"no Python at {variable}={python}",
            f"run scripts/setup.sh, or set {variable} to the Python it is installed in",
        )  # fmt: skip
    return python
