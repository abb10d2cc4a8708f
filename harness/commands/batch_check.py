"""``rollpool batch-check RUN``: whether the policy's actions depend on who is answered with them.

A few episodes of the run are played; then all that the policy has seen is asked again, alone and in
batches. Nothing of the run is touched.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.commands.launch import add_flags, add_run, read_settings, warn
from harness.errors import EXIT_OK, EXIT_PARTIAL, RollpoolError

if TYPE_CHECKING:
    from harness.runs.run import Run
    from harness.simulators.contract import Episode

_TOLERANCE = 1e-4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--batch", type=int, help="of the compared (MODEL_MAX_BATCH, at least 4)")
    parser.add_argument(
        "--tolerance", type=float, default=_TOLERANCE,
        help=f"a difference of an action that may be ({_TOLERANCE:g})",
    )  # fmt: skip
    add_flags(parser, "policy", "ckpt", "config", "simulator", "profile")


def run(arguments: argparse.Namespace) -> int:
    """0 where no action differs by more than the tolerance, else 1."""
    from harness.runs.run import open_run

    settings = read_settings(arguments)
    joined = open_run(settings.root, settings, create=False)
    warn(joined.warnings)
    batch = arguments.batch or max(4, joined.settings["MODEL_MAX_BATCH"] or 1)
    with tempfile.TemporaryDirectory(prefix="rollpool-") as folder:
        found = _found(joined, batch, Path(folder))
    for line in words(found, joined.identity["policy"], batch):
        print(line)
    worst = max((one["difference"] for one in found["largest"]), default=0.0)
    return EXIT_OK if worst <= arguments.tolerance else EXIT_PARTIAL


def words(found: dict[str, Any], policy: str, batch: int) -> list[str]:
    """What was found, in lines."""
    if not found["batches"]:
        return [f"policy {policy} answers one simulator after the other: nothing to compare"]
    apart = found["chunks"] - found["equal"]
    said = f"{found['chunks']} chunks of policy {policy}, alone and in batches of up to {batch}: "
    said += f"{found['equal']} equal bit by bit, {apart} not"
    return [said, *(_line(one) for one in found["largest"])]


def _line(one: dict[str, Any]) -> str:
    return (
        f"  {one['scene']}/{one['task']} seed {one['seed']} chunk {one['chunk']} in a batch of "
        f"{one['batch']}: action {one['action']}, dimension {one['dimension']}: "
        f"{one['alone']:.9g} alone, {one['together']:.9g} together ({one['difference']:.2g})"
    )


def _found(run: Run, batch: int, folder: Path) -> dict[str, Any]:
    """What ``harness.inference.invariance`` found in as many episodes as a batch has."""
    from harness.paths import RunPaths
    from harness.workers.model_link import OwnServer
    from harness.workers.rig import Rig, model_process

    episodes = _episodes(run, batch)
    settings = run.settings.having(
        EVAL_VIDEO="none", MODEL_SERVER_BIND="127.0.0.1", MODEL_AS_CLIENT=False, SIMS_PER_WORKER=1
    )
    apart = replace(run, paths=RunPaths(folder), settings=settings)
    process = model_process(apart, "batch-check", keeps=True)
    rig = Rig(apart, "batch-check", [OwnServer(apart, "batch-check", process)])
    try:
        for number, episode in enumerate(episodes, start=1):
            print(f"playing {number} of {len(episodes)}: {episode.scene}/{episode.task} "
                  f"seed {episode.seed}", flush=True)  # fmt: skip
            if error := rig.play(episode, 1, None, lambda steps: None)["error"]:
                raise RollpoolError("batch-check", error["message"], "see to that episode first")
        return process.compare(batch)
    finally:
        rig.close()


def _episodes(run: Run, count: int) -> list[Episode]:
    """The first of each cell, then the second of each, and so on."""
    from harness.runs import population

    sealed = [
        [episode for manifest in population.load(run.paths, cell) for episode in manifest.episodes]
        for cell in run.cells
    ]
    turns = chain.from_iterable(zip_longest(*sealed))
    return list(islice((episode for episode in turns if episode is not None), count))
