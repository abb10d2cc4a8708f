"""A store of the tests' own, and sources to stage."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.nodes.node_store import Store
from harness.nodes.staging import Item


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


@pytest.fixture
def conda(tmp_path: Path) -> Path:
    """An environment as conda makes it: a Python of its own, no ``pyvenv.cfg``, the path written
    into a console script, a text and a binary that ``conda-meta`` lists."""
    folder = tmp_path / "shared" / "envs" / "with_a_rather_long_name_so_that_there_is_room"
    stdlib = Path(sysconfig.get_path("stdlib"))
    left_out = shutil.ignore_patterns(
        "site-packages", "test", "__pycache__", "config-*", "ensurepip"
    )
    shutil.copytree(stdlib, folder / "lib" / stdlib.name, ignore=left_out)
    (folder / "lib" / stdlib.name / "site-packages").mkdir()
    (folder / "bin").mkdir()
    shutil.copy(os.path.realpath(sys.executable), folder / "bin" / stdlib.name)
    (folder / "bin" / "python").symlink_to(stdlib.name)
    (folder / "etc").mkdir()
    files = {
        "bin/greet": f"#!{folder}/bin/python\nimport sys\nprint(sys.prefix)\n".encode(),
        "etc/settings.sh": f"export DATA={folder}/share\n".encode(),
        "lib/libsettings.so": f"\x7fELF\0{folder}/share:{folder}/etc\0end".encode(),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o755)
    (folder / "conda-meta").mkdir()
    paths = [
        {"_path": name, "prefix_placeholder": "/opt/placeholder_placehold_placehold",
         "file_mode": "binary" if b"\0" in data else "text"}
        for name, data in files.items()
    ]  # fmt: skip
    record = {"name": "settings", "paths_data": {"paths": [*paths, {"_path": "lib/nothing"}]}}
    (folder / "conda-meta" / "settings-1.0-0.json").write_text(json.dumps(record))
    return folder
