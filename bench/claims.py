"""A claim and its completion, by 16 workers, beside a bare mkdir and create and beside labtasker.

All on one disk and in turns. Labtasker's queue is filled by copying a row of its database, since
submitting 100,000 tasks takes it eleven minutes; its workers use its raw client.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from bench.claiming import PAIR, Crew, Queue
from bench.measuring import Effort, Figure, Goal, Series, interleaved, ratios
from bench.peers import environment
from bench.subject import Subject

TITLE = "claim and completion, 16 workers"
WORKERS, SHORT, LONG = 16, 1_000, 100_000
#: Of each worker from a queue, at most: all of them together leave one of 1,000 not quite empty.
CLAIMS = 60
#: Short queues a turn, or as much of what is not short: what takes milliseconds says little.
QUEUES = 4
#: A network filesystem's round trip.
ROUND_TRIP_S = 0.0005


def measure(effort: Effort) -> Figure:
    count = min(CLAIMS, effort.of(CLAIMS * 3, least=2))
    many = effort.of(LONG, least=2 * SHORT)
    # A short queue is nearly empty after its turn, so each turn has its own.
    shorts = [[f"short.{turn}.{k}" for k in range(QUEUES)] for turn in range(effort.rounds)]
    queues = {"long": Queue(many), "slow": Queue(many, ROUND_TRIP_S)}
    queues |= {name: Queue(SHORT) for names in shorts for name in names}
    calls: list[float] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        crew = stack.enter_context(Crew(folder, WORKERS, queues))

        def rate(*whats: str) -> float:
            seconds, counted = crew.turn(count, *whats)
            if PAIR not in whats:
                calls.append(counted)
            return 1 / seconds

        fresh = iter(shorts)
        subjects: dict[str, Callable[[], float]] = {
            PAIR: lambda: rate(*[PAIR] * QUEUES), "short": lambda: rate(*next(fresh)),
            "long": lambda: rate(*["long"] * QUEUES), "slow": lambda: rate(*["slow"] * QUEUES),
        }  # fmt: skip
        python = environment.python() if effort.peers else None
        if python:
            peer = stack.enter_context(Subject(python, "bench.peers.labtasker", folder))
            peer.ask("fill", tasks=many)
            subjects["peer"] = lambda: float(
                peer.ask("claims_a_second", workers=WORKERS, for_s=4.0)
            )
        rates = interleaved(subjects, effort.rounds)
    return figure(rates, calls, many)


def figure(rates: Mapping[str, tuple[float, ...]], calls: list[float], many: int) -> Figure:
    names = {
        PAIR: "bare mkdir + create", "short": f"rollpool, {SHORT:,}", "long": f"rollpool, {many:,}",
        "slow": f"rollpool, {many:,}, 0.5 ms more a call", "peer": f"labtasker, {many:,}",
    }  # fmt: skip
    series = tuple(Series(names[what], "/s", values) for what, values in rates.items())
    lengths = [max(ratio, 1 / ratio) for ratio in ratios(rates["short"], rates["long"])]
    goals = [
        Goal("rollpool / bare pair", ratios(rates["long"], rates[PAIR]), 0.6, at_most=False),
        Goal(f"{SHORT:,} batches against {many:,}", tuple(lengths), 1.3),
        Goal("filesystem calls a claim", tuple(calls), 5, "calls"),
        Goal("claims with 0.5 ms more a call", rates["slow"], 2_000, "/s", at_most=False),
    ]
    if "peer" not in rates:
        return Figure(TITLE, series, tuple(goals), (environment.MISSING,))
    faster = ratios(rates["long"], rates["peer"])
    goals.append(Goal("rollpool / labtasker", faster, 100, at_most=False))
    return Figure(TITLE, series, tuple(goals))
