"""All rows of a run in one table: a million of them in seconds.

Promises: which lines of JSON are valid rows is exactly what ``records`` says; a line that is not
counted is named by file and line. DuckDB reads the files whose every line passes its own, stricter
check; any other file is read by ``records``. What does not fit into bounded memory goes to a
temporary folder; only files that have grown are read again.
"""

from __future__ import annotations

import glob
import json
import os
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from harness.foundations.metrics_files import read_file
from harness.foundations.records import Row, count_key
from harness.leases.decisions import Decisions
from harness.reports.row_queries import (
    COLUMNS,
    DELETE_TIES,
    DOUBTFUL,
    FAILED,
    FILES,
    FIRST,
    FLOORS,
    LEARN,
    MISTAKEN,
    ODD,
    READ,
    TEXTS,
    TIES,
    UNKNOWN,
)

_MEMORY, _MUCH = "256MB", "2GB"
_THREADS = 2  # each takes up to 100 MB of buffers
#: What stands for the files of rows that tie.
_TIED = Path("tied")


class RowTable:
    """The rows of metrics files, as of the last ``refresh``; ``close`` it, or let it go.

    Attributes:
        db: holds ``rows`` (``row_queries.COLUMNS``), ``texts``, and ``floors``, the last attempt of
            an earlier generation for each episode that was reset.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rollpool-rows-")
        self.db = duckdb.connect(config={"temp_directory": f"{self._folder.name}/spilt"})
        self.close = weakref.finalize(self, _dispose, self.db, self._folder)
        self.db.execute(f"SET memory_limit = '{_MEMORY}'")
        self.db.execute(f"SET threads = {min(_THREADS, os.cpu_count() or 1)}")
        self.db.execute("SET preserve_insertion_order = false")
        self.db.execute("SET enable_progress_bar = false")  # it would go to stdout
        self.db.execute(f"CREATE TABLE rows ({COLUMNS})")
        self.db.execute(TEXTS)
        self.db.execute("CREATE TABLE floors (manifest UBIGINT, position BIGINT, floor BIGINT)")
        self._sizes: dict[Path, int] = {}
        self._numbers: dict[Path, int] = {}  # of the files in ``rows``; new at each reading
        self._unused = 0
        self._problems: dict[Path, list[str]] = {}

    @property
    def problems(self) -> list[str]:
        """The lines that were skipped: ``file:line: why``."""
        return [problem for file in sorted(self._problems) for problem in self._problems[file]]

    def refresh(self, files: Sequence[Path], decisions: Decisions) -> None:
        """Read what has changed of ``files``; forget what is no longer among them."""
        sizes = {file: file.stat().st_size for file in files}
        changed = [file for file in files if self._sizes.get(file) != sizes[file]]
        self._forget([*changed, *(self._numbers.keys() - sizes.keys())])
        suspects = self._load({file: file for file in changed})
        self._problems.update((file, []) for file in suspects)
        self._write_and_load({file: read_file(file, self._problems[file]) for file in suspects})
        self._sizes = sizes
        self._settle_ties()
        floors = [(m, p, floor) for (m, p), floor in decisions.floors().items()]
        self.db.execute("DELETE FROM floors")
        self.db.execute(FLOORS, [json.dumps(floors)])

    def _forget(self, files: Sequence[Path]) -> None:
        if numbers := [self._numbers.pop(file) for file in files if file in self._numbers]:
            listed = ", ".join(map(str, numbers))
            self.db.execute(f"DELETE FROM rows WHERE file IN ({listed})")
        for file in files:
            self._problems.pop(file, None)

    def _load(self, sources: Mapping[Path, Path], checked: bool = False) -> list[Path]:
        """Insert the rows of ``sources`` (the file read -> the file they are of); returns the files
        of which not every line passed, and nothing was kept.

        Args:
            checked: ``records`` has: what looks like JSON is a text.
        """
        if not sources:
            return []
        files = list(sources.values())
        numbers = range(self._unused, self._unused + len(files))
        self._unused = numbers.stop
        self._numbers.update(zip(files, numbers, strict=True))
        try:
            self._read(sources, numbers.start)
        except duckdb.Error:  # a value that goes on in the next line
            if len(files) == 1:
                return files
            items, half = list(sources.items()), len(files) // 2
            return self._load(dict(items[:half])) + self._load(dict(items[half:]))
        named = dict(zip(numbers, sources, strict=True))
        bad = set() if checked else self._bad(named)
        ours = dict(zip(numbers, files, strict=True))
        self._forget([ours[number] for number in bad])
        self._learn({number: named[number] for number in named.keys() - bad})
        mistaken = set() if checked else self._first_column(MISTAKEN)
        self._forget([ours[number] for number in mistaken])
        return [ours[number] for number in sorted(bad | mistaken)]

    def _bad(self, sources: Mapping[int, Path]) -> set[int]:
        """The files, by their numbers, of which not every line is a row."""
        bad = self._first_column(FAILED)
        if doubtful := sorted(self._first_column(DOUBTFUL) - bad):
            self.db.execute(FILES, [_named(sources[number] for number in doubtful)])
            bad |= {doubtful[index] for index in self._first_column(ODD)}
        return bad

    def _read(self, sources: Iterable[Path], first: int) -> None:
        self.db.execute(FILES, [_named(sources)])
        self.db.execute(FIRST, [first])
        try:
            self.db.execute(READ)
        except duckdb.OutOfMemoryException:  # lines of many megabytes
            self.db.execute(f"SET memory_limit = '{_MUCH}'")
            self.db.execute(READ)

    def _learn(self, sources: Mapping[int, Path]) -> None:
        """Learn the texts behind the codes of files whose lines are all rows: the first lines say
        what nearly all do."""
        with tempfile.NamedTemporaryFile(dir=self._folder.name) as heads:
            for source in sources.values():
                with source.open("rb") as lines:
                    heads.write(lines.readline().rstrip(b"\n") + b"\n")
            heads.flush()
            self.db.execute(FILES, [_named([Path(heads.name)])])
            self.db.execute(LEARN)
        if left := self.db.execute(UNKNOWN).fetchall():
            self.db.execute(FILES, [_named(sources[number] for (number,) in left)])
            self.db.execute(LEARN)

    def _first_column(self, query: str) -> set[int]:
        return {value for value, *_ in self.db.execute(query).fetchall()}

    def _settle_ties(self) -> None:
        """Where one worker wrote two rows for one attempt, both become the one that counts."""
        tied = self.db.execute(TIES).fetchall()
        if not tied:
            return
        files = {number: file for file, number in self._numbers.items()}
        episodes = {(manifest, position) for manifest, position, *_ in tied}
        rows: dict[tuple[Any, ...], list[Row]] = {}
        for number in {number for *_, number in tied}:
            for row in read_file(files[number]):
                if (row.manifest, row.position) in episodes:
                    key = (row.manifest, row.position, *count_key(row))
                    rows.setdefault(key, []).append(row)
            del self._sizes[files[number]]  # what it comes to depends on another file
        self.db.execute(DELETE_TIES)
        best = (max(of, key=Row.to_json) for of in rows.values() if len(of) > 1 for _ in of)
        self._write_and_load({_TIED: best})

    def _write_and_load(self, rows: Mapping[Path, Iterable[Row]]) -> None:
        """Load rows that ``records`` has read as those of files."""
        with tempfile.TemporaryDirectory(dir=self._folder.name) as aside:
            sources = {}
            for number, (file, of) in enumerate(rows.items()):
                source = Path(aside, f"{number}.jsonl")
                with source.open("w") as lines:
                    lines.writelines(row.to_json() + "\n" for row in of)
                sources[source] = file
            left = self._load(sources, checked=True)
        assert not left, f"a row that was checked is not readable: {left}"


def _named(files: Iterable[Path]) -> str:
    """Exactly these, for DuckDB, which takes a name for a pattern."""
    return json.dumps([glob.escape(str(file)) for file in files])


def _dispose(db: duckdb.DuckDBPyConnection, folder: tempfile.TemporaryDirectory[str]) -> None:
    """The database before its folder."""
    db.close()
    folder.cleanup()
