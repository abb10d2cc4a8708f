"""Counted episodes in, rates out: success (SR), hard success (HSR) and collisions (CR).

Promises: every rate stands beside the number of episodes it is a share of and its Wilson 95 %
interval; an ``error`` is in no rate, neither above nor below the line; a missing or erroneous
episode makes its task, its scene and the total PARTIAL. HSR and CR are shares of the episodes in
which hard success or collision is *known*, which may be fewer than those of SR.

Nothing here reads a file: ``harness.reports.results`` gathers, ``harness.reports.tables`` prints.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

#: Standard normal quantile of a two-sided 95 % interval.
Z95 = 1.959963984540054


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The Wilson score 95 % interval of ``hits`` in ``n`` trials, as fractions within [0, 1].

    Unlike the normal approximation it is meaningful at 0 of 5 and 5 of 5. ``n = 0`` says nothing:
    the interval is all of [0, 1].
    """
    if n == 0:
        return 0.0, 1.0
    share, z2 = hits / n, Z95 * Z95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # At the ends the exact bound is 0 or 1; rounding would leave 1e-17 beside it.
    low = 0.0 if hits == 0 else centre - half
    high = 1.0 if hits == n else centre + half
    return low, high


class Place(NamedTuple):
    """What a table's line is about, in one configuration."""

    scene: str
    task: str
    task_config: str


@dataclass(frozen=True, slots=True)
class Counted:
    """One episode by its counted row, a success or a fail. Errors are a ``Hole``."""

    scene: str
    task: str
    task_config: str
    seed: int
    success: bool
    hard_success: bool | None = None  # None: unknown
    collision: bool | None = None  # None: unknown
    position: int = 0
    manifest: str = ""
    video: str | None = None  # relative to the run directory


@dataclass(frozen=True)
class Hole:
    """A selected episode that the rates leave out, and why."""

    scene: str
    task: str
    task_config: str
    seed: int
    kind: str  # "missing" | "error" | "quarantined"
    reason: str = ""
    position: int = 0
    manifest: str = ""
    logs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rate:
    """``hits`` of ``n`` episodes."""

    hits: int = 0
    n: int = 0

    @property
    def percent(self) -> float | None:
        """None where no episode is known."""
        return 100.0 * self.hits / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson 95 % interval in percent."""
        if not self.n:
            return None
        low, high = wilson(self.hits, self.n)
        return 100.0 * low, 100.0 * high

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.hits + other.hits, self.n + other.n)


@dataclass(frozen=True)
class Tally:
    """The numbers of one table line."""

    success: Rate = Rate()
    hard: Rate = Rate()
    collision: Rate = Rate()
    errors: int = 0  # quarantined ones included
    quarantined: int = 0
    missing: int = 0

    @property
    def partial(self) -> bool:
        return self.errors + self.missing > 0

    @property
    def selected(self) -> int:
        return self.success.n + self.errors + self.missing

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.success + other.success,
            self.hard + other.hard,
            self.collision + other.collision,
            self.errors + other.errors,
            self.quarantined + other.quarantined,
            self.missing + other.missing,
        )


@dataclass(frozen=True)
class Report:
    """All tables of one model under one configuration."""

    model: str
    run: str
    config: str
    tasks: Mapping[str, Mapping[str, Tally]]  # scene -> task -> tally, both sorted
    holes: tuple[Hole, ...] = ()
    unsealed: tuple[tuple[str, str], ...] = ()  # (scene, task) queued, but nothing sealed
    identity: Mapping[str, str] = field(default_factory=dict)  # policy, checkpoint, simulator
    #: Scene -> task -> seconds by ``stopwatch.PARTS``; without the tasks that nobody measured.
    profiles: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)

    def scene(self, scene: str) -> Tally:
        return sum(self.tasks[scene].values(), Tally())

    @property
    def total(self) -> Tally:
        return sum((self.scene(scene) for scene in self.tasks), Tally())

    @property
    def partial(self) -> bool:
        return self.total.partial or bool(self.unsealed)

    def only(self, scene: str) -> Report:
        """The same report narrowed to one scene."""
        return Report(
            self.model,
            self.run,
            self.config,
            {scene: self.tasks[scene]},
            tuple(hole for hole in self.holes if hole.scene == scene),
            tuple(cell for cell in self.unsealed if cell[0] == scene),
            self.identity,
        )


def summed(profiles: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The seconds of each part together."""
    total: dict[str, float] = {}
    for profile in profiles:
        for part, seconds in profile.items():
            total[part] = total.get(part, 0.0) + seconds
    return total


def tables(counted: Mapping[Place, Tally], holes: Iterable[Hole]) -> dict[str, dict[str, Tally]]:
    """``{scene: {task: Tally}}``, sorted by name."""
    found: dict[str, dict[str, Tally]] = {}
    for place, tally in counted.items():
        _add(found, place.scene, place.task, tally)
    for (scene, task, kind), n in Counter((h.scene, h.task, h.kind) for h in holes).items():
        _add(found, scene, task, _of_holes(kind, n))
    return {scene: dict(sorted(found[scene].items())) for scene in sorted(found)}


def _add(found: dict[str, dict[str, Tally]], scene: str, task: str, tally: Tally) -> None:
    tasks = found.setdefault(scene, {})
    tasks[task] = tasks.get(task, Tally()) + tally


def _of_holes(kind: str, n: int) -> Tally:
    if kind == "missing":
        return Tally(missing=n)
    return Tally(errors=n, quarantined=n if kind == "quarantined" else 0)
