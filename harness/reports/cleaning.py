"""What can go: copies on this node that nobody uses, old videos, leases of runs that are finished.

Promises: ``find_*`` change nothing and say what each removal would free; rows, manifests, decisions
and logs are never touched, so no table changes. What a report shows under another name (a hard
link) stays, and counts as nothing freed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness.foundations.trees import read_tree
from harness.nodes.node_store import Store, name_of
from harness.paths import RunPaths
from harness.reports.status import StatusReader

_DAY_S = 86400.0


@dataclass(frozen=True)
class Removal:
    """One thing that can go; ``remove`` does it."""

    what: str
    place: Path
    size: int
    remove: Callable[[], object] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.size / 1e6:>10,.1f} MB  {self.what}: {self.place}"


def find_staged(store: Store) -> Iterator[Removal]:
    """Copies on this node that no living process uses. Remove them while the store is locked."""
    used = store.in_use()
    for copy in store.copies():
        if copy not in used:
            size = read_tree(copy, keep_links=True).size
            what = f"staged {copy.parent.name} {name_of(copy)}"
            yield Removal(what, copy, size, partial(_unless_used, store, copy))


def find_videos(paths: RunPaths, days: float) -> Iterator[Removal]:
    """A run's videos that are older than ``days``, as one removal for each task."""
    before = time.time() - days * _DAY_S
    for task in sorted(paths.results.glob("*")):
        old = [v for v in task.rglob("*.mp4") if not v.name.startswith(".")]
        old = [v for v in old if v.stat().st_mtime < before]
        if old:
            size = sum(v.stat().st_size for v in old if v.stat().st_nlink == 1)
            what = f"{len(old)} videos of run {paths.name}"
            yield Removal(what, task, size, partial(_unlink, old))


def find_leases(paths: RunPaths, limits: tuple[int, int]) -> Iterator[Removal]:
    """The leases of a run in which every selected episode is settled: rows alone say so."""
    if not paths.leases.is_dir() or not paths.run_json.exists():
        return
    total = StatusReader(paths, limits).look().total
    if total.selected and total.done == total.selected:
        names = sum(len(folders) + len(files) for _, folders, files in os.walk(paths.leases))
        what = f"{names:,} lease names of the finished run {paths.name}"
        yield Removal(what, paths.leases, 0, partial(_remove_leases, paths.leases))


def _unlink(videos: Sequence[Path]) -> None:
    for video in videos:
        video.unlink(missing_ok=True)


def _unless_used(store: Store, copy: Path) -> None:
    if copy not in store.in_use():
        store.remove(copy)


def _remove_leases(leases: Path) -> None:
    """All at once, by a rename: workers never see a half of them."""
    gone = leases.with_name(f".{leases.name}.{time.time_ns()}.gone")
    with contextlib.suppress(FileNotFoundError):
        os.rename(leases, gone)
        shutil.rmtree(gone)
