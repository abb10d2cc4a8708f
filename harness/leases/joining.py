"""A run as one worker joins it: its cells, their claims, rows and decisions put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harness.foundations.metrics_files import read_rows
from harness.foundations.records import Row
from harness.leases.budget import Budget
from harness.leases.claims import Claims
from harness.leases.decisions import Decisions
from harness.leases.durations import Durations
from harness.leases.durations import read as earlier
from harness.leases.heartbeat import Heartbeat
from harness.leases.lease import LeaseBook
from harness.leases.observer import Observer
from harness.leases.standing import Standing
from harness.leases.takeover import Lost
from harness.runs.population import Cell, load, selected_positions
from harness.runs.run import Run


def open_claims(
    run: Run, heartbeat: Heartbeat, observer: Observer, record_lost: Callable[[Lost], Row],
    seats: int = 1,
) -> list[Claims]:  # fmt: skip
    """The claims of a run on its shared filesystem, for each of a worker's seats."""
    decisions = Decisions(run.paths.decisions)
    decisions.refresh()
    durations = Durations(earlier(run.root.durations, run.settings["SIMULATOR"]))
    shared = standings(run, decisions, durations)
    return [
        Claims(
            shared, run.paths.leases, heartbeat, observer, record_lost,
            durations=durations, news=decisions.refresh, seat=seat,
        )
        for seat in range(seats)
    ]  # fmt: skip


def anything_left(run: Run) -> bool:
    """Whether any selected episode is neither settled nor set aside; asked before what takes
    minutes is started."""
    decisions = Decisions(run.paths.decisions)
    decisions.refresh()
    for standing in standings(run, decisions):
        standing.refresh()
        if not standing.complete:
            return True
    return False


def standings(run: Run, decisions: Decisions, durations: Durations | None = None) -> list[Standing]:
    """Each manifest of the run, in queue order, not yet joined.

    Args:
        durations: takes in what rows are read.
    """
    settings = run.settings
    return [
        Standing(
            manifest, selected_positions(manifest),
            LeaseBook(run.paths.leases, run.paths.lease_dir(cell.name, manifest.hash).name),
            Budget(settings["EVAL_RETRIES"], settings["EVAL_LOST_RETRIES"], decisions),
            durations.noting(_rows_of(run, cell)) if durations else _rows_of(run, cell),
            settings["EVAL_MINIBATCH"],
        )
        for cell in run.cells for manifest in load(run.paths, cell)
    ]  # fmt: skip


def _rows_of(run: Run, cell: Cell) -> Callable[[], Iterator[Row]]:
    policy = run.settings["POLICY_NAME"]
    folder = run.paths.metrics_dir(cell.task, policy, cell.task_config, "any").parent
    within = folder.relative_to(run.paths.results)

    return lambda: read_rows(run.paths.results, within)
