"""The files of metrics rows, found and read.

Promises: a line cut at any byte is skipped and noted, never half read, and so is any other that is
no row; a folder that may not be read costs its own files alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from harness.errors import RollpoolError
from harness.foundations.records import Row
from harness.paths import METRICS_NAME


def metrics_files(results: Path, within: Path | str = "") -> list[Path]:
    """Every metrics file below ``eval_result``, or below its folder ``within``, sorted.

    A folder is opened only when a listing of its parent shows it: on NFS one that was missing when
    somebody named it stays missing for half a minute, with the rows of others in it.
    """
    folder = results.parent
    for name in (results.name, *Path(within).parts):
        if name not in _names(folder):
            return []
        folder /= name
    return files_below(folder, METRICS_NAME)


def read_rows(
    results: Path, within: Path | str = "", problems: list[str] | None = None
) -> Iterator[Row]:
    """The valid rows of ``metrics_files``; what was skipped is added to ``problems`` by
    file:line."""
    for file in metrics_files(results, within):
        yield from read_file(file, problems)


def read_file(file: Path, problems: list[str] | None = None) -> Iterator[Row]:
    """The valid rows of one metrics file; see ``read_rows``. A blank line is nothing at all."""
    *lines, tail = file.read_bytes().split(b"\n")
    for number, line in enumerate([*lines, tail], start=1):
        torn = number > len(lines)
        if not line.strip():
            continue
        try:
            yield Row.from_json(line.decode())
        except (RollpoolError, UnicodeDecodeError) as error:
            if problems is not None:
                what = "torn last line, skipped" if torn else str(error)
                problems.append(f"{file}:{number}: {what}")


def files_below(folder: Path, name: re.Pattern[str]) -> list[Path]:
    """The files called so in ``folder`` and all folders below it that may be read, sorted."""
    walk = os.walk(folder, onerror=_unless_forbidden)
    return sorted(Path(at, file) for at, _, files in walk for file in files if name.fullmatch(file))


def _unless_forbidden(error: OSError) -> None:
    if not isinstance(error, PermissionError):
        raise error


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
