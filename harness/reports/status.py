"""How a run stands: cells, workers, rate, time left. Looks only; nothing in the run is touched.

Promises: an episode counts as done by the same rule as in the tables. A worker of this machine is
judged by its process, another one by when its heartbeat file last changed, which is as good as the
clocks of the two machines: for people, never for the protocol. Time left is the episodes left at
the rate of the last ten minutes of work.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import RollpoolError
from harness.leases.heartbeat import holdings
from harness.leases.observer import Observer
from harness.nodes import node_words
from harness.nodes.node_words import KeptOut
from harness.paths import RunPaths
from harness.reports.report import Hole
from harness.reports.results import RunReader, RunResults, queued, sealed_cells
from harness.runs.preparer import is_preparing

RATE_WINDOW_S = 600.0


@dataclass(frozen=True)
class CellStatus:
    """``selected`` = done + set_aside + running + left; ``in_error`` of those left have failed."""

    scene: str
    task: str
    task_config: str
    selected: int = 0
    done: int = 0
    running: int = 0
    left: int = 0
    in_error: int = 0
    set_aside: int = 0

    @property
    def finished(self) -> bool:
        return self.done + self.set_aside == self.selected


@dataclass(frozen=True)
class WorkerStatus:
    """One heartbeat. ``state``: starting, running, idle, ended; or silent, dead. ``others`` are
    ``{"episode", "step"}`` of its further simulators."""

    worker: str
    host: str
    state: str
    silent_s: float
    episode: Mapping[str, Any] | None
    step: int
    others: tuple[Mapping[str, Any], ...] = ()

    @property
    def alive(self) -> bool:
        return self.state in ("starting", "running", "idle")

    @property
    def playing(self) -> list[tuple[Mapping[str, Any], int]]:
        """Each episode that it plays, with its step."""
        first = {"episode": self.episode, "step": self.step}
        return [(at["episode"], at["step"]) for at in (first, *self.others) if at["episode"]]


@dataclass(frozen=True)
class Sealing:
    """A run that is being prepared: cells of the queue, and processes at work on them."""

    sealed: int
    cells: int
    at_work: int


@dataclass(frozen=True)
class Status:
    """A moment of a run. ``sealing``: None where nobody prepares it."""

    run: str
    identity: Mapping[str, str]
    cells: tuple[CellStatus, ...]
    workers: tuple[WorkerStatus, ...]
    per_minute: float
    set_aside: tuple[Hole, ...]
    unsealed: tuple[tuple[str, str], ...]
    kept_out: tuple[KeptOut, ...] = ()
    sealing: Sealing | None = None

    @property
    def total(self) -> CellStatus:
        fields = ("selected", "done", "running", "left", "in_error", "set_aside")
        sums = {name: sum(getattr(cell, name) for cell in self.cells) for name in fields}
        return CellStatus("", "TOTAL", "", **sums)

    @property
    def alive(self) -> int:
        return sum(worker.alive for worker in self.workers)

    @property
    def seconds_left(self) -> float | None:
        """None where nobody works or nothing has finished lately."""
        if not self.alive or not self.per_minute:
            return None
        return (self.total.left + self.total.running) * 60.0 / self.per_minute


class StatusReader:
    """Takes one look, or one after the other. Raises ``RollpoolError`` for an unknown run."""

    def __init__(
        self,
        paths: RunPaths,
        limits: tuple[int, int] = (2, 4),
        now: Callable[[], float] = time.time,
    ) -> None:
        if not paths.run_json.exists() and not paths.results.exists():
            raise RollpoolError(
                f"status of run '{paths.name}'", f"no run in {paths.root}",
                "check the name, or make it with `rollpool prepare`",
            )  # fmt: skip
        self._paths, self._now = paths, now
        self._reader = RunReader(paths, *limits)
        self._observer = Observer(paths.workers, ttl=60.0)

    def look(self) -> Status:
        workers = tuple(self._workers())
        results = self._reader.gather()
        holes = [hole for of_config in results.configs.values() for hole in of_config.holes]
        unsealed = [cell for of_config in results.configs.values() for cell in of_config.unsealed]
        return Status(
            run=self._paths.name,
            identity=results.identity,
            cells=tuple(_cells(results, workers)),
            workers=workers,
            per_minute=self._per_minute(self._working_until(workers)),
            set_aside=tuple(hole for hole in holes if hole.kind == "quarantined"),
            # Where nothing was sealed at all there is no configuration that could lack a cell.
            unsealed=tuple(unsealed if results.configs else queued(self._paths.queue)),
            kept_out=tuple(node_words.kept_out(self._paths.nodes)),
            sealing=self._sealing({worker.worker for worker in workers if worker.alive}),
        )

    def _sealing(self, alive: Collection[str]) -> Sealing | None:
        records = self._observer.records()
        held = ([seat["claim"] or "" for seat in holdings(records[worker])] for worker in alive)
        at_work = sum(any(map(is_preparing, claims)) for claims in held)
        if not at_work:
            return None
        wanted = set(queued(self._paths.queue))
        sealed = {(cell.scene, cell.task) for cell in sealed_cells(self._paths)}
        return Sealing(len(wanted & sealed), len(wanted), at_work)

    def _working_until(self, workers: Iterable[WorkerStatus]) -> float:
        """Now, or when the last episode ended where nobody works any more."""
        if any(worker.alive for worker in workers):
            return self._now()
        return self._reader.episodes.last_end() or self._now()

    def _per_minute(self, until: float) -> float:
        """Episodes with an outcome finished a minute, over the ten minutes before ``until``."""
        count, first = self._reader.episodes.pace(until, RATE_WINDOW_S)
        if first is None:
            return 0.0
        return 60.0 * count / max(1.0, until - max(until - RATE_WINDOW_S, first))

    def _workers(self) -> Iterable[WorkerStatus]:
        self._observer.look()
        for worker, record in sorted(self._observer.records().items()):
            try:
                changed = self._paths.heartbeat(worker).stat().st_mtime
            except FileNotFoundError:
                continue
            silent_s = max(0.0, self._now() - changed)
            state = str(record["state"])
            if state != "ended" and self._observer.dead(worker):
                state = "dead"
            elif state != "ended" and silent_s > record["ttl"]:
                state = "silent"
            first, *others = ({key: held[key] for key in ("episode", "step")}
                              for held in holdings(record))  # fmt: skip
            yield WorkerStatus(
                worker, record["host"], state, silent_s, **first, others=tuple(others)
            )


def _cells(results: RunResults, workers: Iterable[WorkerStatus]) -> Iterable[CellStatus]:
    cells: dict[tuple[str, str, str], Counter[str]] = {}

    def count(scene: str, task: str, task_config: str, **more: int) -> None:
        cells.setdefault((scene, task, task_config), Counter()).update(more)

    running = {
        (episode["manifest"], episode["position"])
        for worker in workers if worker.alive
        for episode, _ in worker.playing
    }  # fmt: skip
    for of_config in results.configs.values():
        for place, tally in of_config.counted.tallies.items():
            count(*place, selected=tally.success.n, done=tally.success.n)
        for hole in of_config.holes:
            cell = (hole.scene, hole.task, hole.task_config)
            if hole.kind == "quarantined":
                count(*cell, selected=1, set_aside=1)
            elif (hole.manifest, hole.position) in running:
                count(*cell, selected=1, running=1)
            else:
                count(*cell, selected=1, left=1, in_error=int(hole.kind == "error"))
    sums: dict[tuple[str, str, str], dict[str, Any]] = {key: dict(n) for key, n in cells.items()}
    return [CellStatus(*key, **sums[key]) for key in sorted(sums)]
