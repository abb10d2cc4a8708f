"""How long a run takes beside the least that it could: max(all work / workers, longest episode).

The real claims in simulated time: episodes take a log-normal time with a long tail, workers join
each other's cells, and nobody waits while an episode is left that nobody has begun.
"""

from __future__ import annotations

import heapq
import random
import statistics
from pathlib import Path

import pytest

from harness.claims import Batch, Wait
from tests.lease.conftest import TTL, Cluster
from tests.lease.world import manifest

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


def makespan(
    cluster: Cluster, seconds: dict[tuple[str, int], float], workers: int, minibatch: int
) -> float:
    """When the last episode ends."""
    sizes: dict[str, int] = {}
    for digest, _ in seconds:
        sizes[digest[0]] = sizes.get(digest[0], 0) + 1
    banks = [manifest(digit, size) for digit, size in sizes.items()]
    members = [cluster.join(*banks, minibatch=minibatch) for _ in range(workers)]
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
            members[k].run(held.pop(k))
            last = now
        batch = members[k].claims.next()
        if isinstance(batch, Batch):
            held[k] = batch
            took = sum(seconds[batch.manifest.hash, position] for position in batch.positions)
            heapq.heappush(free, (now + took, k))
        elif isinstance(batch, Wait):
            heapq.heappush(free, (now + PATIENCE_S, k))
    assert len(cluster.rows) == len(seconds)  # each once
    return last


def bounds(seconds: dict[tuple[str, int], float], workers: int) -> tuple[float, float]:
    """The least possible, and what whoever never idles over unbegun work stays below."""
    share, longest = sum(seconds.values()) / workers, max(seconds.values())
    return max(share, longest), share + longest


@pytest.mark.parametrize("seed", range(3))
def test_nobody_idles_while_work_is_left(cluster: Cluster, seed: int) -> None:
    seconds = durations(seed, cells=3, size=20)
    took = makespan(cluster, seconds, 4, 1)
    assert took <= bounds(seconds, 4)[1]


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
