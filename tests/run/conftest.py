"""A small installation in a temporary folder, and a simulator that only describes and seals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.canonical import Sealed, episode_line
from harness.foundations.settings import Settings, resolve
from harness.paths import Root
from harness.runs.population import Cell

TASKS = {"study": ["put_cup_in_box", "press_bell"], "office": ["open_drawer"]}


class Sealer:
    """Stands for ``SimulatorProcess``: counts what it was asked."""

    def __init__(self) -> None:
        self.described = 0
        self.sealed: list[tuple[str, tuple[int, ...]]] = []
        self.wording = "Do it"
        self.checked: list[tuple[str, tuple[int, ...]]] = []
        self.solves: Callable[[int], bool] = lambda seed: True

    def describe(self) -> dict[str, Any]:
        self.described += 1
        return {
            "name": "tabletop",
            "cells": [[scene, task] for scene, tasks in TASKS.items() for task in tasks],
            "task_configs": {
                scene: [f"bench_demo_{scene}_{c}" for c in ("clean", "d6")] + ["bench_vision_blur"]
                for scene in TASKS
            },
        }

    def seal(self, cell: Cell, seeds: Sequence[int]) -> Sealed:
        self.sealed.append((cell.name, tuple(seeds)))
        lines = [episode_line(seed, f"{self.wording} {seed}.", {}) for seed in seeds]
        return Sealed(lines, step_limit=400)

    def check(self, cell: Cell, seeds: Sequence[int]) -> Sequence[bool]:
        self.checked.append((cell.name, tuple(seeds)))
        return [self.solves(seed) for seed in seeds]


@pytest.fixture
def sealer() -> Sealer:
    return Sealer()


@pytest.fixture
def root(tmp_path: Path) -> Root:
    for policy, config in {"plain": "chunk: 30\n", "trained": "checkpoint: net\n"}.items():
        folder = tmp_path / "policy" / policy
        folder.mkdir(parents=True)
        (folder / "deploy_policy.yml").write_text(config)
        (folder / "deploy_policy.py").write_text("def get_model(usr_args): ...\n")
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "net.safetensors").write_bytes(b"weights")
    return Root(tmp_path)


@pytest.fixture
def settings(root: Root) -> Callable[..., Settings]:
    """The settings of a launch of run ``demo``; further variables as keywords."""

    def launch(**environ: str) -> Settings:
        given = {"STUDY_RUN": "demo", "POLICY_NAME": "plain", "BENCH_CONFIG": "clean", **environ}
        return resolve(given, root=root, gpus=list)[0]

    return launch


@pytest.fixture
def write_bank(root: Root) -> Callable[..., Path]:
    """Write ``seeds/<bank>/<task>/<task_config>.txt`` for tasks of a queue; returns the bank."""

    def write(seeds: str, bank: str = "bank", config: str = "clean") -> Path:
        for scene, tasks in TASKS.items():
            for task in tasks:
                file = root.seeds / bank / task / f"bench_demo_{scene}_{config}.txt"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(seeds)
        return root.seeds / bank

    return write
