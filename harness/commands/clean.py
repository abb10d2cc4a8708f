"""``rollpool clean [RUN...]``: say what can go and what it would free; with ``--yes`` remove it."""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING

from harness.commands.launch import read_settings
from harness.errors import EXIT_OK, RollpoolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.foundations.settings import Settings
    from harness.nodes.node_store import Store
    from harness.reports.cleaning import Removal

_DAYS = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="*", help="these runs (default: all)")
    parser.add_argument("--staged", action="store_true", help="this node's unused copies alone")
    parser.add_argument("--videos", action="store_true", help="old videos alone")
    parser.add_argument("--leases", action="store_true", help="leases of finished runs alone")
    parser.add_argument(
        "--older", metavar="DAYS", type=float, default=_DAYS, help="age of a video (default: 30)"
    )
    parser.add_argument("--yes", action="store_true", help="remove it, and not only say so")


def run(arguments: argparse.Namespace) -> int:
    """Always 0: what there is to remove stands in what is printed."""
    from harness.nodes.node_store import Store
    from harness.nodes.store_folder import choose_folder

    settings = read_settings(arguments)
    every = not (arguments.staged or arguments.videos or arguments.leases)
    with contextlib.ExitStack() as stack:
        store = None
        if (every or arguments.staged) and settings["DXVLA_LOCAL"].is_dir():
            store = Store(choose_folder(settings["DXVLA_LOCAL"]), cap_gb=0)
            stack.enter_context(store.locked())
        found = list(_find(arguments, settings, store, every))
        for removal in found:
            print(removal)
            if arguments.yes:
                removal.remove()
    size = sum(removal.size for removal in found) / 1e6
    if arguments.yes:
        print(f"{size:,.1f} MB freed")
    else:
        print(f"{size:,.1f} MB would be freed; add --yes to remove what is above")
    return EXIT_OK


def _find(
    arguments: argparse.Namespace, settings: Settings, store: Store | None, every: bool
) -> Iterator[Removal]:
    from harness.reports import cleaning
    from harness.runs.run_record import budgets

    if store is not None:
        yield from cleaning.find_staged(store)
    for name in arguments.runs or _all_runs(settings):
        paths = settings.root.run(name)
        if not paths.root.is_dir():
            raise RollpoolError(f"clean {name}", f"no {paths.root}", "check the run's name")
        if every or arguments.videos:
            yield from cleaning.find_videos(paths, arguments.older)
        if every or arguments.leases:
            yield from cleaning.find_leases(paths, budgets(paths, settings))


def _all_runs(settings: Settings) -> list[str]:
    runs = settings.root.runs
    return sorted(record.parent.name for record in runs.glob("*/run.json"))
