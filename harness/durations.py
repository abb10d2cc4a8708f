"""How long an episode of each cell may take: what the order of work goes by, and nothing else.

Promises: no result depends on it; a file of earlier runs that is missing, broken or out of date
costs order, and stops nobody. Episodes of this run set the scale, so that earlier runs of a
quicker policy, or on other machines, say which cells are long and not how long this run takes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from harness.atomic import write_atomic
from harness.population import Cell
from harness.records import Row

#: What earlier runs say of a cell weighs as much as so many episodes of this one.
_EARLIER_EPISODES = 5


class _Measured:
    """Seconds of the episodes of one cell in this run."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, int], float] = {}
        self.total = 0.0

    def add(self, row: Row, seconds: float) -> None:
        episode = (row.manifest, row.position)
        self.total += seconds - self.seconds.get(episode, 0.0)
        self.seconds[episode] = seconds

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
        self._measured: dict[str, _Measured] = {}
        # Seconds of this run's episodes, and what earlier runs took for as many of the same cells.
        self._taken = self._foretold = 0.0

    def add(self, row: Row) -> None:
        """Take in a row of this run; the same one twice is one."""
        if row.success is None or row.wall_s is None:
            return
        name = Cell(row.scene, row.task, row.task_config).name
        measured = self._measured.setdefault(name, _Measured())
        count, total = len(measured.seconds), measured.total
        measured.add(row, row.wall_s)
        if name in self._earlier:
            self._taken += measured.total - total
            self._foretold += self._earlier[name]["seconds"] * (len(measured.seconds) - count)

    def noting(self, rows: Callable[[], Iterable[Row]]) -> Callable[[], Iterator[Row]]:
        """``rows``, each of them taken in when it is read."""

        def noted() -> Iterator[Row]:
            for row in rows():
                self.add(row)
                yield row

        return noted

    def measured(self, cell: Cell) -> bool:
        """Whether an episode of it in this run is known."""
        return cell.name in self._measured

    def known(self, cell: Cell) -> bool:
        """Whether there is more to go by than a guess."""
        return cell.name in self._earlier or self.measured(cell)

    def seconds(self, cell: Cell) -> float:
        """What an episode of it may take; of a cell that nobody knows, the mean of the others."""
        measured = self._measured.get(cell.name)
        count, total = (len(measured.seconds), measured.total) if measured else (0, 0.0)
        if cell.name in self._earlier:
            scale = self._taken / self._foretold if self._foretold else 1.0
            total += _EARLIER_EPISODES * scale * self._earlier[cell.name]["seconds"]
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
        for name, of in self._measured.items():
            said = {"seconds": of.mean, "episodes": len(of.seconds)}
            known.setdefault(simulator, {})[name] = said
        write_atomic(file, (json.dumps(known, indent=1, sort_keys=True) + "\n").encode())

    def _mean(self) -> float:
        means = [of.mean for of in self._measured.values()]
        return sum(means) / len(means) if means else 1.0


def read(file: Path, simulator: str) -> Mapping[str, Mapping[str, float]]:
    """What earlier runs with ``simulator`` say: cell name -> ``{"seconds", "episodes"}``."""
    return _load(file).get(simulator, {})


def _load(file: Path) -> dict[str, dict[str, dict[str, float]]]:
    try:
        known = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return {
        simulator: {name: of for name, of in cells.items() if _is_sound(of)}
        for simulator, cells in (known.items() if isinstance(known, dict) else ())
        if isinstance(cells, dict)
    }


def _is_sound(of: object) -> bool:
    values = [of.get("seconds"), of.get("episodes")] if isinstance(of, dict) else [None]
    return all(isinstance(value, int | float) and 0 < value < math.inf for value in values)
