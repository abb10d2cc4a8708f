"""``rollpool stage base|giants``: bring what a node needs to its own disk, and say how it went."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.launch import add_flags, read_settings
from harness.errors import EXIT_OK, RollpoolError

if TYPE_CHECKING:
    from harness.foundations.settings import Settings
    from harness.nodes.staging import Staged


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", choices=("base", "giants"),
        help="base: environments, code, assets; giants: weights and backbones",
    )  # fmt: skip
    parser.add_argument("checkpoint", nargs="*", help="giants: their names (default: CKPT_NAME)")
    parser.add_argument(
        "--use", metavar="FILE", type=Path,
        help="a file that the caller holds locked while it uses what is staged; the variables to "
        "export are added to it (scripts/lib/staging.sh)",
    )  # fmt: skip
    parser.add_argument(
        "--pack", metavar="DIR", type=Path,
        help="do not stage: write archives there for scripts/stage_fanout.sh, print their names",
    )  # fmt: skip
    add_flags(parser, "policy", "ckpt", "simulator", "profile")


def run(arguments: argparse.Namespace) -> int:
    """Stage; with ``--use``, into a root of that job's own, and a refusal is told in its run."""
    settings = read_settings(arguments)
    try:
        return _stage(settings, arguments)
    except RollpoolError as error:
        if arguments.use and settings["STUDY_RUN"]:
            _say_in_run(settings, error)
        raise


def _stage(settings: Settings, arguments: argparse.Namespace) -> int:
    from harness.foundations.slurm import allocation
    from harness.nodes import fanout
    from harness.nodes.local_root import link, make_root
    from harness.nodes.node_store import Store
    from harness.nodes.stage_plan import base_items, giant_items, names
    from harness.nodes.staging import Job, stage
    from harness.nodes.store_folder import choose_folder
    from harness.runs.checkpoint import checkpoint_name

    node = allocation().node
    store = Store(
        choose_folder(settings["DXVLA_LOCAL"]),
        cap_gb=settings["DXVLA_LOCAL_GB"],
        keep=names(settings["GIANT_KEEP"]),
        say=lambda line: print(f"stage {node}: {line}", flush=True),
    )
    if arguments.what == "base":
        items = base_items(settings)
    else:
        wanted = arguments.checkpoint or names(checkpoint_name(settings.root, settings))
        items = giant_items(settings, wanted)
    if arguments.pack:
        jobs = [Job(store, item) for item in items]
        for archive in fanout.pack({job.archive: job.tree for job in jobs}, arguments.pack):
            print(archive)
        return EXIT_OK
    with store.locked():
        user = store.admit(arguments.use) if arguments.use else None
        if user and arguments.what == "base":
            make_root(store, user, settings)
        ready = stage(store, items)
        if user:
            _export(arguments.use, link(store, user, settings, ready))
    store.say(f"{arguments.what} ready in {store.path}: {_copied_words(ready)}")
    return EXIT_OK


def _copied_words(ready: Sequence[Staged]) -> str:
    cold = [copy for copy in ready if copy.seconds is not None]
    seconds, size = sum(c.seconds or 0 for c in cold), sum(c.copied for c in cold)
    rate = f", {size / 1e6 / seconds:,.0f} MB/s" if size > 1e6 else ""
    copied = f"{len(cold)} copied ({size / 1e6:,.1f} MB, {seconds:.1f} s{rate})"
    return f"{len(ready) - len(cold)} warm, {copied}"


def _say_in_run(settings: Settings, error: RollpoolError) -> None:
    from harness.foundations.slurm import allocation
    from harness.nodes import node_words

    paths = settings.root.run(settings["STUDY_RUN"])
    if paths.root.is_dir():
        finding = {"check": "staging", "level": "failure", "words": f"{error.asked}: {error.found}",
                   "todo": error.todo}  # fmt: skip
        node_words.leave(paths.nodes, allocation().node, [finding])


def _export(file: Path, variables: Mapping[str, str]) -> None:
    with file.open("a") as lines:
        for name, value in variables.items():
            lines.write(f"export {name}={shlex.quote(value)}\n")
