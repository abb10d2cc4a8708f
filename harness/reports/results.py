"""What a run has recorded, held against what it sealed.

Promises: one ``Counted`` or one ``Hole`` for each selected episode of the run's manifests, by the
counting rule of ``records``; a row of anything else is noted, never counted. Where a cell has no
manifest (results of another tool, rows copied by hand) all its episodes count, and a note says that
missing ones cannot be known. What could not be read is listed as ``file:line: why``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from harness.foundations.metrics_files import metrics_files
from harness.foundations.records import read_json
from harness.leases.budget import Budget
from harness.leases.decisions import Decisions
from harness.paths import RunPaths
from harness.reports.episode_table import CountedEpisodes, EpisodeTable
from harness.reports.holes import failed_hole, holes, place_of
from harness.reports.report import Counted, Hole
from harness.reports.robopro_results import counted_foreign, episode_files, read_foreign
from harness.reports.row_table import RowTable
from harness.runs import population
from harness.runs.population import Cell, Manifest, selected_positions
from harness.runs.run_record import read_record


@dataclass
class ConfigResults:
    """The episodes of one configuration (``clean``, ``d6``, ...)."""

    counted: CountedEpisodes
    holes: list[Hole] = field(default_factory=list)
    unsealed: list[tuple[str, str]] = field(default_factory=list)
    #: Scene -> task -> the seconds of its rows by ``stopwatch.PARTS``.
    profiles: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)


@dataclass
class RunResults:
    """All of a run, until its reader reads again."""

    episodes: EpisodeTable
    configs: dict[str, ConfigResults] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)  # unreadable lines, by file:line
    notes: list[str] = field(default_factory=list)
    identity: dict[str, str] = field(default_factory=dict)  # policy, checkpoint, simulator
    incomplete: bool = False  # an episode is missing that no manifest names

    def of(self, scene: str, task_config: str) -> ConfigResults:
        name = config_name(scene, task_config)
        if name not in self.configs:
            self.configs[name] = ConfigResults(CountedEpisodes(self.episodes))
        return self.configs[name]


class RunReader:
    """Reads a run directory, again and again where it is watched: what cannot have changed since
    is not read twice (a manifest never changes, a metrics file only grows).

    Args:
        retries, lost_retries: the budgets after which an episode counts as set aside.
    """

    def __init__(self, paths: RunPaths, retries: int = 2, lost_retries: int = 4) -> None:
        self.paths = paths
        self.episodes = EpisodeTable(RowTable())
        self._limits = (retries, lost_retries)
        self._decisions = Decisions(paths.decisions)
        self._manifests: dict[Cell, tuple[list[str], list[Manifest]]] = {}

    def gather(self) -> RunResults:
        """Everything the run says about its episodes now. Raises ``RollpoolError`` where a newer
        toolkit made the run."""
        read_record(self.paths)
        results, rows = RunResults(self.episodes), self.episodes.rows
        native, foreign = _files(self.paths.results)
        self._decisions.refresh()
        rows.refresh(native, self._decisions)
        results.problems.extend(rows.problems)
        manifests = [m for cell in sealed_cells(self.paths) for m in self._load(cell)]
        self.episodes.refresh(manifests)
        own = self._add_own(results, manifests)
        _add_foreign(results, self.paths, foreign, own)
        for place, tally in self.episodes.tallies().items():
            results.of(place.scene, place.task_config).counted.tallies[place] = tally
        for place, seconds in self.episodes.profiles():
            of_config = results.of(place.scene, place.task_config)
            of_config.profiles.setdefault(place.scene, {})[place.task] = seconds
        _add_queued(results, self.paths.queue)
        self._note(results)
        return results

    def _add_own(self, results: RunResults, manifests: Sequence[Manifest]) -> set[tuple[str, str]]:
        """Our own rows; returns the ``(task, task_config)`` of all cells that have any."""
        sealed = {(m.cell.task, m.cell.task_config) for m in manifests}
        errors, missing = self.episodes.errors(), self.episodes.missing()
        budget = Budget(*self._limits, self._decisions)
        for m in manifests:
            failed, selected = errors.get(m.hash, {}), selected_positions(m)
            own = {p: failed.pop(p) for p in list(failed) if p in selected}
            into = results.of(m.cell.scene, m.cell.task_config)
            into.holes.extend(holes(m, own, missing.get(m.hash, ()), budget))
        strays = self.episodes.strays()
        loose = {(place.task, place.task_config) for place in self.episodes.loose()}
        for _, of_manifest in sorted(errors.items()):
            for _, attempts in sorted(of_manifest.items()):
                row = attempts[0]
                if (row.task, row.task_config) in sealed:
                    strays += row.rows
                else:
                    loose.add((row.task, row.task_config))
                    into = results.of(row.scene, row.task_config)
                    into.holes.append(failed_hole(attempts, budget))
        if repeats := self.episodes.repeats():
            results.notes.append(f"results of episodes that have another one, left out: {repeats}")
        if strays:
            results.notes.append(f"rows of episodes this run has not selected, left out: {strays}")
        _note_unsealed(results, loose)
        return sealed | loose

    def _load(self, cell: Cell) -> list[Manifest]:
        folder = self.paths.manifest_dir(cell.name)
        names = sorted(entry.name for entry in folder.iterdir())
        if cell not in self._manifests or self._manifests[cell][0] != names:
            self._manifests[cell] = (names, population.load(self.paths, cell))
        return self._manifests[cell][1]

    def _note(self, results: RunResults) -> None:
        if older := self.episodes.older():
            results.notes.append(f"rows of an earlier generation (reset), left out: {older}")
        identities = self.episodes.identities()
        shown = {
            "policy": identities["policy"],
            "checkpoint": {_checkpoint(json.loads(text)) for text in identities["checkpoint"]},
            "simulator": identities["simulator"],
        }
        hidden = {"settings": identities["settings_hash"], "code": identities["code_hash"]}
        for what, values in (shown | hidden).items():
            if len(values) > 1:
                some = ", ".join(sorted(value[:40] for value in values))
                results.notes.append(f"rows of {len(values)} different {what} identities: {some}")
        results.identity = {w: ", ".join(sorted(values)) for w, values in shown.items() if values}


def sealed_cells(paths: RunPaths) -> list[Cell]:
    """The cells with a folder under ``manifests/``, by name."""
    if not paths.manifests.is_dir():
        return []
    names = sorted(entry.name for entry in paths.manifests.iterdir() if entry.is_dir())
    return [Cell(*map(unquote, name.split("."))) for name in names if name.count(".") == 2]


def config_name(scene: str, task_config: str) -> str:
    """``d6`` for ``bench_demo_study_d6``: the task configuration without its scene."""
    prefix = f"bench_demo_{scene}_"
    if task_config.startswith(prefix):
        return task_config[len(prefix) :]
    return "_".join(part for part in task_config.split("_") if part != scene) or task_config


def queued(queue: Path) -> list[tuple[str, str]]:
    """The ``scene task`` lines of a queue; whether they are right is ``prepare``'s to say."""
    if not queue.is_file():
        return []
    lines = (line.partition("#")[0].split() for line in queue.read_text().splitlines())
    return [(words[0], words[1]) for words in lines if len(words) == 2]


