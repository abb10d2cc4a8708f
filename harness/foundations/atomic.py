"""Files that appear whole or not at all, and logs that only grow.

Promises, on a local disk and on NFS:

* ``write_atomic``: a reader sees the old file or the new one, never a part of either.
* ``publish_once``: of any number of writers, on any hosts, exactly one wins; nobody overwrites it.
* ``publish_name``: an empty file is whole as soon as it has its name.
* ``AppendLog``: a line that ``append`` accepted is on disk, alone on its line, in a file that no
  other process writes. A line it refused may be on disk in part or in full, never glued to another.

Not promised: that a name just created is at once visible to ``stat`` on another NFS client.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.errors import RollpoolError
from harness.paths import metrics_name

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def write_atomic(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Replace ``path`` by a file holding ``data``, which may come in pieces. Raises
    ``RollpoolError`` when it cannot."""
    with refusing(path), _temporary(path, data, 0o644) as temporary:
        os.replace(temporary, path)
        _sync_directory(path.parent)


def publish_once(path: Path, data: bytes, mode: int = 0o644) -> bool:
    """Create ``path`` with ``data``; False, and nothing changed, where it exists already."""
    with refusing(path), _temporary(path, data, mode) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            # NFS repeats a request whose answer was lost: then the name is ours after all.
            return os.stat(temporary).st_nlink == 2
        _sync_directory(path.parent)
        return True


def publish_name(path: Path) -> None:
    """Create the empty file ``path``, where it does not exist: its name is all it says."""
    with refusing(path), contextlib.suppress(FileExistsError):
        os.close(os.open(path, _CREATE, 0o644))
        _sync_directory(path.parent)


class AppendLog:
    """Lines in the ``metrics_name(0)`` of a directory; after a failed write in the next one.

    The file is created at the first line. One writer a log, so a name that exists is left alone.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0
        self._fd: int | None = None

    def append(self, line: str) -> None:
        """Put one line on disk. Raises ``RollpoolError`` when a second, fresh file fails too."""
        if "\n" in line:
            raise ValueError("a line holds no newline")
        data = line.encode() + b"\n"
        try:
            self._write(data)
        except OSError:
            with refusing(self._file()):
                self._write(data)

    def close(self) -> None:
        """Close the file; a later line opens a new one."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            self._number += 1
            with contextlib.suppress(OSError):  # what append accepted was fsynced by it
                os.close(fd)

    def __enter__(self) -> AppendLog:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _file(self) -> Path:
        return self._directory / metrics_name(self._number)

    def _write(self, data: bytes) -> None:
        try:
            if self._fd is None:
                self._fd = self._create()
            written = os.write(self._fd, data)
            if written != len(data):
                raise OSError(f"{written} of {len(data)} bytes written")
            os.fsync(self._fd)
        except OSError:
            self.close()  # what follows a torn line would be glued to it
            raise

    def _create(self) -> int:
        self._directory.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                fd = os.open(self._file(), _CREATE | os.O_APPEND, 0o644)
            except FileExistsError:
                self._number += 1
                continue
            _sync_directory(self._directory)
            return fd


@contextlib.contextmanager
def _temporary(path: Path, data: bytes | Iterable[bytes], mode: int) -> Iterator[Path]:
    """A complete, fsynced file beside ``path``; removed at the end if it is still there."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    fd = os.open(temporary, _CREATE, mode)
    try:
        try:
            for piece in [data] if isinstance(data, bytes) else data:
                view = memoryview(piece)
                while view:
                    view = view[os.write(fd, view) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def refusing(path: Path) -> Iterator[None]:
    """What the disk refuses in the block, where ``path`` or something in it is written, is a
    ``RollpoolError``."""
    try:
        yield
    except OSError as error:
        raise RollpoolError(
            f"write {path}", error.strerror or str(error), "free the disk or fix its rights, rerun"
        ) from error
