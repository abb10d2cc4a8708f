"""How long an episode of each cell may take: what the order of work goes by, and nothing else.

Promises: no result depends on it; a file of earlier runs that is missing, broken or out of date
costs order, and stops nobody. Episodes of this run set the scale, so that earlier runs of a
quicker policy, or on other machines, say which cells are long and not how long this run takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from harness.foundations.atomic import write_atomic
from harness.foundations.records import Row
from harness.runs.population import Cell

#: What earlier runs say of a cell weighs as much as so many episodes of this one.
_EARLIER_EPISODES = 5
#: Seconds of an episode, as far as anything is reckoned by them: the rest is somebody's mistake.
_LEAST, _MOST = 1e-3, 1e6


class _Times:
    """Of one cell: the seconds of this run's episodes, and the mean of earlier runs, 0 if none."""

    def __init__(self, earlier: float) -> None:
        self.earlier = earlier
        self.seconds: dict[tuple[str, int], float] = {}
        self.total = 0.0

    @property
    def mean(self) -> float:
        return self.total / len(self.seconds)


class Durations:
    """Expected seconds of an episode, by cell.

    Args:
        earlier: cell name -> ``{"seconds", "episodes"}`` of earlier runs, see ``read``.
    """

    def __init__(self, earlier: Mapping[str, Mapping[str, float]] | None = None) -> None:
        self._earlier = earlier or {}
        self._cells: dict[Cell, _Times] = {}
        # Seconds of this run's episodes, and what earlier runs took for as many of the same cells.
        self._taken = self._foretold = 0.0

    def add(self, row: Row) -> None:
        """Take in a row of this run; the same one twice is one."""
        if row.success is None or row.wall_s is None:
            return
        times = self._of(Cell(row.scene, row.task, row.task_config))
        episode = (row.manifest, row.position)
        before = times.seconds.get(episode)
        seconds = min(max(row.wall_s, _LEAST), _MOST)
        more = seconds - (before or 0.0)
        times.seconds[episode] = seconds
        times.total += more
        if times.earlier:
            self._taken += more
            self._foretold += times.earlier if before is None else 0.0

    def noting(self, rows: Callable[[], Iterable[Row]]) -> Callable[[], Iterator[Row]]:
        """``rows``, each of them taken in when it is read."""

        def noted() -> Iterator[Row]:
            for row in rows():
                self.add(row)
                yield row

        return noted

    def measured(self, cell: Cell) -> bool:
        """Whether an episode of it in this run is known."""
        return bool(self._of(cell).seconds)

    def known(self, cell: Cell) -> bool:
        """Whether there is more to go by than a guess."""
        times = self._of(cell)
        return bool(times.earlier or times.seconds)

    def seconds(self, cell: Cell) -> float:
        """What an episode of it may take; of a cell that nobody knows, the mean of the others."""
        times = self._of(cell)
        count, total = len(times.seconds), times.total
        if times.earlier:
            scale = self._taken / self._foretold if self._foretold else 1.0
            total += _EARLIER_EPISODES * scale * times.earlier
            count += _EARLIER_EPISODES
        return total / count if count else self._mean()

    def words(self, cells: Iterable[Cell]) -> str:
        """What the order of work goes by, for people."""
        earlier = [self._earlier[cell.name] for cell in cells if cell.name in self._earlier]
        if not earlier:
            return "tasks that nobody has timed first, by step limits, then the longest"
        episodes = sum(int(of["episodes"]) for of in earlier)
        return f"longest first, by {episodes:,} earlier episodes of {len(earlier)} tasks"

    def save(self, file: Path, simulator: str) -> None:
        """Keep this run's for later ones. Of two that save at once, one may be lost."""
        known = _load(file)
        for cell, times in self._cells.items():
            if times.seconds:
                said = {"seconds": times.mean, "episodes": len(times.seconds)}
                known.setdefault(simulator, {})[cell.name] = said
        write_atomic(file, (json.dumps(known, indent=1, sort_keys=True) + "\n").encode())

    def _of(self, cell: Cell) -> _Times:
        times = self._cells.get(cell)
        if times is None:
            earlier = self._earlier.get(cell.name)
            times = self._cells[cell] = _Times(earlier["seconds"] if earlier else 0.0)
        return times

    def _mean(self) -> float:
        means = [times.mean for times in self._cells.values() if times.seconds]
        return sum(means) / len(means) if means else 1.0


def read(file: Path, simulator: str) -> Mapping[str, Mapping[str, float]]:
    """What earlier runs with ``simulator`` say: cell name -> ``{"seconds", "episodes"}``."""
    return _load(file).get(simulator, {})


def _load(file: Path) -> dict[str, dict[str, dict[str, float]]]:
    try:
        known = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return {
        simulator: {name: of for name, of in cells.items() if _is_sound(of)}
        for simulator, cells in (known.items() if isinstance(known, dict) else ())
        if isinstance(cells, dict)
    }


def _is_sound(of: object) -> bool:
    if not isinstance(of, dict):
        return False
    bounds = {"seconds": (_LEAST, _MOST), "episodes": (1, 1e18)}
    return all(
        isinstance(of.get(name), int | float) and least <= of[name] <= most
        for name, (least, most) in bounds.items()
    )
