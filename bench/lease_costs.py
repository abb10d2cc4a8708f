"""What LEASES.md says of claims: calls on the leases, system calls, NFS operations, inodes.

    python -m bench.lease_costs [--folder SHARED]       the table (2 minutes), on the disk of SHARED
    python -m bench.lease_costs --inodes 100000         files of so many episodes, compacted and not
    python -m bench.lease_costs --folder MOUNT --nfs    operations of NFS, beside bare pairs

System calls need strace. What claims cost in time is the figure ``claims``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.claiming import PAIR, Claiming, Crew, Queue, Worker, manifest
from harness.leases.compaction import compact
from harness.paths import CODE, RunPaths

#: (batches in the queue, workers, claims of each); all workers share the one cell there is.
CASES = ((1_000, 1, 480), (100_000, 1, 480), (1_000, 64, 12), (100_000, 64, 12))
ROUNDS = 5


def on_nfs(folder: Path, claims: int) -> dict[str, Any]:
    """Of one worker on an NFS mount: the operations of a claim and of a bare pair, and how many
    claims there are in the time of a pair (median, least and greatest of turns)."""
    run = Path(tempfile.mkdtemp(prefix="claims-", dir=folder))
    mine = Claiming(run, 0, {"queue": Queue(100_000)})
    mine.join("queue")
    operations = {"queue": Counter[str](), PAIR: Counter[str]()}
    rates = []
    for _ in range(ROUNDS):
        took = {}
        for what, counted in operations.items():
            before, began = nfs_operations(), time.perf_counter()
            mine.turn(claims // ROUNDS, what)
            took[what] = time.perf_counter() - began
            counted += nfs_operations() - before
        rates.append(took[PAIR] / took["queue"])
    claim, pair = ({name: n / claims for name, n in of.items()} for of in operations.values())
    beside = [statistics.median(rates), min(rates), max(rates)]
    return {"claim": claim, "pair": pair, "claims / pairs": beside}


def nfs_operations() -> Counter[str]:
    """Of every NFS mount of this machine, since it was mounted."""
    operations: Counter[str] = Counter()
    for line in Path("/proc/self/mountstats").read_text().splitlines():
        name, _, numbers = line.strip().partition(": ")
        if name.isupper() and numbers[:1].isdigit():
            operations[name] += int(numbers.split()[0])
    return operations


def system_calls(folder: Path, batches: int, workers: int, claims: int) -> str:
    """Of the kernel, a claim: what workers with more claims do more, under strace."""
    if not shutil.which("strace"):
        return "-"
    counts = []
    for count in (1, claims):
        with tempfile.TemporaryDirectory(prefix="claims-", dir=folder) as run:
            summary = Path(run) / "summary"
            subprocess.run(
                ["strace", "-f", "-c", "-U", "calls", "-e", "trace=%file,%desc", "-o", summary,
                 sys.executable, "-m", "bench.lease_costs", "--folder", run,
                 "--spend", str(batches), str(workers), str(count)],
                check=True, env={**os.environ, "PYTHONPATH": str(CODE)},
            )  # fmt: skip
            counts.append(int(summary.read_text().split()[-2]))
    return f"{(counts[1] - counts[0]) / (workers * (claims - 1)):.1f}"


def case(folder: Path, batches: int, workers: int, claims: int) -> str:
    """One line of the table."""
    run = Path(tempfile.mkdtemp(prefix="claims-", dir=folder))
    count = claims // ROUNDS
    with Crew(run, workers, {"queue": Queue(batches)}) as crew:
        turns = [(crew.turn(count, PAIR)[0], *crew.turn(count, "queue")) for _ in range(ROUNDS)]
    shutil.rmtree(run)
    ratio = statistics.median(mine / bare for bare, mine, _ in turns)
    rate = 1 / statistics.median(mine for _, mine, _ in turns)
    calls = statistics.mean(calls for _, _, calls in turns)
    kernel = system_calls(folder, batches, workers, claims)
    return f"{batches:>8,} {workers:>8} {calls:>8.2f} {kernel:>8} {ratio:>8.1f} {rate:>9,.0f}"


def inodes(folder: Path, episodes: int) -> str:
    """Files and folders of the leases when all is done, and after ``rollpool compact``."""
    run = Path(tempfile.mkdtemp(prefix="claims-", dir=folder))
    worker = Worker(run, manifest(episodes))
    for _ in range(episodes):
        worker.claim()
    leases = RunPaths(run).leases
    before = sum(1 for _ in leases.rglob("*"))
    compact([worker.standing], lambda: None)
    after = sum(1 for _ in leases.rglob("*"))
    shutil.rmtree(run)
    return f"{episodes:,} episodes: {before:,} inodes of leases, {after:,} when compacted"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--inodes", type=int, metavar="EPISODES")
    parser.add_argument("--nfs", action="store_true", help="operations of NFS")
    parser.add_argument("--spend", type=int, nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.spend:
        batches, workers, claims = asked.spend
        with Crew(asked.folder, workers, {"queue": Queue(batches)}) as crew:
            crew.turn(claims, "queue")
    elif asked.inodes:
        print(inodes(asked.folder, asked.inodes))
    elif asked.nfs:
        print(json.dumps(on_nfs(asked.folder, 300)))
    else:
        print(" batches  workers    calls  kernel's   ratio  claims/s")
        for each in CASES:
            print(case(asked.folder, *each), flush=True)


if __name__ == "__main__":
    main()
