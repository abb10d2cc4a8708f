"""Manifests that were sealed elsewhere, taken over byte for byte: the episodes of one run for any
other checkpoint or run, without asking a simulator.

Promises: what is taken over has the bytes that its name promises, so both runs evaluate the same
episodes, whatever their simulators would seal today.
"""

from __future__ import annotations

import json
from pathlib import Path

from harness.errors import RollpoolError
from harness.foundations.settings import Settings
from harness.paths import Root, RunPaths
from harness.runs import population
from harness.runs.population import Cell, Manifest


class Source:
    """A manifest of another run."""

    def __init__(self, paths: RunPaths, manifest: Manifest) -> None:
        self._paths, self.manifest = paths, manifest

    @property
    def seeds(self) -> list[int]:
        return self.manifest.episodes.seeds()

    def copy_to(self, paths: RunPaths) -> Manifest:
        """Append it to the manifests of a run, where it is not among them yet."""
        cell, digest = self.manifest.cell, self.manifest.hash
        data = self._paths.manifest(cell.name, self.manifest.seq, digest).read_bytes()
        return population.append(paths, cell, data, self.manifest.step_limit)


class Sources:
    """What ``EVAL_MANIFESTS`` names: a run by its name or folder, or a folder like its
    ``manifests``; nothing where it is unset.

    Raises:
        RollpoolError: nothing is there, or it is a run of another simulator.
    """

    def __init__(self, root: Root, settings: Settings) -> None:
        name = settings["EVAL_MANIFESTS"]
        self._paths = None if name is None else _find(root, name)
        if self._paths is not None:
            _refuse_other_simulator(self._paths, settings)

    def of(self, cell: Cell) -> list[Source]:
        """The manifests of a cell, in order of appending."""
        if self._paths is None:
            return []
        return [Source(self._paths, m) for m in population.load(self._paths, cell)]

    def has(self, cell: Cell) -> bool:
        return self._paths is not None and population.has_manifests(self._paths, cell)


def _find(root: Root, name: str) -> RunPaths:
    folder = Path(name).expanduser().absolute()
    bare = RunPaths(folder)
    bare.manifests = folder
    places = [RunPaths(folder), bare] if "/" in name or folder.is_dir() else []
    places += [] if "/" in name else [root.run(name)]
    for paths in places:
        if any(paths.manifests.glob("*/*.jsonl")):
            return paths
    looked = " and ".join(str(paths.manifests) for paths in places)
    raise RollpoolError(
        f"EVAL_MANIFESTS={name}", f"no sealed manifests in {looked}",
        "name a prepared run, or a folder like its manifests/",
    )  # fmt: skip


def _refuse_other_simulator(paths: RunPaths, settings: Settings) -> None:
    if not paths.run_json.exists():
        return
    sealed = json.loads(paths.run_json.read_bytes())["settings"]
    for name in ("SIMULATOR", "SIM_CONFIG"):
        if sealed.get(name) != settings.sealed().get(name):
            raise RollpoolError(
                f"EVAL_MANIFESTS={settings['EVAL_MANIFESTS']}",
                f"that run has {name}={sealed.get(name)}",
                "manifests are for the simulator that sealed them: give the same one",
            )
