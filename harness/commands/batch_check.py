"""``rollpool batch-check RUN``: whether actions and outcomes depend on who is answered with them.

A few episodes of the run are played; then all that the policy has seen is asked again, alone and in
batches, and the episodes are played again, answered in such batches. Nothing of the run is touched.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any

from harness.commands.launch import add_flags, add_run, read_settings, warn
from harness.errors import EXIT_OK, EXIT_PARTIAL, RollpoolError

if TYPE_CHECKING:
    from harness.runs.run import Run
    from harness.simulators.contract import Episode
    from harness.workers.comparing import Compared

_TOLERANCE = 1e-4
#: One alone has no company.
_FEWEST = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--batch", type=_batch, help="episodes (MODEL_MAX_BATCH, at least 4)")
    parser.add_argument(
        "--tolerance", type=_tolerance, default=_TOLERANCE,
        help=f"a difference of an action that may be ({_TOLERANCE:g})",
    )  # fmt: skip
    add_flags(parser, "policy", "ckpt", "config", "simulator", "profile")


def run(arguments: argparse.Namespace) -> int:
    """0 where no outcome differs, and no action by more than the tolerance; else 1."""
    from harness.runs.run import open_run
    from harness.workers.comparing import compare

    settings = read_settings(arguments)
    joined = open_run(settings.root, settings, create=False)
    warn(joined.warnings)
    batch = arguments.batch or max(4, joined.settings["MODEL_MAX_BATCH"] or 1)
    found = compare(joined, _episodes(joined, batch), lambda words: print(words, flush=True))
    for line in words(found, joined.identity["policy"]):
        print(line)
    largest = found.actions["largest"] if found.actions else []
    worst = max((one["difference"] for one in largest), default=0.0)
    differs = found.outcomes_differ or worst > arguments.tolerance
    return EXIT_PARTIAL if differs else EXIT_OK


def words(found: Compared, policy: str) -> list[str]:
    """What was found, in lines."""
    actions, ends = found.actions, found.ends
    if actions is None:
        return [f"policy {policy} answers one simulator after the other: nothing to compare"]
    apart = actions["chunks"] - actions["equal"]
    said = f"{actions['chunks']} chunks of policy {policy}, alone and in batches of up to "
    said += f"{len(ends)}: {actions['equal']} equal bit by bit, {apart} not"
    others = [end for end in ends if end[1]["state_hash"] != end[2]["state_hash"]]
    played = f"{len(ends)} episodes, alone and in company: {len(ends) - len(others)} end in "
    played += f"the same state, {len(others)} not"
    return [said, *map(_line, actions["largest"]), played, *(_end(*end) for end in others)]


def _line(one: dict[str, Any]) -> str:
    return (
        f"  {one['scene']}/{one['task']} seed {one['seed']} chunk {one['chunk']} in a batch of "
        f"{one['batch']}: action {one['action']}, dimension {one['dimension']}: "
        f"{one['alone']:.9g} alone, {one['together']:.9g} together ({one['difference']:.2g})"
    )


def _end(episode: Episode, alone: Mapping[str, Any], shared: Mapping[str, Any]) -> str:
    ends = (f"{result['outcome']} after {result['steps']} steps" for result in (alone, shared))
    where = f"{episode.scene}/{episode.task} seed {episode.seed}"
    return f"  {where}: {' alone, '.join(ends)} in company"


def _episodes(run: Run, count: int) -> list[Episode]:
    """The first of each cell, then the second of each, and so on."""
    from harness.runs.population import load, selected_positions

    selected = [
        (manifest.episodes[position] for manifest in load(run.paths, cell)
         for position in selected_positions(manifest))
        for cell in run.cells
    ]  # fmt: skip
    turns = chain.from_iterable(zip_longest(*selected))
    found = list(islice((episode for episode in turns if episode is not None), count))
    if len(found) < _FEWEST:
        raise RollpoolError(
            f"batch-check {run.paths.name}",
            f"it takes {_FEWEST} episodes, and {len(found)} are sealed",
            "let rollpool prepare do it first",
        )
    return found


def _batch(word: str) -> int:
    if (number := int(word)) < _FEWEST:
        raise argparse.ArgumentTypeError(f"{word} is less than {_FEWEST}")
    return number


def _tolerance(word: str) -> float:
    if not (number := float(word)) >= 0:
        raise argparse.ArgumentTypeError(f"{word} is not 0 or more")
    return number
