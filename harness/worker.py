"""The lease worker: claims batches, has their episodes played, puts every outcome on disk.

Promises: a row is on disk before its batch is closed; whatever ends this worker (a signal, a full
disk, a broken simulator) its batch is given back if the filesystem still answers, and found by
others if not; one episode's failure never ends the worker, many different ones in a row do.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from harness.atomic import AppendLog
from harness.claims import Batch, Lost, Wait
from harness.errors import EXIT_LATER, EXIT_OK, EXIT_PARTIAL, RollpoolError
from harness.heartbeat import Heartbeat, WorkerId
from harness.job_end import JobEnd
from harness.joining import anything_left, open_claims
from harness.lease import RELEASED
from harness.observer import Observer
from harness.population import Cell
from harness.records import Row, read_rows
from harness.rig import Rig
from harness.run import Run, refuse_other_weights
from harness.simulators.contract import Episode
from harness.slurm import identity as slurm_identity
from harness.slurm import time_left
from harness.stopwatch import Stopwatch
from harness.video import remove_abandoned

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: Enough to know how long an episode takes, where the job has an end.
_ROWS_TO_MEASURE = 500


def work(run: Run) -> int:
    """Work until nothing is left for this worker; returns its exit code.

    0: nothing left. 1: it stopped itself, since many different episodes failed on it, or since no
    episode fits into the job at all. 75: no further episode fits in before the job's end.
    128 + n: signal n. Raises ``RollpoolError`` where its processes or the filesystem give out.
    """
    try:
        worker = Worker(run)
        with worker.signals(), worker.logging():
            return worker.loop()
    except OSError as error:
        raise RollpoolError(
            f"run directory {run.paths.root}", str(error),
            "see to the filesystem, then start the worker again",
        ) from error  # fmt: skip


class Stopped(BaseException):
    """A signal asked this worker to end."""


class Worker:
    """One process's share of a run."""

    def __init__(self, run: Run) -> None:
        self.id = WorkerId.new()
        ttl = run.settings["LEASE_TTL"]
        self._run, self._log = run, logging.getLogger("rollpool.worker")
        self._heartbeat = Heartbeat(run.paths, self.id, ttl, slurm=slurm_identity())
        self._observer = Observer(run.paths.workers, ttl)
        self._claims = open_claims(run, self._heartbeat, self._observer, self._record_lost)
        self._rig = Rig(run, self.id)
        self._job_end = JobEnd(time_left())
        self._watch = Stopwatch()
        self._metrics: dict[Cell, AppendLog] = {}
        self._signal: int | None = None
        self._starting = False

    def loop(self) -> int:
        """Until nothing is left, a signal, or too many failures."""
        self._heartbeat.start()
        self._log.info("worker %s of run %s", self.id, self._run.paths.name)
        try:
            return self._loop()
        except Stopped:
            assert self._signal is not None
            self._log.info("stopped by %s", signal.Signals(self._signal).name)
            return 128 + self._signal
        except (RollpoolError, OSError) as error:
            self._log.error("%s", error)
            raise
        finally:
            self._rig.close()
            self._heartbeat.end()

    def _loop(self) -> int:
        if not anything_left(self._run):
            self._log.info("nothing was left to run")
            return EXIT_OK
        words = self._claims.durations.words(self._run.cells)
        self._log.info("order of work: %s", words)
        if self._job_end.limited:
            for row in itertools.islice(read_rows(self._run.paths.results), _ROWS_TO_MEASURE):
                self._measure(row)
        while True:
            self._tick()
            if not self._rig.standing:
                with self._watch.part("start"):
                    self._start_rig()
            if failing := self._claims.streak.verdict:
                return self._give_up(failing, EXIT_PARTIAL)
            if late := self._job_end.verdict():
                # Without a single row the same job again would do no better.
                return self._give_up(late, EXIT_LATER if self._metrics else EXIT_PARTIAL)
            with self._watch.part("claim"):
                batch = self._claims.next()
            if batch is None:
                self._log.info("nothing is left to run")
                self._keep_durations()
                return EXIT_OK
            if isinstance(batch, Wait):
                with self._watch.part("idle"):
                    time.sleep(batch.seconds)
            else:
                self._run_batch(batch)

    def _keep_durations(self) -> None:
        """For later runs, which do without where it cannot be written."""
        try:
            self._claims.durations.save(self._run.root.durations, self._run.settings["SIMULATOR"])
        except RollpoolError as error:
            self._log.warning("%s", error)

    def _measure(self, row: Row) -> None:
        if row.success is not None and row.wall_s is not None:
            self._job_end.measured(row.wall_s)

    def _give_up(self, why: str, code: int) -> int:
        message = f"worker {self.id} stops: {why}; see {self._run.paths.logs}"
        self._log.error("%s", message)
        print(f"rollpool: {message}", file=sys.stderr)
        return code

    def _start_rig(self) -> None:
        self._starting = True
        try:
            if self._signal is not None:
                raise Stopped
            self._rig.start()
            refuse_other_weights(self._run)
        finally:
            self._starting = False

    def _run_batch(self, batch: Batch) -> None:
        """Play its episodes. The rest is given back where the rig breaks, which is mended without a
        lease, or where the job ends."""
        marker: str | None = RELEASED
        try:
            for position in batch.positions:
                if not self._rig.standing or self._job_end.verdict():
                    return
                if not self._run_episode(batch, position):
                    return
            marker = None
        finally:
            with self._watch.part("write"):
                self._claims.finish(batch, marker)

    def _run_episode(self, batch: Batch, position: int) -> bool:
        """Whether its row is on disk; not where somebody else took the batch meanwhile."""
        manifest, attempt = batch.manifest, batch.attempt
        episode = manifest.episodes[position]
        named = {**_names(batch, position), "instruction": episode.instruction}
        self._heartbeat.beat(episode=named, step=0)
        video = None
        if self._run.settings["EVAL_VIDEO"] != "none":
            folder = self._folder(batch.cell)
            video = self._run.paths.video(folder, manifest.hash, position, episode.seed, attempt)
        began = time.time()
        try:
            result = self._played(episode, attempt, video)
            if result["error"] and self._signal is not None:
                # SLURM signals every process of a step: the same TERM ended the simulator.
                raise Stopped
        except Stopped:
            self._rig.abandon()
            raise
        if not self._claims.may_record(batch):
            self._log.warning("%s was taken by another worker; its row is dropped", batch.claim)
            return False
        row = self._row(batch, position, {**result, "profile": self._watch.lap()}, began)
        with self._watch.part("write"):
            self._append(batch.cell, row)
            self._claims.recorded(row)
        self._measure(row)
        self._log.info("%s seed %s attempt %s: %s", row.task, row.seed, row.attempt, _said(row))
        return True

    def _played(self, episode: Episode, attempt: int, video: Path | None) -> dict[str, Any]:
        began = self._watch.now()
        result = self._rig.play(episode, attempt, video, self._tick)
        took = self._watch.now() - began
        self._watch.take(result["profile"])
        self._watch.add("handover", max(0.0, took - sum(result["profile"].values())))
        return result

    def _tick(self, step: int = 0) -> None:
        self._heartbeat.alive()
        self._heartbeat.check()
        self._heartbeat.beat(step=step)
        self._observer.look()  # so that deaths are known before this worker has nothing else to do
        if self._signal is not None:
            raise Stopped

    def _row(self, batch: Batch, position: int, result: dict[str, Any], began: float) -> Row:
        error = result["error"]
        if error is not None:
            error = {**error, "logs": self._run.paths.log_names(self.id)}
        video = result["video"]
        if video is not None:
            video = self._run.paths.relative(video)
        fields = {
            **result,
            "collision_names": tuple(result["collision_names"]),
            "versions": result["versions"] or self._rig.versions,
            "error": error,
            "video": video,
            "host": self._heartbeat.host,
            "attempt": batch.attempt,
            "started": began,
        }
        return self._complete(batch.manifest.episodes[position], **fields)

    def _record_lost(self, lost: Lost) -> Row:
        """The row of an episode over which its worker died; its half video goes."""
        owner = str(lost.owner["worker"])
        remove_abandoned(self._folder(lost.manifest.cell, owner), owner_dead=True)
        row = self._complete(
            lost.manifest.episodes[lost.position],
            outcome="error",
            success=None,
            host=str(lost.owner["host"]),
            attempt=lost.attempt,
            steps=lost.owner["step"],
            error={
                "kind": "lost",
                "message": f"worker {owner} died at step {lost.owner['step']}",
                "traceback": "",
                "logs": self._run.paths.log_names(owner),
            },
            started=time.time(),
        )
        self._append(lost.manifest.cell, row)
        self._log.warning("worker %s died over %s seed %s", owner, row.task, row.seed)
        return row

    def _complete(self, episode: Any, **fields: Any) -> Row:
        identity = self._run.identity
        return Row(
            manifest=episode.manifest,
            position=episode.position,
            worker=self.id,
            run=self._run.id,
            scene=episode.scene,
            task=episode.task,
            task_config=episode.task_config,
            seed=episode.seed,
            instruction=episode.instruction,
            policy=identity["policy"],
            checkpoint=identity["checkpoint"],
            simulator=identity["simulator"],
            settings_hash=identity["settings_hash"],
            code_hash=identity["code_hash"],
            finished=time.time(),
            **fields,
        )

    def _append(self, cell: Cell, row: Row) -> None:
        if cell not in self._metrics:
            self._metrics[cell] = AppendLog(self._folder(cell))
        self._metrics[cell].append(row.to_json())

    def _folder(self, cell: Cell, worker: str = "") -> Path:
        policy = self._run.identity["policy"]
        return self._run.paths.metrics_dir(cell.task, policy, cell.task_config, worker or self.id)

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT end the worker at its next tick; at once while its rig starts."""

        def stop(number: int, frame: FrameType | None) -> None:
            self._signal = number
            if self._starting:
                raise Stopped

        before = {number: signal.signal(number, stop) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def logging(self) -> Iterator[None]:
        """The worker's own words go to its log."""
        path = self._run.paths.log(self.id)
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(path)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._log.addHandler(handler)
        self._log.setLevel(logging.INFO)
        try:
            yield
        finally:
            self._log.removeHandler(handler)
            with contextlib.suppress(OSError):  # a full disk, which the worker has said
                handler.close()


def _names(batch: Batch, position: int) -> dict[str, Any]:
    cell = batch.cell
    return {
        "manifest": batch.manifest.hash, "position": position, "attempt": batch.attempt,
        "scene": cell.scene, "task": cell.task, "task_config": cell.task_config,
        "seed": batch.manifest.episodes[position].seed,
    }  # fmt: skip


def _said(row: Row) -> str:
    if row.error:
        return f"error ({row.error['kind']}): {row.error['message']}"
    return f"{row.outcome} in {row.steps} steps, {row.wall_s:.1f} s"
