"""``rollpool run RUN --workers N``: a whole run on this machine, with its progress."""

from __future__ import annotations

import argparse
import sys

from harness.commands import prepare
from harness.commands.launch import limits
from harness.errors import EXIT_OK, EXIT_PARTIAL


def add_arguments(parser: argparse.ArgumentParser) -> None:
    prepare.add_arguments(parser)
    parser.add_argument(
        "--workers", metavar="N", type=_positive, default=1, help="lease workers (default: 1)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Prepare, work, report. 1 where an episode is still missing, in error or set aside."""
    from harness.reports import status_page
    from harness.reports.status import StatusReader
    from harness.workers.pool import Slot, run_pool

    prepared = prepare.prepare_run(arguments)
    settings = prepared.settings
    reader = StatusReader(prepared.paths, limits(settings))
    before = reader.look().total
    if before.done:
        print(f"resuming: {before.done} of {before.selected} episodes have their result already")
    if before.done == before.selected:
        return EXIT_OK
    with status_page.Live(reader.look, out=sys.stderr):
        code = run_pool(prepared, [Slot(f"worker {n}") for n in range(arguments.workers)])
    after = reader.look()
    print(f"run {prepared.paths.name}: {status_page.line(after)}")
    if after.total.done == after.total.selected:
        return EXIT_OK  # whatever became of a worker, others have done its share
    return code or EXIT_PARTIAL


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number
