"""A run directory made by hand: sealed episodes and rows as a worker would write them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.canonical import Sealed, episode_line
from harness.foundations.records import Row
from harness.paths import Root, RunPaths
from harness.runs import population
from harness.runs.population import Cell, Manifest

HASHES = {"settings_hash": "5e" * 32, "code_hash": "c0" * 32}


class HandMade:
    """Builds ``runs/<name>`` under ``root``."""

    def __init__(self, root: Root, name: str) -> None:
        self.root, self.name = root, name
        self.paths: RunPaths = root.run(name)
        self.paths.root.mkdir(parents=True)
        record = {"format": 1, "id": name, "identity": {"policy": "tinyvla"}}
        record["settings"] = {"POLICY_NAME": "tinyvla"}
        self.paths.run_json.write_text(json.dumps(record))

    def seal(
        self,
        scene: str,
        task: str,
        seeds: list[int],
        first: int | None = None,
        config: str = "clean",
    ) -> Manifest:
        cell = Cell(scene, task, f"bench_demo_{scene}_{config}")
        lines = [episode_line(seed, f"do {task}", {}) for seed in seeds]
        manifest = population.seal(self.paths, cell, "pointsim", Sealed(lines))
        return population.select(self.paths, manifest, len(seeds) if first is None else first)

    def row(self, manifest: Manifest, position: int, outcome: str = "success", **more: Any) -> Row:
        episode = manifest.episodes[position]
        fields: dict[str, Any] = {
            "manifest": manifest.hash, "position": position, "attempt": 1,
            "worker": "node-1-aa", "host": "node", "run": self.name,
            "scene": episode.scene, "task": episode.task, "task_config": episode.task_config,
            "seed": episode.seed, "instruction": episode.instruction, "outcome": outcome,
            "success": {"success": True, "fail": False, "error": None}[outcome],
            "policy": "tinyvla", "checkpoint": {"name": "tiny", "digest": "sha256:0123456789ab"},
            "simulator": "pointsim", "started": 100.0, "finished": 160.0, **HASHES,
        }  # fmt: skip
        if outcome == "error":
            logs = {"worker": "logs/node-1-aa.log", "model": None, "simulator": None}
            fields["error"] = {
                "kind": "stall", "message": "no progress for 300 s", "traceback": "", "logs": logs,
            }  # fmt: skip
        else:
            fields["collision_count"] = 0
            fields["hard_success"] = outcome == "success"
        return Row(**(fields | more))

    def write(self, *rows: Row, worker: str = "", tail: str = "") -> Path:
        """Append rows, each to its worker's own file; ``tail`` ends the last one, torn."""
        file = Path()
        for row in rows:
            row = replace(row, worker=worker or row.worker)
            folder = self.paths.metrics_dir(row.task, row.policy, row.task_config, row.worker)
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / "_metrics.jsonl"
            with file.open("a") as lines:
                lines.write(row.to_json() + "\n")
        with file.open("a") as lines:
            lines.write(tail)
        return file

    def video(self, row: Row, data: bytes = b"mp4") -> Row:
        """The row with a video file that exists."""
        folder = self.paths.metrics_dir(row.task, row.policy, row.task_config, row.worker)
        path = self.paths.video(folder, row.manifest, row.position, row.seed, row.attempt)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return replace(row, video=path.relative_to(self.paths.root).as_posix())

    def foreign(self, place: str, *lines: dict[str, Any] | str) -> Path:
        """RoboPRO's file at ``eval_result/<place>``."""
        file = self.paths.results / place
        file.parent.mkdir(parents=True, exist_ok=True)
        texts = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines]
        file.write_text("".join(texts))
        return file
