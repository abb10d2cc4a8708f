"""``python -m bench NAME...|all``: measure figures, print them, keep them as JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import bench
from bench import machine, table
from bench.measuring import FULL, QUICK, Effort
from harness.errors import EXIT_OK, EXIT_PARTIAL, RollpoolError
from harness.foundations.atomic import write_atomic
from harness.paths import CODE

#: In the order in which they are measured.
FIGURES = (
    "wire", "stack", "claims", "overhead", "makespan", "servers", "sealing", "rows", "cli",
    "video", "takeover",
)  # fmt: skip
OUT = CODE / "runs" / "bench.json"


def main(words: Sequence[str]) -> int:
    asked = parser().parse_args(words)
    names = FIGURES if "all" in asked.figures else tuple(dict.fromkeys(asked.figures))
    try:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        if asked.readme:
            refuse_half_a_table(names)
            table.split(asked.readme)
    except (OSError, RollpoolError) as error:  # before a quarter of an hour is spent
        parser().error(str(error))
    try:
        return measure(names, asked, shlex.join(["python", "-m", "bench", *words]))
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


def refuse_half_a_table(names: Sequence[str]) -> None:
    """The table says of itself that it is of one run: no row of it can be renewed alone."""
    if absent := [name for name in FIGURES if name not in names]:
        raise RollpoolError(
            "--readme", f"its table is of one run, and {', '.join(absent)} would be missing",
            "measure all; the figures of a shorter list are on the screen and in --out",
        )  # fmt: skip


def measure(names: Sequence[str], asked: argparse.Namespace, said: str) -> int:
    """These figures; the exit code."""
    effort = asked.effort
    results: dict[str, Any] = {
        "command": said, "effort": effort.name, "machine": machine.describe(), "figures": {},
    }  # fmt: skip
    modules = {name: importlib.import_module(f"bench.{name}") for name in names}
    for module in modules.values():
        getattr(module, "begin", lambda effort: None)(effort)
    for name, module in modules.items():
        figure = measured(module, effort)
        results["figures"][name] = figure
        print("\n".join(table.lines(name, figure)), flush=True)
    write_atomic(asked.out, (json.dumps(results, indent=1) + "\n").encode())
    print(f"written: {asked.out}")
    if asked.readme:
        table.write(asked.readme, results)
    failed = [name for name, figure in results["figures"].items() if figure["failed"]]
    return EXIT_PARTIAL if failed else EXIT_OK


def measured(module: ModuleType, effort: Effort) -> dict[str, Any]:
    """The figure's record, with its ``seconds``. One that cannot be measured does not cost the
    others: it has nothing but a note that says why, and is ``failed``."""
    began = time.monotonic()
    try:
        record: dict[str, Any] = module.measure(effort).record() | {"failed": False}
    except Exception as error:  # of the peers, too
        known = isinstance(error, RollpoolError | OSError)
        if not known:
            traceback.print_exc()
        note = f"not measured: {error if known else f'{type(error).__name__}: {error}'}"
        record = {"title": module.TITLE, "series": [], "goals": [], "notes": [note]}
        record["failed"] = True
    return record | {"seconds": time.monotonic() - began}


def parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser(prog="bench", description=bench.__doc__, formatter_class=form)
    made.add_argument("figures", nargs="+", choices=(*FIGURES, "all"), metavar="NAME")
    made.add_argument(
        "--quick", dest="effort", action="store_const", const=QUICK, default=FULL,
        help="a tenth of the size, fewer turns",
    )  # fmt: skip
    made.add_argument("--out", type=Path, default=OUT, help=f"default: {OUT.relative_to(CODE)}")
    made.add_argument("--readme", type=Path, help="with all: write the table into its markers")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
