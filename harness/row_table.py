"""All rows of a run in one table: a million of them in seconds, counted by the rule of ``records``.

Promises: which rows are valid and which one counts is exactly what ``records`` says; a line that is
not counted is named by file and line. DuckDB reads the files whose every line passes its own,
stricter check; any other file is read by ``records``. The table lives in a temporary file, so that
memory is bounded; only files that have grown are read again.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from harness.decisions import Decisions
from harness.records import Row, counted, read_file
from harness.row_queries import (
    COLUMNS,
    COUNTED,
    CURRENT,
    ERRORS,
    OTHERS,
    PROFILES,
    READ,
    TIES,
    Attempt,
)
from harness.stopwatch import PARTS

_MEMORY, _MUCH = "192MB", "2GB"
_THREADS = 1  # a second one takes up to 200 MB of buffers, and no less CPU
_CHUNK = 1 << 20
_FETCH = 4096
#: The leading fields of an ``Attempt``, of which many rows have the same.
_SHARED = 8


class RowTable:
    """The rows of metrics files, as of the last ``refresh``; ``close`` it, or let it go."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rollpool-rows-")
        self._db = duckdb.connect(f"{self._folder.name}/rows.duckdb")
        self.close = weakref.finalize(self, _dispose, self._db, self._folder)
        self._db.execute(f"SET memory_limit = '{_MEMORY}'")
        self._db.execute(f"SET threads = {_THREADS}")
        self._db.execute("SET preserve_insertion_order = false")
        self._db.execute("SET enable_progress_bar = false")  # it would go to stdout
        self._db.execute(f"CREATE TABLE rows ({COLUMNS})")
        self._db.execute("CREATE SEQUENCE ranks")
        self._db.execute(
            "CREATE TABLE sealed (manifest VARCHAR, rank BIGINT DEFAULT nextval('ranks'))"
        )
        self._db.execute("CREATE TABLE floors (manifest VARCHAR, position BIGINT, floor BIGINT)")
        self._sizes: dict[Path, int] = {}
        self._numbers: dict[Path, int] = {}
        self._problems: dict[Path, list[str]] = {}

    @property
    def problems(self) -> list[str]:
        """The lines that were skipped: ``file:line: why``."""
        return [problem for file in sorted(self._problems) for problem in self._problems[file]]

    def refresh(self, files: Sequence[Path], decisions: Decisions) -> None:
        """Read what has changed of ``files``; forget what is no longer among them."""
        sizes = {file: file.stat().st_size for file in files}
        changed = [file for file in files if self._sizes.get(file) != sizes[file]]
        self._forget([*changed, *(self._sizes.keys() - sizes.keys())])
        suspects = self._load({file: file for file in changed})
        if suspects:
            self._load_checked(suspects)
        self._sizes = sizes
        self._db.execute("DELETE FROM floors")
        if floors := [[*episode, floor] for episode, floor in decisions.floors().items()]:
            self._db.executemany("INSERT INTO floors VALUES (?, ?, ?)", floors)

    def by_manifest(self, order: Sequence[str]) -> Iterator[tuple[str, Iterator[Attempt]]]:
        """Each manifest of ``order`` and then each other one that has rows, with the row that
        counts of each of its episodes that has an outcome."""
        self._db.execute("DELETE FROM sealed")
        if order:
            self._db.execute("INSERT INTO sealed (manifest) SELECT unnest(?)", [list(order)])
        others = [m for (m,) in self._db.execute(OTHERS).fetchall()]
        wanted = iter([*order, *others])
        for manifest, counted_rows in itertools.groupby(self._counted(), lambda row: row.manifest):
            for other in wanted:
                if other == manifest:
                    break
                yield other, iter(())
            yield manifest, counted_rows
        for other in wanted:
            yield other, iter(())

    def _counted(self) -> Iterator[Attempt]:
        contested = self._contested()
        for attempt in self._fetch(COUNTED):
            best = contested.get((attempt.manifest, attempt.position))
            if best and (best.attempt, best.worker) == (attempt.attempt, attempt.worker):
                attempt = reduced(best, attempt.rows)
            yield attempt

    def errors(self) -> dict[tuple[str, int], list[Attempt]]:
        """All rows of the episodes that have none but errors."""
        found: dict[tuple[str, int], list[Attempt]] = {}
        for attempt in self._fetch(ERRORS):
            found.setdefault((attempt.manifest, attempt.position), []).append(attempt)
        return found

    def older(self) -> int:
        """How many rows belong to an earlier generation."""
        current = self._one(f"SELECT count(*) {CURRENT}")
        return int(self._one("SELECT count(*) FROM rows") - current)

    def outcomes(self) -> int:
        """How many rows have one; more than there are episodes where some ran again."""
        return int(self._one(f"SELECT count(*) {CURRENT} AND success IS NOT NULL"))

    def identities(self) -> dict[str, set[str]]:
        """The distinct policies, checkpoints (JSON), simulators, settings and code of all rows."""
        names = ("policy", "checkpoint", "simulator", "settings_hash", "code_hash")
        found = {}
        for name in names:
            values = self._db.execute(f"SELECT DISTINCT {name} {CURRENT}").fetchall()
            found[name] = {str(value) for (value,) in values}
        return found

    def profiles(self) -> Iterator[tuple[tuple[str, str, str], dict[str, float]]]:
        """``(scene, task, task_config)`` and the seconds by part of all its rows, errors too."""
        for scene, task, task_config, *seconds in self._db.execute(PROFILES).fetchall():
            yield (scene, task, task_config), dict(zip(PARTS, seconds, strict=True))

    def pace(self, now: float, window: float) -> tuple[int, float | None]:
        """Episodes with an outcome that ended in the ``window`` seconds before ``now``, and when
        the first of them began."""
        query = (
            f"SELECT count(*), min(started) {CURRENT} AND success IS NOT NULL "
            "AND finished <= ? AND finished > ?"
        )
        count, began = self._db.execute(query, [now, now - window]).fetchall()[0]
        return count, began

    def last_end(self) -> float | None:
        """When the last episode ended."""
        end = self._one(f"SELECT max(finished) {CURRENT}")
        return None if end is None else float(end)

    def _one(self, query: str) -> Any:
        return self._db.execute(query).fetchall()[0][0]

    def _fetch(self, query: str) -> Iterator[Attempt]:
        same: dict[Any, Any] = {}  # one string for all rows that hold it
        with self._db.cursor() as cursor:  # others ask the connection meanwhile
            cursor.execute(query)
            while chunk := cursor.fetchmany(_FETCH):
                for values in chunk:
                    shared = map(same.setdefault, values[:_SHARED], values[:_SHARED])
                    attempt = Attempt._make([*shared, *values[_SHARED:]])
                    if attempt.error is not None:
                        attempt = attempt._replace(error=json.loads(str(attempt.error)))
                    yield attempt

    def _forget(self, files: Sequence[Path]) -> None:
        numbers = [self._numbers[file] for file in files if file in self._numbers]
        if numbers:
            self._db.execute("DELETE FROM rows WHERE file IN (SELECT unnest(?))", [numbers])
        for file in files:
            self._problems.pop(file, None)

    def _load(self, sources: Mapping[Path, Path]) -> list[Path]:
        """Insert the rows of ``sources`` (the file read -> the file they are of); returns the files
        of which not every line passed, and nothing was kept."""
        if not sources:
            return []
        numbers = [self._numbers.setdefault(file, len(self._numbers)) for file in sources.values()]
        names = [str(source) for source in sources]
        try:
            self._db.execute(READ, [names, names, numbers])
        except duckdb.OutOfMemoryException:  # lines of many megabytes
            self._db.execute(f"SET memory_limit = '{_MUCH}'")
            self._db.execute(READ, [names, names, numbers])
        kept = dict(self._db.execute("SELECT file, count(*) FROM rows GROUP BY file").fetchall())
        bad = [
            file for source, file in sources.items()
            if kept.get(self._numbers[file], 0) != _lines(source)
        ]  # fmt: skip
        self._forget(bad)
        return bad

    def _load_checked(self, files: Sequence[Path]) -> None:
        """Read by ``records``, line by line; its valid rows are written aside and loaded."""
        with tempfile.TemporaryDirectory(dir=self._folder.name) as aside:
            sources = {}
            for number, file in enumerate(files):
                self._problems[file] = []
                source = Path(aside, f"{number}.jsonl")
                with source.open("w") as lines:
                    for row in read_file(file, self._problems[file]):
                        lines.write(row.to_json() + "\n")
                sources[source] = file
            left = self._load(sources)
        assert not left, f"a row that was checked is not readable: {left}"

    def _contested(self) -> dict[tuple[str, int], Row]:
        """Episodes of which one worker wrote two rows for one attempt, and the one that counts."""
        tied: dict[tuple[str, int], list[Row]] = {}
        files = {number: file for file, number in self._numbers.items()}
        for manifest, position, number in self._db.execute(TIES).fetchall():
            rows = tied.setdefault((manifest, position), [])
            rows += (row for row in read_file(files[number])
                     if (row.manifest, row.position) == (manifest, position))  # fmt: skip
        return {episode: counted(rows)[episode] for episode, rows in tied.items()}


def _dispose(db: duckdb.DuckDBPyConnection, folder: tempfile.TemporaryDirectory[str]) -> None:
    """The database before its file."""
    db.close()
    folder.cleanup()


def reduced(row: Row, rows: int = 1) -> Attempt:
    """The part of a row that reports need."""
    collision = None if row.collision_count is None else row.collision_count > 0
    return Attempt(
        row.manifest, row.position, row.attempt, row.worker, row.host, row.scene, row.task,
        row.task_config, row.seed, row.success, row.hard_success, collision, row.video, row.error,
        rows,
    )  # fmt: skip


def _lines(file: Path) -> int:
    """Its lines, a torn one included; -1, which no count equals, where it ends with one."""
    count, last = 0, b"\n"
    with file.open("rb") as data:
        while chunk := data.read(_CHUNK):
            count += chunk.count(b"\n")
            last = chunk[-1:]
    return count if last == b"\n" else -1
