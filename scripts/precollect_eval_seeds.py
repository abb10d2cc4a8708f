#!/usr/bin/env python3
"""Make a seed bank: for each task and configuration, the first seeds that the expert solves.

    python scripts/precollect_eval_seeds.py --out seeds/mine --scenes study --configs clean d6 \
        --first 40000 --count 20 --jobs 2

Runs in the toolkit's Python and starts simulator processes of its own. Writes
``<out>/<task>/<task_config>.txt``. A bank that has enough seeds is left as it is and a shorter one
is continued, so it can be interrupted and repeated, or repeated with a larger count.

Exit code: 0 every bank is complete, 1 some are not, 2 nothing could be done.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.errors import EXIT_OK, EXIT_PARTIAL, RollpoolError
from harness.foundations.atomic import write_atomic
from harness.foundations.settings import resolve
from harness.paths import suggest
from harness.runs.feasible import find
from harness.runs.population import Cell
from harness.runs.prepare import read_bank, task_config
from harness.workers import chosen_simulator
from harness.workers.simulator_process import SimulatorProcess


@dataclass(frozen=True)
class Bank:
    """What became of one file."""

    seeds: int
    tried: int  # in this call; 0 = it was complete before
    solved: int  # of those tried

    def __str__(self) -> str:
        if not self.tried:
            return f"{self.seeds} seeds, complete before"
        rate = self.solved / self.tried
        return f"{self.seeds} seeds, the expert solved {self.solved}/{self.tried} ({rate:.0%})"


def main() -> int:
    arguments = _arguments()
    try:
        unfinished = _collect(arguments)
    except RollpoolError as error:
        print(f"precollect_eval_seeds: error: {error}", file=sys.stderr)
        return error.exit_code
    for line in unfinished:
        print(f"INCOMPLETE {line}", file=sys.stderr)
    return EXIT_PARTIAL if unfinished else EXIT_OK


def _collect(arguments: argparse.Namespace) -> list[str]:
    """Make every bank, ``jobs`` at a time; returns a line for each that is not complete."""
    log = Path(tempfile.mkdtemp(prefix="rollpool-precollect-")) / "simulators.log"
    asked = {"SIMULATOR": arguments.simulator, "SIM_CONFIG": arguments.sim_config}
    asked |= {"SIM_PY": arguments.python}
    settings, _ = resolve(flags={name: value for name, value in asked.items() if value})
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(arguments.jobs))

        def start() -> SimulatorProcess:
            return stack.enter_context(chosen_simulator.start(settings, log, render=False))

        idle = [start()]
        cells = _cells(idle[0].describe(), arguments)
        idle += [start() for _ in range(min(arguments.jobs, len(cells)) - 1)]
        print(f"{len(cells)} banks of {arguments.count} seeds; log: {log}", flush=True)
        return _fill_all(pool, idle, start, cells, arguments)


def _fill_all(
    pool: ThreadPoolExecutor,
    idle: list[SimulatorProcess],
    start: Callable[[], SimulatorProcess],
    cells: Sequence[Cell],
    arguments: argparse.Namespace,
) -> list[str]:
    waiting, unfinished = list(cells), []
    running: dict[Future[Bank], tuple[Cell, SimulatorProcess]] = {}
    began = time.monotonic()
    while waiting or running:
        while waiting and idle:
            cell, sim = waiting.pop(0), idle.pop()
            job = pool.submit(_fill, sim, cell, arguments.out, arguments.first, arguments.count)
            running[job] = (cell, sim)
        for job in wait(running, return_when=FIRST_COMPLETED).done:
            cell, sim = running.pop(job)
            # Here, in the main thread: a child lives as long as the thread that started it.
            idle.append(sim if sim.alive() else start())
            line = f"{cell.name}: {job.exception() or job.result()}"
            if job.exception() or job.result().seeds < arguments.count:
                unfinished.append(line)
            done = len(cells) - len(waiting) - len(running)
            left_s = (time.monotonic() - began) / done * (len(cells) - done)
            print(f"[{done}/{len(cells)}] {line}; {left_s:.0f} s left", flush=True)
    return unfinished


def _fill(sim: SimulatorProcess, cell: Cell, out: Path, first: int, count: int) -> Bank:
    path = out / cell.task / f"{cell.task_config}.txt"
    seeds = read_bank(out, cell.task, cell.task_config) if path.exists() else []
    begin = max([first, *(seed + 1 for seed in seeds)])
    found, tried = find(sim.check, cell, begin, count - len(seeds))
    if found:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, (" ".join(map(str, seeds + found)) + "\n").encode())
    return Bank(len(seeds) + len(found), tried, len(found))


def _cells(described: dict[str, Any], arguments: argparse.Namespace) -> list[Cell]:
    """The chosen cells, in the simulator's order. Raises ``RollpoolError`` for unknown names."""
    pairs = [(scene, task) for scene, task in described["cells"]]
    scenes = _chosen("scene", arguments.scenes, [scene for scene, _ in pairs])
    tasks = _chosen("task", arguments.tasks, [task for scene, task in pairs if scene in scenes])
    return [
        Cell(scene, task, task_config(scene, config, described["task_configs"][scene]))
        for config in arguments.configs
        for scene, task in pairs
        if scene in scenes and task in tasks
    ]


def _chosen(what: str, names: Sequence[str] | None, known: Sequence[str]) -> set[str]:
    for name in names or ():
        if name not in known:
            raise RollpoolError(
                f"{what} {name!r}", "no such one", suggest(name, sorted(set(known)))
            )
    return set(names or known)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="the bank's folder")
    parser.add_argument("--simulator", default="tabletop", help="or package.module:factory")
    parser.add_argument("--sim-config", help="YAML file with the simulator's own configuration")
    parser.add_argument("--python", help="the simulator's (default: SIM_PY)")
    parser.add_argument("--scenes", nargs="+", help="(default: all)")
    parser.add_argument("--tasks", nargs="+", help="(default: all of the scenes)")
    parser.add_argument("--configs", nargs="+", default=["clean"], help="e.g. clean d6 d15")
    parser.add_argument("--first", type=int, default=40000, help="the first seed (%(default)s)")
    parser.add_argument("--count", type=int, default=20, help="seeds a bank (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="simulators at a time (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
