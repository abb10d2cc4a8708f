"""The selected episodes that no rate counts: why each is left out, and the log to read first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from harness.leases.budget import Budget
from harness.reports.episode_table import Attempt
from harness.reports.report import Hole
from harness.runs.population import Manifest


def holes(
    manifest: Manifest, failed: Mapping[int, Sequence[Attempt]], missing: Sequence[int],
    budget: Budget,
) -> Iterator[Hole]:  # fmt: skip
    """The episodes of a manifest that have no outcome, by position.

    Args:
        failed: position -> its rows, errors all of them.
        missing: the positions of which there is no row.
        budget: learns of the rows that it is asked about.
    """
    for position in sorted([*failed, *missing]):
        if position in failed:
            yield failed_hole(failed[position], budget)
            continue
        skipped = budget.quarantined(manifest.hash, position)
        yield Hole(
            **place_of(manifest.episodes[position]),
            kind="quarantined" if skipped else "missing",
            reason=_one_line(skipped) if skipped else "",
            position=position,
            manifest=manifest.hash,
        )


def failed_hole(tried: Sequence[Attempt], budget: Budget) -> Hole:
    """An episode of which all rows are errors: by the last of them."""
    row = max(tried, key=lambda row: (row.attempt, row.worker, json.dumps(row.error)))
    for attempt in tried:
        budget.add(attempt)
    aside = budget.quarantined(row.manifest, row.position)
    return Hole(
        **place_of(row),
        kind="quarantined" if aside else "error",
        reason=_one_line(aside or f"{row.error.get('kind')}: {row.error.get('message', '')}"),
        position=row.position,
        manifest=row.manifest,
        logs=_logs(row.error),
    )


class _Placed(Protocol):
    """What a row, a line of another tool and a sealed episode have in common."""

    @property
    def scene(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def task_config(self) -> str: ...
    @property
    def seed(self) -> int: ...


def place_of(of: _Placed) -> dict[str, Any]:
    """The fields that say which episode it is."""
    return {"scene": of.scene, "task": of.task, "task_config": of.task_config, "seed": of.seed}


def _logs(error: Mapping[str, Any]) -> tuple[str, ...]:
    """The logs of an error row, the one to read first at the front."""
    known = error.get("logs")
    logs = {p: str(log) for p, log in known.items() if log} if isinstance(known, dict) else {}
    telling = {"policy": "model", "lost": "worker"}.get(str(error.get("kind")), "simulator")
    return tuple(logs[part] for part in sorted(logs, key=lambda part: (part != telling, part)))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:297] + "..."
