"""``rollpool queue``: a queue file from a filter over what the simulator offers."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.commands.launch import add_flags, read_settings
from harness.commands.simulation import describe
from harness.errors import EXIT_OK, RollpoolError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name in ("scene", "task"):
        parser.add_argument(
            f"--{name}", metavar="GLOB", action="append",
            help=f"{name}s to take, e.g. 'put_*'; may be given more than once (default: all)",
        )  # fmt: skip
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="default: stdout")
    add_flags(parser, "simulator", "profile")


def run(arguments: argparse.Namespace) -> int:
    """Write lines `scene task`, sorted. Raises where a filter fits nothing or FILE differs."""
    cells = [(str(scene), str(task)) for scene, task in describe(read_settings(arguments))["cells"]]
    chosen = select(cells, arguments.scene or ["*"], arguments.task or ["*"])
    text = "".join(f"{scene} {task}\n" for scene, task in chosen)
    if arguments.output == "-":
        sys.stdout.write(text)
    else:
        _write(Path(arguments.output), text)
        print(f"{arguments.output}: {len(chosen)} tasks", file=sys.stderr)
    return EXIT_OK


def select(
    cells: Sequence[tuple[str, str]], scenes: Sequence[str], tasks: Sequence[str]
) -> list[tuple[str, str]]:
    """The cells that fit a scene glob and a task glob, sorted.

    Raises:
        RollpoolError: a glob fits nothing, so it is most likely a misspelling.
    """
    for globs, names in ((scenes, {s for s, _ in cells}), (tasks, {t for _, t in cells})):
        for glob in globs:
            if not fnmatch.filter(names, glob):
                raise RollpoolError(
                    f"filter '{glob}'", "no such name", f"the names are {', '.join(sorted(names))}"
                )
    chosen = sorted(cell for cell in cells if _fits(cell[0], scenes) and _fits(cell[1], tasks))
    if not chosen:
        raise RollpoolError("the filters", "no scene has such a task", "see: rollpool list tasks")
    return chosen


def _fits(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def _write(path: Path, text: str) -> None:
    from harness.foundations.atomic import write_atomic

    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise RollpoolError(
            f"queue {path}", "it is there already, with other lines", "remove it or name another"
        )
    if not path.parent.is_dir():
        raise RollpoolError(f"queue {path}", f"no directory {path.parent}", "make it first")
    write_atomic(path, text.encode())
