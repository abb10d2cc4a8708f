"""How long one waits for the command line: ``--help``, and the status of 10,000 episodes."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from bench import finished
from bench.measuring import Effort, Figure, Goal, Series, interleaved
from bench.peers import environment
from bench.scratch import Scratch
from bench.subject import seconds
from harness.paths import CODE

TITLE = "the command line: --help, and the status of a run"
TASKS, EACH = 10, 1_000


def measure(effort: Effort) -> Figure:
    each = effort.of(EACH)
    with Scratch() as scratch:
        run, manifests = scratch.sealed("half", TASKS, each)
        for manifest in manifests:
            finished.write(run, manifest, f"node-1-{0:016x}", range(each // 2))
        launcher = str(CODE / "scripts" / "rollpool")
        commands = {
            "bare python": [sys.executable, "-c", "pass"],
            "rollpool --help": [launcher, "--help"],
            "rollpool status": [launcher, "status", "half"],
        }
        python = environment.python() if effort.peers else None
        if python:
            commands["labtasker --version"] = [str(python.with_name("labtasker")), "--version"]
        # The launcher sources env.sh, which sets EVAL_ROOT to the checkout's own folder.
        env = {**scratch.env, "RUNS_ROOT": str(scratch.path / "runs"),
               "ROLLPOOL_ENVS": str(environment.envs())}  # fmt: skip
        subjects = {name: partial(timed, command, env) for name, command in commands.items()}
        for warm in subjects.values():
            warm()
        took = interleaved(subjects, effort.rounds)
    goals = (Goal("--help", took["rollpool --help"], 0.15, "s"),
             Goal(f"status of {TASKS * each:,}", took["rollpool status"], 0.7, "s"))  # fmt: skip
    series = tuple(Series(name, "s", values) for name, values in took.items())
    return Figure(TITLE, series, goals, () if python else (environment.MISSING,))


def timed(command: list[str], env: dict[str, str]) -> float:
    def call() -> None:
        subprocess.run(command, env=env, capture_output=True, timeout=60, check=True)

    return seconds(call)
