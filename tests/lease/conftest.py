"""Workers in one thread, on a real directory, with a clock that the test turns."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from harness.foundations.records import Row
from harness.leases.budget import Budget
from harness.leases.claims import Batch, Claims
from harness.leases.durations import Durations
from harness.leases.filesystem import Filesystem
from harness.leases.heartbeat import Heartbeat, Process
from harness.leases.lease import LeaseBook
from harness.leases.observer import Observer
from harness.leases.standing import Standing
from harness.leases.takeover import Lost
from harness.paths import RunPaths
from harness.runs.population import Manifest, selected_positions
from tests.lease.scripted import manifest, row

TTL = 60.0


class Counting(Filesystem):
    """Counts what a worker asks of the shared filesystem for its claims."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def names(self, directory: Path) -> list[str]:
        self.calls["names"] += 1
        return super().names(directory)

    def mkdir(self, directory: Path) -> bool:
        self.calls["mkdir"] += 1
        return super().mkdir(directory)

    def create(self, file: Path, data: bytes = b"") -> bool:
        self.calls["create"] += 1
        return super().create(file, data)


class Unsynced(Filesystem):
    """Does not wait for the disk: no test here pulls the plug."""

    def rewrite(self, file: Path, data: bytes) -> None:
        with file.open("r+b") as stream:
            stream.write(data)


class Member:
    """One worker of a ``Cluster``; ``rows`` are shared by all."""

    def __init__(
        self, cluster: Cluster, name: str, manifests: Sequence[Manifest], minibatch: int,
        process: Process, durations: Durations,
    ) -> None:  # fmt: skip
        self.id, self.rows, self.fs, self.runs = name, cluster.rows, Counting(), list[int]()
        self.heartbeat = Heartbeat(
            cluster.paths, name, TTL, fs=Unsynced(), clock=cluster.clock, process=process,
            host=name.split("-")[0],
        )  # fmt: skip
        self.observer = Observer(
            cluster.paths.workers, TTL, clock=cluster.clock, process=process,
            started=lambda pid: pid if pid in cluster.pids else 0,
        )  # fmt: skip
        standings = [
            Standing(
                m, selected_positions(m), LeaseBook(cluster.paths.leases, m.hash[:12], self.fs),
                Budget(2, 4), durations.noting(lambda: list(self.rows)), minibatch,
            )
            for m in manifests
        ]  # fmt: skip
        self.claims = Claims(
            standings, cluster.paths.leases, self.heartbeat, self.observer, self.lost,
            durations=durations, fs=self.fs, clock=cluster.clock,
            chance=random.Random(process.pid),
        )  # fmt: skip

    def take(self) -> Batch:
        batch = self.claims.next()
        assert isinstance(batch, Batch), batch
        return batch

    def lost(self, lost: Lost) -> Row:
        made = row(lost.manifest, lost.position, lost.attempt, self.id, "error", "lost")
        self.rows.append(made)
        return made

    def run(
        self, batch: Batch, outcome: str = "success",
        seconds: Callable[[Batch, int], float] | None = None,
    ) -> None:  # fmt: skip
        for position in batch.positions:
            self.begin(batch, position)
            self.runs.append(position)
            made = row(batch.manifest, position, batch.attempt, self.id, outcome, "crash")
            if seconds:
                made = dataclasses.replace(made, wall_s=seconds(batch, position))
            self.rows.append(made)
            self.claims.recorded(made)
        self.claims.finish(batch)

    def begin(self, batch: Batch, position: int) -> None:
        episode = {"manifest": batch.manifest.hash, "position": position, "attempt": batch.attempt}
        self.heartbeat.beat(episode=episode)

    def work(self) -> list[int]:
        """Run all there is; returns the positions, in order."""
        while (batch := self.claims.next()) is not None:
            assert isinstance(batch, Batch), batch
            self.run(batch)
        return self.runs


class Cluster:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.paths, self.now, self.rows = RunPaths(folder), 1000.0, list[Row]()
        self.pids: set[int] = set()
        self.members: list[Member] = []

    def clock(self) -> float:
        return self.now

    def join(
        self, *manifests: Manifest, host: str = "h1", minibatch: int = 1, boot: str = "",
        namespace: str = "ns", earlier: Mapping[str, Mapping[str, float]] | None = None,
    ) -> Member:  # fmt: skip
        pid = len(self.members) + 1
        self.pids.add(pid)
        process = Process(boot or host, namespace, pid, pid)
        member = Member(
            self, f"{host}-{pid}", manifests or [manifest("a", 4)], minibatch, process,
            Durations(earlier),
        )  # fmt: skip
        self.members.append(member)
        return member

    def die(self, member: Member) -> None:
        self.pids.discard(self.members.index(member) + 1)

    def pass_time(self, seconds: float, *, beating: Sequence[Member], looking: Member) -> None:
        for _ in range(int(seconds / (TTL / 10))):
            self.now += TTL / 10
            for member in beating:
                member.heartbeat.alive()
                member.heartbeat.tick()
            looking.observer.look()


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)
