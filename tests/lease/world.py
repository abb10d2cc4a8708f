"""A small cluster in memory: a disk, a clock and workers that take turns, one operation at a time.

Every worker is a thread that stops before each filesystem operation until it is told to go on, so a
history is a sequence of choices and nothing else: it can be replayed, and a worker can be killed,
frozen or deceived between any two operations. The protocol under test is the real one; only the
filesystem, the clock, chance and the episodes are made up.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.foundations.records import Row, counted
from harness.leases.budget import Budget
from harness.leases.claims import Batch, Claims
from harness.leases.decisions import Decisions, Verdict
from harness.leases.heartbeat import Heartbeat, Process
from harness.leases.lease import LeaseBook
from harness.leases.names import Claim
from harness.leases.observer import Observer
from harness.runs.population import Manifest
from tests.lease.disk import RUN, Disk, View, cell_dir
from tests.lease.scripted import manifest, row
from tests.lease.worker import (
    INTERVAL,
    LOST_RETRIES,
    RETRIES,
    Heard,
    Killed,
    Violation,
    Worker,
    program,
    seated,
)


class World:
    """See the module. The ``*_type`` arguments are for broken variants."""

    def __init__(
        self, sizes: tuple[int, ...] = (6, 3), *, scripted_errors: dict[int, int] | None = None,
        claims_type: type[Claims] = Claims, heartbeat_type: type[Heartbeat] = Heartbeat,
        observer_type: type[Observer] = Observer, book_type: type[LeaseBook] = LeaseBook,
        view_type: type[View] = View, decisions_type: type[Heard] = Heard,
        program: Callable[[Worker], None] = program,
        counted: Callable[[Any], dict[Any, Row]] = counted, seats: tuple[int, ...] = (1,),
    ) -> None:  # fmt: skip
        self.manifests = [manifest("ab"[i], size) for i, size in enumerate(sizes)]
        self.disk, self.rows, self.now = Disk(), list[Row](), 0.0
        self.workers: list[Worker] = []
        self.processes: set[Process] = set()
        self.runs: Counter[tuple[str, int]] = Counter()
        self.handed: list[tuple[Worker, Batch]] = []
        self.verdicts: dict[tuple[str, int], Verdict] = {}
        self.disturbances = self._checked = 0
        self.deceived = False  # names were hidden or removed: a listing proves nothing
        self.claims_type, self.heartbeat_type, self.observer_type = (
            claims_type, heartbeat_type, observer_type,
        )  # fmt: skip
        self.book_type, self.view_type, self.program = book_type, view_type, program
        self.decisions_type = decisions_type
        self._counted, self._errors, self._seats = counted, scripted_errors or {}, seats

    # What happens to the cluster.

    def start(
        self, host: str = "h1", minibatch: int = 1,
        program: Callable[[Worker], None] | None = None,
    ) -> Worker:  # fmt: skip
        number = len(self.workers) + 1
        seats = self._seats[number % len(self._seats)]
        program = program or (self.program if seats == 1 else seated)
        worker = Worker(self, number, host, minibatch, program, seats)
        self.workers.append(worker)
        return worker

    def step(self, worker: Worker) -> None:
        if worker.living and not worker.frozen:
            worker.step()
            self.check()

    def advance(self, seconds: float = INTERVAL) -> None:
        """Time passes; whoever is not frozen beats."""
        self.now += seconds
        for worker in self.workers:
            if worker.living and not worker.frozen:
                worker.beat()

    def everyone_sleeps(self, seconds: float) -> None:
        """The whole cluster is suspended: nobody beats, nobody looks."""
        self.now += seconds

    def kill(self, worker: Worker) -> None:
        self.disturbances += 1
        worker.kill()

    def freeze(self, worker: Worker) -> None:
        self.disturbances += 1
        worker.frozen = True

    def hide(self, chance: random.Random) -> None:
        """Some names do not show in listings, as in a stale cache."""
        self.disturbances += len(self.workers)
        self.deceived = True
        names = [p for p in self.disk.files if p.is_relative_to(RUN.leases)]
        self.disk.hidden = {p for p in names if chance.random() < 0.3}

    def lose_answer(self, worker: Worker, how: str) -> None:
        self.disturbances += 1
        worker.view.lose = how

    def remove_leases(self, top: Path = RUN.leases) -> None:
        self.disturbances += len(self.workers)
        self.deceived = True
        self.disk.remove(top)

    def decide(self, do: str, of: Manifest, position: int) -> None:
        """Somebody decides about an episode, by what can be seen now."""
        self.disturbances += 1
        book = LeaseBook(RUN.leases, cell_dir(of), View(self.disk, lambda what: None))
        book.refresh(0)
        episode = (of.hash, position)
        attempts = [claim.attempt for claim in book.covering(position)]
        attempts += [r.attempt for r in self.rows if (r.manifest, r.position) == episode]
        before = self.verdicts.get(episode, Verdict())
        self.verdicts[episode] = before.then(do, max(attempts, default=0), "as scripted")

    def settle_down(self) -> None:
        """No more faults: everybody thaws and time passes until all have ended; then somebody
        comes who has heard of everything."""
        self._to_the_end()
        self.start("h3")
        self._to_the_end()
        self.check_counts()

    def _to_the_end(self, steps: int = 20000) -> None:
        self.disk.hidden = set()
        for worker in self.workers:
            worker.frozen, worker.view.lose = False, None
        for count in range(steps):
            living = [worker for worker in self.workers if worker.living]
            if not living:
                break
            self.step(living[count % len(living)])
            if count % 8 == 0:
                self.advance()
        else:
            raise Violation("the work never ends")
        self.check()

    def close(self) -> None:
        for worker in self.workers:
            if worker.living:
                worker.kill()

    # What workers do to it.

    def read_rows(self) -> Iterator[Row]:
        return iter(list(self.rows))

    def play(self, worker: Worker, batch: Batch, position: int) -> Row:
        self.runs[batch.manifest.hash, position] += 1
        outcome = self.expected(position)
        if batch.attempt <= self._errors.get(position, 0):
            outcome = "error"
        made = row(batch.manifest, position, batch.attempt, worker.id, outcome, "crash")
        return dataclasses.replace(made, wall_s=1.0 + position)

    @staticmethod
    def expected(position: int) -> str:
        return "success" if position % 2 else "fail"

    def superseded(self, worker: Worker, mine: Batch) -> bool:
        """Whether somebody else was given part of a batch after ``worker`` was; a batch of an
        earlier generation is nobody's to lose."""
        if any(self._floor(mine.manifest, position) >= mine.attempt for position in mine.positions):
            return False
        index = max(i for i, item in enumerate(self.handed) if item == (worker, mine))
        return any(
            (other, batch) != (worker, mine) and batch.manifest == mine.manifest
            and not {*mine.positions}.isdisjoint(batch.positions)
            for other, batch in self.handed[index:]
        )  # fmt: skip

    # What must hold.

    def check(self) -> None:
        for worker in self.workers:
            if isinstance(worker.outcome, BaseException) and not isinstance(worker.outcome, Killed):
                raise worker.outcome
        if len(self.disk.files) != self._checked:
            self._check_markers()
            self._checked = len(self.disk.files)
        lost = [r for r in self.rows if r.error and r.error["kind"] == "lost"]
        if lost and not self.disturbances:
            raise Violation(f"nobody died, but position {lost[0].position} is recorded as lost")
        errors = Counter((r.manifest, r.position) for r in self.rows if r.error)
        for episode, count in self.runs.items():
            if count > 1 + errors[episode] + self.disturbances:
                raise Violation(f"{episode} ran {count} times, {self.disturbances} disturbances")

    def check_complete(self, worker: Worker) -> None:
        budget = self._budget(worker.decisions)
        for m in self.manifests:
            missing = [p for p in range(m.selected) if not budget.over(m.hash, p)]
            if missing:
                raise Violation(f"{worker.id} sees nothing left, but {missing} of {m.cell} are")

    def check_counts(self) -> None:
        """Once and rightly: a settled episode counts by what it came to, whatever went wrong."""
        decisions = Heard(self, lambda what: None)
        best, budget = self._counted(decisions.current(self.rows)), self._budget(decisions)
        for m in self.manifests:
            for p in range(m.selected):
                if (m.hash, p) not in best:
                    if not decisions.of(m.hash, p).skipped:
                        raise Violation(f"position {p} has no row that counts")
                    continue
                outcome = best[m.hash, p].outcome
                right = self.expected(p) if budget.settled(m.hash, p) else "error"
                if outcome != right:
                    raise Violation(f"position {p} counts as {outcome} instead of {right}")

    def _floor(self, of: Manifest, position: int) -> int:
        return self.verdicts.get((of.hash, position), Verdict()).floor

    def _check_markers(self) -> None:
        budget = self._budget(None)
        for m in self.manifests:
            for path in self.disk.files:
                if path.suffix == ".done" and path.parent.parent.name == cell_dir(m):
                    claim = Claim.parse("", 0, path.stem)
                    assert claim
                    for p in range(claim.first, claim.last + 1):
                        if not budget.over(m.hash, p) and (m.hash, p) not in self.verdicts:
                            raise Violation(f"{path.name} is marked, position {p} has no row")

    def _budget(self, decisions: Decisions | None) -> Budget:
        budget = Budget(RETRIES, LOST_RETRIES, decisions)
        for made in self.rows:
            budget.add(made)
        return budget
