"""What people decided about episodes: try again, leave out, or run anew (see LEASES.md).

A decision is one file ``decisions/<number>.json``, outside the leases, published once and never
changed; the filesystem gives each number to one writer, so decisions have an order without clocks.
They speak of *attempts*, so that a row which a frozen worker writes later falls on the right side.

Promises: every reader of the same files concludes the same; deleting the leases loses no decision.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.canonical import canonical_json
from harness.errors import RollpoolError
from harness.foundations.atomic import publish_once
from harness.foundations.records import Row
from harness.leases.filesystem import Filesystem

RETRY, SKIP, RESET = "retry", "skip", "reset"

FORMAT = 1

_NAME = re.compile(r"(\d{6,})\.json")

#: ``(manifest, position)`` -> the highest attempt that anybody has begun.
Episodes = Mapping[tuple[str, int], int]


@dataclass(frozen=True)
class Verdict:
    """What all decisions about one episode come to."""

    floor: int = 0  # attempts up to this one are an earlier generation: kept, and not counted
    forgiven: int = 0  # errors of attempts up to this one spend no budget
    skipped: str = ""  # why it is left out as long as it has no outcome

    def then(self, do: str, attempt: int, why: str) -> Verdict:
        """After one more decision."""
        if do == SKIP:
            return replace(self, skipped=why)
        if do == RETRY:
            return replace(self, forgiven=max(self.forgiven, attempt), skipped="")
        return replace(self, floor=max(self.floor, attempt), skipped="")


_NONE = Verdict()


class Decisions:
    """The decisions of a run as of the last ``refresh``."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._fs = folder, Filesystem()
        self._read: dict[str, Mapping[str, Any]] = {}
        self._verdicts: dict[tuple[str, int], Verdict] = {}

    def refresh(self) -> bool:
        """Take in what is new: one listing. Whether anything was.

        Raises ``RollpoolError`` for a file that cannot be understood: to go on without it would
        count what somebody has decided not to count.
        """
        listed = self._fs.names(self._folder)
        new = sorted(name for name in listed if _NAME.fullmatch(name) and name not in self._read)
        for name in new:
            self._read[name] = _parse(self._folder / name, self._fs.read(self._folder / name))
        if new:
            self._verdicts = {}
            for name in sorted(self._read, key=lambda name: int(name.partition(".")[0])):
                self._apply(self._read[name])
        return bool(new)

    def of(self, manifest: str, position: int) -> Verdict:
        """What holds for an episode."""
        return self._verdicts.get((manifest, position), _NONE)

    def episodes(self) -> Collection[tuple[str, int]]:
        """Those that anything was decided about."""
        return self._verdicts.keys()

    def floors(self) -> dict[tuple[str, int], int]:
        """Each episode that was reset -> the last attempt of its earlier generation."""
        return {episode: v.floor for episode, v in self._verdicts.items() if v.floor}

    def current(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows that are not of an earlier generation."""
        return (row for row in rows if row.attempt > self.of(row.manifest, row.position).floor)

    def _apply(self, decision: Mapping[str, Any]) -> None:
        why = f"left out by {decision['by']}" + (f": {decision['why']}" if decision["why"] else "")
        for manifest, episodes in decision["episodes"].items():
            for position, attempt in episodes:
                key = (manifest, position)
                before = self._verdicts.get(key, _NONE)
                self._verdicts[key] = before.then(decision["do"], attempt, why)


def decide(folder: Path, do: str, episodes: Episodes, by: str, why: str = "") -> Path:
    """Publish a decision; returns its file.

    Args:
        do: ``retry``, ``skip`` or ``reset``.
        by, why: for people.
    """
    grouped: dict[str, list[list[int]]] = {}
    for (manifest, position), attempt in sorted(episodes.items()):
        grouped.setdefault(manifest, []).append([position, attempt])
    record = {"format": FORMAT, "do": do, "by": by, "why": why, "episodes": grouped}
    data = (canonical_json(record) + "\n").encode()
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise RollpoolError(
            f"make {folder}", error.strerror or str(error), "make the run directory writable"
        ) from error
    while True:
        matches = (_NAME.fullmatch(name) for name in Filesystem().names(folder))
        number = 1 + max((int(match[1]) for match in matches if match), default=0)
        file = folder / f"{number:06d}.json"
        if publish_once(file, data):
            return file


def _parse(file: Path, data: bytes) -> Mapping[str, Any]:
    try:
        decision: dict[str, Any] = json.loads(data)
        newer = decision["format"] > FORMAT
        known = decision["do"] in (RETRY, SKIP, RESET)
        for episodes in decision["episodes"].values():
            known &= all(isinstance(number, int) for pair in episodes for number in pair)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RollpoolError(
            f"decision {file}", f"not readable ({error})", "remove it and decide again"
        ) from error
    if newer or not known:
        raise RollpoolError(f"decision {file}", "made by a newer toolkit", "update the toolkit")
    return decision
