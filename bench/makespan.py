"""A run of 40 tasks whose lengths differ a lot, by 8 workers: how long, beside the least possible.

The least is max(all work / workers, the longest episode); where half of the workers take three
times as long for everything, a worker counts for what it achieves. Everything is the toolkit's own
(run, claims, heartbeats, rows) but the episodes, which sleep as long as was drawn for them. An
earlier run has timed other seeds of the tasks; the first run knows nothing. Whole tasks and
minibatches of 5, in queue order to whoever is free, are how others share work: reckoned, at no cost
for claiming.
"""

from __future__ import annotations

import heapq
import itertools
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import harness.workers.worker
from bench.measuring import Effort, Figure, Goal, Series, interleaved
from bench.scratch import Scratch, span
from bench.zero.simulator import CONFIG, SCENE, TASKS
from harness.canonical import canonical_json
from harness.foundations.atomic import write_atomic
from harness.runs.population import Cell
from harness.runs.run import Run
from harness.simulators.contract import Episode

TITLE = "makespan of a long-tailed run of 40 tasks, 8 workers"
EPISODES, MEDIAN_S = 10, 0.3
#: What one worker takes for a second of work.
ALIKE, MIXED = (1.0,) * 8, (1.0, 3.0) * 4
#: Seeds that the earlier run had.
EARLIER = range(1000, 1010)
DEADLINE_S = 600.0


def measure(effort: Effort) -> Figure:
    tasks = TASKS[: min(len(TASKS), effort.of(len(TASKS) * 10, least=4))]
    numbers = itertools.count()
    with Scratch() as scratch:
        run = partial(ratio, scratch, numbers, tasks)
        subjects: dict[str, Callable[[], float]] = {
            "rollpool": run,
            "the first run": partial(run, known=False),
            "half of the workers 3x slower": partial(run, pace=MIXED),
        }
        found = interleaved(subjects, max(1, effort.rounds - 3))
    for name, size in (("minibatches of 5", 5), ("whole tasks", EPISODES)):
        found[name] = (in_queue_order(tasks, size),)
    series = tuple(Series(name, "x the least", values) for name, values in found.items())
    return Figure(TITLE, series, (Goal("rollpool / the least", found["rollpool"], 1.03),))


def duration(task: str, seed: int) -> float:
    """Log-normal twice: a task is long or short, and its episodes differ less."""
    of_task = random.Random(task).lognormvariate(0.0, 1.0)
    return MEDIAN_S * of_task * random.Random(f"{task} {seed}").lognormvariate(0.0, 0.4)


def least(tasks: Sequence[str], pace: Sequence[float]) -> float:
    """Seconds that nobody can do with less than."""
    seconds = [duration(task, seed) for task in tasks for seed in range(EPISODES)]
    return max(sum(seconds) / sum(1 / of for of in pace), max(seconds) * min(pace))


def in_queue_order(tasks: Sequence[str], size: int) -> float:
    """Batches of ``size`` episodes of a task, each to the worker that is free first."""
    free = [0.0] * len(ALIKE)
    for task in tasks:
        for first in range(0, EPISODES, size):
            took = sum(duration(task, seed) for seed in range(first, first + size))
            heapq.heapreplace(free, free[0] + took)
    return max(free) / least(tasks, ALIKE)


def ratio(
    scratch: Scratch, numbers: itertools.count[int], tasks: Sequence[str],
    pace: Sequence[float] = ALIKE, known: bool = True,
) -> float:  # fmt: skip
    """Seconds of a run, times the least possible."""
    run, _ = scratch.sealed(f"makespan_{next(numbers)}", len(tasks), EPISODES)
    remember(run, tasks if known else ())
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=work, args=(run, of)) for of in pace]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(DEADLINE_S)
        worker.kill()
    return span(scratch.rows(run.paths.name)) / least(tasks, pace)


def remember(run: Run, tasks: Sequence[str]) -> None:
    """What an earlier run of these tasks has left."""
    said = {
        Cell(SCENE, task, CONFIG).name: {
            "seconds": statistics.mean(duration(task, seed) for seed in EARLIER),
            "episodes": len(EARLIER),
        }
        for task in tasks
    }
    known = {run.settings["SIMULATOR"]: said}
    write_atomic(run.root.durations, canonical_json(known).encode())


def work(run: Run, pace: float) -> None:
    """One worker, whose rig sleeps."""
    harness.workers.worker.Rig = partial(Sleeping, pace)  # type: ignore[attr-defined,assignment]
    sys.exit(harness.workers.worker.work(run))


class Sleeping:
    """Stands for model server and simulator."""

    def __init__(self, pace: float, run: Any, worker: str) -> None:
        self._pace, self._seconds, self._end = pace, 0.0, float("inf")

    def standing(self, seat: int) -> bool:
        return True

    prepare = standing

    def steps(self, seat: int) -> int:
        return 0

    def versions(self, seat: int) -> dict[str, str]:
        return {}

    def begin(self, seat: int, episode: Episode, attempt: int, video: Path | None) -> None:
        self._seconds = self._pace * duration(episode.task, episode.seed)
        self._end = time.monotonic() + self._seconds

    def wait(self, seconds: float) -> dict[int, dict[str, Any]]:
        time.sleep(max(0.0, min(seconds, self._end - time.monotonic())))
        if time.monotonic() < self._end:
            return {}
        self._end = float("inf")
        return {0: _result(self._seconds)}

    def abandon(self) -> None:
        """Nothing is there to end."""

    close = abandon


def _result(seconds: float) -> dict[str, Any]:
    return {
        "outcome": "fail", "success": False, "hard_success": None, "collision_count": None,
        "collision_names": [], "steps": 1, "sim_s": seconds, "wall_s": seconds,
        "policy_s": 0.0, "profile": {}, "state_hash": None, "video": None, "versions": {},
        "error": None,
    }  # fmt: skip
