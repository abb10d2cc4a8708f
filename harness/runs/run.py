"""A run: the settings it is sealed to, and the identity of what it evaluates.

Promises: whoever opens a run evaluates what it was sealed to, or is refused, told both values: of
what moves numbers, and of what all workers must have the same (a lease's TTL, the error budgets). A
setting that nobody gave is taken from the run, so resuming needs its name alone.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.canonical import canonical_json
from harness.errors import RollpoolError
from harness.foundations import sharing
from harness.foundations.atomic import publish_once
from harness.foundations.identity import checkpoint_digest, code_hash
from harness.foundations.metrics_files import read_rows
from harness.foundations.settings import Settings
from harness.foundations.values import as_text
from harness.leases.decisions import Decisions
from harness.paths import CODE, Root, RunPaths
from harness.runs.checkpoint import (
    checkpoint_identity,
    checkpoint_path,
    refuse_other_checkpoint,
    resolved_name,
    settled,
)
from harness.runs.population import Cell
from harness.runs.prepare import read_cells
from harness.runs.run_record import FORMAT, read_record, seal_record


@dataclass(frozen=True)
class Run:
    """A run that was created or joined.

    ``identity``: ``policy simulator checkpoint {name, digest} code_hash settings_hash``, the last
    two of what runs here and now; ``warnings``: what the user should know of it.
    """

    root: Root
    paths: RunPaths
    settings: Settings
    id: str
    identity: Mapping[str, Any]
    policy_dir: Path
    checkpoint: Path | None
    token: str = field(repr=False)
    warnings: tuple[str, ...] = ()
    began_with: str = ""  # the code hash that the run was made with

    @functools.cached_property
    def cells(self) -> list[Cell]:
        """The sealed cells in queue order. Raises ``RollpoolError`` before ``prepare``."""
        return read_cells(self.paths, self.settings["BENCH_CONFIG"])


def open_run(root: Root, settings: Settings, create: bool) -> Run:
    """Create the run named by ``STUDY_RUN``, or join it.

    Args:
        create: make the run where there is none; otherwise that is refused.

    Raises:
        RollpoolError: no such run, a newer format, a sealed setting or a checkpoint that differs;
            ``EVAL_RESUME_SEEDS=0`` on creating a run that has rows.
    """
    name = settings["STUDY_RUN"]
    if name is None:
        raise RollpoolError("run", "STUDY_RUN is not set", "name the run directory in runs/")
    paths = root.run(name)
    sharing.join(paths.root if paths.root.exists() else root.runs)
    record = read_record(paths)
    if record is None and not create:
        raise RollpoolError(
            f"run {name!r}", f"no {paths.run_json}", f"run: rollpool prepare {name}"
        )
    if create and not settings["EVAL_RESUME_SEEDS"] and _has_rows(paths):
        raise RollpoolError(
            f"run {name!r}: EVAL_RESUME_SEEDS=0", "it has results already",
            f"run: rollpool reset {name} --all (its rows stay, as an earlier generation), "
            "or choose another STUDY_RUN",
        )  # fmt: skip
    sealed = record or seal_record(paths, _record(root, settings))
    return _join(root, paths, *settled(root, paths, settings, sealed), sealed)


def _record(root: Root, settings: Settings) -> dict[str, Any]:
    if settings["BENCH_CONFIG"] is None:
        raise RollpoolError("BENCH_CONFIG", "not set", "set it to clean, or d6 to d15")
    asked, name = settings["CKPT_NAME"], resolved_name(root, settings)
    settings = settings.having(CKPT_NAME=name)
    moving = {} if asked == name else {"asked": {"CKPT_NAME": asked}}
    return {
        **moving,
        "format": FORMAT,
        "id": secrets.token_hex(8),
        "settings": settings.sealed(),
        "shared": settings.shared(),
        "identity": _identity(root, settings),
    }


def _identity(root: Root, settings: Settings) -> dict[str, Any]:
    policy = settings["POLICY_NAME"]
    return {
        "policy": policy,
        "simulator": settings["SIMULATOR"],
        "checkpoint": checkpoint_identity(root, settings),
        "code_hash": code_hash(CODE, root.policy_dir(policy)),
        "settings_hash": settings.hash(),
    }


def _join(
    root: Root, paths: RunPaths, settings: Settings, warnings: list[str], record: Mapping[str, Any]
) -> Run:
    agreed = {**record["settings"], **record.get("shared", {})}
    joined = settings.joining(agreed)
    shared = {name: value for name, value in joined.shared().items() if name in agreed}
    _refuse_other_settings(paths, {**joined.sealed(), **shared}, agreed)
    identity, sealed = _identity(root, joined), record["identity"]
    refuse_other_checkpoint(paths, identity["checkpoint"], sealed["checkpoint"])
    if not paths.token.exists():
        secret = secrets.token_hex(32).encode()
        publish_once(paths.token, secret, mode=sharing.secret_mode(paths.root))
    if identity["code_hash"] != sealed["code_hash"]:
        warnings.append(f"run {paths.name!r} began with other code; its rows say which ran them")
    return Run(
        root=root,
        paths=paths,
        settings=joined,
        id=record["id"],
        identity=identity,
        policy_dir=root.policy_dir(identity["policy"]),
        checkpoint=checkpoint_path(root, joined),
        token=_token(paths),
        warnings=tuple(warnings),
        began_with=sealed["code_hash"],
    )


def _token(paths: RunPaths) -> str:
    try:
        return paths.token.read_text(encoding="ascii")
    except PermissionError as error:
        raise RollpoolError(
            f"run {paths.name!r}", f"its token {paths.token} is its owner's alone",
            f"share it: chmod g+ws {paths.root} && chmod g+r {paths.token}",
        ) from error  # fmt: skip


def refuse_other_weights(run: Run) -> None:
    """Asked when a model server has loaded its weights, which may be hours after joining the run.
    Raises ``RollpoolError`` where they are not those that the rows will name."""
    if run.checkpoint is not None:
        sealed = run.identity["checkpoint"]
        now = {**sealed, "digest": checkpoint_digest(run.checkpoint)}
        refuse_other_checkpoint(run.paths, now, sealed)


def refuse_other_code(run: Run) -> None:
    """Asked by what is about to add rows to the run, or has a part in them. Raises
    ``RollpoolError`` where they would be other code's than those that are there, unless
    ``EVAL_CODE_CHANGE=mark``."""
    now = run.identity["code_hash"]
    if now == run.began_with or run.settings["EVAL_CODE_CHANGE"] == "mark":
        return
    if _has_rows(run.paths):
        raise RollpoolError(
            f"run {run.paths.name!r}",
            f"it began with code {run.began_with[:12]}, this is {now[:12]}",
            "put that code back, choose another STUDY_RUN, or set EVAL_CODE_CHANGE=mark: each row "
            "says which code ran it, and the tables say that they are mixed",
        )


def _refuse_other_settings(
    paths: RunPaths, now: Mapping[str, Any], sealed: Mapping[str, Any]
) -> None:
    differing = [
        f"{name} is {_shown(sealed.get(name))} in the run and {_shown(now.get(name))} now"
        for name in sorted(set(now) | set(sealed))
        if canonical_json(now.get(name)) != canonical_json(sealed.get(name))
    ]
    if differing:
        raise RollpoolError(
            f"run {paths.name!r}", "; ".join(differing),
            "give the run's values, or choose another STUDY_RUN",
        )  # fmt: skip


def _shown(value: Any) -> str:
    return "unset" if value is None else as_text(value)


def _has_rows(paths: RunPaths) -> bool:
    decisions = Decisions(paths.decisions)
    decisions.refresh()
    return any(True for _ in decisions.current(read_rows(paths.results)))
