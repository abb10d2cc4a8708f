"""A report's episodes in the layout of RoboTwin's and RoboPRO's own evaluation, for their tools.

``eval_result/[bench_eval_result/]<task>/<policy>/<config>/<ckpt>/<time>/`` holds
``_episodes.jsonl`` and ``_metrics.jsonl`` (a line an episode) and ``_result.txt`` (the rate);
``leaderboard.csv`` has ``scene,task,n,SR,HSR,CR`` in percent. Promises: pure, the same texts every
time; an unknown hard success or collision is null or left out, never false; a cell that lacks an
episode has no ``_result.txt``, since that file cannot say so. The folder's time is the run's, not
the clock's.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone

from harness.errors import RollpoolError
from harness.reports.report import Counted, Rate, Report

FOLDER = "upstream"
_BENCH = "bench_"


def upstream_texts(
    report: Report, counted: Iterable[Counted], began: float
) -> Iterator[tuple[str, str]]:
    """``(file name, text)`` of everything, below ``upstream/``.

    Args:
        began: when the run began, in seconds since 1970.

    Raises:
        RollpoolError: the run is of several policies or checkpoints.
    """
    policy, checkpoint = _one(report.identity, "policy"), _one(report.identity, "checkpoint")
    time = datetime.fromtimestamp(began, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    cells: dict[tuple[str, str, str], list[Counted]] = {}
    for episode in counted:
        cells.setdefault((episode.scene, episode.task, episode.task_config), []).append(episode)
    for (scene, task, config), episodes in cells.items():
        bench = ["bench_eval_result"] if config.startswith(_BENCH) else []
        parts = [_part(name) for name in (task, policy, config, checkpoint)]
        folder = "/".join([FOLDER, "eval_result", *bench, *parts, time])
        yield f"{folder}/_episodes.jsonl", _lines(episodes)
        yield f"{folder}/_metrics.jsonl", _lines(episodes, {"task": task, "task_config": config})
        if not report.tasks[scene][task].partial:
            yield f"{folder}/_result.txt", _result(time, episodes)
    yield f"{FOLDER}/leaderboard.csv", _leaderboard(report)


def _one(identity: Mapping[str, str], what: str) -> str:
    """The run's only policy or checkpoint; its name without the digest."""
    found = identity.get(what, "unknown")
    if ", " in found:
        raise RollpoolError(
            "results in upstream's layout", f"the run has more than one {what}: {found}",
            "keep the results of each in a run of their own",
        )  # fmt: skip
    return found.partition(" (")[0]


def _part(name: str) -> str:
    """One folder's name, as upstream would have it."""
    return re.sub(r"^\.|/", "_", name)


def _lines(episodes: Sequence[Counted], more: Mapping[str, str] | None = None) -> str:
    return "".join(
        json.dumps({**(more or {}), **_record(number, episode)}) + "\n"
        for number, episode in enumerate(episodes)
    )


def _record(number: int, episode: Counted) -> dict[str, object]:
    record: dict[str, object] = {"episode": number, "seed": episode.seed}
    record |= {"success": episode.success, "collision": episode.collision}
    if episode.hard_success is not None:
        record["hard_success"] = episode.hard_success
    return record


def _result(time: str, episodes: Sequence[Counted]) -> str:
    seeds = " ".join(str(episode.seed) for episode in episodes)
    rate = sum(episode.success for episode in episodes) / len(episodes)
    head = f"Timestamp: {time}\n\nInstruction Type: sealed\n\nEval seeds: {seeds}\n\n"
    return f"{head}{rate}"


def _leaderboard(report: Report) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("scene", "task", "n", "SR", "HSR", "CR"))
    for scene, tasks in report.tasks.items():
        for task, tally in tasks.items():
            rates = (tally.success, tally.hard, tally.collision)
            writer.writerow([scene, task, tally.success.n, *map(_percent, rates)])
    return out.getvalue()


def _percent(rate: Rate) -> str:
    return "" if rate.percent is None else f"{rate.percent:.1f}"
