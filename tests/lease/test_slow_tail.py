"""How long a run takes beside the least that it could: max(all work / workers, longest episode).

The real claims in simulated time: episodes take a log-normal time with a long tail, workers join
each other's cells, and nobody waits while an episode is left that nobody has begun. Where earlier
runs have timed the cells the longest come first, and the tail is gone.
"""

from __future__ import annotations

import functools
import heapq
import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from harness.leases.claims import Batch, Wait
from tests.lease.conftest import TTL, Cluster
from tests.lease.scripted import manifest

#: Whoever waits asks again after so long; the real one asks more often, which only costs time here.
PATIENCE_S = 60.0


def durations(seed: int, cells: int, size: int) -> dict[tuple[str, int], float]:
    """Seconds of each episode; one cell is five times as slow as the others."""
    chance = random.Random(seed)
    return {
        (manifest("abcdef"[cell], size).hash, position): chance.lognormvariate(3.0, 1.0)
        * (5.0 if cell == 0 else 1.0)
        for cell in range(cells)
        for position in range(size)
    }


def many(seed: int, cells: int = 12, size: int = 6) -> dict[tuple[str, int], float]:
    """Seconds of each episode; a cell is long or short, and its episodes differ less."""
    chance = random.Random(seed)
    of_cell = [chance.lognormvariate(3.0, 1.0) for _ in range(cells)]
    return {
        (manifest(format(cell, "x"), size).hash, position): of_cell[cell]
        * chance.lognormvariate(0.0, 0.4)
        for cell in range(cells)
        for position in range(size)
    }


def foretold(seconds: dict[tuple[str, int], float]) -> dict[str, dict[str, float]]:
    """What an earlier run has seen: the mean of each cell, somewhat off."""
    chance, of_cell = random.Random(7), dict[str, list[float]]()
    for (digest, _), took in seconds.items():
        of_cell.setdefault(manifest(digest[0], 1).cell.name, []).append(took)
    return {
        name: {"seconds": statistics.mean(took) * chance.lognormvariate(0.0, 0.2), "episodes": 9}
        for name, took in of_cell.items()
    }


def makespan(
    cluster: Cluster, seconds: dict[tuple[str, int], float], workers: int, minibatch: int,
    *, earlier: Mapping[str, Mapping[str, float]] | None = None, pace: Sequence[float] = (1.0,),
) -> float:  # fmt: skip
    """When the last episode ends. Worker k takes ``pace[k % len(pace)]`` for a second of work."""
    sizes: dict[str, int] = {}
    for digest, _ in seconds:
        sizes[digest[0]] = sizes.get(digest[0], 0) + 1
    banks = [manifest(digit, size) for digit, size in sizes.items()]
    members = [cluster.join(*banks, minibatch=minibatch, earlier=earlier) for _ in range(workers)]

    def taken(k: int, batch: Batch, position: int) -> float:
        return seconds[batch.manifest.hash, position] * pace[k % len(pace)]

    free: list[tuple[float, int]] = [(0.0, k) for k in range(workers)]
    held: dict[int, Batch] = {}
    last = beaten = 0.0
    while free:
        now, k = heapq.heappop(free)
        cluster.now = max(cluster.now, 1000.0 + now)
        if cluster.now - beaten > TTL / 10:
            beaten = cluster.now
            for member in members:  # all live, whatever they are at
                member.heartbeat.alive()
                member.heartbeat.tick()
        if k in held:
            members[k].run(held.pop(k), seconds=functools.partial(taken, k))
            last = now
        members[k].observer.look()
        batch = members[k].claims.next()
        if isinstance(batch, Batch):
            held[k] = batch
            took = sum(taken(k, batch, position) for position in batch.positions)
            heapq.heappush(free, (now + took, k))
        elif isinstance(batch, Wait):
            heapq.heappush(free, (now + PATIENCE_S, k))
    assert len(cluster.rows) == len(seconds)  # each once
    return last


def bounds(seconds: dict[tuple[str, int], float], workers: float) -> tuple[float, float]:
    """The least possible, and what whoever never idles over unbegun work stays below."""
    share, longest = sum(seconds.values()) / workers, max(seconds.values())
    return max(share, longest), share + longest


@pytest.mark.parametrize("seed", range(3))
def test_nobody_idles_while_work_is_left(cluster: Cluster, seed: int) -> None:
    seconds = durations(seed, cells=3, size=20)
    took = makespan(cluster, seconds, 4, 1)
    assert took <= bounds(seconds, 4)[1]


@pytest.mark.parametrize("seed", range(3))
def test_the_longest_first_leave_no_tail(cluster: Cluster, seed: int) -> None:
    seconds = many(seed)
    took = makespan(cluster, seconds, 4, 1, earlier=foretold(seconds))
    assert took <= 1.05 * bounds(seconds, 4)[0]


@pytest.mark.parametrize("seed", range(3))
def test_the_last_batches_are_small(cluster: Cluster, seed: int) -> None:
    seconds = many(seed)
    took = makespan(cluster, seconds, 4, 6, earlier=foretold(seconds))
    assert took <= 1.05 * bounds(seconds, 4)[0]


@pytest.mark.parametrize("seed", range(3))
def test_the_slow_take_less(cluster: Cluster, seed: int) -> None:
    """Two workers of four take three times as long: together they achieve what 2 2/3 do."""
    seconds = many(seed)
    took = makespan(cluster, seconds, 4, 1, earlier=foretold(seconds), pace=(1.0, 3.0))
    assert took <= 1.1 * bounds(seconds, 2 + 2 / 3)[0]


@pytest.mark.slow
def test_the_tail_is_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Batches of one episode against whole cells, each as a ratio to the lower bound."""
    ratios: dict[int, list[float]] = {1: [], 0: []}
    for seed in range(3):
        seconds = durations(seed, cells=4, size=40)
        for minibatch, found in ratios.items():
            cluster = Cluster(tmp_path / f"{seed}.{minibatch}")
            found.append(makespan(cluster, seconds, 12, minibatch) / bounds(seconds, 12)[0])
    with capsys.disabled():
        said = {minibatch: round(statistics.mean(found), 2) for minibatch, found in ratios.items()}
        print(f"[makespan / lower bound by EVAL_MINIBATCH: {said}]")
    # The longest episode may begin last: then no order of claiming reaches the bound.
    assert statistics.mean(ratios[1]) < 1.6
    assert statistics.mean(ratios[0]) > 2 * statistics.mean(ratios[1])  # the slow tail
