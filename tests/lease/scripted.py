"""Manifests and rows that tests make up."""

from __future__ import annotations

from harness.foundations.records import Row
from harness.runs.population import Cell, Manifest
from harness.simulators.contract import Episode


def manifest(digit: str, count: int) -> Manifest:
    cell, digest = Cell("study", f"task_{digit}", "clean"), digit * 64
    episodes = tuple(
        Episode(cell.scene, cell.task, cell.task_config, 100 + p, "do it", {}, digest, p)
        for p in range(count)
    )
    return Manifest(cell, digest, 0, "fake", episodes, count)


def row(of: Manifest, position: int, attempt: int, worker: str, outcome: str, kind: str) -> Row:
    error = {"kind": kind, "message": "as scripted"} if outcome == "error" else None
    success = {"success": True, "fail": False, "error": None}[outcome]
    return Row(
        manifest=of.hash, position=position, attempt=attempt, worker=worker,
        host=worker.split("-")[0], run="run", scene=of.cell.scene, task=of.cell.task,
        task_config=of.cell.task_config, seed=100 + position, instruction="do it",
        outcome=outcome, success=success, policy="fake", checkpoint={}, simulator="fake",
        settings_hash="", code_hash="", error=error, started=0.0, finished=0.0,
    )  # fmt: skip
