"""A worker that stops before each of its operations until it is told to go on.

Around it are scripted episodes; the claims, leases and heartbeats are the real ones.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from harness.foundations.records import Row
from harness.leases.budget import Budget
from harness.leases.claims import Batch
from harness.leases.compaction import compact
from harness.leases.decisions import Decisions
from harness.leases.durations import Durations
from harness.leases.heartbeat import Process
from harness.leases.standing import Standing
from harness.leases.takeover import Lost
from tests.lease.disk import RUN, cell_dir
from tests.lease.scripted import row

if TYPE_CHECKING:
    from tests.lease.world import World

TTL, INTERVAL = 10.0, 1.0
RETRIES, LOST_RETRIES = 2, 4
DEADLINE = 20.0


class Violation(AssertionError):
    """The protocol has broken one of its promises."""


class Killed(BaseException):
    """Unwinds the thread of a worker that was killed. Nothing it does afterwards has effect."""


class Worker:
    """One worker: the loop of the real one around scripted episodes, in a thread of its own."""

    def __init__(
        self, world: World, number: int, host: str, minibatch: int,
        program: Callable[[Worker], None], seats: int = 1,
    ) -> None:  # fmt: skip
        self.program = program
        self.world, self.id, self.host, self._number = world, f"{host}-{number}", host, number
        self.frozen = self.killed = False
        self.at = ""  # the operation it stands before
        self.outcome: BaseException | str | None = None  # how the thread ended
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._main, daemon=True)
        self.view = world.view_type(world.disk, self.pause)
        # Every other worker sits in a container: pids mean something else there.
        self.process = process = Process(host, f"ns{number % 2}", number, 1)
        world.processes.add(process)

        def started(pid: int) -> int:
            return int(Process(host, process.pid_ns, pid, 1) in world.processes)

        self.heartbeat = world.heartbeat_type(
            RUN, self.id, TTL, INTERVAL, fs=self.view, clock=self.clock, process=process, host=host,
            seats=seats,
        )  # fmt: skip
        self.observer = world.observer_type(
            RUN.workers, TTL, fs=self.view, clock=self.clock, process=process, started=started
        )
        self.decisions = world.decisions_type(world, self.pause)
        durations = Durations()
        self.standings = [
            Standing(
                m, range(m.selected), world.book_type(RUN.leases, cell_dir(m), self.view),
                Budget(RETRIES, LOST_RETRIES, self.decisions), durations.noting(world.read_rows),
                minibatch,
            )
            for m in world.manifests
        ]  # fmt: skip
        self.seats = [
            world.claims_type(
                self.standings, RUN.leases, self.heartbeat, self.observer, self.record_lost,
                durations=durations, news=self.decisions.refresh, fs=self.view, clock=self.clock,
                chance=random.Random(number + 1000 * seat), **({"seat": seat} if seat else {}),
            )
            for seat in range(seats)
        ]  # fmt: skip
        self.claims = self.seats[0]
        self._thread.start()

    @property
    def living(self) -> bool:
        return self.outcome is None and not self.killed

    def clock(self) -> float:
        # Clocks of different machines have nothing to do with each other.
        return self.world.now + 1e4 * self._number

    def step(self) -> None:
        """Go on to the next operation."""
        self._turn.release()
        assert self._back.acquire(timeout=DEADLINE), "a worker hangs outside of its operations"

    def kill(self) -> None:
        self.killed = True
        self.world.processes.discard(self.process)
        if self.outcome is None:
            self.step()
        self._thread.join(DEADLINE)

    def beat(self) -> None:
        """What the heartbeat's own thread does, whatever the worker is waiting for."""
        self.heartbeat.alive()
        self.heartbeat.tick()

    def pause(self, what: str) -> None:
        if threading.current_thread() is not self._thread:
            return
        self.at = what
        self._back.release()
        assert self._turn.acquire(timeout=DEADLINE * 10), "the history forgot a worker"
        if self.killed:
            raise Killed

    def record_lost(self, lost: Lost) -> Row:
        self.pause("record lost")
        made = row(lost.manifest, lost.position, lost.attempt, self.id, "error", "lost")
        self.world.rows.append(made)
        return made

    def _main(self) -> None:
        self._turn.acquire()
        try:
            if not self.killed:
                self.program(self)
                self.outcome = "ended"
        except BaseException as ended:
            self.outcome = ended
        self._back.release()


def program(worker: Worker) -> None:
    """The worker's loop; a broken variant replaces it."""
    while (batch := stubborn(worker.claims.next)) is not None:
        if isinstance(batch, Batch):
            worker.world.handed.append((worker, batch))
            run_batch(worker, batch)
        else:
            worker.pause("wait")
    worker.world.check_complete(worker)
    worker.heartbeat.end()


def seated(worker: Worker) -> None:
    """The loop of a worker with several seats, whose episodes overlap."""
    playing: dict[int, Iterator[None]] = {}
    while True:
        found = []
        for number, claims in enumerate(worker.seats):
            if number not in playing:
                found.append(stubborn(claims.next))
                if isinstance(found[-1], Batch):
                    worker.world.handed.append((worker, found[-1]))
                    playing[number] = batch_in_steps(worker, found[-1], number)
        if not playing and all(batch is None for batch in found):
            break
        for number in [n for n, steps in playing.items() if next(steps, "over") == "over"]:
            del playing[number]
        worker.pause("wait")
    worker.world.check_complete(worker)
    worker.heartbeat.end()


def run_batch(worker: Worker, batch: Batch) -> None:
    for _ in batch_in_steps(worker, batch):
        pass


def batch_in_steps(worker: Worker, batch: Batch, seat: int = 0) -> Iterator[None]:
    """Stops between two episodes, and between an episode and its row."""
    claims = worker.seats[seat]
    for position in batch.positions:
        made = run_episode(worker, batch, position, seat)
        yield
        lost = worker.world.superseded(worker, batch)
        if not stubborn(lambda: claims.may_record(batch)):
            stubborn(lambda: claims.finish(batch, "released"))
            return
        if lost and not worker.world.deceived:
            raise Violation(f"{worker.id} records {made.position} of a claim it had lost")
        worker.pause("record")
        worker.world.rows.append(made)
        claims.recorded(made)
    stubborn(lambda: claims.finish(batch))


def run_episode(worker: Worker, batch: Batch, position: int, seat: int = 0) -> Row:
    worker.heartbeat.beat(
        seat=seat,
        episode={"manifest": batch.manifest.hash, "position": position, "attempt": batch.attempt},
    )
    made = worker.world.play(worker, batch, position)
    worker.pause("run")
    return made


def stubborn(call: Callable[[], Any]) -> Any:
    """A lost answer is an error of the filesystem: the worker tries again."""
    while True:
        try:
            return call()
        except OSError:
            continue


def clean(worker: Worker) -> None:
    """Compacts, while others work."""
    for _ in range(3):
        stubborn(lambda: compact(worker.standings, worker.decisions.refresh))
        worker.pause("wait")
    worker.heartbeat.end()


class Heard(Decisions):
    """The decisions that a worker has heard of."""

    def __init__(self, world: World, pause: Callable[[str], None]) -> None:
        super().__init__(RUN.decisions)
        self._world, self._pause = world, pause
        self._verdicts = dict(world.verdicts)

    def refresh(self) -> bool:
        self._pause("decisions")
        before, self._verdicts = self._verdicts, dict(self._world.verdicts)
        return before != self._verdicts
