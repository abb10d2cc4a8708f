"""The two processes of one worker: a model server and a simulator client that plays episodes on it.

Promises: ``play`` returns a result whatever the processes do, within ``PER_TASK_TIMEOUT``: a crash,
a stall and a timeout are errors of the infrastructure and end what hangs. What can take minutes
(loading weights, starting a renderer) happens in ``start``, which is called while no lease is held.
Not promised: that the processes live after an episode in error; ask ``standing`` and start again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import chosen_simulator, servers
from harness.children import ProcessDied, environment
from harness.episode import error_result
from harness.errors import RollpoolError
from harness.model_link import ComingModel, ModelLink, OwnServer, RemoteServer
from harness.run import Run
from harness.server_process import ModelServerProcess
from harness.settings import policy_config
from harness.simulator_process import SimulatorProcess
from harness.simulators.contract import DEMO, Episode
from harness.video import find_ffmpeg

#: How often the supervising loop comes round while an episode runs.
POLL_S = 0.25
#: A longer gap between two of its looks counts no more than this: then the whole job stood still
#: (suspended by SLURM, say), the simulator with it.
SUSPENDED_S = 30.0

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
        self._model = self._make_link()
        self.versions: dict[str, str] = {}

    @property
    def standing(self) -> bool:
        """Whether an episode can begin."""
        return self._sim is not None and self._sim.alive() and self._model.alive()

    def start(self) -> None:
        """Start what does not live. Raises ``RollpoolError`` with the process's own words."""
        if self._sim is None or not self._sim.alive():
            self._close_simulator()
            self._sim = self._make_simulator()
        if not self._model.alive():
            self._model.start(self._sim)
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
            self._sim.start_episode(episode, attempt, self._model.address(), video, only_failures)
            while (fault := watch.fault()) is None:
                tick(watch.steps)
                message = self._sim.poll(POLL_S)
                if message and message["say"] == "ended":
                    return self._checked(message["result"])
                if message:
                    watch.moved(message)
                elif death := self._model.death():
                    self._sim.kill()
                    return watch.error("crash", death)
        except ProcessDied as died:
            return watch.error("crash", str(died))
        self._sim.kill()
        if watch.phase == "infer":
            self._model.stalled()
        return watch.error(*fault)

    def abandon(self) -> None:
        """End the episode that runs, and the simulator with it, at once."""
        if self._sim is not None:
            self._sim.kill()

    def close(self) -> None:
        """End both processes."""
        self._close_simulator()
        self._model.close()

    def _checked(self, result: dict[str, Any]) -> dict[str, Any]:
        """A connection that was lost because the server died is the server's crash."""
        if result["outcome"] == "error" and (death := self._model.death()):
            result["error"] = {"kind": "crash", "message": death, "traceback": ""}
        elif result["outcome"] == "error" and result["error"]["kind"] == "protocol":
            self._model.broken()
        return result

    def _close_simulator(self) -> None:
        if self._sim is not None:
            self._sim.close()
            self._sim = None

    def _make_simulator(self) -> SimulatorProcess:
        settings = self._run.settings
        return chosen_simulator.start(
            settings,
            self._run.paths.log(self._worker, "sim0"),
            render=settings["EVAL_VIDEO"] != "none" or "images" in self._needs(),
            ffmpeg=find_ffmpeg() if settings["EVAL_VIDEO"] != "none" else None,
            video_camera=(settings["DXVLA_VIDEO_CAM"] or DEMO).removesuffix("_camera"),
            threads=settings["EVAL_THREADS"],
            recycle=(settings["SIM_RECYCLE_EPISODES"], settings["SIM_RECYCLE_MB"]),
        )

    def _make_link(self) -> ModelLink:
        run, settings = self._run, self._run.settings
        if settings["SIM_AS_SERVER"]:
            own = model_process(run, self._worker) if settings["MODEL_AS_CLIENT"] else None
            return ComingModel(run, self._worker, own)
        if settings["MODEL_AS_CLIENT"]:
            raise RollpoolError(
                "MODEL_AS_CLIENT=1", "no simulator of this worker's listens for it",
                "set SIM_AS_SERVER=1 too; alone it is for rollpool serve",
            )  # fmt: skip
        if not servers.is_loopback(settings["MODEL_SERVER_HOST"]):
            return RemoteServer(run, self._worker)
        return OwnServer(run, self._worker, model_process(run, self._worker))

    def _needs(self) -> list[str]:
        needs = policy_config(self._run.root, self._run.identity["policy"]).get("needs")
        return ["images"] if needs is None else list(needs)  # as policy/README.md promises


class _Watch:
    """How one episode moves, and when that is too slow."""

    def __init__(self, settings: Any, clock: Callable[[], float]) -> None:
        self._stall_s, self._limit_s = settings["STALL_TIMEOUT"], settings["PER_TASK_TIMEOUT"]
        self._clock = clock
        self._began = self._looked = clock()
        self._running_s = self._moved = 0.0
        self.phase, self.steps = "reset", 0

    def moved(self, progress: dict[str, Any]) -> None:
        self._moved = self._running()
        self.phase, self.steps = progress["phase"], progress["step"]

    def fault(self) -> tuple[str, str] | None:
        """``(kind, message)`` when the episode must end now."""
        now, where = self._running(), f"in phase {self.phase!r} after {self.steps} steps"
        if now - self._moved > self._stall_s:
            return "stall", f"no progress for STALL_TIMEOUT={self._stall_s:g} s, {where}"
        if now > self._limit_s:
            return "timeout", f"not over within PER_TASK_TIMEOUT={self._limit_s:g} s, {where}"
        return None

    def _running(self) -> float:
        """Seconds since the episode began, without those in which the job was suspended."""
        now = self._clock()
        self._running_s += min(now - self._looked, SUSPENDED_S)
        self._looked = now
        return self._running_s

    def error(self, kind: str, message: str) -> dict[str, Any]:
        wall_s = self._clock() - self._began
        took = {"wall_s": wall_s, "profile": {"failed": wall_s}}
        return {**error_result(kind, message, ""), "steps": self.steps, **took}


def model_process(run: Run, name: str) -> ModelServerProcess:
    """A model server of ``run`` on this node, not started yet, that tells its clients it is
    ``name``. Raises ``RollpoolError`` where there is no Python for it."""
    settings, policy = run.settings, run.identity["policy"]
    config = policy_config(run.root, policy)
    python = chosen_simulator.interpreter(
        settings["MODEL_PY"], "MODEL_PY", f"policy {policy!r}", config.get("env") or "model"
    )
    checkpoint = str(run.checkpoint) if run.checkpoint else None
    return ModelServerProcess(
        python,
        run.policy_dir,
        {**config, "policy_name": policy, "checkpoint": checkpoint},
        settings.knobs(),
        run.token,
        run.paths.log(name, "model"),
        identity={
            "run": run.id,
            "server": name,
            "policy": policy,
            "checkpoint": run.identity["checkpoint"],
            "settings_hash": run.identity["settings_hash"],
        },
        host=settings["MODEL_SERVER_BIND"],
        max_batch=settings["MODEL_MAX_BATCH"] or 1,  # unset in runs older than it
        max_wait_ms=settings["MODEL_MAX_WAIT_MS"],
        connects=settings["MODEL_AS_CLIENT"],
        threads=settings["EVAL_THREADS"],
        env={**environment(), **settings.exports()},
    )
