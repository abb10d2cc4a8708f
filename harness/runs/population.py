"""Which episodes a run consists of: sealed manifests, and how many of each are selected.

Promises: a manifest is named by the hash of its bytes and never changes; which episodes are
selected depends on banks and ``EVAL_TEST_NUM`` alone, never on workers or their order; selections
only grow; an episode that two manifests share is selected once. Sealing again what is sealed, or
going on after an interruption, changes nothing.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from harness.canonical import Sealed, canonical_json
from harness.errors import RollpoolError
from harness.foundations.atomic import publish_name, publish_once, refusing
from harness.paths import RunPaths
from harness.simulators.contract import Episode

FORMAT = 1

_MANIFEST = re.compile(r"(\d{3,})\.([0-9a-f]{64})\.jsonl")
_SELECTION = re.compile(r"(\d{3,})\.([0-9a-f]{64})\.first(\d+)")
_LIMIT = re.compile(r"(\d{3,})\.([0-9a-f]{64})\.limit(\d+)")


@dataclass(frozen=True)
class Cell:
    """What a queue line asks for: a task in a scene, in one configuration."""

    scene: str
    task: str
    task_config: str

    @property
    def name(self) -> str:
        """As ``RunPaths.cell``: the name of its folders."""
        return RunPaths.cell(self.scene, self.task, self.task_config)


class Episodes(Sequence[Episode]):
    """Those of a manifest, in order, each read when it is asked for: of a large finished run hardly
    any ever is."""

    def __init__(self, cell: Cell, digest: str, data: bytes) -> None:
        self._cell, self._digest, self._data = cell, digest, data
        self._count = data.count(b"\n") - 1  # but for the header

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Episode: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Episode, ...]: ...
    def __getitem__(self, index: int | slice) -> Episode | tuple[Episode, ...]:
        positions = range(self._count)[index]
        if isinstance(positions, int):
            return self._episode(positions)
        return tuple(map(self._episode, positions))

    def seeds(self) -> list[int]:
        # No line holds a newline but the one it ends with, so that one array is read at once.
        _, *lines = json.loads(b"[%b]" % self._data.rstrip(b"\n").replace(b"\n", b","))
        return [line["seed"] for line in lines]

    def _episode(self, position: int) -> Episode:
        return read_line(self._cell, self._lines[position + 1], self._digest, position)

    @functools.cached_property
    def _lines(self) -> list[bytes]:
        return self._data.split(b"\n")


@dataclass(frozen=True)
class Manifest:
    """A sealed bank of one cell. ``selected``: its first N episodes are the run's, but for those
    in ``repeated``, which an earlier manifest of the cell selects already. ``step_limit``: the
    task's when it was sealed, 0 where nobody said; the order of work may go by it."""

    cell: Cell
    hash: str
    seq: int
    simulator: str
    episodes: Episodes = field(compare=False)  # what ``hash`` says
    selected: int = 0
    repeated: frozenset[int] = field(default=frozenset())
    step_limit: int = field(default=0, compare=False)


def read_line(cell: Cell, line: str | bytes, manifest: str = "", position: int = 0) -> Episode:
    """The episode that a line of a manifest of ``cell`` stands for."""
    says: dict[str, Any] = json.loads(line)
    what = (says["seed"], says["instruction"], says["reset"])
    where = (cell.scene, cell.task, cell.task_config)
    return Episode(*where, *what, manifest, position, says.get("fingerprint", {}))


def selected_positions(manifest: Manifest) -> Sequence[int]:
    """The positions of the manifest that the run evaluates, in order."""
    if not manifest.repeated:
        return range(manifest.selected)
    return [p for p in range(manifest.selected) if p not in manifest.repeated]


def seal(paths: RunPaths, cell: Cell, simulator: str, sealed: Sealed) -> Manifest:
    """Seal what a simulator said of a bank; the same content is sealed once. The step limit is
    noted beside it."""
    header = {"format": FORMAT, "simulator": simulator}
    header |= {"scene": cell.scene, "task": cell.task, "task_config": cell.task_config}
    text = "\n".join([canonical_json(header), *sealed.lines, ""])
    return append(paths, cell, text.encode(), sealed.step_limit)


