"""``rollpool retry|skip|reset RUN``: what people decide about episodes, beside the leases.

Workers that run take it in within a heartbeat; no lease is touched, but ``reset --all`` renames
them all. Which episodes: those that fit each of ``--scene --task --seed --quarantined``.
"""

from __future__ import annotations

import argparse
import getpass
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.commands.launch import add_run, limits, read_settings, run_name
from harness.errors import EXIT_OK, RollpoolError

if TYPE_CHECKING:
    from harness.reports.deciding import Chooser, Standing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--scene", metavar="NAME", action="append", help="of this scene")
    parser.add_argument("--task", metavar="NAME", action="append", help="of this task")
    parser.add_argument("--seed", metavar="N", type=int, action="append", help="of this seed")
    parser.add_argument("--quarantined", action="store_true", help="that are set aside")
    parser.add_argument("--all", action="store_true", help="every episode of the run")
    parser.add_argument("--why", metavar="TEXT", default="", help="kept with the decision")
    parser.add_argument("--dry-run", action="store_true", help="say what it would concern")


def run(arguments: argparse.Namespace) -> int:
    """Refused where it concerns no episode, so that a misspelt name is noticed."""
    from harness.reports.deciding import Chooser

    settings = read_settings(arguments)
    chooser = Chooser(settings.root.run(run_name(settings)), limits(settings))
    do = arguments.command
    if do == "retry" and not _narrowed(arguments):
        arguments.quarantined = True
    if do != "retry" and not _narrowed(arguments):
        raise RollpoolError(
            f"{do} {chooser.paths.name}", "it is not said which episodes",
            "add --scene, --task, --seed, --quarantined or --all",
        )  # fmt: skip
    chosen = [standing for standing in _chosen(chooser, arguments) if standing.concerned(do)]
    if not chosen:
        raise RollpoolError(
            f"{do} {chooser.paths.name}", f"no episode of the run that one could {do} is meant",
            f"see: rollpool status {chooser.paths.name} --all",
        )  # fmt: skip
    for standing in chosen[:20]:
        print(f"{do} {standing}")
    if len(chosen) > 20:
        print(f"... and {len(chosen) - 20} more")
    if not arguments.dry_run:
        file = chooser.decide(do, chosen, _me(), arguments.why)
        print(f"{do}: {len(chosen)} episodes; decided in {file}")
        if do == "reset" and arguments.all and (renamed := chooser.rename_leases(file)):
            print(f"the leases so far: {renamed}")
    return EXIT_OK


def _me() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a container's user may have no name
        return socket.gethostname()


def _narrowed(arguments: argparse.Namespace) -> bool:
    given = (arguments.scene, arguments.task, arguments.seed, arguments.quarantined, arguments.all)
    return any(given)


def _chosen(chooser: Chooser, arguments: argparse.Namespace) -> Iterator[Standing]:
    for standing in chooser.standings():
        episode = standing.episode
        wanted = (
            (arguments.scene is None or episode.scene in arguments.scene)
            and (arguments.task is None or episode.task in arguments.task)
            and (arguments.seed is None or episode.seed in arguments.seed)
            and (not arguments.quarantined or standing.aside is not None)
        )
        if wanted:
            yield standing
