"""A store of the tests' own, and sources to stage."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.node_store import Store
from harness.staging import Item


class Node:
    """A node's disk, what it says, and processes that use it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said = folder, list[str]()
        self.store = self.open()
        self._locks: list[int] = []

    def open(self, cap_gb: float = 1.0, keep: tuple[str, ...] = ()) -> Store:
        path = self.folder / "local"
        path.mkdir(exist_ok=True)
        return Store(path, cap_gb=cap_gb, keep=keep, say=self.said.append)

    def source(self, name: str, **files: str) -> Path:
        folder = self.folder / "shared" / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).write_text(text)
        return folder

    def weights(self, name: str, size: int = 1000) -> Item:
        return Item("weights", name, self.source(name, model="w" * size))

    def user(self, *copies: Path) -> int:
        """A living process that uses these copies, until its descriptor is closed."""
        lock = self.folder / f"use{len(self._locks)}"
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        self._locks.append(descriptor)
        user = self.store.admit(lock)
        root = self.store.roots / user
        root.mkdir()
        names = [f"{copy.relative_to(self.store.path)}\n" for copy in copies]
        (root / "uses").write_text("".join(names))
        return descriptor

    def close(self) -> None:
        for descriptor in self._locks:
            os.close(descriptor)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    yield node
    node.close()


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A small Python environment: one package, one console script, one ``.pth`` file."""
    import venv

    folder = tmp_path / "shared" / "envs" / "small"
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "greeting.py").write_text("import sys\n\ndef main():\n    print(sys.prefix)\n")
    (folder / "extra").mkdir()
    (folder / "extra" / "further.py").write_text("")
    (site / "extra.pth").write_text(f"{folder}/extra\n")
    script = folder / "bin" / "greet"
    script.write_text(f"#!{folder}/bin/python\nfrom greeting import main\nmain()\n")
    script.chmod(0o755)
    assert Path(sys.executable).exists()
    return folder
