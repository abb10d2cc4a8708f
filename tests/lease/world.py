"""A small cluster in memory: a disk, a clock and workers that take turns, one operation at a time.

Every worker is a thread that stops before each filesystem operation until it is told to go on, so a
history is a sequence of choices and nothing else: it can be replayed, and a worker can be killed,
frozen or deceived between any two operations. The protocol under test is the real one; only the
filesystem, the clock, chance and the episodes are made up.
"""

from __future__ import annotations

import dataclasses
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.foundations.records import Row, counted
from harness.leases.budget import Budget
from harness.leases.claims import Batch, Claims
from harness.leases.compaction import compact
from harness.leases.decisions import Decisions, Verdict
from harness.leases.durations import Durations
from harness.leases.filesystem import Filesystem
from harness.leases.heartbeat import Heartbeat, Process
from harness.leases.lease import LeaseBook
from harness.leases.names import Claim
from harness.leases.observer import Observer
from harness.leases.standing import Standing
from harness.leases.takeover import Lost
from harness.paths import RunPaths
from harness.runs.population import Cell, Manifest
from harness.simulators.contract import Episode

TTL, INTERVAL = 10.0, 1.0
RETRIES, LOST_RETRIES = 2, 4
RUN = RunPaths(Path("/run"))
DEADLINE = 20.0


class Violation(AssertionError):
    """The protocol has broken one of its promises."""


class Killed(BaseException):
    """Unwinds the thread of a worker that was killed. Nothing it does afterwards has effect."""


def manifest(digit: str, count: int) -> Manifest:
    cell, digest = Cell("study", f"task_{digit}", "clean"), digit * 64
    episodes = tuple(
        Episode(cell.scene, cell.task, cell.task_config, 100 + p, "do it", {}, digest, p)
        for p in range(count)
    )
    return Manifest(cell, digest, 0, "fake", episodes, count)


def row(of: Manifest, position: int, attempt: int, worker: str, outcome: str, kind: str) -> Row:
    error = {"kind": kind, "message": "as scripted"} if outcome == "error" else None
    success = {"success": True, "fail": False, "error": None}[outcome]
    return Row(
        manifest=of.hash, position=position, attempt=attempt, worker=worker,
        host=worker.split("-")[0], run="run", scene=of.cell.scene, task=of.cell.task,
        task_config=of.cell.task_config, seed=100 + position, instruction="do it",
        outcome=outcome, success=success, policy="fake", checkpoint={}, simulator="fake",
        settings_hash="", code_hash="", error=error, started=0.0, finished=0.0,
    )  # fmt: skip


class Disk:
    """What is really there, whoever sees it."""

    def __init__(self) -> None:
        self.files: dict[Path, bytes | None] = {Path("/run"): None}  # None: a directory
        self.hidden: set[Path] = set()
        self.calls: Counter[str] = Counter()

    def children(self, directory: Path) -> list[str]:
        return [p.name for p in self.files if p.parent == directory and p not in self.hidden]

    def remove(self, top: Path) -> None:
        self.files = {p: data for p, data in self.files.items() if not p.is_relative_to(top)}


class View(Filesystem):
    """One worker's view of the disk: each operation is a point at which anything may happen."""

    def __init__(self, disk: Disk, pause: Callable[[str], None]) -> None:
        self.disk, self.pause = disk, pause
        self.lose: str | None = None  # how the answer to the next creation is lost

    def names(self, directory: Path) -> list[str]:
        self._before("names", directory)
        return self.disk.children(directory)

    def mkdir(self, directory: Path) -> bool:
        self._before("mkdir", directory)
        return self._make(directory, None)

    def create(self, file: Path, data: bytes = b"") -> bool:
        self._before("create", file)
        return self._make(file, data)

    def read(self, file: Path) -> bytes:
        data = self.disk.files.get(file)
        if data is None:
            raise FileNotFoundError(file)
        return data

    def rewrite(self, file: Path, data: bytes) -> None:
        self.pause("rewrite")
        self.read(file)
        self.disk.files[file] = data

    def remove(self, name: Path) -> None:
        self._before("remove", name)
        self.disk.files.pop(name, None)

    def _before(self, what: str, path: Path) -> None:
        self.pause(what)
        if path.is_relative_to(RUN.leases):
            self.disk.calls[what] += 1

    def _make(self, path: Path, data: bytes | None) -> bool:
        if path.parent not in self.disk.files:
            raise FileNotFoundError(path)
        made = path not in self.disk.files
        if made:
            self.disk.files[path] = data
        lost, self.lose = self.lose, None
        if lost == "error":
            raise OSError("the answer was lost")
        return made and lost != "exists"


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
                m, range(m.selected), world.book_type(RUN.leases, _cell_dir(m), self.view),
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


def _cell_dir(of: Manifest) -> str:
    return RUN.lease_dir(of.cell.name, of.hash).name


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
        book = LeaseBook(RUN.leases, _cell_dir(of), View(self.disk, lambda what: None))
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
                if path.suffix == ".done" and path.parent.parent.name == _cell_dir(m):
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
