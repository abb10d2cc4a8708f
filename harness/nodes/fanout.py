"""One reader of the shared filesystem for a whole pool: archives that SLURM's ``sbcast`` carries.

``pack`` writes one archive an item on one node; ``sbcast`` brings it to ``<store>/incoming`` of
every node; ``unpack`` makes its files known to staging, which links them instead of reading the
source. Promises: an archive of another state of the source is not used, of one that arrived in part
only what is whole; what was unpacked goes with the staging that asked for it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from harness.errors import RollpoolError
from harness.foundations.trees import Entry, Tree
from harness.nodes.node_store import Store


def pack(trees: Mapping[str, Tree], folder: Path) -> list[Path]:
    """An archive ``<name>.tar`` of each tree, links left out. Raises ``RollpoolError``."""
    archives = []
    for name, tree in trees.items():
        archive = folder / f"{name}.tar"
        try:
            with tarfile.open(archive, "w") as tar:
                for member, entry in tree.entries.items():
                    if not entry.link:
                        tar.add(entry.place, arcname=f"./{member}", recursive=False)
        except OSError as error:
            raise RollpoolError(
                f"pack {name}", error.strerror or str(error), "name a larger disk in TMPDIR"
            ) from error
        archives.append(archive)
    return archives


def unpack(store: Store, name: str, tree: Tree) -> dict[str, tuple[Entry, str]]:
    """What ``sbcast`` brought of this tree: entries to link, with their digests; often nothing."""
    archive, folder = store.incoming / f"{name}.tar", store.incoming / f"{name}.partial"
    if not archive.exists() or store.free() < tree.size:
        return {}
    shutil.rmtree(folder, ignore_errors=True)
    known = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                entry = tree.entries.get(member.name.removeprefix("./"))
                source = tar.extractfile(member)
                if entry is None or entry.link or source is None or member.size != entry.size:
                    continue
                place = folder / member.name  # a name of the tree's own: it stays inside
                place.parent.mkdir(parents=True, exist_ok=True)
                known[member.name.removeprefix("./")] = _written(source, place, entry)
    except (OSError, tarfile.TarError):
        pass  # cut off on its way: of the rest the source is read
    return known


def clear(store: Store, names: Sequence[str]) -> None:
    """Remove what came and is staged now."""
    for name in names:
        (store.incoming / f"{name}.tar").unlink(missing_ok=True)
        shutil.rmtree(store.incoming / f"{name}.partial", ignore_errors=True)


def _written(source: IO[bytes], place: Path, entry: Entry) -> tuple[Entry, str]:
    """The file as ``entry`` has it, and its digest."""
    digest = hashlib.sha256()
    with place.open("wb") as file:
        while block := source.read(2**20):
            digest.update(block)
            file.write(block)
    os.chmod(place, entry.mode)
    os.utime(place, ns=(entry.mtime_ns, entry.mtime_ns))
    return Entry(str(place), entry.size, entry.mtime_ns, entry.mode), digest.hexdigest()