def _files(results: Path) -> tuple[list[Path], list[Path]]:
    """Our metrics files, and those of other tools."""
    metrics = metrics_files(results)
    native = [file for file in metrics if _is_native(file)]
    return native, sorted(set(metrics) - set(native)) + episode_files(results)


def _is_native(file: Path) -> bool:
    """Whether the first line that can be read is a row of ours (or none can be read)."""
    with file.open("rb") as lines:
        for line in lines:
            try:
                record = read_json(line.decode())
            except ValueError:
                continue
            return not isinstance(record, dict) or "manifest" in record or "seed" not in record
    return True


def _add_foreign(
    results: RunResults,
    paths: RunPaths,
    files: Sequence[Path],
    own: Collection[tuple[str, str]],
) -> None:
    read_before = len(results.problems)
    rows = list(read_foreign(paths.results, files, results.problems))
    if len(results.problems) > read_before:
        results.incomplete = True
        results.notes.append(
            "PARTIAL: lines of other tools could not be read: episodes are missing"
        )
    twice = sum((row.task, row.task_config) in own for row in rows)
    if twice:
        results.notes.append(
            f"lines of other tools, of cells that have rows of ours, left out: {twice}"
        )
    chosen = counted_foreign(row for row in rows if (row.task, row.task_config) not in own)
    counted = []
    for _, row in sorted(chosen.items()):
        if row.success is None:
            hole = Hole(**place_of(row), kind="error", reason=row.reason)
            results.of(row.scene, row.task_config).holes.append(hole)
        else:
            counted.append(
                Counted(
                    **place_of(row),
                    success=row.success,
                    hard_success=row.hard_success,
                    collision=row.collision,
                    video=row.video,
                )
            )
    results.episodes.add(counted)
    _note_unsealed(results, {(row.task, row.task_config) for row in chosen.values()})


def _note_unsealed(results: RunResults, cells: Collection[tuple[str, str]]) -> None:
    if cells:
        results.notes.append(
            f"cells without a sealed manifest, whose missing episodes are unknown: {len(cells)}"
        )


def _add_queued(results: RunResults, queue: Path) -> None:
    """Cells of the queue about which the run holds nothing at all."""
    for of_config in results.configs.values():
        known = {(place.scene, place.task) for place in of_config.counted.tallies}
        known |= {(e.scene, e.task) for e in of_config.holes}
        of_config.unsealed = [cell for cell in queued(queue) if cell not in known]


def _checkpoint(checkpoint: Mapping[str, str]) -> str:
    name, digest = checkpoint.get("name", "none"), checkpoint.get("digest", "")
    return f"{name} ({digest[:15]})" if digest else name
