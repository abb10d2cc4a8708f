"""Tests of the tests: a protocol broken in one place must be caught by the same histories."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import RollpoolError
from harness.foundations.records import Row
from harness.leases.claims import Batch, Claims
from harness.leases.decisions import Verdict
from harness.leases.heartbeat import Heartbeat, Record
from harness.leases.lease import LeaseBook
from harness.leases.names import Claim
from harness.leases.observer import Observer
from harness.paths import RunPaths
from tests.lease.disk import RUN, View
from tests.lease.test_protocol import (
    calm_history,
    disturbed_history,
    late_history,
    waiting_history,
)
from tests.lease.worker import Heard, Violation, Worker, run_episode, stubborn
from tests.lease.world import World

SEEDS = 80


class TellsTheTime(Heartbeat):
    def _encode(self) -> bytes:
        self._counter = self._clock()  # type: ignore[assignment]
        return super()._encode()


class ComparesClocks(Observer):
    def dead(self, worker: str) -> bool:
        seen = self._seen[worker]
        return seen.final or self._clock() - seen.record["counter"] > self.ttl


class ConcludesFromItsOwnSleep(Observer):
    @staticmethod
    def _credit(gap: float, interval: float) -> float:
        return gap


class IgnoresNamespaces(Observer):
    def _proven_gone(self, record: Record) -> bool:
        same = record["boot_id"] == self._self.boot_id
        return same and self._started(record["pid"]) != record["start_time"]


class BelievesItsClaim(LeaseBook):
    def _contested(self, claim: Claim, dead: Collection[Claim]) -> bool:
        return False


class RemovesTheDead(LeaseBook):
    """Clears a dead claim away and makes the same name again."""

    removed: frozenset[Claim] = frozenset()

    def try_claim(
        self, first: int, last: int, recorded: int, dead: Collection[Claim] = ()
    ) -> Claim | None:
        view = self._fs
        assert isinstance(view, View)
        for claim in dead:
            view.disk.remove(claim.path(self._leases))
        self.removed |= {*dead}
        self.refresh(first // 128)
        return super().try_claim(first, last, recorded, dead)

    def finish(self, claim: Claim, marker: str) -> None:
        if not (claim in self.removed and marker == "released"):
            super().finish(claim, marker)


class BatchesAreAsLongAsMine(LeaseBook):
    """Reads only the first number of a name, as if batches were numbered."""

    width = 1

    def try_claim(
        self, first: int, last: int, recorded: int, dead: Collection[Claim] = ()
    ) -> Claim | None:
        self.width = max(self.width, last - first + 1)
        return super().try_claim(first, last, recorded, dead)

    def _cover(self, claim: Claim) -> None:
        for position in range(claim.first, claim.first + self.width):
            self._covering.setdefault(position, []).append(claim)
            self._covering[position].sort(key=lambda claim: claim.attempt)


class HoldsDirectoriesOpen(View):
    """Lists through a descriptor that was opened before, with what it showed then."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.cache: dict[Path, tuple[int, list[str]]] = {}

    def names(self, directory: Path) -> list[str]:
        count, seen = self.cache.get(directory, (0, []))
        if not count % 4:
            seen = super().names(directory)
        self.cache[directory] = count + 1, seen
        return seen


class AsksStat(View):
    """Asks for the names that it expects instead of listing: what was once missing stays so."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.missing: set[Path] = set()

    def names(self, directory: Path) -> list[str]:
        seen = [name for name in super().names(directory) if directory / name not in self.missing]
        if directory.parent.parent == RUN.leases:
            expected = (f"{first}-{first}.1" for first in range(8))
            self.missing |= {directory / name for name in expected if name not in seen}
        return seen


class SharesItsName(Heartbeat):
    """Is called after its job and host, as the one before it was and the one beside it is."""

    def __init__(self, paths: RunPaths, worker: str, *args: Any, **more: Any) -> None:
        super().__init__(paths, worker.split("-")[0], *args, **more)

    def _create(self) -> None:
        with contextlib.suppress(RollpoolError):
            super()._create()


class BelievesSlurm(Observer):
    """A node that SLURM reports as failed is dead, and SLURM reports the first host so."""

    def dead(self, worker: str) -> bool:
        failed = self._seen[worker].record["host"] == "h1" and self._self.boot_id != "h1"
        return super().dead(worker) or failed


class ForgetsFloors(Heard):
    """Decides by numbers of attempts, but lets late rows of before a reset count."""

    def of(self, manifest: str, position: int) -> Verdict:
        return dataclasses.replace(super().of(manifest, position), floor=0)


class CompactsWhatIsOpen(LeaseBook):
    """Says that all is done which somebody has begun."""

    def compact(self, shard: int, found: Iterable[str], over: Callable[[int], bool]) -> int:
        return super().compact(shard, found, lambda position: True)


class NeverLooksAgain(Claims):
    def may_record(self, batch: Batch) -> bool:
        return True


class NamesOneSeat(Heartbeat):
    def _text(self, seats: Any) -> str:
        return super()._text(seats[:1])


def marks_before_it_records(worker: Worker) -> None:
    while (batch := stubborn(worker.claims.next)) is not None:
        if not isinstance(batch, Batch):
            worker.pause("wait")
            continue
        made = [run_episode(worker, batch, position) for position in batch.positions]
        stubborn(functools.partial(worker.claims.finish, batch, "done"))
        for row in made:
            worker.pause("record")
            worker.world.rows.append(row)
            worker.claims.recorded(row)
    worker.heartbeat.end()


def latest_wins(rows: Iterable[Row]) -> dict[tuple[str, int], Row]:
    return {(row.manifest, row.position): row for row in rows}


Broken = tuple[dict[str, Any], Callable[[World, int], None]]

BROKEN: dict[str, Broken] = {
    "liveness by comparing clocks": (
        {"heartbeat_type": TellsTheTime, "observer_type": ComparesClocks}, calm_history,
    ),
    "an observer trusts its gap": ({"observer_type": ConcludesFromItsOwnSleep}, waiting_history),
    "a pid of another namespace is proof": ({"observer_type": IgnoresNamespaces}, calm_history),
    "no listing after the claim": ({"book_type": BelievesItsClaim}, calm_history),
    "batches named by number": ({"book_type": BatchesAreAsLongAsMine}, calm_history),
    "listing through a held descriptor": ({"view_type": HoldsDirectoriesOpen}, calm_history),
    "discovery by stat": ({"view_type": AsksStat}, calm_history),
    "ids that come again": ({"heartbeat_type": SharesItsName}, waiting_history),
    "SLURM's word on a failed node": ({"observer_type": BelievesSlurm}, calm_history),
    "a reset without a floor": ({"decisions_type": ForgetsFloors}, disturbed_history),
    "compaction of what is open": ({"book_type": CompactsWhatIsOpen}, calm_history),
    "removal before the claim": ({"book_type": RemovesTheDead}, disturbed_history),
    "no second look before recording": ({"claims_type": NeverLooksAgain}, disturbed_history),
    "a record that names one claim of several": (
        {"heartbeat_type": NamesOneSeat, "seats": (3,)}, waiting_history,
    ),
    "marker before row": ({"program": marks_before_it_records}, calm_history),
    "the latest row wins": (
        {"counted": latest_wins, "scripted_errors": dict.fromkeys(range(6), 1)}, late_history,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_caught(name: str) -> None:
    changes, history = BROKEN[name]
    for seed in range(3 if history is late_history else SEEDS):
        world = World(**changes)
        try:
            history(world, seed)
        except Violation:
            return
        finally:
            world.close()
    pytest.fail(f"no history out of {SEEDS} noticed: {name}")
