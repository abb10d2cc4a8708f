"""``rollpool episode SCENE TASK SEED``: one episode by hand, with its video and its traceback.

Nothing of any run is touched: logs, video and ``result.json`` go to a new folder of their own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.commands.launch import add_flags, read_settings, warn
from harness.errors import EXIT_OK, EXIT_PARTIAL, RollpoolError

if TYPE_CHECKING:
    from harness.foundations.settings import Settings
    from harness.runs.run import Run
    from harness.simulators.contract import Episode

_PROGRESS_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scene", metavar="SCENE")
    parser.add_argument("task", metavar="TASK")
    parser.add_argument("seed", metavar="SEED", type=int)
    parser.add_argument(
        "--run", metavar="RUN", help="an episode of this run, as sealed, with the run's settings"
    )
    parser.add_argument("--out", metavar="DIR", help="where its folder goes (runs/by_hand)")
    add_flags(parser, "policy", "ckpt", "config", "simulator", "profile", "video")


def run(arguments: argparse.Namespace) -> int:
    """0 whether it succeeded or failed, 1 where it ended in an error."""
    from harness.foundations.atomic import write_atomic
    from harness.foundations.settings import find_root

    out = Path(arguments.out) if arguments.out else find_root().runs / "by_hand"
    folder = _new_folder(out, f"{arguments.scene}.{arguments.task}.seed{arguments.seed}")
    find = _of_run if arguments.run else _by_itself
    arguments.run = arguments.run or folder.name
    try:
        alone, episode = find(read_settings(arguments), arguments, folder)
    except RollpoolError as error:
        if str(folder) not in str(error):
            shutil.rmtree(folder)
        raise
    warn(alone.warnings)
    print(f"{episode.scene}/{episode.task} {episode.task_config} seed {episode.seed}")
    print(f"instruction: {episode.instruction}\nfolder: {folder}", flush=True)
    result = _play(alone, episode, folder / "video.mp4")
    write_atomic(folder / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    print(_told(result, folder))
    return EXIT_PARTIAL if result["error"] else EXIT_OK


def _of_run(settings: Settings, arguments: argparse.Namespace, folder: Path) -> tuple[Run, Episode]:
    """The sealed episode, and its run with another folder for what it writes."""
    from harness.paths import RunPaths
    from harness.runs import population
    from harness.runs.run import open_run

    run = open_run(settings.root, settings, create=False)
    sealed = [
        episode
        for cell in run.cells
        if (cell.scene, cell.task) == (arguments.scene, arguments.task)
        for manifest in population.load(run.paths, cell)
        for episode in manifest.episodes
    ]
    found = [episode for episode in sealed if episode.seed == arguments.seed]
    if not found:
        seeds = ", ".join(str(episode.seed) for episode in sealed[:20])
        raise RollpoolError(
            f"episode {arguments.scene} {arguments.task} {arguments.seed} of {run.paths.name}",
            "not sealed in this run",
            f"its seeds are {seeds}" if seeds else f"its tasks are in {run.paths.queue}",
        )
    return replace(run, paths=RunPaths(folder)), found[0]


def _by_itself(
    settings: Settings, arguments: argparse.Namespace, folder: Path
) -> tuple[Run, Episode]:
    """The episode sealed now; its folder is a small run of its own."""
    from harness.commands.simulation import simulator
    from harness.paths import Root, suggest
    from harness.runs import population
    from harness.runs.population import Cell
    from harness.runs.prepare import task_config
    from harness.runs.run import open_run

    scratch = Root(settings.root.path)
    scratch.runs = folder.parent
    run = open_run(scratch, settings, create=True)
    scene, task, seed = arguments.scene, arguments.task, arguments.seed
    with simulator(settings, folder / "logs" / "seal.log") as process:
        described = process.describe()
        if [scene, task] not in described["cells"]:
            known = [f"{a} {b}" for a, b in described["cells"]]
            raise RollpoolError(
                f"episode {scene} {task}", "no such task", suggest(f"{scene} {task}", known)
            )
        configs = described["task_configs"][scene]
        cell = Cell(scene, task, task_config(scene, run.settings["BENCH_CONFIG"], configs))
        (line,) = process.seal(cell, [seed]).lines
    return run, population.read_line(cell, line)


def _play(run: Run, episode: Episode, video: Path) -> dict[str, Any]:
    from harness.workers.rig import Rig

    rig = Rig(replace(run, settings=run.settings.having(SIMS_PER_WORKER=1)), "episode")
    try:
        print("starting model server and simulator ...", file=sys.stderr, flush=True)
        wanted = video if run.settings["EVAL_VIDEO"] != "none" else None
        return rig.play(episode, 1, wanted, _progress())
    finally:
        rig.close()


def _progress() -> Callable[[int], None]:
    """Says which step the episode is at, once a second."""
    said_at = 0.0

    def tick(steps: int) -> None:
        nonlocal said_at
        now = time.monotonic()
        if now - said_at >= _PROGRESS_S:
            print(f"  step {steps}", file=sys.stderr, flush=True)
            said_at = now

    return tick


def _told(result: dict[str, Any], folder: Path) -> str:
    error = result["error"]
    lines = [f"{result['outcome'].upper()} after {result['steps']} steps, {result['wall_s']:.1f} s"]
    if error:
        lines = [error["traceback"].rstrip(), f"ERROR ({error['kind']}): {error['message']}"]
    else:
        count, names = result["collision_count"], ", ".join(result["collision_names"])
        lines.append(f"collisions: {'unknown' if count is None else count}  {names}".rstrip())
    lines.append(f"video: {result['video'] or 'none'}")
    lines.append(f"everything: {folder}/result.json, {folder}/logs")
    return "\n".join(line for line in lines if line)


def _new_folder(out: Path, name: str) -> Path:
    """``out/name``, or ``out/name.2`` and so on: an earlier one is never overwritten."""
    for number in range(1, 10_000):
        folder = out / (name if number == 1 else f"{name}.{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise RollpoolError(
                f"make {folder}", error.strerror or str(error), "name another --out"
            ) from error
        return folder
    raise RollpoolError(f"a folder in {out}", "there are thousands already", "remove some")
