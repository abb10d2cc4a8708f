"""The copies a node keeps on its own disk: which there are, who uses them, which may go.

``<store>/<kind>/<name>@<signature>`` is a copy and ``<the same>.json`` its marker, written last.
Promises: one stager a node at a time; nothing that a living process uses is removed; what a dead
stager or user left behind goes. A user is a file that its process holds locked
(``scripts/lib/staging.sh``), so that the kernel ends the use whatever ends the process, in whatever
container: ``users/<user>`` links to it, ``roots/<user>/uses`` names the copies. Locks are for this
disk alone: a store never lies on a network filesystem.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import filelock

from harness.errors import RollpoolError
from harness.foundations.atomic import write_atomic
from harness.foundations.trees import read_tree

WEIGHTS = "weights"
FORMAT = 1
GB = 10**9
#: For another stager to finish: 40 GB at 50 MB/s take a quarter of an hour.
LOCK_DEADLINE_S = 3600.0

Say = Callable[[str], None]


class Store:
    """The folder of one node (``DXVLA_LOCAL``, see ``store_folder``).

    Args:
        cap_gb: of all weights together.
        keep: names of weights that are pruned last.
        say: takes a line of progress.
    """

    def __init__(
        self, path: Path, *, cap_gb: float, keep: Collection[str] = (), say: Say = print
    ) -> None:
        self.path, self.say = path, say
        self.users, self.roots, self.incoming = path / "users", path / "roots", path / "incoming"
        self._cap, self._keep = int(cap_gb * GB), frozenset(keep)
        for folder in (self.users, self.roots, self.incoming):
            folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self, deadline_s: float = LOCK_DEADLINE_S) -> Iterator[None]:
        """Be the one stager of this node. Raises ``RollpoolError`` after ``deadline_s``."""
        lock = filelock.FileLock(self.path / "stage.lock", mode=0o664)
        try:
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                self.say(f"another job stages on this node: waiting up to {deadline_s:.0f} s")
                lock.acquire(timeout=deadline_s)
        except filelock.Timeout as error:
            raise RollpoolError(
                f"stage to {self.path}", f"another job holds its lock for {deadline_s:.0f} s",
                f"see who: fuser {self.path}/stage.lock",
            ) from error  # fmt: skip
        try:
            yield
        finally:
            lock.release()

    def free(self) -> int:
        """Bytes that an ordinary user can still write."""
        return shutil.disk_usage(self.path).free

    def copies(self, kind: str = "*") -> list[Path]:
        """Every copy that has its marker, the one that was used longest ago first."""
        markers = [m for m in self.path.glob(f"{kind}/*@*.json") if _place(m).exists()]
        return [_place(m) for m in sorted(markers, key=lambda m: m.stat().st_mtime)]

    def marker(self, copy: Path) -> dict[str, Any] | None:
        """What ``write_marker`` wrote, if the copy is there."""
        try:
            marker: dict[str, Any] = json.loads(_marker(copy).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return marker if copy.exists() and marker.get("format") == FORMAT else None

    def write_marker(self, copy: Path, marker: dict[str, Any]) -> None:
        """Vouch for a copy: from now on it may be used."""
        write_atomic(_marker(copy), json.dumps({"format": FORMAT, **marker}).encode())

    def touch(self, copy: Path) -> None:
        """This copy is used now."""
        os.utime(_marker(copy))

    def admit(self, lock: Path) -> str:
        """A new user, whose process holds a shared lock on the file ``lock``; returns its name.

        Raises:
            RollpoolError: nobody holds it.
        """
        user = lock.name
        link = self.users / user
        link.unlink(missing_ok=True)
        link.symlink_to(lock.absolute())
        if not self.held(user):
            raise RollpoolError(
                f"use {self.path}", f"nobody holds a lock on {lock}",
                "source scripts/lib/staging.sh and call staging::enter",
            )  # fmt: skip
        return user

    def held(self, user: str) -> bool:
        """Whether the process of ``user`` lives."""
        try:
            descriptor = os.open(self.users / user, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def in_use(self) -> set[Path]:
        """The copies that a living process uses."""
        used: set[Path] = set()
        for uses in self.roots.glob("*/uses"):
            if self.held(uses.parent.name):
                used.update(self.path / line for line in uses.read_text().splitlines())
        return used

    def sweep(self, newest: Collection[Path] = ()) -> int:
        """Remove what dead stagers and users left, and unused copies of the same source as one of
        ``newest``; returns the bytes that were freed. Call it ``locked``."""
        left = [*self.path.glob("*/*.partial"), *self.path.glob("*/*.gone")]
        freed = sum(_remove(place) for place in left)
        for user in self.users.iterdir():
            if not self.held(user.name):
                freed += _remove(self.roots / user.name)
                with contextlib.suppress(OSError):  # somebody else's, in a sticky folder
                    user.resolve().unlink()
                user.unlink()
        sources = {self._origin(copy): copy for copy in newest}
        used = self.in_use()
        for copy in self.copies():
            newer = sources.get(self._origin(copy), copy)
            if newer != copy and copy not in used:
                freed += self.remove(copy)
        return freed

    def remove(self, copy: Path) -> int:
        """Take a copy that nobody uses away, its marker first; returns its size."""
        _marker(copy).unlink(missing_ok=True)
        gone = copy.with_name(f"{copy.name}.gone")
        with contextlib.suppress(FileNotFoundError):
            os.rename(copy, gone)
        return _remove(gone)

    def prune(self, incoming: int = 0, wanted: Collection[Path] = ()) -> int:
        """Remove weights so that the rest and ``incoming`` bytes keep to the cap; returns bytes.

        What ``keep`` does not name goes in any case, where it names something; then the least
        recently used goes first. Never one that is wanted or in use. Call it ``locked``.

        Raises:
            RollpoolError: what is in use and what comes in are more than the cap.
        """
        freed, sizes = 0, {copy: _size(copy) for copy in self.copies(WEIGHTS)}
        for copy in self.prunable(wanted):
            unnamed = bool(self._keep) and name_of(copy) not in self._keep
            if unnamed or sum(sizes.values()) + incoming > self._cap:
                freed += self.remove(copy)
                self.say(f"pruned {WEIGHTS} {name_of(copy)}: {sizes.pop(copy) / 1e6:,.0f} MB")
        total = sum(sizes.values()) + incoming
        if incoming and total > self._cap:
            raise RollpoolError(
                "stage weights",
                f"{total / GB:.2f} GB with what is in use, the cap is {self._cap / GB:.2f} GB",
                "raise DXVLA_LOCAL_GB, or wait for the other jobs of this node",
            )
        return freed

    def prunable(self, wanted: Collection[Path] = ()) -> list[Path]:
        """Weights that nobody uses: those to keep last, each part by last use."""
        kept = {*wanted, *self.in_use()}
        unused = [copy for copy in self.copies(WEIGHTS) if copy not in kept]
        return sorted(unused, key=lambda copy: name_of(copy) in self._keep)

    def _origin(self, copy: Path) -> tuple[Any, ...]:
        marker = self.marker(copy) or {}
        return (marker.get("kind"), marker.get("name"), marker.get("source"))


def name_of(copy: Path) -> str:
    """The name of what was copied."""
    return copy.name.rpartition("@")[0]


def _marker(copy: Path) -> Path:
    return copy.with_name(f"{copy.name}.json")


def _place(marker: Path) -> Path:
    return marker.with_name(marker.name.removesuffix(".json"))


def _size(place: Path) -> int:
    return read_tree(place, keep_links=True).size


def _remove(place: Path) -> int:
    """Remove a file or folder; returns its size."""
    if not place.exists():
        return 0
    size = _size(place)
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    return size
