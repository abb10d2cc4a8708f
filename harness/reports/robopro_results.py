"""Results that another tool wrote: RoboPRO's ``_episodes.jsonl``, and plain ``_metrics.jsonl``.

Both lie at ``eval_result/[bench_eval_result/]<task>/<policy>/<config>/...`` and have no manifest,
so an episode is known by (task, config, seed). Of several lines for one episode the counted one is:
success/fail before error, then the highest ``attempt`` (0 where there is none), then the greatest
path (its last folder is the time), then the later line of that file, which has one writer.

A missing ``hard_success`` is unknown. It is not derived from ``success`` either: were every fail
known and some successes not, the rate over the known ones would be too low.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from harness.errors import RollpoolError
from harness.foundations.metrics_files import files_below
from harness.foundations.records import INT_BOUND, read_json

SCENES = ("study", "office", "kitchenl", "kitchens")
_EPISODES = re.compile(r"_episodes\.jsonl")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class ForeignRow:
    """One line. ``success`` None means the episode was not completed."""

    scene: str
    task: str
    task_config: str
    seed: int
    success: bool | None
    hard_success: bool | None
    collision: bool | None
    reason: str
    video: str | None  # relative to the run directory
    order: tuple[bool, int, str, int]

    @property
    def key(self) -> tuple[str, str, int]:
        return self.task, self.task_config, self.seed


def episode_files(results: Path) -> list[Path]:
    """RoboPRO's per-episode files below ``eval_result``, sorted."""
    return files_below(results, _EPISODES) if results.is_dir() else []


def read_foreign(results: Path, files: Iterable[Path], problems: list[str]) -> Iterator[ForeignRow]:
    """The rows of these files; what cannot be read is noted as ``file:line: why``.

    Raises:
        RollpoolError: the files are of more than one policy or checkpoint, whose seeds are the
            same episodes: one table of both would be wrong.
    """
    origins: dict[tuple[str, str], Path] = {}
    for path in files:
        where = _place(results, path)
        if where is None:
            problems.append(f"{path}: not below eval_result/<task>/<policy>/<config>/")
            continue
        task, policy, config, checkpoint = where
        origins.setdefault((policy, checkpoint), path)
        _refuse_mixture(origins)
        for number, line in _lines(path, problems):
            try:
                yield _row(results, path, number, line, task, config)
            except ValueError as error:
                problems.append(f"{path}:{number}: {error}")


def counted_foreign(rows: Iterable[ForeignRow]) -> dict[tuple[str, str, int], ForeignRow]:
    """The counted row of each episode."""
    best: dict[tuple[str, str, int], ForeignRow] = {}
    for row in rows:
        if row.key not in best or row.order > best[row.key].order:
            best[row.key] = row
    return best


def scene_of(task_config: str) -> str:
    """The scene a RoboPRO configuration name contains, e.g. ``bench_demo_study_clean``."""
    for part in task_config.split("_"):
        if part in SCENES:
            return part
    raise ValueError(f"configuration '{task_config}' names no scene ({', '.join(SCENES)})")


def _place(results: Path, path: Path) -> tuple[str, str, str, str] | None:
    parts = path.relative_to(results).parts[:-1]
    if parts and parts[0] == "bench_eval_result":
        parts = parts[1:]
    if len(parts) < 3:
        return None
    # Only the public layout is known to have the checkpoint as its next folder.
    checkpoint = parts[3] if path.name == "_episodes.jsonl" and len(parts) > 4 else ""
    return parts[0], parts[1], parts[2], checkpoint


def _refuse_mixture(origins: Mapping[tuple[str, str], Path]) -> None:
    if len(origins) > 1:
        first, second = list(origins.items())[:2]
        raise RollpoolError(
            "one table of these results",
            f"{first[1]} is of {'/'.join(first[0])}, {second[1]} of {'/'.join(second[0])}",
            "keep the results of each policy and checkpoint in a run of their own",
        )


def _lines(path: Path, problems: list[str]) -> Iterator[tuple[int, str]]:
    data = path.read_bytes()
    for number, raw in enumerate(data.splitlines(keepends=True), 1):
        if not raw.endswith(b"\n") and not _is_json(raw):
            problems.append(f"{path}:{number}: torn last line")
        elif raw.strip():
            yield number, raw.decode("utf-8", errors="replace")


def _is_json(raw: bytes) -> bool:
    try:
        read_json(raw.decode())
    except ValueError:
        return False
    return True


def _row(results: Path, path: Path, number: int, line: str, task: str, config: str) -> ForeignRow:
    fields = read_json(line)
    if not isinstance(fields, dict):
        raise ValueError("not a JSON object")
    task = _name(fields.get("task") or task, "task")
    config = _name(fields.get("task_config") or config, "task_config")
    scene = _name(fields.get("scene") or scene_of(config), "scene")
    seed, attempt = fields.get("seed"), fields.get("attempt") or 0
    if type(seed) is not int or type(attempt) is not int:
        raise ValueError(f"seed {seed!r} and attempt {attempt!r} must be integers")
    if not -INT_BOUND <= seed < INT_BOUND:
        raise ValueError(f"seed {seed!r} is beyond 64 bits")
    success = _flag(fields, "success", required=True)
    return ForeignRow(
        scene=scene,
        task=task,
        task_config=config,
        seed=seed,
        success=success,
        hard_success=None if success is None else _flag(fields, "hard_success"),
        collision=None if success is None else _collision(fields),
        reason="" if success is not None else str(fields.get("error") or "no success recorded"),
        video=_video(results, path, fields),
        order=(success is not None, attempt, PurePosixPath(path).as_posix(), number),
    )


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"{what} {value!r} is not a plain name")
    return value


def _flag(fields: Mapping[str, Any], name: str, required: bool = False) -> bool | None:
    if required and name not in fields:
        raise ValueError(f"no '{name}'")
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, not true, false or null")
    return value


def _collision(fields: Mapping[str, Any]) -> bool | None:
    if "collision" in fields:
        return _flag(fields, "collision")
    count = fields.get("collision_count")
    return count > 0 if type(count) is int else None


def _video(results: Path, path: Path, fields: Mapping[str, Any]) -> str | None:
    """The line's own ``video``, relative to the run; else ``episode<N>.mp4`` beside the file."""
    if isinstance(fields.get("video"), str):
        return str(fields["video"])
    beside = path.with_name(f"episode{fields.get('episode')}.mp4")
    return beside.relative_to(results.parent).as_posix() if os.path.exists(beside) else None
