"""``rollpool conform``: does an adapter keep the contract? See ``harness.workers.conforming``."""

from __future__ import annotations

import argparse
import tempfile
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.launch import read_settings
from harness.errors import EXIT_OK, EXIT_PARTIAL, RollpoolError

if TYPE_CHECKING:
    from harness.foundations.settings import Settings
    from harness.runs.population import Cell
    from harness.workers.conforming import Finding, Slice

_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """SIMULATOR and how much of it is played."""
    parser.add_argument(
        "SIMULATOR", nargs="?", help="its name, or package.module:factory (default: SIMULATOR)"
    )
    parser.add_argument("--config", dest="SIM_CONFIG", metavar="FILE", help="its configuration")
    parser.add_argument(
        "--cell", action="append", default=[], metavar="SCENE/TASK/TASK_CONFIG",
        help="what to play, again for more (default: some of all there are)",
    )  # fmt: skip
    parser.add_argument("--cells", type=int, default=3, help="how many to choose (%(default)s)")
    parser.add_argument("--seeds", type=int, default=2, help="episodes of each (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (%(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="actions of each (%(default)s)")
    parser.add_argument(
        "--deadline", type=float, default=300, help="seconds for any one answer (%(default)s)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print a line a check; 1 where one failed."""
    from harness.workers import chosen_simulator, conforming

    settings, began, failed = read_settings(arguments), time.monotonic(), 0
    log = Path(tempfile.mkdtemp(prefix="rollpool-conform-")) / "simulator.log"
    part = _slice(settings, arguments, log)
    cells = ", ".join(f"{cell.scene}/{cell.task}/{cell.task_config}" for cell in part.cells)
    print(f"{settings['SIMULATOR']}: {cells}; {len(part.seeds)} seeds, {part.steps} actions each")
    findings = conforming.examine(
        lambda render: chosen_simulator.start(settings, log, render=render), part
    )
    for finding in findings:
        failed += bool(finding.complaints)
        print(_shown(finding), flush=True)
    seconds = time.monotonic() - began
    print(f"{f'{failed} checks failed' if failed else 'it conforms'} ({seconds:.0f} s; log: {log})")
    return EXIT_PARTIAL if failed else EXIT_OK


def _slice(settings: Settings, arguments: argparse.Namespace, log: Path) -> Slice:
    from harness.workers import chosen_simulator, conforming

    if min(arguments.cells, arguments.seeds, arguments.steps) < 1:
        raise RollpoolError("rollpool conform", "less than one of something", "give at least 1")
    cells = [_cell(text) for text in arguments.cell]
    if not cells:
        with chosen_simulator.start(settings, log, render=False) as process:
            cells = conforming.choose_cells(process.describe(), arguments.cells)
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    return conforming.Slice(tuple(cells), tuple(seeds), arguments.steps, arguments.deadline)


def _cell(text: str) -> Cell:
    from harness.runs.population import Cell

    parts = text.split("/")
    if len(parts) != 3:
        raise RollpoolError(f"--cell {text}", "not three names", "write scene/task/task_config")
    return Cell(*parts)


def _shown(finding: Finding) -> str:
    lines = [f"{finding.word:8}{finding.check}{f': {finding.note}' if finding.note else ''}"]
    if finding.complaints:
        lines = [f"{finding.word:8}{finding.check}"]
    for complaint in finding.complaints:
        lines += textwrap.wrap(
            complaint, _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 10
        )
    return "\n".join(lines)
