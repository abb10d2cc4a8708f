"""A shared filesystem in memory, and how each worker sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from harness.leases.filesystem import Filesystem
from harness.paths import RunPaths
from harness.runs.population import Manifest

RUN = RunPaths(Path("/run"))


def cell_dir(of: Manifest) -> str:
    """The name of the folder of a manifest's leases."""
    return RUN.lease_dir(of.cell.name, of.hash).name


class Disk:
    """What is really there, whoever sees it."""

    def __init__(self) -> None:
        self.files: dict[Path, bytes | None] = {Path("/run"): None}  # None: a directory
        self.hidden: set[Path] = set()
        self.calls: Counter[str] = Counter()

    def children(self, directory: Path) -> list[str]:
        return [p.name for p in self.files if p.parent == directory and p not in self.hidden]

    def remove(self, top: Path) -> None:
        self.files = {p: data for p, data in self.files.items() if not p.is_relative_to(top)}


class View(Filesystem):
    """One worker's view of the disk: each operation is a point at which anything may happen."""

    def __init__(self, disk: Disk, pause: Callable[[str], None]) -> None:
        self.disk, self.pause = disk, pause
        self.lose: str | None = None  # how the answer to the next creation is lost

    def names(self, directory: Path) -> list[str]:
        self._before("names", directory)
        return self.disk.children(directory)

    def mkdir(self, directory: Path) -> bool:
        self._before("mkdir", directory)
        return self._make(directory, None)

    def create(self, file: Path, data: bytes = b"") -> bool:
        self._before("create", file)
        return self._make(file, data)

    def read(self, file: Path) -> bytes:
        data = self.disk.files.get(file)
        if data is None:
            raise FileNotFoundError(file)
        return data

    def rewrite(self, file: Path, data: bytes) -> None:
        self.pause("rewrite")
        self.read(file)
        self.disk.files[file] = data

    def remove(self, name: Path) -> None:
        self._before("remove", name)
        self.disk.files.pop(name, None)

    def _before(self, what: str, path: Path) -> None:
        self.pause(what)
        if path.is_relative_to(RUN.leases):
            self.disk.calls[what] += 1

    def _make(self, path: Path, data: bytes | None) -> bool:
        if path.parent not in self.disk.files:
            raise FileNotFoundError(path)
        made = path not in self.disk.files
        if made:
            self.disk.files[path] = data
        lost, self.lose = self.lose, None
        if lost == "error":
            raise OSError("the answer was lost")
        return made and lost != "exists"
