"""Folder trees as values: what one holds, whether it changed, a copy of it on another disk.

Promises: equal names, sizes, times and modes give equal signatures, wherever the tree lies; a copy
has the times and modes of its source, so that it has its signature, and what it wrote is hashed as
it went by. ``__pycache__`` is copied and never looked at: Python writes there whenever it likes.
A link that stays inside its tree is kept as a link. One that leaves it is replaced by what it
points at, or kept too, as the caller wants. Not promised: empty folders, owners, extended
attributes.

Copying is done here and not by rsync: nodes often lack it and nobody there can install it, many
small files want many requests under way at once on a network filesystem, and the content is hashed
in passing.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.errors import RollpoolError

#: Requests under way at once.
THREADS = 8
_BLOCK_BYTES = 2**20
_CACHE = "__pycache__"


@dataclass(frozen=True)
class Entry:
    """A file (``link`` is "") or a link, and where to read it."""

    place: str
    size: int
    mtime_ns: int
    mode: int
    link: str = ""

    @property
    def stamp(self) -> tuple[int, int, int, str]:
        """What must be equal for the content to count as unchanged."""
        return (self.size, self.mtime_ns, self.mode, self.link)


@dataclass(frozen=True)
class Tree:
    """What a folder holds: name relative to it -> entry, in the order of the names."""

    entries: Mapping[str, Entry]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries.values())

    def signature(self, more: str = "") -> str:
        """The sha256 of all names and stamps, and of ``more``."""
        digest = hashlib.sha256(more.encode())
        for name, entry in self.entries.items():
            if _CACHE not in name.split("/"):
                digest.update(f"\0{name}\0{entry.stamp}".encode(errors="surrogateescape"))
        return digest.hexdigest()


def read_tree(folder: Path, *, keep_links: bool = False, leave_out: Collection[str] = ()) -> Tree:
    """Look at every file below ``folder``.

    Args:
        keep_links: also those that leave the tree, as a Python environment's interpreter does.
        leave_out: names relative to ``folder`` that do not count.

    Raises:
        RollpoolError: it cannot be read, or a link leads back into itself.
    """
    try:
        top = folder.resolve(strict=True)
        if top.is_file():
            found = {"": _entry(str(top), os.stat(top))}
        else:
            found = dict(_walk(str(top), "", top, keep_links, frozenset(leave_out), (str(top),)))
    except OSError as error:
        raise RollpoolError(
            f"read {folder}", error.strerror or str(error), "check its path and its rights"
        ) from error
    return Tree(dict(sorted(found.items())))


def copy_tree(tree: Tree, target: Path, known: Mapping[str, tuple[Entry, str]]) -> dict[str, str]:
    """Make ``target`` equal ``tree``; returns name -> sha256 of each file's content.

    Args:
        known: files of an earlier copy on the same disk with their digests: what is unchanged
            since is linked from there and not read again.

    Raises:
        RollpoolError: it cannot be read or written.
    """
    folders = {(target / name).parent for name in tree.entries} - {target}
    if "" not in tree.entries:
        folders.add(target)
    try:
        for folder in sorted(folders):
            folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(THREADS) as pool:
            jobs = {
                name: pool.submit(_place, entry, target / name, known.get(name))
                for name, entry in tree.entries.items()
            }
            found = {name: job.result() for name, job in jobs.items()}
    except OSError as error:
        raise RollpoolError(
            f"copy to {target}", error.strerror or str(error), "free that disk, or check its rights"
        ) from error
    return {name: digest for name, digest in found.items() if digest}


def digests(tree: Tree) -> dict[str, str]:
    """Name -> sha256 of each file's content, links left out. Raises ``RollpoolError``."""
    files = [(name, entry) for name, entry in tree.entries.items() if not entry.link]
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            found = pool.map(lambda file: sha256(file[1].place), files)
            return dict(zip((name for name, _ in files), found, strict=True))
    except OSError as error:
        raise RollpoolError("read a tree", str(error), "check its path and its rights") from error


def sha256(file: str, copy: BinaryIO | None = None) -> str:
    """The digest of ``file``, which is written to ``copy`` on the way."""
    digest = hashlib.sha256()
    with open(file, "rb") as source:
        while block := source.read(_BLOCK_BYTES):
            digest.update(block)
            if copy is not None:
                copy.write(block)
    return digest.hexdigest()


def _walk(
    folder: str, prefix: str, top: Path, keep_links: bool, out: frozenset[str], way: tuple[str, ...]
) -> Iterator[tuple[str, Entry]]:
    """``way``: the real folders on the path to here, none of which may come again."""
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        name, place = f"{prefix}{entry.name}", entry.path
        if name in out:
            continue
        if entry.is_symlink():
            link = _link(Path(place), top, keep_links)
            if link:
                yield name, Entry(place, 0, 0, 0, link)
                continue
            place = os.path.realpath(place)
        info = os.stat(place) if place != entry.path else entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            if place in way:
                raise RollpoolError(f"read {folder}", f"{name} leads back to {place}", "unlink it")
            yield from _walk(place, f"{name}/", top, keep_links, out, (*way, place))
        elif stat.S_ISREG(info.st_mode):
            yield name, _entry(place, info)


def _entry(place: str, info: os.stat_result) -> Entry:
    return Entry(place, info.st_size, info.st_mtime_ns, stat.S_IMODE(info.st_mode))


def _link(place: Path, top: Path, keep_links: bool) -> str:
    """What the copy's link holds; "" where the copy has what it points at instead."""
    text, real = os.readlink(place), place.resolve()
    if real.is_relative_to(top) and place.is_relative_to(top):
        return os.path.relpath(real, place.parent) if os.path.isabs(text) else text
    return text if keep_links or not real.exists() else ""


def _place(entry: Entry, target: Path, known: tuple[Entry, str] | None) -> str:
    if entry.link:
        os.symlink(entry.link, target)
        return ""
    if known is not None and known[0].stamp == entry.stamp:
        os.link(known[0].place, target)
        return known[1]
    with target.open("xb") as file:
        digest = sha256(entry.place, file)
        os.fchmod(file.fileno(), entry.mode)
    os.utime(target, ns=(entry.mtime_ns, entry.mtime_ns))
    return digest
