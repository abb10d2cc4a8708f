"""1,000,000 rows in 1,000 files become all tables, beside a bare query of the same files.

500,000 episodes of 25 tasks, each tried twice. Both are processes of their own and timed from
start to end: ``rollpool organize``, and a script that asks DuckDB for the latest row of each
episode, with typed columns, counted by task. Memory is the highest resident set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence

from bench import finished
from bench.measuring import Effort, Figure, Goal, Series, interleaved, ratios
from bench.scratch import Scratch
from harness.errors import RollpoolError

TITLE = "rows of a run become tables"
FILES, ROWS, TASKS = 1_000, 1_000, 25

QUERY = """
import sys, duckdb
columns = {"manifest": "VARCHAR", "position": "BIGINT", "attempt": "BIGINT", "worker": "VARCHAR",
           "task": "VARCHAR", "outcome": "VARCHAR", "success": "BOOLEAN"}
print(duckdb.sql(f'''
    SELECT task, count(*), count(*) FILTER (counted.success) FROM (
        SELECT task, arg_max({{"success": success}}, (outcome <> 'error', attempt, worker)) counted
        FROM read_json('{sys.argv[1]}/**/_metrics*.jsonl', format = 'newline_delimited',
                       columns = {columns})
        GROUP BY task, manifest, position)
    GROUP BY task ORDER BY task''').fetchall())
"""


def measure(effort: Effort) -> Figure:
    memory: list[float] = []
    with Scratch() as scratch:
        count = written(scratch, effort)
        results = scratch.path / "runs" / "rows" / "eval_result"
        organize = scratch.command("organize", "rows", "tables")
        query = [sys.executable, "-c", QUERY, str(results)]

        def tables() -> float:
            shutil.rmtree(scratch.path / "runs" / "tables", ignore_errors=True)
            took, peak = timed(scratch, organize)
            memory.append(peak)
            return took

        subjects = {"rollpool organize": tables, "bare query": lambda: timed(scratch, query)[0]}
        took = interleaved(subjects, max(1, effort.rounds - 2))
    series = [Series(name, "s", values) for name, values in took.items()]
    series.append(Series("rollpool organize, memory", "MB", tuple(memory)))
    beside = ratios(took["rollpool organize"], took["bare query"])
    goals = (Goal(f"tables of {count:,} rows / bare query", beside, 3.0),
             Goal("memory", tuple(memory), 600, "MB"))  # fmt: skip
    return Figure(TITLE, tuple(series), goals)


def written(scratch: Scratch, effort: Effort) -> int:
    """Each file holds a block of a task's episodes; each block is there twice, in two attempts, so
    that none is missing. Returns the number of rows."""
    rows, blocks = effort.of(ROWS, least=10), effort.of(FILES / TASKS / 2)
    run, manifests = scratch.sealed("rows", TASKS, blocks * rows)
    for number in range(2 * TASKS * blocks):
        half, attempt = number // 2, 1 + number % 2
        manifest, block = manifests[half % TASKS], half // TASKS
        positions = range(block * rows, (block + 1) * rows)
        finished.write(run, manifest, f"node-{number}-{number:016x}", positions, attempt)
    return 2 * TASKS * blocks * rows


def timed(scratch: Scratch, command: Sequence[str]) -> tuple[float, float]:
    """Seconds, and the highest resident set in MB, of a command; tables may be PARTIAL."""
    with (scratch.path / "said.txt").open("w+b") as said:
        began = time.perf_counter()
        process = subprocess.Popen(command, env=scratch.env, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            said.seek(0)
            words = said.read().decode(errors="replace").strip()[-300:]
            raise RollpoolError(" ".join(command[:4]), words, "see above")
    return took, usage.ru_maxrss / 1024
