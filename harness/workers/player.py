"""One seat's share of a worker's work: it claims a batch, has its episodes played, records them.

Promises: a row is on disk before its batch is closed; what a batch still lacks is given back where
the seat breaks, which is mended without a lease, or where the worker ends. It never waits for an
episode: the worker's loop comes round.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import Any

from harness.foundations.records import Row
from harness.leases.claims import Batch, Claims, Wait
from harness.leases.heartbeat import Heartbeat
from harness.leases.names import RELEASED
from harness.stopwatch import Stopwatch
from harness.workers.recorder import Recorder
from harness.workers.rig import POLL_S, Rig


class Player:
    """See the module.

    Attributes:
        batch: what it holds.
        playing: an episode runs.
        finished: there was nothing left when it last asked.
    """

    def __init__(
        self, seat: int, rig: Rig, claims: Claims, heartbeat: Heartbeat, recorder: Recorder
    ) -> None:
        self.seat, self.claims = seat, claims
        self.batch: Batch | None = None
        self.playing = self.finished = False
        self._rig, self._heartbeat, self._recorder = rig, heartbeat, recorder
        self._log = logging.getLogger("rollpool.worker")
        self._ahead: deque[int] = deque()  # positions, the one that is played included
        self._ask_at = self._began = 0.0
        self._lone = False  # the episode that it plays has the worker's model for itself
        self._watch = Stopwatch()
        self._since, self._part = self._watch.now(), "start"

    @property
    def alone(self) -> bool:
        """Whether the episode it plays, or would begin, is to have the model for itself: it went
        wrong before, and once more would set it aside."""
        return self.batch is not None and self.claims.last_try(self.batch, self._ahead[0])

    def patience(self) -> float:
        """Seconds until it is worth asking again."""
        return max(0.0, self._ask_at - time.monotonic()) or POLL_S

    def give_back(self, closing: bool) -> None:
        """What cannot go on, or should not, is others'."""
        idle = self.batch is not None and not self.playing
        if idle and (closing or not self._rig.standing(self.seat)):
            self.close_batch(RELEASED)

    @property
    def hungry(self) -> bool:
        """Whether it is time to ask for a batch."""
        return self.batch is None and not self.finished and time.monotonic() >= self._ask_at

    def prepare(self) -> bool:
        """Go on with starting what does not live; whether an episode can begin."""
        if not self._rig.standing(self.seat):
            self._turn_to("start")
        return self._rig.prepare(self.seat)

    def claim(self) -> None:
        """Ask for a batch."""
        self._turn_to("claim")
        found = self.claims.next()
        self._turn_to("idle")
        if isinstance(found, Batch):
            self.batch, self._ahead = found, deque(found.positions)
        elif isinstance(found, Wait):
            self._ask_at = time.monotonic() + found.seconds
        else:
            self.finished = True

    def begin(self) -> None:
        """The next episode of its batch."""
        assert self.batch is not None and not self.playing
        batch, position = self.batch, self._ahead[0]
        episode = batch.manifest.episodes[position]
        self._heartbeat.beat(seat=self.seat, episode=_named(batch, position), step=0)
        self._began, self._lone, self.playing = time.time(), self.alone, True
        self._turn_to("handover")
        video = self._recorder.video(batch, position)
        self._rig.begin(self.seat, episode, batch.attempt, video)

    def tick(self) -> None:
        if self.playing:
            self._heartbeat.beat(seat=self.seat, step=self._rig.steps(self.seat))

    def end(self, result: dict[str, Any]) -> Row | None:
        """The row of its episode, which is on disk; None where somebody else took the batch."""
        assert self.batch is not None and self.playing
        batch, position, self.playing = self.batch, self._ahead[0], False
        self._watch.take(result["profile"])
        self._turn_to("write", known=sum(result["profile"].values()))
        if not self.claims.may_record(batch):
            self._log.warning("%s was taken by another worker; its row is dropped", batch.claim)
            self.close_batch(RELEASED)
            return None
        self._turn_to("write")
        versions = result["versions"] or self._rig.versions(self.seat)
        result = {**result, "versions": versions, "profile": self._watch.lap()}
        row = self._recorder.played(batch, position, result, self._began, self.seat, self._lone)
        self._recorder.append(batch.cell, row)
        self.claims.recorded(row)
        self._log.info("%s seed %s attempt %s: %s", row.task, row.seed, row.attempt, _said(row))
        self._ahead.popleft()
        if not self._ahead:
            self.close_batch(None)
        self._turn_to("idle")
        return row

    def close_batch(self, marker: str | None) -> None:
        """``marker``: as ``Claims.finish`` takes it."""
        batch, self.batch, self.playing = self.batch, None, False
        if batch is not None:
            self.claims.finish(batch, marker)

    def _turn_to(self, part: str, known: float = 0.0) -> None:
        """The time since the last turn counts as what it was spent on, but for ``known`` seconds of
        which more is known."""
        now = self._watch.now()
        self._watch.add(self._part, max(0.0, now - self._since - known))
        self._since, self._part = now, part


def _named(batch: Batch, position: int) -> dict[str, Any]:
    cell, episode = batch.cell, batch.manifest.episodes[position]
    return {
        "manifest": batch.manifest.hash, "position": position, "attempt": batch.attempt,
        "scene": cell.scene, "task": cell.task, "task_config": cell.task_config,
        "seed": episode.seed, "instruction": episode.instruction,
    }  # fmt: skip


def _said(row: Row) -> str:
    if row.error:
        return f"error ({row.error['kind']}): {row.error['message']}"
    return f"{row.outcome} in {row.steps} steps, {row.wall_s:.1f} s"
