"""``rollpool status RUN``: once, as JSON, or live until the run is finished."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import TYPE_CHECKING

from harness.commands.launch import add_run, limits, read_settings, run_name
from harness.errors import EXIT_OK, EXIT_PARTIAL

if TYPE_CHECKING:
    from harness.reports.status import Status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--watch", action="store_true", help="live, until nothing is left or ^C")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--check", action="store_true", help="what is missing; exit code 1 if any")
    parser.add_argument("--all", action="store_true", help="finished cells, too")


def run(arguments: argparse.Namespace) -> int:
    """0 for a run that is there, however it stands; with ``--check`` 1 if anything is missing."""
    from harness.reports import status_page
    from harness.reports.status import StatusReader

    settings = read_settings(arguments)
    reader = StatusReader(settings.root.run(run_name(settings)), limits(settings))
    page = functools.partial(status_page.text, every_cell=arguments.all)
    if arguments.check:
        return check(reader.look())
    if arguments.json:
        print(status_page.json_text(reader.look()))
    elif arguments.watch:
        with status_page.Live(reader.look, page, sys.stdout) as live:
            live.wait()
    else:
        print(page(reader.look()), end="")
    return EXIT_OK


def check(status: Status) -> int:
    """Say in a line how the run stands, and in a line each what is missing and which nodes take no
    work; 0, or 1 if anything is missing."""
    from harness.reports import status_page

    print(f"run {status.run}: {status_page.line(status)}", flush=True)
    missing = status_page.missing(status)
    for line in missing:
        print(f"missing: {line}", flush=True)
    for line in status_page.kept_out(status):
        print(f"takes no work: {line}", flush=True)
    return EXIT_PARTIAL if missing else EXIT_OK
