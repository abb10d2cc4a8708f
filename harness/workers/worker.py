"""The lease worker: a player for each of its simulators, and the loop that comes round them.

Promises: whatever ends this worker (a signal, a full disk, a broken simulator) its batches are
given back if the filesystem still answers, and found by others if not; one episode's failure never
ends the worker, many different ones in a row do; when it begins nothing more, what is played is
played to its end.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import signal
import sys
import time
from collections.abc import Iterator

from harness.errors import EXIT_LATER, EXIT_OK, EXIT_PARTIAL, RollpoolError
from harness.foundations.job_end import JobEnd
from harness.foundations.metrics_files import read_rows
from harness.foundations.records import Row
from harness.foundations.slurm import identity as slurm_identity
from harness.foundations.slurm import time_left
from harness.leases.heartbeat import Heartbeat, WorkerId
from harness.leases.joining import anything_left, open_claims
from harness.leases.names import RELEASED
from harness.leases.observer import Observer
from harness.leases.takeover import Lost
from harness.runs.run import Run
from harness.workers.player import Player
from harness.workers.recorder import Recorder
from harness.workers.rig import POLL_S, Rig
from harness.workers.stopping import Stopped, Stopping, handled

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
        with handled(worker.stopping.taken), worker.logging():
            return worker.loop()
    except OSError as error:
        raise RollpoolError(
            f"run directory {run.paths.root}", str(error),
            "see to the filesystem, then start the worker again",
        ) from error  # fmt: skip


class Worker:
    """One process's share of a run: a heartbeat, and a player for each of its simulators.

    Attributes:
        stopping: to be told of signals.
    """

    def __init__(self, run: Run) -> None:
        self.id = WorkerId.new()
        ttl, seats = run.settings["LEASE_TTL"], run.settings["SIMS_PER_WORKER"]
        self._run, self._log = run, logging.getLogger("rollpool.worker")
        self._heartbeat = Heartbeat(run.paths, self.id, ttl, slurm=slurm_identity(), seats=seats)
        self._observer = Observer(run.paths.workers, ttl)
        with contextlib.ExitStack() as refused:
            refused.callback(self._heartbeat.end)  # or it would look like one that has died
            self._recorder = Recorder(run, self.id, self._heartbeat.host)
            self._rig = Rig(run, self.id)
            claims = open_claims(run, self._heartbeat, self._observer, self._record_lost, seats)
            refused.pop_all()
        self._durations = claims[0].durations  # shared by all
        self._players = [
            Player(seat, self._rig, own, self._heartbeat, self._recorder)
            for seat, own in enumerate(claims)
        ]
        self._job_end = JobEnd(time_left())
        self.stopping = Stopping()
        self._asked = time.monotonic()  # whether anything is left

    def loop(self) -> int:
        """Until nothing is left, a signal, or too many failures."""
        self._heartbeat.start()
        self._log.info("worker %s of run %s", self.id, self._run.paths.name)
        try:
            return self._loop()
        except Stopped:
            assert self.stopping.number is not None
            self._log.info("stopped by %s", signal.Signals(self.stopping.number).name)
            return 128 + self.stopping.number
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
        words = self._durations.words(self._run.cells)
        self._log.info("order of work: %s", words)
        if self._job_end.limited:
            for row in itertools.islice(read_rows(self._run.paths.results), _ROWS_TO_MEASURE):
                self._measure(row)
        with contextlib.ExitStack() as ending:  # each of it, whatever the rest raises
            for player in self._players:
                ending.callback(player.close_batch, RELEASED)
            ending.callback(self._rig.abandon)
            while (code := self._round()) is None:
                pass
            return code

    def _round(self) -> int | None:
        """Once round all seats; the exit code where all is over."""
        self._tick()
        closing = self._closing()
        for player in self._players:
            player.give_back(closing is not None)
        if closing is None:
            self._fetch()
            self._begin()
        if all(player.batch is None for player in self._players):
            if closing is not None:
                return self._give_up(*closing)
            if all(player.finished for player in self._players):
                self._log.info("nothing is left to run")
                self._keep_durations()
                return EXIT_OK
        self._wait()
        return None

    def _closing(self) -> tuple[str, int] | None:
        """Why nothing more is begun, and the exit code, if so."""
        for player in self._players:
            if failing := player.claims.streak.verdict:
                return failing, EXIT_PARTIAL
        if late := self._job_end.verdict():
            # Without a single row the same job again would do no better.
            return late, EXIT_PARTIAL if self._recorder.empty else EXIT_LATER
        return None

    def _fetch(self) -> None:
        unable = []
        for player in self._players:
            if player.hungry:
                with self.stopping.at_once():  # that may start processes
                    prepared = player.prepare()
                if prepared:
                    player.claim()
                else:
                    unable.append(player)
        holds = any(player.batch is not None for player in self._players)
        if unable and not holds and self._ended_meanwhile():
            for player in unable:
                player.finished = True

    def _ended_meanwhile(self) -> bool:
        """Whether others have run what was left: who waits for a model server, which ends with the
        run, does not learn it from a claim. Asked once in a while: it reads all rows."""
        now = time.monotonic()
        if now - self._asked < self._run.settings["LEASE_TTL"]:
            return False
        self._asked = now
        return not anything_left(self._run)

    def _begin(self) -> None:
        """An episode in each seat that has one; one on its last try alone, so that what it does to
        the model server befalls no other, nor what another does to it. What broke since the seats
        were looked at costs no episode: its batch is given back."""
        lone = next((player for player in self._players if player.alone), None)
        for player in self._players:
            idle = player.batch is not None and not player.playing
            if idle and self._rig.standing(player.seat):
                others = any(other.playing for other in self._players)
                if lone is None or (player is lone and not others):
                    player.begin()

    def _wait(self) -> None:
        waiting = (p.patience() for p in self._players if p.batch is None and not p.finished)
        ended = self._rig.wait(min([POLL_S, *waiting]))
        for seat, result in sorted(ended.items(), key=lambda end: end[1]["error"] is not None):
            if result["error"]:
                self.stopping.check_after(result["error"]["kind"])
            if row := self._players[seat].end(result):
                self._measure(row)
        if ended:
            for player in self._players:
                player.finished = False

    def _keep_durations(self) -> None:
        """For later runs, which do without where it cannot be written."""
        try:
            self._durations.save(self._run.root.durations, self._run.settings["SIMULATOR"])
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

    def _tick(self) -> None:
        self._heartbeat.alive()
        self._heartbeat.check()
        for player in self._players:
            player.tick()
        self._observer.look()  # so that deaths are known before this worker has nothing else to do
        self.stopping.check()

    def _record_lost(self, lost: Lost) -> Row:
        row = self._recorder.lost(lost)
        self._recorder.append(lost.manifest.cell, row)
        self._log.warning(
            "worker %s died over %s seed %s", lost.owner["worker"], row.task, row.seed
        )
        return row

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
