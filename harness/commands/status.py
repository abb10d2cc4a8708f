"""``rollpool status RUN``: once, as JSON, or live until the run is finished."""

from __future__ import annotations

import argparse
import functools
import sys

from harness.commands.launch import add_run, limits, read_settings, run_name
from harness.errors import EXIT_OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--watch", action="store_true", help="live, until nothing is left or ^C")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--all", action="store_true", help="finished cells, too")


def run(arguments: argparse.Namespace) -> int:
    """Always 0 for a run that is there: how it stands is in what is printed."""
    from harness import status_page
    from harness.status import StatusReader

    settings = read_settings(arguments)
    reader = StatusReader(settings.root.run(run_name(settings)), limits(settings))
    page = functools.partial(status_page.text, every_cell=arguments.all)
    if arguments.json:
        print(status_page.json_text(reader.look()))
    elif arguments.watch:
        with status_page.Live(reader.look, page, sys.stdout) as live:
            live.wait()
    else:
        print(page(reader.look()), end="")
    return EXIT_OK
