"""The episodes of a run, each by the row that counts; a million rows come to half a million of them
in a second.

Promises: which row counts is what ``records.counted`` says; an episode is counted where the run has
selected it, or where nothing of its cell is sealed; it is counted once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.reports import episode_queries as sql
from harness.reports.report import Counted, Place, Rate, Tally
from harness.reports.row_queries import IDENTITY
from harness.reports.row_table import RowTable
from harness.runs.population import Manifest
from harness.stopwatch import PARTS

_FETCH = 4096


class Attempt(NamedTuple):
    """A row of an episode that has none but errors."""

    manifest: str
    position: int
    attempt: int
    worker: str
    host: str
    scene: str
    task: str
    task_config: str
    seed: int
    error: Mapping[str, Any]
    rows: int  # of its episode, itself included


class EpisodeTable:
    """What ``rows`` come to, as of the last ``refresh``."""

    def __init__(self, rows: RowTable) -> None:
        self.rows = rows
        self._db = rows.db
        self._manifests: list[str] = []
        self._places: dict[int, Place] = {}  # by their codes
        self._db.execute(sql.TABLES)

    def refresh(self, manifests: Sequence[Manifest]) -> None:
        """Count the rows that are there now.

        Args:
            manifests: those of the run, in its order.
        """
        self._db.execute(sql.CLEAR)
        self._manifests = [manifest.hash for manifest in manifests]
        sealed = [(m.hash, m.selected, rank) for rank, m in enumerate(manifests)]
        self._insert(sql.SEALED, sealed)
        self._insert(sql.REPEATED, [(m.hash, p) for m in manifests for p in m.repeated])
        self._db.execute(sql.BEST)
        cells = {(m.cell.task, m.cell.task_config) for m in manifests}
        self._places = {code: Place(*words) for code, words in self._all(sql.PLACES)}
        places = self._places.items()
        self._insert(sql.PLACED, [(code, (p.task, p.task_config) in cells) for code, p in places])
        self._db.execute(sql.EPISODES)

    def add(self, episodes: Iterable[Counted]) -> None:
        """Count episodes whose rows are another tool's."""
        codes = {place: code for code, place in self._places.items()}
        values = []
        for e in episodes:
            place = Place(e.scene, e.task, e.task_config)
            if place not in codes:
                codes[place] = self._one(sql.PLACE, *place)
            values.append((codes[place], e.seed, e.success, e.hard_success, e.collision, e.video))
        self._places = {code: place for place, code in codes.items()}
        self._insert(sql.ADDED, values)

    def tallies(self) -> dict[Place, Tally]:
        """The counted episodes of each place."""
        found = {}
        for code, n, hits, hard, hard_n, collisions, collision_n in self._all(sql.TALLIES):
            rates = Rate(hits, n), Rate(hard, hard_n), Rate(collisions, collision_n)
            found[self._places[code]] = Tally(*rates)
        return found

    def loose(self) -> set[Place]:
        """The places of which episodes count because nothing is sealed there."""
        return {self._places[code] for (code,) in self._all(sql.LOOSE)}

    def strays(self) -> int:
        """How many rows are of episodes with an outcome that the run has not selected."""
        return int(self._one(sql.STRAYS))

    def repeats(self) -> int:
        """How many outcomes are of episodes that have another one."""
        return int(self._one(sql.REPEATS))

    def missing(self) -> dict[str, list[int]]:
        """Manifest -> its selected positions of which there is no row."""
        found: dict[str, list[int]] = {}
        for rank, position in self._all(sql.MISSING):
            found.setdefault(self._manifests[rank], []).append(position)
        return found

    def errors(self) -> dict[str, dict[int, list[Attempt]]]:
        """Manifest -> position -> all rows of the episodes that have none but errors."""
        found: dict[str, dict[int, list[Attempt]]] = {}
        for *values, error, tried in self._all(sql.ERRORS):
            row = Attempt._make([*values, json.loads(error), tried])
            found.setdefault(row.manifest, {}).setdefault(row.position, []).append(row)
        return found

    def profiles(self) -> Iterator[tuple[Place, dict[str, float]]]:
        """Each place of which any part was measured, with the seconds by part of all its rows,
        errors too."""
        found = {self._places[code]: seconds for code, *seconds in self._all(sql.PROFILES)}
        for place, seconds in sorted(found.items()):
            if any(spent is not None for spent in seconds):
                yield place, {k: spent or 0.0 for k, spent in zip(PARTS, seconds, strict=True)}

    def older(self) -> int:
        """How many rows belong to an earlier generation."""
        current = self._one(f"SELECT count(*) {sql.CURRENT}")
        return int(self._one("SELECT count(*) FROM rows") - current)

    def identities(self) -> dict[str, set[str]]:
        """The distinct policies, checkpoints (JSON), simulators, settings and code of all rows."""
        rows = [words for (words,) in self._all(sql.IDENTITIES)]
        return {name: {words[k] for words in rows} for k, name in enumerate(IDENTITY)}

    def pace(self, now: float, window: float) -> tuple[int, float | None]:
        """Episodes with an outcome that ended in the ``window`` seconds before ``now``, and when
        the first of them began."""
        query = (
            f"SELECT count(*), min(started) {sql.CURRENT} AND success IS NOT NULL "
            "AND finished <= ? AND finished > ?"
        )
        ((count, began),) = self._all(query, now, now - window)
        return count, began

    def last_end(self) -> float | None:
        """When the last episode ended."""
        end = self._one(f"SELECT max(finished) {sql.CURRENT}")
        return None if end is None else float(end)

    def episodes(self, places: Iterable[Place], with_video: bool = False) -> Iterator[Counted]:
        """The counted episodes of ``places``, in the order of reports; all of them, or those whose
        row names a video."""
        order, manifests = list(places), self._all(sql.MANIFESTS)
        hashes = [of for _, of in manifests]
        more = "AND video IS NOT NULL" if with_video else ""
        for place, *values, manifest, video in self._stream(sql.EPISODE, order, manifests, more):
            known = [*values, hashes[manifest - 1], video]
            yield Counted(*order[place - 1], *known)

    def json_lines(self, places: Iterable[Place]) -> Iterator[str]:
        """Each of them as the JSON of ``Counted``."""
        order, manifests = list(places), self._all(sql.MANIFESTS)
        heads = [json.dumps(place._asdict())[:-1] for place in order]
        hashes = [json.dumps(of) for _, of in manifests]
        lines = self._stream(sql.EPISODE_JSON, order, manifests, heads=heads, hashes=hashes)
        return (text for (text,) in lines)

    def _stream(
        self,
        what: str,
        places: Sequence[Place],
        manifests: Sequence[tuple[Any, ...]],
        more: str = "",
        **lists: Sequence[Any],
    ) -> Iterator[tuple[Any, ...]]:
        codes = {place: code for code, place in self._places.items()}
        lists["places"] = [codes[place] for place in places]
        lists["manifests"] = [code for code, *_ in manifests]
        with self._db.cursor() as cursor:  # others ask the connection meanwhile
            bound = {name: json.dumps(values) for name, values in lists.items()}
            cursor.execute(sql.ordered(what, more), bound)
            while chunk := cursor.fetchmany(_FETCH):
                yield from chunk

    def _insert(self, query: str, lines: Sequence[tuple[Any, ...]]) -> None:
        self._db.execute(query, [json.dumps(lines)])

    def _all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(query, values).fetchall()

    def _one(self, query: str, *values: Any) -> Any:
        return self._all(query, *values)[0][0]


@dataclass(frozen=True)
class CountedEpisodes:
    """Those of some places, in the order of a report: by scene, task and seed. They are there until
    the table is refreshed.

    Attributes:
        tallies: what they come to, by place.
    """

    table: EpisodeTable = field(compare=False, repr=False)
    tallies: dict[Place, Tally] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(tally.success.n for tally in self.tallies.values())

    def __iter__(self) -> Iterator[Counted]:
        return self.table.episodes(self._order())

    def with_video(self) -> Iterator[Counted]:
        """Those whose row names a video."""
        return self.table.episodes(self._order(), with_video=True)

    def json_lines(self) -> Iterator[str]:
        """Each as the JSON of ``Counted``."""
        return self.table.json_lines(self._order())

    def _order(self) -> list[Place]:
        return sorted(self.tallies)
