"""A real worker process around episodes that take no time: ``chaos_worker.py RUN SIZE [HOLD]``.

With HOLD it stops over its HOLD-th episode for ever, beating, so that a test can kill it there.
Says ``holding WORKER POSITION``, ``waiting WORKER``, ``buried WORKER POSITION WHEN``,
``ended WORKER``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from harness.foundations.atomic import AppendLog
from harness.foundations.metrics_files import read_rows
from harness.foundations.records import Row
from harness.leases.budget import Budget
from harness.leases.claims import Batch, Claims
from harness.leases.heartbeat import Heartbeat, WorkerId
from harness.leases.lease import LeaseBook
from harness.leases.observer import Observer
from harness.leases.standing import Standing
from harness.leases.takeover import Lost
from harness.paths import RunPaths
from tests.lease.scripted import manifest, row
from tests.lease.world import World

TTL = 60.0


def main(folder: str, size: str, hold: str = "0") -> None:
    paths, worker, bank = RunPaths(Path(folder)), WorkerId.new(), manifest("a", int(size))
    log_folder = paths.metrics_dir(bank.cell.task, "fake", "clean", worker)
    log_folder.mkdir(parents=True)
    log = AppendLog(log_folder)

    def write(made: Row) -> Row:
        log.append(made.to_json())
        return made

    def lost(what: Lost) -> Row:
        print("buried", what.owner["worker"], what.position, time.monotonic(), flush=True)
        return write(row(what.manifest, what.position, what.attempt, worker, "error", "lost"))

    def rows() -> Iterator[Row]:
        return read_rows(paths.results)

    heartbeat = Heartbeat(paths, worker, TTL)
    book = LeaseBook(paths.leases, paths.lease_dir(bank.cell.name, bank.hash).name)
    standing = Standing(bank, range(bank.selected), book, Budget(2, 4), rows)
    observer = Observer(paths.workers, TTL)
    claims = Claims([standing], paths.leases, heartbeat, observer, lost)
    heartbeat.start()
    done, waited = 0, False
    while (batch := claims.next()) is not None:
        heartbeat.alive()
        if not isinstance(batch, Batch):
            if not waited:
                print("waiting", worker, flush=True)
            waited = True
            time.sleep(batch.seconds)
            continue
        (position,) = batch.positions
        heartbeat.beat(
            episode={"manifest": bank.hash, "position": position, "attempt": batch.attempt}
        )
        done += 1
        if done == int(hold):
            print("holding", worker, position, flush=True)
            while True:
                heartbeat.alive()
                time.sleep(1)
        made = row(bank, position, batch.attempt, worker, World.expected(position), "")
        if claims.may_record(batch):
            claims.recorded(write(made))
            claims.finish(batch)
    heartbeat.end()
    print("ended", worker, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
