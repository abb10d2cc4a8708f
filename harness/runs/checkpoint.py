"""The checkpoint of a run: which one a launch means, and its identity.

Promises: a name that moves on (``latest``) is resolved once, when a run is made; whoever joins it
gets what was sealed, and is told where the name has moved on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import RollpoolError
from harness.foundations.identity import checkpoint_digest
from harness.foundations.settings import Settings
from harness.paths import Root, RunPaths
from harness.runs.run_record import read_record


def resolved_name(root: Root, settings: Settings) -> str | None:
    """The checkpoint that the settings name, with ``latest`` as what that stands for now."""
    asked = settings["CKPT_NAME"]
    return None if asked is None else root.resolve_latest(asked, settings["POLICY_NAME"])


def checkpoint_name(root: Root, settings: Settings) -> str | None:
    """The checkpoint of a launch: that of its run where there is one, else the one it names."""
    name = settings["STUDY_RUN"]
    record = read_record(root.run(name)) if name is not None else None
    if record is not None:
        sealed: str | None = record["settings"].get("CKPT_NAME")
        return sealed
    return resolved_name(root, settings)


def checkpoint_path(root: Root, settings: Settings) -> Path | None:
    """Where it lies, None for a policy that has none. Raises ``RollpoolError``."""
    name = settings["CKPT_NAME"]
    return None if name is None else root.find_checkpoint(name, settings["POLICY_NAME"])


def checkpoint_identity(root: Root, settings: Settings) -> dict[str, str]:
    """``{name, digest}``, as rows have it."""
    path = checkpoint_path(root, settings)
    if path is None:
        return {"name": "none", "digest": ""}
    return {"name": settings["CKPT_NAME"], "digest": checkpoint_digest(path)}


def settled(
    root: Root, paths: RunPaths, settings: Settings, record: Mapping[str, Any]
) -> tuple[Settings, list[str]]:
    """The settings of a launch that joins, where ``latest`` is what the run has sealed for it;
    with a warning where it has moved on since."""
    sealed, asked = record["settings"].get("CKPT_NAME"), record.get("asked", {}).get("CKPT_NAME")
    policy, given = record["settings"]["POLICY_NAME"], settings["CKPT_NAME"]
    warnings = []
    if asked is not None and (now := root.resolve_latest(asked, policy)) not in (sealed, asked):
        warnings.append(
            f"run {paths.name!r} evaluates {sealed}, as {asked} was when it began; that is {now} "
            "now: choose another STUDY_RUN for it"
        )
    if given is not None:
        given = sealed if given == asked else root.resolve_latest(given, policy)
    return settings.having(CKPT_NAME=given), warnings


def refuse_other_checkpoint(
    paths: RunPaths, now: Mapping[str, str], was: Mapping[str, str]
) -> None:
    """Raises ``RollpoolError`` unless both identities are the same."""
    if now != was:
        raise RollpoolError(
            f"run {paths.name!r}: checkpoint {now['name']}",
            f"its content is {now['digest']}, the run began with {was['name']} {was['digest']}",
            "put that checkpoint back, or choose another STUDY_RUN",
        )
