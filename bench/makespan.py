"""A run of 40 tasks whose lengths differ a lot, by 8 workers: how long, beside the least possible.

The least is max(all work / workers, the longest episode). Everything is the toolkit's own (run,
claims, heartbeats, rows) but the episodes, which sleep as long as was drawn for them. Whole tasks
(``EVAL_MINIBATCH=0``) and minibatches of 5 are what others share work by.
"""

from __future__ import annotations

import itertools
import multiprocessing
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import harness.worker
from bench.measuring import Effort, Figure, Goal, Series, interleaved
from bench.scratch import Scratch, span
from harness.run import Run
from harness.simulators.contract import Episode

TITLE = "makespan of a long-tailed run of 40 tasks, 8 workers"
TASKS, WORKERS = 40, 8
EPISODES, MEDIAN_S = 5, 0.3
DEADLINE_S = 600.0
_LOOK_S = 0.02


def measure(effort: Effort) -> Figure:
    tasks, numbers = min(TASKS, effort.of(TASKS * 10, least=4)), itertools.count()
    with Scratch() as scratch:
        subjects: dict[str, Callable[[], float]] = {
            name: partial(ratio, scratch, numbers, tasks, minibatch)
            for name, minibatch in (("rollpool", 1), ("minibatches of 5", 5), ("whole tasks", 0))
        }
        found = interleaved(subjects, max(1, effort.rounds - 3))
    series = tuple(Series(name, "x the least", values) for name, values in found.items())
    return Figure(TITLE, series, (Goal("rollpool / the least", found["rollpool"], 1.03),))


def duration(task: str, seed: int) -> float:
    """Log-normal twice: a task is long or short, and its episodes differ less."""
    of_task = random.Random(task).lognormvariate(0.0, 1.0)
    return MEDIAN_S * of_task * random.Random(f"{task} {seed}").lognormvariate(0.0, 0.4)


def ratio(scratch: Scratch, numbers: itertools.count[int], tasks: int, minibatch: int) -> float:
    """Seconds of a run, times the least possible."""
    name = f"makespan_{next(numbers)}"
    settings = {"EVAL_MINIBATCH": str(minibatch)}
    run, _ = scratch.sealed(name, tasks, EPISODES, **settings)
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=work, args=(run,)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(DEADLINE_S)
        worker.kill()
    rows = scratch.rows(name)
    took = [row.wall_s or 0.0 for row in rows]
    return span(rows) / max(sum(took) / WORKERS, max(took))


def work(run: Run) -> None:
    """One worker, whose rig sleeps."""
    harness.worker.Rig = Sleeping  # type: ignore[attr-defined,assignment]
    sys.exit(harness.worker.work(run))


class Sleeping:
    """Stands for model server and simulator."""

    versions: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, run: Any, worker: str) -> None:
        self.standing = False

    def start(self) -> None:
        self.standing = True

    def play(self, episode: Episode, attempt: int, video: Path | None, tick: Any) -> dict[str, Any]:
        seconds = duration(episode.task, episode.seed)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            tick(0)
            time.sleep(min(_LOOK_S, left))
        return {
            "outcome": "fail", "success": False, "hard_success": None, "collision_count": None,
            "collision_names": [], "steps": 1, "sim_s": seconds, "wall_s": seconds,
            "policy_s": 0.0, "profile": {}, "state_hash": None, "video": None, "versions": {},
            "error": None,
        }  # fmt: skip

    def abandon(self) -> None:
        self.standing = False

    def close(self) -> None:
        self.standing = False
