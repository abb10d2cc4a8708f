"""``rollpool node RUN``: this node's share of a run; ``scripts/slurm_eval_node.sh`` ends in it."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.commands import prepare
from harness.commands.launch import read_settings, warn
from harness.errors import RollpoolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.foundations.slurm import Allocation
    from harness.runs.run import Run
    from harness.workers.pool import Slot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    prepare.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Take part in preparing the run, start a worker for each GPU, wait, say how each ended. The
    code is the highest of theirs: 0 when nothing is left."""
    from harness.foundations.slurm import allocation
    from harness.nodes import node_words
    from harness.nodes.node import find_driver, gpus_of, slots, threads_each
    from harness.runs.run import open_run
    from harness.workers.pool import run_pool

    settings = read_settings(arguments)
    given = allocation()
    gpus = gpus_of(given, _found(given))
    defaults = {"EVAL_THREADS": threads_each(settings, given, gpus)}
    cache = Path(tempfile.gettempdir()) / f"rollpool-{os.getuid()}" / "cache"
    driver = find_driver() if gpus else ""
    _prepare(arguments, slots(settings, given, gpus, cache, driver), defaults)
    joined = open_run(settings.root, settings, create=True)
    if joined.settings["EVAL_DOCTOR"]:
        _examine(joined)
    else:
        node_words.leave(joined.paths.nodes, given.node, ())
    places = slots(joined.settings, given, gpus, cache, driver)
    having = f"GPU {', '.join(gpus)}" if gpus else "no GPU"
    print(f"node {given.node}: {having}, {given.cpus} CPUs, {len(places)} workers", flush=True)
    return run_pool(joined, places, functools.partial(print, flush=True))


def _prepare(
    arguments: argparse.Namespace, places: Sequence[Slot], defaults: Mapping[str, Any]
) -> None:
    """With further processes on this node's other GPUs where the expert has to be asked: that is
    what takes long."""
    from harness.workers.pool import Pool

    with contextlib.ExitStack() as stack:

        def begun(run: Run) -> None:
            if not run.settings["USE_EVAL_SEEDS"]:
                helpers = Pool(run, places[1:], command="prepare")
                stack.callback(helpers.kill)

        prepare.prepare_run(arguments, begun, defaults)


def _examine(joined: Run) -> None:
    """Let a node that would spoil or lose episodes take none. Raises ``RollpoolError``."""
    from harness.nodes.doctor import examine

    report = examine(joined.settings, joined)
    report.leave_word(joined.paths)
    for finding in report.findings:
        if finding.level != "ok":
            print(f"node {report.node}: {finding}", flush=True)
    if report.failures:
        words = "; ".join(f"{finding.check}: {finding.words}" for finding in report.failures)
        raise RollpoolError(
            f"node {report.node} takes no work", words,
            f"{report.failures[0].todo}; all of it: rollpool doctor {joined.paths.name}",
        )  # fmt: skip


def _found(given: Allocation) -> list[Any]:
    """The node's own GPUs: to use where nobody has said which, to warn of where SLURM gave none."""
    from harness.foundations.gpus import list_gpus

    if given.gpus:
        return []
    found = list_gpus()
    if given.inside and found:
        warn([f"node {given.node} has {len(found)} GPUs and SLURM gave none of them: "
              f"ask for them with --gres=gpu:{len(found)}"])  # fmt: skip
    return found
