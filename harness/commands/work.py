"""``rollpool work RUN``: one lease worker, what a node starts for each of its GPUs."""

from __future__ import annotations

import argparse

from harness.commands.launch import add_flags, add_run, read_settings, warn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Join the run and work until nothing is left for this worker."""
    from harness.runs.run import open_run, refuse_other_code
    from harness.workers.worker import work

    settings = read_settings(arguments)
    run = open_run(settings.root, settings, create=False)
    warn(run.warnings)
    refuse_other_code(run)
    return work(run)
