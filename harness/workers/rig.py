"""The processes of one worker: simulators, each in a seat, and the model that they are played on.

Promises: those of ``seats``; what can take minutes (loading weights, starting a renderer) happens
in ``prepare``, which is called for a seat that holds no lease. The death of a model server ends the
episodes that are played on it, that of a simulator its own alone.
"""

from __future__ import annotations

import functools
import select
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.episodes.video import find_ffmpeg
from harness.errors import RollpoolError
from harness.foundations.yaml_files import policy_config
from harness.runs import servers
from harness.runs.run import Run, refuse_other_weights
from harness.simulators.contract import DEMO, Episode
from harness.workers import chosen_simulator
from harness.workers.children import environment
from harness.workers.model_link import ComingModel, ModelLink, OwnServer
from harness.workers.remote_server import Choice, RemoteServer
from harness.workers.seats import Seat
from harness.workers.server_process import ModelServerProcess
from harness.workers.simulator_process import SimulatorProcess

#: How often whoever supervises comes round while episodes run.
POLL_S = 0.25

#: Called every time the loop comes round, with the steps executed so far; raises to abandon.
Tick = Callable[[int], None]


class Rig:
    """Nothing is started yet; ``prepare`` a seat before the first episode in it, and whenever it is
    not ``standing``.

    Args:
        worker: names the logs.
        links: what plays the model's part for each seat; by default as the settings have it.
        clock: monotonic seconds.
    """

    def __init__(
        self, run: Run, worker: str, links: Sequence[ModelLink] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._run, self._worker, self._clock = run, worker, clock
        links = links or model_links(run, worker, clock)
        self._seats = [
            Seat(functools.partial(self._make_simulator, number), link, run.settings, clock)
            for number, link in enumerate(links)
        ]

    def standing(self, seat: int) -> bool:
        """Whether an episode can begin there."""
        return self._seats[seat].standing

    def steps(self, seat: int) -> int:
        return self._seats[seat].steps

    def versions(self, seat: int) -> dict[str, str]:
        return self._seats[seat].versions

    def prepare(self, seat: int) -> bool:
        """Go on with starting what does not live; whether an episode can begin there. It waits for
        a model server of this worker's own alone, without which no seat has anything to do.

        Raises:
            RollpoolError: with the process's own words; other weights than the run's were loaded.
        """
        for each in self._seats:
            each.spawn()  # they take their time together
        link = self._seats[seat].link
        if not link.alive() and any(each.playing and each.link is link for each in self._seats):
            return False  # those that are played on it come to their end first
        loaded = link.alive()
        ready = self._seats[seat].prepare()
        if not loaded and link.alive():
            refuse_other_weights(self._run)
        return ready

    def begin(self, seat: int, episode: Episode, attempt: int, video: Path | None) -> None:
        self._seats[seat].begin(episode, attempt, video)

    def wait(self, seconds: float) -> dict[int, dict[str, Any]]:
        """Until a process has something to say, or the time is over. Seat -> result of each episode
        that is over, see ``Seat.look``."""
        descriptors = [d for each in self._seats if (d := each.descriptor) is not None]
        if descriptors:
            select.select(descriptors, [], [], seconds)
        elif not any(each.playing for each in self._seats):
            time.sleep(seconds)
        for each in self._seats:
            each.notice()
        ended = self._look()
        if any(each.playing and each.link.death() for each in self._seats):
            time.sleep(POLL_S)  # simulators that wait for it notice by themselves, and live on
            ended |= self._look()
            ended |= {
                number: each.strand(*death)
                for number, each in enumerate(self._seats)
                if each.playing and (death := each.link.death())
            }
        return ended

    def ready(self) -> None:
        """Wait until an episode can begin in the first seat. Raises as ``prepare`` does."""
        while not self.prepare(0):
            self.wait(POLL_S)

    def play(
        self, episode: Episode, attempt: int, video: Path | None, tick: Tick
    ) -> dict[str, Any]:
        """One episode in the first seat, from its beginning to its result."""
        self.ready()
        self.begin(0, episode, attempt, video)
        ended: dict[int, dict[str, Any]] = {}
        while not ended:
            tick(self.steps(0))
            ended = self.wait(POLL_S)
        return ended[0]

    def abandon(self) -> None:
        """End the episodes that run, and their simulators with them, at once."""
        for each in self._seats:
            each.abandon()

    def close(self) -> None:
        """End all processes."""
        for each in self._seats:
            each.close()
        for each in self._seats:
            each.link.close()

    def _look(self) -> dict[int, dict[str, Any]]:
        looks = ((number, each.look()) for number, each in enumerate(self._seats) if each.playing)
        return {number: result for number, result in looks if result is not None}

    def _make_simulator(self, seat: int) -> SimulatorProcess:
        settings = self._run.settings
        return chosen_simulator.start(
            settings,
            self._run.paths.log(self._worker, f"sim{seat}"),
            render=settings["EVAL_VIDEO"] != "none" or "images" in self._needs(),
            ffmpeg=find_ffmpeg() if settings["EVAL_VIDEO"] != "none" else None,
            video_camera=(settings["DXVLA_VIDEO_CAM"] or DEMO).removesuffix("_camera"),
            threads=settings["EVAL_THREADS"],
            recycle=(settings["SIM_RECYCLE_EPISODES"], settings["SIM_RECYCLE_MB"]),
        )

    def _needs(self) -> list[str]:
        needs = policy_config(self._run.root, self._run.identity["policy"]).get("needs")
        return ["images"] if needs is None else list(needs)  # as policy/README.md promises


def model_links(run: Run, worker: str, clock: Callable[[], float]) -> list[ModelLink]:
    """One for each of the worker's simulators. Raises ``RollpoolError``."""
    settings = run.settings
    seats: int = settings["SIMS_PER_WORKER"]
    if settings["SIM_AS_SERVER"]:
        own = model_process(run, worker) if settings["MODEL_AS_CLIENT"] else None
        return [ComingModel(run, worker, own)]
    if settings["MODEL_AS_CLIENT"]:
        raise RollpoolError(
            "MODEL_AS_CLIENT=1", "no simulator of this worker's listens for it",
            "set SIM_AS_SERVER=1 too; alone it is for rollpool serve",
        )  # fmt: skip
    if servers.is_loopback(settings["MODEL_SERVER_HOST"]):
        return [OwnServer(run, worker, model_process(run, worker))] * seats
    choice = Choice(run, worker, clock)
    return [RemoteServer(run, choice) for _ in range(seats)]


def model_process(run: Run, name: str, keeps: bool = False) -> ModelServerProcess:
    """A model server of ``run`` on this node, not started yet, that tells its clients it is
    ``name``, and ``keeps`` what it is asked instead of answering several at once. Raises
    ``RollpoolError`` where there is no Python for it."""
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
        max_batch=1 if keeps else settings["MODEL_MAX_BATCH"] or 1,  # unset in older runs
        keeps=keeps,
        max_wait_ms=settings["MODEL_MAX_WAIT_MS"],
        connects=settings["MODEL_AS_CLIENT"],
        threads=settings["EVAL_THREADS"],
        env={**environment(), **settings.exports()},
    )