def append(paths: RunPaths, cell: Cell, data: bytes, step_limit: int = 0) -> Manifest:
    """Append a manifest with these bytes to those of the cell; the same ones are there once. The
    task's step limit is noted first: where the manifest is, nobody asks for it any more."""
    digest = hashlib.sha256(data).hexdigest()
    seqs = {existing: seq for seq, existing in _manifest_names(paths, cell)}
    seq = seqs.get(digest, 1 + max(seqs.values(), default=-1))
    file = paths.manifest(cell.name, seq, digest)
    with refusing(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
    if step_limit and not _largest(_LIMIT, _listing(paths, cell), digest):
        publish_name(paths.step_limit(cell.name, seq, digest, step_limit))
    if digest not in seqs:
        publish_once(file, data)
    return _read(paths, cell, seq, digest)


def select(paths: RunPaths, manifest: Manifest, first: int) -> Manifest:
    """Select the first ``first`` episodes; an earlier, larger selection stands."""
    if first > len(manifest.episodes):
        raise RollpoolError(
            f"EVAL_TEST_NUM={first}",
            f"the bank of {manifest.cell.name} has {len(manifest.episodes)} seeds",
            "lower it, or make a larger bank with precollect_eval_seeds.py",
        )
    if first > manifest.selected:
        publish_name(paths.selection(manifest.cell.name, manifest.seq, manifest.hash, first))
    return replace(manifest, selected=max(first, manifest.selected))


def load(paths: RunPaths, cell: Cell, known: Collection[Manifest] = ()) -> list[Manifest]:
    """The cell's manifests in order of appending; empty where none is sealed yet.

    Args:
        known: some of them that were read before, and need not be read again.

    Raises ``RollpoolError`` for one whose bytes are not those its name promises.
    """
    before = {manifest.hash: manifest for manifest in known}
    manifests = [
        _with_selection(paths, before[digest])
        if digest in before
        else _read(paths, cell, seq, digest)
        for seq, digest in _manifest_names(paths, cell)
    ]
    if len(manifests) < 2:
        return manifests
    seen: set[str] = set()
    merged = []
    for manifest in manifests:
        keys = [_content(episode) for episode in manifest.episodes[: manifest.selected]]
        repeated = frozenset(p for p, key in enumerate(keys) if key in seen)
        seen.update(keys)
        merged.append(replace(manifest, repeated=repeated))
    return merged


def is_sealed(paths: RunPaths, cell: Cell) -> bool:
    """Whether any episode of the cell is sealed and selected. A manifest alone is half of it: who
    sealed it may have died before its selection was there."""
    return any(_SELECTION.fullmatch(name) for name in _listing(paths, cell))


def has_manifests(paths: RunPaths, cell: Cell) -> bool:
    """Whether anything of the cell is sealed, selected or not."""
    return bool(_manifest_names(paths, cell))


def _content(episode: Episode) -> str:
    what = (dict(episode.reset), dict(episode.fingerprint))
    return canonical_json([episode.seed, episode.instruction, *what])


def _listing(paths: RunPaths, cell: Cell) -> list[str]:
    try:
        return sorted(entry.name for entry in paths.manifest_dir(cell.name).iterdir())
    except FileNotFoundError:
        return []


def _manifest_names(paths: RunPaths, cell: Cell) -> list[tuple[int, str]]:
    """``(seq, hash)``, sorted. Two preparers at once may give two contents one seq, or one content
    two: the order is still the same for every reader, and a hash counts once."""
    found: dict[str, int] = {}
    for name in _listing(paths, cell):
        if match := _MANIFEST.fullmatch(name):
            found.setdefault(match[2], int(match[1]))
    return sorted((seq, digest) for digest, seq in found.items())


def _read(paths: RunPaths, cell: Cell, seq: int, digest: str) -> Manifest:
    file = paths.manifest(cell.name, seq, digest)
    data = file.read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        raise RollpoolError(
            f"manifest {file}", "its content was changed after it was sealed",
            "put the sealed file back, or begin another STUDY_RUN",
        )  # fmt: skip
    header = json.loads(data.partition(b"\n")[0])
    if header["format"] > FORMAT:
        raise RollpoolError(
            f"manifest {file}", f"format {header['format']}, this toolkit reads {FORMAT}",
            "update the toolkit",
        )  # fmt: skip
    sealed = Cell(header["scene"], header["task"], header["task_config"])
    if sealed != cell:
        raise RollpoolError(
            f"manifest {file}", f"it was sealed for {sealed.name}", "move it back to its folder"
        )
    episodes = Episodes(cell, digest, data)
    return _with_selection(paths, Manifest(cell, digest, seq, header["simulator"], episodes))


def _with_selection(paths: RunPaths, manifest: Manifest) -> Manifest:
    names = _listing(paths, manifest.cell)
    selected = _largest(_SELECTION, names, manifest.hash)
    if selected > len(manifest.episodes):
        raise RollpoolError(
            f"manifest {paths.manifest(manifest.cell.name, manifest.seq, manifest.hash)}",
            f"{selected} of its {len(manifest.episodes)} episodes are selected",
            "remove the .first file that does not belong to it",
        )
    return replace(manifest, selected=selected, step_limit=_largest(_LIMIT, names, manifest.hash))


def _largest(pattern: re.Pattern[str], names: Sequence[str], digest: str) -> int:
    """The largest number that a name says of the manifest with this hash, else 0."""
    found = (pattern.fullmatch(name) for name in names)
    return max((int(m[3]) for m in found if m and m[2] == digest), default=0)
