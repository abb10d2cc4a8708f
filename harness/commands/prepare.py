"""``rollpool prepare RUN``: queue and seed bank become a run with sealed episodes."""

from __future__ import annotations

import argparse
import contextlib
import functools
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.launch import add_flags, add_run, read_settings, run_name, warn
from harness.errors import EXIT_OK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from harness.canonical import Sealed
    from harness.foundations.settings import Settings
    from harness.paths import RunPaths
    from harness.runs.population import Cell, Manifest
    from harness.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--queue", metavar="FILE", help="copied to the run's queue.txt; lines `scene task`"
    )
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    prepare_run(arguments)
    return EXIT_OK


def prepare_run(
    arguments: argparse.Namespace,
    begun: Callable[[Run], object] = lambda run: None,
    defaults: Mapping[str, Any] | None = None,
) -> Run:
    """Create the run or join it, seal what is missing, say what it holds. Whoever does so
    meanwhile on this run shares the work.

    Args:
        begun: told of the run before the first piece of work, if there is any.
        defaults: values in place of the declared ones.
    """
    from harness.reports.report_files import refuse_report_of_another
    from harness.runs.prepare import install_queue, prepare, refuse_other_queue
    from harness.runs.run import open_run, refuse_other_code

    settings = read_settings(arguments, defaults)
    paths = settings.root.run(run_name(settings))
    refuse_report_of_another(paths)
    if paths.run_json.exists():
        joined = open_run(settings.root, settings, create=False)
        refuse_other_code(joined)  # before it adds an episode that nobody of that code asked for
        settings = joined.settings
    queue = Path(arguments.queue) if arguments.queue else None
    if queue:
        refuse_other_queue(paths, queue)

    made: Run | None = None

    def begin() -> None:
        # Of two preparers with different settings the second stops before it adds an episode.
        nonlocal made
        made = open_run(settings.root, settings, create=True)
        if queue:
            install_queue(paths, queue)
        begun(made)

    with _Simulator(settings, paths) as asked:
        manifests = prepare(
            paths, settings, asked.describe, asked.seal, asked.check,
            queue=None if paths.queue.exists() else queue, begin=begin,
        )  # fmt: skip
    run = made or open_run(settings.root, settings, create=True)
    if queue:
        install_queue(paths, queue)
    refuse_other_code(run)
    warn(run.warnings)
    print(_sealed_words(paths, manifests))
    return run


def _sealed_words(paths: RunPaths, manifests: Sequence[Manifest]) -> str:
    from harness.runs.population import selected_positions

    selected = sum(len(selected_positions(manifest)) for manifest in manifests)
    cells = len({manifest.cell for manifest in manifests})
    where = paths.manifests.resolve()  # a staged node reaches it through a folder of its own
    return f"run {paths.name}: {cells} cells, {selected} episodes, sealed in {where}"


class _Simulator:
    """The simulator process, started at the first question; most resumed runs have none. What is
    refused leaves nothing, unless the refusal says to look into the log.
    """

    def __init__(self, settings: Settings, paths: RunPaths) -> None:
        self._settings, self._paths = settings, paths
        self._said: set[Cell] = set()
        self._stack = contextlib.ExitStack()
        self._log: Path | None = None
        self.describe = functools.cache(self._describe)

    def __enter__(self) -> _Simulator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        at: TracebackType | None,
    ) -> None:  # fmt: skip
        self._stack.__exit__(kind, error, at)
        if self._log is None:
            return
        with contextlib.suppress(OSError):  # a full disk: the log stays where it is
            if self._paths.run_json.exists():
                self._paths.logs.mkdir(exist_ok=True)
                shutil.copy(self._log, self._paths.logs / f"{self._log.parent.name}.log")
            if str(self._log) not in str(error):
                shutil.rmtree(self._log.parent)

    def seal(self, cell: Cell, seeds: Sequence[int]) -> Sealed:
        from harness.runs.sealing import REQUEST_S

        if cell not in self._said:
            self._said.add(cell)
            print(f"sealing {cell.scene} {cell.task}", flush=True)
        return self._process.seal(cell, seeds, REQUEST_S)

    def check(self, cell: Cell, seeds: Sequence[int]) -> Sequence[bool]:
        verdicts = self._process.check(cell, seeds)
        solved = f"{sum(verdicts)} of the seeds {seeds[0]} to {seeds[-1]}"
        print(f"checked {cell.scene} {cell.task}: the expert solves {solved}", flush=True)
        return verdicts

    def _describe(self) -> Mapping[str, Any]:
        return self._process.describe()

    @functools.cached_property
    def _process(self) -> Any:
        from harness.commands.simulation import simulator

        self._log = Path(tempfile.mkdtemp(prefix="prepare-")) / "simulator.log"
        return self._stack.enter_context(simulator(self._settings, self._log))
