"""``rollpool organize RUN MODEL``, which ``organize_results.py`` stands for."""

from __future__ import annotations

import argparse

from harness.commands.launch import limits, read_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="the run to read, in runs/")
    parser.add_argument("model", metavar="MODEL", help="the report goes to runs/MODEL[_CONFIG]/")
    parser.add_argument(
        "--replace", action="store_true",
        help="overwrite the report of another run, or files that this command did not make",
    )  # fmt: skip
    parser.add_argument(
        "--upstream", action="store_true",
        help="also upstream/, in the layout of RoboTwin's and RoboPRO's own evaluation",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """0 for whole tables, 1 where one is PARTIAL."""
    from harness.reports.organize import organize

    settings = read_settings(arguments)
    return organize(
        settings.root, arguments.run, arguments.model, arguments.replace, limits(settings),
        upstream=arguments.upstream,
    )  # fmt: skip
