"""100,000 episodes sealed by ``rollpool prepare``; the run resumed when all of them are played.

Whole commands are timed, the start of Python and of the simulator's process included. Resuming is
``rollpool run`` up to its word that nothing is left to do.
"""

from __future__ import annotations

import itertools
import re
from contextlib import ExitStack

from bench import finished
from bench.measuring import Effort, Figure, Goal, Series, interleaved, ratios
from bench.peers import environment
from bench.scratch import Scratch
from bench.subject import Subject, seconds
from bench.zero.simulator import TASKS
from harness.errors import RollpoolError

TITLE = "episodes sealed, and their run resumed when all are played"
EPISODES = 100_000


def measure(effort: Effort) -> Figure:
    each = effort.of(EPISODES // len(TASKS))
    count, numbers = each * len(TASKS), itertools.count()
    with ExitStack() as stack:
        scratch = stack.enter_context(Scratch())
        wanted = scratch.wanted(TASKS, each)
        run, manifests = scratch.sealed("finished", len(TASKS), each)
        for manifest in manifests:
            finished.write(run, manifest, f"node-1-{0:016x}", range(each))
        subjects = {
            "seal": lambda: seconds(
                lambda: scratch.rollpool("prepare", f"sealed_{next(numbers)}", *wanted)
            ),
            "resume": lambda: seconds(lambda: resume(scratch, count)),
        }
        python = environment.python() if effort.peers else None
        if python:
            peer = stack.enter_context(Subject(python, "bench.peers.labtasker", scratch.path))
            submitted = effort.of(500, least=50)
            subjects["labtasker, submit"] = lambda: (
                count / float(peer.ask("submits_a_second", tasks=submitted))
            )
        took = interleaved(subjects, effort.rounds)
    goals = [Goal(f"seal {count:,}", took["seal"], 2.0, "s"),
             Goal(f"resume {count:,}", took["resume"], 3.0, "s")]  # fmt: skip
    notes = ["labtasker's seconds are what so many would take at the rate of some hundreds"]
    series = tuple(Series(name, "s", values) for name, values in took.items())
    if python:
        ahead = ratios(took["labtasker, submit"], took["seal"])
        series += (Series("labtasker / seal", "x", ahead),)
    return Figure(TITLE, series, tuple(goals), tuple(notes) if python else (environment.MISSING,))


def resume(scratch: Scratch, count: int) -> None:
    said = scratch.rollpool("run", "finished")
    if not re.search(rf"\b{count} of {count} episodes", said):
        raise RollpoolError("rollpool run finished", said.strip()[-200:], f"{count} are played")
