"""Claims without episodes: by many processes at once, in turns with the least that could be done.

A claim is chosen, made, listed and marked done; heartbeats and rows are left out. The pair is a
directory made and a file created, by as many processes at once.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from harness.errors import RollpoolError
from harness.foundations.records import Row
from harness.leases.budget import Budget
from harness.leases.claims import Batch, Claims
from harness.leases.filesystem import Filesystem
from harness.leases.heartbeat import Heartbeat, WorkerId
from harness.leases.lease import LeaseBook
from harness.leases.observer import Observer
from harness.leases.standing import Standing
from harness.paths import RunPaths
from harness.runs.population import Cell, Episodes, Manifest

#: The turn that claims nothing.
PAIR = "pair"
TTL = 3600.0
DEADLINE_S = 600.0


class Counted(Filesystem):
    """Counts what is asked of the leases, and takes ``delay_s`` longer for each."""

    def __init__(self, delay_s: float) -> None:
        self.calls, self._delay_s = 0, delay_s

    def names(self, directory: Path) -> list[str]:
        self._call()
        return super().names(directory)

    def mkdir(self, directory: Path) -> bool:
        self._call()
        return super().mkdir(directory)

    def create(self, file: Path, data: bytes = b"") -> bool:
        self._call()
        return super().create(file, data)

    def _call(self) -> None:
        self.calls += 1
        if self._delay_s:
            time.sleep(self._delay_s)


class Worker:
    """Claims batches of one episode and says at once that they are done."""

    def __init__(self, run: Path, of: Manifest, delay_s: float = 0.0) -> None:
        paths, self.fs, self._rows = RunPaths(run), Counted(delay_s), list[Row]()
        name = paths.lease_dir(of.cell.name, of.hash).name
        book = LeaseBook(paths.leases, name, self.fs)
        positions = range(of.selected)
        self.standing = Standing(of, positions, book, Budget(0, 0), lambda: self._rows)
        self._id = WorkerId.new()
        heartbeat = Heartbeat(paths, self._id, TTL)
        heartbeat.beat = lambda **changes: None  # type: ignore[method-assign]
        observer = Observer(paths.workers, TTL)
        self.claims = Claims(
            [self.standing], paths.leases, heartbeat, observer, lambda lost: self._row(of, 0),
            fs=self.fs,
        )  # fmt: skip

    def claim(self) -> None:
        batch = self.claims.next()
        assert isinstance(batch, Batch), "the queue is too short for so many claims"
        row = self._row(batch.manifest, batch.positions[0])
        self._rows.append(row)
        self.claims.recorded(row)
        self.claims.finish(batch)

    def _row(self, of: Manifest, position: int) -> Row:
        return Row(
            manifest=of.hash, position=position, attempt=1, worker=self._id, host="host",
            run="bench", scene=of.cell.scene, task=of.cell.task, task_config=of.cell.task_config,
            seed=position, instruction="", outcome="success", success=True, policy="none",
            checkpoint={}, simulator="none", settings_hash="", code_hash="", started=0.0,
            finished=0.0,
        )  # fmt: skip


def manifest(count: int) -> Manifest:
    cell, digest = Cell("scene", "task", "config"), "a" * 64
    unread = Episodes(cell, digest, b"{}\n" * (count + 1))  # to claim them, nobody opens them
    return Manifest(cell, digest, 0, "none", unread, count)


@dataclass(frozen=True)
class Queue:
    """What is claimed from.

    Attributes:
        delay_s: what each call on the leases takes more.
    """

    batches: int
    delay_s: float = 0.0


class Claiming:
    """One process's part: claims from each queue, which it joins first, and bare pairs."""

    def __init__(self, run: Path, number: int, queues: Mapping[str, Queue]) -> None:
        self._run, self._pairs, self._queues = run, run / f"pairs.{number}", queues
        self._pairs.mkdir()
        self._made = 0
        self._workers: dict[str, Worker] = {}

    def join(self, what: str) -> None:
        """Be ready for ``turn``; the first claim of a queue joins it."""
        queue = self._queues.get(what)
        if queue and what not in self._workers:
            folder = self._run / what
            folder.mkdir(exist_ok=True)
            self._workers[what] = Worker(folder, manifest(queue.batches), queue.delay_s)
            self._workers[what].claim()

    def turn(self, count: int, what: str) -> int:
        """So many claims from the queue ``what``, or bare pairs; the calls on the leases."""
        if what == PAIR:
            self._pair(count)
            return 2 * count
        worker = self._workers[what]
        before = worker.fs.calls
        for _ in range(count):
            worker.claim()
        return worker.fs.calls - before

    def _pair(self, count: int) -> None:
        for k in range(self._made, self._made + count):
            os.mkdir(self._pairs / f"{k}-{k}.1")
            os.close(os.open(self._pairs / f"{k}-{k}.1.done", os.O_CREAT | os.O_EXCL, 0o644))
        self._made += count


class Crew:
    """So many processes that do the same at once; use it as a context."""

    def __init__(self, run: Path, workers: int, queues: Mapping[str, Queue]) -> None:
        fork = multiprocessing.get_context("fork")
        self._barrier = fork.Barrier(workers, timeout=DEADLINE_S)
        pipes = [fork.Pipe() for _ in range(workers)]
        self._ends = [end for end, _ in pipes]
        self._processes = [
            fork.Process(target=self._work, args=(run, k, queues, end), daemon=True)
            for k, (_, end) in enumerate(pipes)
        ]

    def turn(self, count: int, *whats: str) -> tuple[float, float]:
        """``count`` claims of each process from each of these queues, or pairs; seconds and calls
        a piece, from when the first begins until the last ends."""
        for end in self._ends:
            end.send((count, whats))
        began, ended, calls = zip(*map(_answer, self._ends), strict=True)
        pieces = count * len(whats) * len(self._ends)
        return (max(ended) - min(began)) / pieces, sum(calls) / pieces

    def _work(self, run: Path, number: int, queues: Mapping[str, Queue], end: Connection) -> None:
        mine = Claiming(run, number, queues)
        while turn := end.recv():
            count, whats = turn
            for what in whats:
                mine.join(what)
            self._barrier.wait()
            began = time.perf_counter()  # one clock for all processes of a machine
            calls = sum(mine.turn(count, what) for what in whats)
            end.send((began, time.perf_counter(), calls))

    def __enter__(self) -> Crew:
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, kind: object, error: object, at: object) -> None:
        for end, process in zip(self._ends, self._processes, strict=True):
            if error:
                process.kill()
            else:
                end.send(None)
        for process in self._processes:
            process.join()


def _answer(end: Connection) -> tuple[float, float, int]:
    if not end.poll(DEADLINE_S):
        raise RollpoolError(
            "bench claims",
            f"a process has not answered for {DEADLINE_S:.0f} s",
            "see its traceback",
        )
    answer: tuple[float, float, int] = end.recv()
    return answer
