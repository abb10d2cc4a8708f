"""One simulator of a worker, and the episode that it plays on a model.

Promises: nothing here waits for the simulator, but for a model that has to be started; an episode
that is begun comes to a result within ``PER_TASK_TIMEOUT``, whatever the processes do: a crash, a
stall and a timeout are errors of the infrastructure and end what hangs. Not promised: that the
processes live after an episode in error; ask ``standing`` and ``prepare`` again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.errors import RollpoolError
from harness.foundations.settings import Settings
from harness.simulators.contract import Episode
from harness.workers.children import ProcessDied
from harness.workers.model_link import ModelLink
from harness.workers.simulator_process import SimulatorProcess
from harness.workers.watch import Watch

#: Starts in a row that may fail where one has succeeded before: a driver that hiccups must not cost
#: a worker, least of all where simulators are recycled and start often.
_EXCUSED_STARTS = 2


class Seat:
    """Without a simulator yet.

    Args:
        make: starts a simulator.
        link: what plays the model's part; seats may share one.
        clock: monotonic seconds.
    """

    def __init__(
        self, make: Callable[[], SimulatorProcess], link: ModelLink, settings: Settings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.link = link
        self._make, self._settings, self._clock = make, settings, clock
        self._sim: SimulatorProcess | None = None
        self._watch: Watch | None = None  # of the episode that it plays
        self._died: RollpoolError | None = None
        self._started = False  # one of its simulators has
        self._failed_starts = 0  # in a row

    @property
    def playing(self) -> bool:
        return self._watch is not None

    @property
    def standing(self) -> bool:
        """Whether an episode can begin."""
        return self.link.alive() and self._sim is not None and self._sim.alive()

    @property
    def steps(self) -> int:
        """Of the episode that it plays."""
        return self._watch.steps if self._watch else 0

    @property
    def versions(self) -> dict[str, str]:
        return self._sim.versions if self._sim else {}

    @property
    def descriptor(self) -> int | None:
        """What to select on, while the simulator has something to say."""
        if self._sim is None or self._died or (self._sim.versions and not self.playing):
            return None
        return self._sim.fileno()

    def notice(self) -> None:
        """That a simulator has started, which else would go on having something to say. Where it
        cannot, ``prepare`` raises that."""
        if self._sim is not None and not self.playing and self._died is None:
            try:
                self._sim.started()
            except RollpoolError as died:
                self._died = died

    def spawn(self) -> None:
        """Start a simulator where none lives. Raises ``RollpoolError``."""
        sim = self._sim
        starts = sim is not None and not sim.versions  # if it died over that, so would the next
        if not self.playing and not starts and (sim is None or not sim.alive()):
            self.close()
            self._sim = self._make()

    def prepare(self) -> bool:
        """Go on with starting what does not live; whether an episode can begin. Raises
        ``RollpoolError`` with the process's own words."""
        self.spawn()
        self.notice()
        assert self._sim is not None
        if self._died is None and not self.link.alive():
            self.link.start(self._sim)
            self.notice()  # that has taken its time
        if self._died is not None:
            self._excuse(self._died)
            return False
        if not self._sim.versions:
            return False
        self._started, self._failed_starts = True, 0
        return self.link.alive()

    def _excuse(self, died: RollpoolError) -> None:
        """Let the next one start, or raise why none does."""
        self._failed_starts += 1
        if not self._started or self._failed_starts > _EXCUSED_STARTS:
            raise died
        self._died = None
        self.close()

    def begin(self, episode: Episode, attempt: int, video: Path | None) -> None:
        assert self._sim is not None, "prepare it first"
        self._watch = Watch(self._settings, self._clock)
        only_failures = self._settings["EVAL_VIDEO"] == "failures"
        try:
            self._sim.start_episode(episode, attempt, self.link.address(), video, only_failures)
        except ProcessDied as died:
            self._died = died

    def look(self) -> dict[str, Any] | None:
        """The result of ``harness.episodes.episode.run_episode``, once the episode is over.

        Raises:
            RollpoolError: policy and simulator do not fit together; no episode can ever run.
        """
        assert self._sim is not None and self._watch is not None, "nothing was begun"
        try:
            if self._died is not None:
                raise self._died
            while message := self._sim.poll(0):
                if message["say"] == "ended":
                    return self._over(self._checked(message["result"]))
                self._watch.moved(message)
        except ProcessDied as died:
            return self._over(self._watch.error("crash", str(died)))
        if (fault := self._watch.fault()) is None:
            return None
        self._sim.kill()
        if self._watch.phase == "infer":
            self.link.stalled()
        return self._over(self._watch.error(*fault))

    def strand(self, kind: str, words: str) -> dict[str, Any]:
        """The result of an episode whose model has gone, and the end of its simulator."""
        assert self._sim is not None and self._watch is not None, "nothing was begun"
        self._sim.kill(stacks=False)
        return self._over(self._watch.error(kind, words))

    def abandon(self) -> None:
        """End the episode that it plays, and the simulator with it, at once."""
        if self._sim is not None and self.playing:
            self._sim.kill(stacks=False)
        self._watch = self._died = None

    def close(self) -> None:
        """Let the simulator quit. Harmless where there is none."""
        if self._sim is not None:
            self._sim.close()
            self._sim = None

    def _over(self, result: dict[str, Any]) -> dict[str, Any]:
        self._watch = self._died = None
        return result

    def _checked(self, result: dict[str, Any]) -> dict[str, Any]:
        """A connection that was lost because the server died is the server's crash; what the policy
        or the simulator raised stays theirs, whatever another one did to the server since."""
        if result["outcome"] != "error" or result["error"]["kind"] != "protocol":
            return result
        if death := self.link.death() or self.link.broken():
            kind, words = death
            result["error"] = {"kind": kind, "message": words, "traceback": ""}
        return result
