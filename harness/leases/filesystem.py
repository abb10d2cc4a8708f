"""The few operations on a shared filesystem that coordination between workers stands on.

Promises: ``mkdir`` and ``create`` have one winner each; ``names`` opens the directory by path each
time, because on NFS a held descriptor stays stale for seconds and ``stat`` of a name that was
missing for half a minute; workers rename and remove nothing (``remove`` is for compaction alone).
Tests put a filesystem here that delays, hides, loses answers and crashes its caller.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


class Filesystem:
    """The real one. Every method may raise ``OSError``."""

    def names(self, directory: Path) -> list[str]:
        """What is in ``directory``, unsorted; nothing where it does not exist.

        NFS remembers for half a minute that it was missing; a listing of its parent makes it look.
        """
        with contextlib.suppress(FileNotFoundError):
            return os.listdir(directory)
        with contextlib.suppress(FileNotFoundError):
            if directory.name in os.listdir(directory.parent):
                return os.listdir(directory)
        return []

    def mkdir(self, directory: Path) -> bool:
        """Make ``directory`` in its existing parent; False if somebody else has."""
        try:
            os.mkdir(directory)
        except FileExistsError:
            return False
        return True

    def create(self, file: Path, data: bytes = b"") -> bool:
        """Create ``file`` with its data on disk, or not at all; False, and unchanged, if it
        exists."""
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        try:
            if data:
                _write(descriptor, data)
        except OSError:
            with contextlib.suppress(OSError):  # a name without its data would say nothing
                os.unlink(file)
            raise
        finally:
            os.close(descriptor)
        return True

    def read(self, file: Path) -> bytes:
        """The file as it is on the server: it is opened anew each time."""
        return file.read_bytes()

    def rewrite(self, file: Path, data: bytes) -> None:
        """Overwrite the start of ``file`` in place and wait until it is on disk.

        Opened by path and never created: where somebody unlinked the file this raises, while a
        held descriptor would go on writing to a file that nobody sees.
        """
        descriptor = os.open(file, os.O_WRONLY)
        try:
            _write(descriptor, data)
        finally:
            os.close(descriptor)

    def remove(self, name: Path) -> None:
        """Remove an empty directory or a file; one that is gone already is fine."""
        try:
            os.rmdir(name)
        except NotADirectoryError:
            os.unlink(name)
        except FileNotFoundError:
            pass


def _write(descriptor: int, data: bytes) -> None:
    if os.pwrite(descriptor, data, 0) != len(data):
        raise OSError(f"short write of {len(data)} bytes: the disk is full")
    os.fsync(descriptor)
