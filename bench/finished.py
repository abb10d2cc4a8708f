"""Runs whose rows are written by hand, for what reads many of them."""

from __future__ import annotations

from collections.abc import Callable

from harness.foundations.records import Row
from harness.runs.population import Manifest
from harness.runs.run import Run

_WORKER, _POSITION = "WORKER", 987654
_PROFILE = {
    "claim": 0.003225, "write": 0.0034, "handover": 0.006857, "reset": 0.065792,
    "simulate": 2.25934, "render": 1.839901, "encode": 0.080001, "score": 0.00007,
    "report": 0.006732, "wire": 0.015503, "wait": 0.000042, "infer": 1.208897, "other": 0.01,
}  # fmt: skip


def writer(run: Run, of: Manifest) -> Callable[[str, int, int], str]:
    """Makes rows ``(worker, position, attempt)`` by replacing text, a hundredth of the time of
    making them one by one."""
    cell = of.cell
    template = Row(
        manifest=of.hash, position=_POSITION, attempt=1, worker=_WORKER, host="node",
        run=run.paths.name, scene=cell.scene, task=cell.task, task_config=cell.task_config,
        seed=_POSITION, instruction="do nothing", outcome="success", success=True,
        hard_success=True, collision_count=0, steps=123, sim_s=6.15, wall_s=5.5, policy_s=1.25,
        policy=run.identity["policy"], checkpoint=run.identity["checkpoint"],
        simulator="nothing", versions={"simulator": "nothing 1"},
        settings_hash=run.identity["settings_hash"], code_hash=run.identity["code_hash"],
        profile=_PROFILE, state_hash="ab" * 32, video=None, started=1.7e9, finished=1.7e9 + 5.5,
    ).to_json()  # fmt: skip

    def line(worker: str, position: int, attempt: int) -> str:
        text = template.replace(_WORKER, worker).replace(str(_POSITION), str(position))
        text = text.replace('"attempt":1,', f'"attempt":{attempt},')
        if position % 2:
            text = text.replace('"outcome":"success","', '"outcome":"fail","')
            text = text.replace('"success":true,', '"success":false,')
        return text + "\n"

    return line


def write(run: Run, of: Manifest, worker: str, positions: range, attempt: int = 1) -> None:
    """One metrics file of a worker, with a row of each position."""
    cell, line = of.cell, writer(run, of)
    policy = run.settings["POLICY_NAME"]
    folder = run.paths.metrics_dir(cell.task, policy, cell.task_config, worker)
    folder.mkdir(parents=True)
    rows = [line(worker, position, attempt) for position in positions]
    (folder / "_metrics.jsonl").write_text("".join(rows))
