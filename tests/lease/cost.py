"""What claiming costs: calls on the leases, and time a claim as a ratio.

    python -m tests.lease.cost                  the table in LEASES.md
    python -m tests.lease.cost --one FOLDER     by one worker, for strace or the counters of NFS

The cases are measured in turns, in one process, so that a busy machine slows all of them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.claims import Batch
from tests.lease.conftest import Cluster, Member
from tests.lease.world import manifest

ROUNDS = 5


@dataclass(frozen=True)
class Case:
    """``workers`` that take turns in one cell, ``claims`` each after the joining."""

    positions: int
    workers: int
    claims: int

    def __str__(self) -> str:
        return f"{self.positions:>7,} batches, {self.workers:>2} workers"


CASES = (Case(1_000, 1, 500), Case(100_000, 1, 500), Case(1_280, 64, 10), Case(100_000, 64, 10))


class Measured:
    """The workers of a case, and what they have cost since they joined."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        cluster = Cluster(folder)
        self.members = [cluster.join(manifest("a", case.positions)) for _ in range(case.workers)]
        for member in self.members:
            take(member)
        self.joining = self._calls() / case.workers
        self._joined, self.claims, self.seconds = self._calls(), 0, 0.0

    def go_on(self, claims: int) -> None:
        began = time.process_time()
        for _ in range(claims):
            for member in self.members:
                take(member)
                self.claims += 1
        self.seconds += time.process_time() - began

    @property
    def calls(self) -> float:
        """A claim, joining aside."""
        return (self._calls() - self._joined) / self.claims

    def _calls(self) -> int:
        return sum(member.fs.calls.total() for member in self.members)


def take(member: Member) -> None:
    batch = member.claims.next()
    assert isinstance(batch, Batch), batch
    member.run(batch)


def side_by_side(folder: Path) -> Iterator[Measured]:
    """All cases, a part of each in turn."""
    measured = [Measured(case, folder / str(k)) for k, case in enumerate(CASES)]
    for _ in range(ROUNDS):
        for each in measured:
            each.go_on(each.case.claims // ROUNDS)
    yield from measured


def nfs_operations() -> Counter[str]:
    """Of every NFS mount of this machine, since it was mounted."""
    operations: Counter[str] = Counter()
    for line in Path("/proc/self/mountstats").read_text().splitlines():
        name, _, numbers = line.strip().partition(": ")
        if name.isupper() and numbers[:1].isdigit():
            operations[name] += int(numbers.split()[0])
    return operations


def one(folder: Path, positions: int) -> dict[str, object]:
    """300 claims of one worker, its heartbeat and rows left out."""
    measured = Measured(Case(positions, 1, 0), folder)
    (member,) = measured.members
    member.heartbeat.beat = lambda **changes: None  # type: ignore[method-assign]
    before = nfs_operations()
    measured.go_on(300)
    after = nfs_operations() - before
    return {"calls": measured.calls, "nfs": {name: n / 300 for name, n in after.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=Path, metavar="FOLDER")
    parser.add_argument("--positions", type=int, default=1_000)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(asked.one, asked.positions)))
        return
    with tempfile.TemporaryDirectory() as folder:
        first = None
        for each in side_by_side(Path(folder)):
            cost = each.seconds / each.claims
            first = first or cost
            calls = f"{each.joining:5.1f} calls to join with a claim, then {each.calls:.2f} a claim"
            print(f"{each.case}: {calls}; {cost / first:.2f} of the first case's time")


if __name__ == "__main__":
    main()
