"""``rollpool prepare RUN``: queue and seed bank become a run with sealed episodes."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.launch import add_flags, add_run, read_settings, run_name, warn
from harness.errors import EXIT_OK, RollpoolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from harness.paths import RunPaths
    from harness.population import Cell
    from harness.run import Run
    from harness.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--queue", metavar="FILE", help="copied to the run's queue.txt; lines `scene task`"
    )
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    prepare_run(arguments)
    return EXIT_OK


def prepare_run(arguments: argparse.Namespace) -> Run:
    """Create the run or join it, seal what is missing, say what it holds."""
    from harness.population import selected_positions
    from harness.prepare import prepare
    from harness.report_files import refuse_report_of_another
    from harness.run import open_run, refuse_other_code

    settings = read_settings(arguments)
    paths = settings.root.run(run_name(settings))
    refuse_report_of_another(paths)
    if paths.run_json.exists():
        settings = open_run(settings.root, settings, create=False).settings
    with _Simulator(settings, paths) as asked:
        if arguments.queue:
            _take_queue(paths, Path(arguments.queue), asked)
        manifests = prepare(paths, settings, asked.describe, asked.seal, asked.check)
    run = open_run(settings.root, settings, create=True)
    warn(run.warnings)
    refuse_other_code(run)
    selected = sum(len(selected_positions(manifest)) for manifest in manifests)
    cells = len({manifest.cell for manifest in manifests})
    print(f"run {paths.name}: {cells} cells, {selected} episodes, sealed in {paths.manifests}")
    return run


class _Simulator:
    """The simulator process, started at the first question; most resumed runs have none.

    Before the first seal the run itself is sealed: everything was checked by then, and of two
    preparers with different settings the second stops before it adds an episode.
    """

    def __init__(self, settings: Settings, paths: RunPaths) -> None:
        import contextlib

        self._settings, self._paths = settings, paths
        self._stack = contextlib.ExitStack()
        self.describe = functools.cache(self._describe)

    def __enter__(self) -> _Simulator:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def seal(self, cell: Cell, seeds: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        from harness.run import open_run

        open_run(self._settings.root, self._settings, create=True)
        print(f"sealing {cell.scene} {cell.task}: {len(seeds)} episodes", flush=True)
        return self._process.seal(cell, seeds)

    def check(self, cell: Cell, seeds: Sequence[int]) -> Sequence[bool]:
        print(f"looking for {len(seeds)} seeds of {cell.scene} {cell.task}", flush=True)
        return self._process.check(cell, seeds)

    def _describe(self) -> Mapping[str, Any]:
        return self._process.describe()

    @functools.cached_property
    def _process(self) -> Any:
        from harness.commands.simulation import simulator

        return self._stack.enter_context(
            simulator(self._settings, self._paths.logs / "prepare.log")
        )


def _take_queue(paths: RunPaths, source: Path, asked: _Simulator) -> None:
    """Checked before it is copied, so that a wrong one never stands in a run."""
    from harness.prepare import install_queue, read_queue

    if not paths.queue.exists():
        read_queue(source, {(scene, task) for scene, task in asked.describe()["cells"]})
        try:
            paths.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            what = error.strerror or str(error)
            raise RollpoolError(f"make {paths.root}", what, "make runs/ writable") from error
    install_queue(paths, source)
