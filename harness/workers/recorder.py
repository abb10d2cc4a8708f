"""What one worker puts on disk of its episodes: rows, and where videos and logs belong.

Promises: a row is on disk, fsynced, when ``append`` returns; this worker alone writes its files.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from harness.episodes.video import remove_abandoned
from harness.foundations.atomic import AppendLog
from harness.foundations.records import Row
from harness.leases.claims import Batch
from harness.leases.takeover import Lost
from harness.runs.population import Cell
from harness.runs.run import Run
from harness.workers import chosen_model

#: What an episode may come to by what another one did to the model that both are played on.
_MAY_BE_ANOTHERS = ("crash", "stall", "timeout", "protocol")


class Recorder:
    """``host``: where the worker runs, as its rows say."""

    def __init__(self, run: Run, worker: str, host: str) -> None:
        self._run, self._worker, self._host = run, worker, host
        self._metrics: dict[Cell, AppendLog] = {}
        self._shares_model = chosen_model.shared(run.settings)

    @property
    def empty(self) -> bool:
        """Whether nothing was recorded yet."""
        return not self._metrics

    def video(self, batch: Batch, position: int) -> Path | None:
        """Where the video of an episode goes; None where none is wanted."""
        if self._run.settings["EVAL_VIDEO"] == "none":
            return None
        manifest, folder = batch.manifest, self._folder(batch.cell)
        seed = manifest.episodes[position].seed
        return self._run.paths.video(folder, manifest.hash, position, seed, batch.attempt)

    def played(
        self, batch: Batch, position: int, result: dict[str, Any], began: float, seat: int,
        alone: bool,
    ) -> Row:  # fmt: skip
        """The row of an episode that was played in ``seat``.

        Args:
            result: as ``harness.episodes.episode.run_episode`` returns it.
            began: seconds since 1970.
            alone: none of this worker's other seats played meanwhile.
        """
        error = result["error"]
        if error is not None:
            error = {**error, "logs": self._run.paths.log_names(self._worker, seat)}
            if error["kind"] in _MAY_BE_ANOTHERS and not alone and self._shares_model:
                error["shared"] = True
        video = result["video"]
        if video is not None:
            video = self._run.paths.relative(video)
        fields = {
            **result,
            "collision_names": tuple(result["collision_names"]),
            "error": error,
            "video": video,
            "host": self._host,
            "attempt": batch.attempt,
            "started": began,
        }
        return self._complete(batch.manifest.episodes[position], **fields)

    def lost(self, lost: Lost) -> Row:
        """The row of an episode over which its worker died; its half video goes."""
        owner = str(lost.owner["worker"])
        remove_abandoned(self._folder(lost.manifest.cell, owner), owner_dead=True)
        return self._complete(
            lost.manifest.episodes[lost.position],
            outcome="error",
            success=None,
            host=str(lost.owner["host"]),
            attempt=lost.attempt,
            steps=lost.owner["step"],
            error={
                "kind": "lost",
                "message": f"worker {owner} died at step {lost.owner['step']}",
                "traceback": "",
                "logs": self._run.paths.log_names(owner, lost.owner["seat"]),
            },
            started=time.time(),
        )

    def append(self, cell: Cell, row: Row) -> None:
        if cell not in self._metrics:
            self._metrics[cell] = AppendLog(self._folder(cell))
        self._metrics[cell].append(row.to_json())

    def _complete(self, episode: Any, **fields: Any) -> Row:
        identity = self._run.identity
        return Row(
            manifest=episode.manifest,
            position=episode.position,
            worker=self._worker,
            run=self._run.id,
            scene=episode.scene,
            task=episode.task,
            task_config=episode.task_config,
            seed=episode.seed,
            instruction=episode.instruction,
            policy=identity["policy"],
            checkpoint=identity["checkpoint"],
            simulator=identity["simulator"],
            settings_hash=identity["settings_hash"],
            code_hash=identity["code_hash"],
            finished=time.time(),
            **fields,
        )

    def _folder(self, cell: Cell, worker: str = "") -> Path:
        policy = self._run.identity["policy"]
        worker = worker or self._worker
        return self._run.paths.metrics_dir(cell.task, policy, cell.task_config, worker)
