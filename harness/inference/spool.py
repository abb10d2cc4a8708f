"""Observations on this machine's disk: an episode has more of them than memory may have room for.

Promises: one that is read is the one that was added, bit by bit; nothing of the file is left when
its process ends, however it does. The file is in ``TMPDIR`` and has no name.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import overload

from harness.policies.contract import Observation
from harness.wire import binary
from harness.wire.frames import Memory


class Spool:
    """A file that only grows."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()
        self._memory = Memory()

    def add(self, observation: Observation) -> tuple[int, int]:
        """Where it is. Raises ``OSError``, of a full disk say."""
        start = self._file.seek(0, 2)
        self._file.writelines(binary.encode(dict(observation)))
        self._file.flush()
        return start, self._file.tell() - start

    def read(self, start: int, size: int) -> Observation:
        """What ``add`` put there."""
        payload = self._memory.payload(size)
        self._file.seek(start)
        if self._file.readinto(payload) != size:
            raise OSError("the file of what was asked was cut short")
        return binary.decode(payload)


class Observations(Sequence[Observation]):
    """Those of one session, each read when it is asked for."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._places: list[tuple[int, int]] = []

    def append(self, observation: Observation) -> None:
        self._places.append(self._spool.add(observation))

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Observation: ...
    @overload
    def __getitem__(self, index: slice) -> list[Observation]: ...
    def __getitem__(self, index: int | slice) -> Observation | list[Observation]:
        if isinstance(index, slice):
            return [self._spool.read(*place) for place in self._places[index]]
        return self._spool.read(*self._places[index])
