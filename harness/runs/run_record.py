"""``run.json``: what a run was sealed to when it was made.

Promises: of any number of starters exactly one seals it; it is never changed afterwards; one
written by a newer format is never touched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.errors import RollpoolError
from harness.foundations.atomic import publish_once
from harness.foundations.settings import Settings
from harness.paths import RunPaths

FORMAT = 1


def seal_record(paths: RunPaths, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Seal ``record``; returns what is sealed, which may be another starter's."""
    try:
        paths.root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = error.strerror or str(error)
        raise RollpoolError(f"make {paths.root}", what, "make runs/ writable") from error
    publish_once(paths.run_json, (json.dumps(record, indent=1, sort_keys=True) + "\n").encode())
    winner = read_record(paths)
    if winner is None:
        raise RollpoolError(
            f"run {paths.name!r}", "its run.json is gone again", "let nobody delete a run in use"
        )
    return winner


def read_record(paths: RunPaths) -> dict[str, Any] | None:
    """``run.json``, or None where there is none. Raises ``RollpoolError`` for a newer format."""
    try:
        data = paths.run_json.read_bytes()
    except FileNotFoundError:
        return None
    try:
        record: dict[str, Any] = json.loads(data)
        newer = record["format"] > FORMAT
        if not newer:
            _ = record["id"], record["identity"]["policy"], record["settings"]["POLICY_NAME"]
    except (ValueError, KeyError, TypeError) as error:
        raise RollpoolError(
            f"run {paths.name!r}", f"{paths.run_json} is damaged", "begin another STUDY_RUN"
        ) from error
    if newer:
        raise RollpoolError(
            f"run {paths.name!r}", f"format {record['format']}, this toolkit knows {FORMAT}",
            "update the toolkit",
        )  # fmt: skip
    return record


def budgets(paths: RunPaths, settings: Settings) -> tuple[int, int]:
    """``EVAL_RETRIES`` and ``EVAL_LOST_RETRIES`` as the workers of the run have them."""
    try:
        shared = json.loads(paths.run_json.read_bytes()).get("shared", {})
    except (OSError, ValueError):  # results without a run
        shared = {}
    names = ("EVAL_RETRIES", "EVAL_LOST_RETRIES")
    retries, lost_retries = (shared.get(name, settings[name]) for name in names)
    return retries, lost_retries
