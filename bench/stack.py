"""Environment steps a second through everything, where simulator and model cost nothing.

One worker of ``rollpool run`` with its claims, rows and two processes; of vla-eval its own
orchestrator, recording included, and its model server. Two cameras of 256 x 256, chunks of 10. The
time is that from the first episode's beginning to the last one's end, so no start-up is in it.

Each part of an episode is measured while it runs (``harness/stopwatch.py``). What that takes is how
often a stopwatch is asked for each thing in an episode, counted, times the seconds of that thing.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from timeit import timeit
from types import MappingProxyType
from typing import Any
from unittest import mock

import numpy as np

from bench.measuring import Effort, Figure, Goal, Series, interleaved, ratios
from bench.peers import environment
from bench.scratch import Scratch, span
from bench.subject import Subject
from bench.zero.simulator import CONFIG, SCENE, TASKS, Nothing
from harness.episodes.episode import run_episode
from harness.inference.model_client import Served
from harness.simulators.contract import Episode
from harness.stopwatch import Part, Stopwatch

TITLE = "environment steps a second, simulator and model at no cost"
STEPS, CHUNK, DIM = 400, 10, 20


def measure(effort: Effort) -> Figure:
    with ExitStack() as stack:
        scratch = stack.enter_context(Scratch())
        subjects: dict[str, Callable[[], float]] = {
            "rollpool": worker(scratch, effort.of(100, least=2))
        }
        python = environment.python() if effort.peers else None
        if python:
            peer = stack.enter_context(Subject(python, "bench.peers.vla_eval", scratch.path))
            steps = effort.of(150, least=30)
            for name, form in (("vla-eval", "png"), ("vla-eval, raw pictures", "raw")):
                subjects[name] = partial(
                    peer.ask, "steps_a_second", steps=steps, image_format=form
                )  # fmt: skip
        rates = interleaved(subjects, max(1, effort.rounds - 2))
    each = measuring_a_step(effort.of(100_000))
    measuring = tuple(100 * each * rate for rate in rates["rollpool"])
    goals = [Goal("taken by measuring where the time goes", measuring, 1.0, "%")]
    if python:
        faster = ratios(rates["rollpool"], rates["vla-eval"])
        goals.insert(0, Goal("rollpool / vla-eval", faster, 50, at_most=False))
    series = tuple(Series(name, "steps/s", values) for name, values in rates.items())
    return Figure(TITLE, series, tuple(goals), () if python else (environment.MISSING,))


def worker(scratch: Scratch, episodes: int) -> Callable[[], float]:
    """Steps a second of a run of so many episodes with one worker."""
    wanted, numbers = scratch.wanted(TASKS[:1], episodes), itertools.count()

    def rate() -> float:
        name = f"stack_{next(numbers)}"
        scratch.rollpool("run", name, *wanted, BENCH_STEPS=str(STEPS))
        rows = scratch.rows(name)
        return sum(row.steps or 0 for row in rows) / span(rows)

    return rate


class NoModel:
    """Answers at once, in this process."""

    hello: Mapping[str, Any] = MappingProxyType(
        {"action_kind": "ee6d", "action_dim": DIM, "chunk": CHUNK, "needs": ["images"],
         "cameras": list(Nothing.cameras)}
    )  # fmt: skip

    def reset(self, episode: Episode) -> None:
        pass

    def infer(self, *asked: Any) -> tuple[np.ndarray, Served]:
        return np.zeros((CHUNK, DIM), np.float32), Served()


def measuring_a_step(count: int) -> float:
    """Seconds in which an episode's parts are measured, for each environment step."""
    watch = Stopwatch()
    names = {"watch": watch, "one": watch.part("reset")}
    things = {
        "now": "watch.now()", "add": "watch.add('wire', 0.0)", "part": "watch.part('reset')",
        "measure": "with one: pass",
    }  # fmt: skip
    asked = asked_an_episode()
    took = (asked[what] * timeit(of, globals=names, number=count) for what, of in things.items())
    return sum(took) / count / STEPS


def asked_an_episode() -> Counter[str]:
    """How often an episode asks for the time ``now``, does ``add``, asks for a ``part`` and has one
    ``measure``."""
    asked: Counter[str] = Counter()

    class Watch(Stopwatch):
        def __init__(self) -> None:
            super().__init__()
            self.now = self._now

        def _now(self) -> float:
            asked["now"] += 1
            return time.perf_counter()

        def part(self, name: str) -> Part:
            asked["part"] += 1
            return super().part(name)

        def add(self, name: str, seconds: float) -> None:
            asked["add"] += 1

    class Measured(Part):
        def __enter__(self) -> None:
            asked["measure"] += 1
            super().__enter__()

    episode = Episode(SCENE, TASKS[0], CONFIG, 0, "do nothing")
    with (
        mock.patch("harness.episodes.episode.Stopwatch", Watch),
        mock.patch("harness.stopwatch.Part", Measured),
    ):
        run_episode(Nothing(STEPS, 0.0), NoModel(), episode)
    return asked
