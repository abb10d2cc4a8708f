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
from harness.foundations.yaml_files import policy_config
from harness.runs.run import Run, refuse_other_weights
from harness.simulators.contract import DEMO, Episode
from harness.workers import chosen_model, chosen_simulator
from harness.workers.model_link import ModelLink
from harness.workers.seats import Seat
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
        links = links or chosen_model.links(run, worker, clock)
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
