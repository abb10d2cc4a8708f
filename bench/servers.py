"""Several simulators on one model server, beside one simulator on it.

A call of the policy costs 60 ms and 2 ms for each simulator that it answers, which are waited for
as one waits for a GPU; a chunk of ten actions takes its simulator 150 ms. So one simulator gets a
chunk every 212 ms, and the server can serve twelve times as much in batches of four, three times as
much one by one. The time is that from the first episode's beginning to the last one's end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from bench.measuring import Effort, Figure, Goal, Series, interleaved, ratios
from bench.scratch import Scratch, span
from bench.zero.simulator import TASKS

TITLE = "4 simulators on one model server, a policy whose batches cost little more than one"
SIMULATORS, STEPS = 4, 100
CALL_S, EACH_S, STEP_S = 0.060, 0.002, 0.015
CHUNK = 10


def measure(effort: Effort) -> Figure:
    with Scratch() as scratch:
        subject = Pool(scratch, effort.of(6, least=1))
        subjects: dict[str, Callable[[], float]] = {
            "1 simulator": lambda: subject.rate(1, 1),
            "4 simulators, batches of 4": lambda: subject.rate(SIMULATORS, SIMULATORS),
            "4 simulators, one after the other": lambda: subject.rate(SIMULATORS, 1),
        }
        rates = interleaved(subjects, max(1, effort.rounds - 2))
    one, batched, _ = rates.values()
    alone_s = CHUNK * STEP_S + CALL_S + EACH_S
    served = SIMULATORS * alone_s / (CALL_S + SIMULATORS * EACH_S)
    reached = tuple(ratio / min(SIMULATORS, served) for ratio in ratios(batched, one))
    series = tuple(Series(name, "steps/s", values) for name, values in rates.items())
    goal = Goal("of 4 times one simulator", reached, 0.9, at_most=False)
    return Figure(TITLE, series, (goal,))


class Pool:
    """Runs of so many episodes a simulator, by one worker."""

    def __init__(self, scratch: Scratch, episodes: int) -> None:
        self._scratch, self._episodes, self._numbers = scratch, episodes, itertools.count()

    def rate(self, simulators: int, batch: int) -> float:
        """Steps a second."""
        name = f"servers_{next(self._numbers)}"
        wanted = self._scratch.wanted(TASKS[:1], self._episodes * simulators)
        self._scratch.rollpool(
            "run", name, *wanted, SIMS_PER_WORKER=str(simulators), MODEL_MAX_BATCH=str(batch),
            BENCH_STEPS=str(STEPS), BENCH_STEP_S=str(STEP_S), BENCH_CALL_S=str(CALL_S),
            BENCH_EACH_S=str(EACH_S),
        )  # fmt: skip
        rows = self._scratch.rows(name)
        return sum(row.steps or 0 for row in rows) / span(rows)
