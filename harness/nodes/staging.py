"""Bringing things to a node: environments, weights and assets, each copied once.

Promises: a copy is used only when its marker is there and the copy looks as the marker says (after
a reboot its content is read again); a source that changed makes another copy, in which what did not
change is linked and not read again; a disk that is too small is said before a byte is copied. A
copy appears by a rename, its marker after it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import RollpoolError
from harness.foundations.trees import Entry, Tree, copy_tree, digests, read_tree
from harness.nodes import fanout
from harness.nodes.node_store import GB, WEIGHTS, Store, name_of

#: What staging leaves free: the node's own logs and caches need some.
RESERVE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Item:
    """Something to have on the node.

    ``variant``: what else than the source decides the content; ``finish``: makes a copy fit for
    use, given the copy and where it will lie.
    """

    kind: str
    name: str
    source: Path
    keep_links: bool = False
    leave_out: tuple[str, ...] = ()
    variant: str = ""
    finish: Callable[[Path, Path], None] | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def read(self) -> Tree:
        return read_tree(self.source, keep_links=self.keep_links, leave_out=self.leave_out)


@dataclass(frozen=True)
class Staged:
    """A copy that is ready. ``copied``: bytes read for it; ``linked``: whether there was an earlier
    copy to take the rest from; ``seconds``: None where it was warm."""

    item: Item
    path: Path
    content: str
    size: int
    files: int
    copied: int = 0
    linked: bool = False
    seconds: float | None = None

    def __str__(self) -> str:
        size = f"{self.size / 1e6:,.1f} MB in {self.files:,} files"
        if self.seconds is None:
            return f"{self.item}: warm, {size}"
        part = f", {self.copied / 1e6:,.1f} MB of it new" if self.linked else ""
        rate = self.copied / max(self.seconds, 1e-3) / 1e6
        speed = f" ({rate:,.0f} MB/s)" if rate >= 1 else ""
        return f"{self.item}: {size}{part}, {self.seconds:.1f} s{speed}"


class Job:
    """One item on its way: what its source holds, where its copy lies, what can be linked."""

    def __init__(self, store: Store, item: Item) -> None:
        self.item, self.tree, self._store = item, item.read(), store
        name = item.name.replace("/", "--").replace("@", "-")
        self.place = store.path / item.kind / f"{name}@{self.tree.signature(item.variant)[:16]}"
        #: What an archive of it is called.
        self.archive = f"{item.kind}.{self.place.name}"

    @functools.cached_property
    def known(self) -> dict[str, tuple[Entry, str]]:
        brought = fanout.unpack(self._store, self.archive, self.tree)
        return {**_known(self._store, self.place), **brought}

    @functools.cached_property
    def new_bytes(self) -> int:
        return sum(
            entry.size
            for name, entry in self.tree.entries.items()
            if name not in self.known or self.known[name][0].stamp != entry.stamp
        )


def stage(store: Store, items: Sequence[Item], reserve: int = RESERVE_BYTES) -> list[Staged]:
    """A ready copy of each item, in order. Call it while the store is ``locked``.

    Raises:
        RollpoolError: a source that cannot be read or changes meanwhile, a disk or cap too small.
    """
    store.sweep()
    jobs = [Job(store, item) for item in items]
    places = {job.place for job in jobs}
    warm = {job.place: _warm(store, job.item, job.place) for job in jobs}
    _make_room(store, [job for job in jobs if warm[job.place] is None], places, reserve)
    ready = []
    for job in jobs:
        ready.append(warm[job.place] or _copy(store, job))
        store.say(str(ready[-1]))
    fanout.clear(store, [job.archive for job in jobs])
    store.sweep(places)
    return ready


def _warm(store: Store, item: Item, place: Path) -> Staged | None:
    """The copy that is there, if it is whole."""
    marker = store.marker(place)
    if marker is None:
        return None
    tree, boot = read_tree(place, keep_links=True), _boot()
    whole = tree.signature() == marker["local"]
    if whole and marker["boot"] != boot:
        store.say(f"{item}: reading its content again after a reboot")
        whole = _content(tree, digests(tree)) == marker["content"]
    if not whole:
        store.say(f"{item}: the copy in {place} was damaged and is made anew")
        store.remove(place)
        return None
    if marker["boot"] != boot:
        store.write_marker(place, {**marker, "boot": boot})
    store.touch(place)
    return Staged(item, place, marker["content"], tree.size, len(tree.entries))


def _known(store: Store, place: Path) -> dict[str, tuple[Entry, str]]:
    """The files of earlier copies of the same name, with their digests."""
    known: dict[str, tuple[Entry, str]] = {}
    for copy in store.copies(place.parent.name):
        marker = store.marker(copy) if name_of(copy) == name_of(place) else None
        if marker is not None:
            entries = read_tree(copy, keep_links=True).entries
            known.update(
                (name, (entries[name], digest))
                for name, digest in marker["digests"].items()
                if name in entries
            )
    return known


def _make_room(store: Store, jobs: Sequence[Job], wanted: Collection[Path], reserve: int) -> None:
    weights = sum(job.new_bytes for job in jobs if job.item.kind == WEIGHTS)
    store.prune(weights, wanted)
    total = sum(job.new_bytes for job in jobs) + reserve
    for copy in store.prunable(wanted) if jobs else ():
        if store.free() >= total:
            break
        store.say(f"pruned {WEIGHTS} {name_of(copy)}: {store.remove(copy) / 1e6:,.0f} MB")
    if jobs and store.free() < total:
        parts = ", ".join(f"{job.item} {job.new_bytes / GB:.2f}" for job in jobs)
        raise RollpoolError(
            f"stage to {store.path}",
            f"{store.free() / GB:.2f} GB free, {total / GB:.2f} GB needed ({parts}, "
            f"and {reserve / GB:.2f} to stay free)",
            "free that disk, or set DXVLA_LOCAL to a larger one",
        )


def _copy(store: Store, job: Job) -> Staged:
    item, place, started, size = job.item, job.place, time.monotonic(), job.new_bytes
    partial = place.with_name(f"{place.name}.{secrets.token_hex(4)}.partial")
    partial.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        store.remove(place)  # a stager died between the rename and the marker
    if size:
        store.say(f"{item}: copying {size / 1e6:,.1f} MB from {item.source}")
    found = copy_tree(job.tree, partial, job.known)
    if item.read() != job.tree:
        raise RollpoolError(
            f"stage {item}", f"{item.source} changed while it was copied", "start again"
        )
    if item.finish is not None:
        item.finish(partial, place)
    local = read_tree(partial, keep_links=True)
    found = _redigested(local, job.tree, found)
    os.rename(partial, place)
    content = _content(local, found)
    marker = {
        "kind": item.kind, "name": item.name, "source": str(item.source), "content": content,
        "local": local.signature(), "boot": _boot(), "digests": found,
    }  # fmt: skip
    store.write_marker(place, marker)
    seconds = time.monotonic() - started
    linked = bool(job.known)
    return Staged(item, place, content, local.size, len(local.entries), size, linked, seconds)


def _content(tree: Tree, found: Mapping[str, str]) -> str:
    """The identity of what a tree holds, wherever and whenever it was made."""
    digest = hashlib.sha256()
    for name, entry in tree.entries.items():
        if "__pycache__" not in name.split("/"):
            digest.update(f"{name}\0{entry.link or found[name]}\0".encode())
    return digest.hexdigest()


def _redigested(local: Tree, source: Tree, found: Mapping[str, str]) -> dict[str, str]:
    """The digests of a copy that ``finish`` may have changed."""
    changed = {
        name: entry
        for name, entry in local.entries.items()
        if name not in source.entries or source.entries[name].stamp != entry.stamp
    }
    kept = {name: digest for name, digest in found.items() if name in local.entries}
    return {**kept, **digests(Tree(changed))}


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
