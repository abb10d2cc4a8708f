"""``rollpool compact RUN``: finished leases in a few names; workers may run meanwhile."""

from __future__ import annotations

import argparse

from harness.commands.launch import add_run, read_settings
from harness.errors import EXIT_OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)


def run(arguments: argparse.Namespace) -> int:
    from harness.leases.compaction import compact
    from harness.leases.decisions import Decisions
    from harness.leases.joining import standings
    from harness.runs.run import open_run

    settings = read_settings(arguments)
    joined = open_run(settings.root, settings, create=False)
    decisions = Decisions(joined.paths.decisions)
    removed = compact(standings(joined, decisions), decisions.refresh, print)
    print(f"run {joined.paths.name}: {removed} files and folders fewer in {joined.paths.leases}")
    return EXIT_OK
