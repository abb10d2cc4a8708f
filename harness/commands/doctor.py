"""``rollpool doctor [RUN]``: what is wrong with this node, before an episode is lost to it."""

from __future__ import annotations

import argparse
import json

from harness.commands.launch import add_flags, add_run, read_settings, warn
from harness.errors import EXIT_OK, EXIT_REFUSED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--json", action="store_true", help="for programs")
    add_flags(parser, "policy", "ckpt", "config", "simulator", "profile", "video")


def run(arguments: argparse.Namespace) -> int:
    """0 where nothing stands against work, 2 where something does; with RUN that is left in
    ``runs/<RUN>/nodes/``, and its known episode is compared with that of the other nodes."""
    from harness.nodes.doctor import examine
    from harness.runs.run import open_run

    settings, joined = read_settings(arguments), None
    if settings["STUDY_RUN"]:
        joined = open_run(settings.root, settings, create=False)
        warn(joined.warnings)
        settings = joined.settings
    report = examine(settings, joined)
    if joined is not None:
        report.leave_word(joined.paths)
    if arguments.json:
        print(json.dumps(report.fields(), indent=1))
    else:
        print("\n".join(map(str, report.findings)))
    return EXIT_REFUSED if report.failures else EXIT_OK
