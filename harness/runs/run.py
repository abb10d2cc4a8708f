"""A run: the settings it is sealed to, and the identity of what it evaluates.

Promises: of any number of starters exactly one seals ``run.json``; everyone else joins what it
sealed or is refused, told both values: of what moves numbers, and of what all workers must have
the same (a lease's TTL, the error budgets). A setting that nobody gave is taken from the run, so
resuming needs its name alone. A checkpoint called ``latest`` is resolved once, when the run is
made. A run written by a newer format is never touched.
"""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import RollpoolError
from harness.foundations import sharing
from harness.foundations.atomic import publish_once
from harness.foundations.identity import checkpoint_digest, code_hash
from harness.foundations.records import canonical_json, metrics_files, read_file
from harness.foundations.settings import Settings
from harness.foundations.values import as_text
from harness.leases.decisions import Decisions
from harness.paths import CODE, Root, RunPaths
from harness.runs.population import Cell
from harness.runs.prepare import read_cells

FORMAT = 1

#: The checkpoint of a policy that has none.
NO_CHECKPOINT = {"name": "none", "digest": ""}


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
    sealed = record or _create(paths, _record(root, settings))
    return _join(root, paths, *_settle_checkpoint(root, paths, settings, sealed), sealed)


def _create(paths: RunPaths, record: Mapping[str, Any]) -> Mapping[str, Any]:
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


def checkpoint_name(root: Root, settings: Settings) -> str | None:
    """The checkpoint of a launch: that of its run where there is one, else the one it names, with
    ``latest`` as what that stands for now."""
    name, asked = settings["STUDY_RUN"], settings["CKPT_NAME"]
    record = read_record(root.run(name)) if name is not None else None
    if record is not None:
        sealed: str | None = record["settings"].get("CKPT_NAME")
        return sealed
    return None if asked is None else root.resolve_latest(asked, settings["POLICY_NAME"])


def _settle_checkpoint(
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


def _record(root: Root, settings: Settings) -> dict[str, Any]:
    if settings["BENCH_CONFIG"] is None:
        raise RollpoolError("BENCH_CONFIG", "not set", "set it to clean, or d6 to d15")
    asked = settings["CKPT_NAME"]
    if asked is not None:
        settings = settings.having(CKPT_NAME=root.resolve_latest(asked, settings["POLICY_NAME"]))
    moving = {} if asked == settings["CKPT_NAME"] else {"asked": {"CKPT_NAME": asked}}
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
    path = _checkpoint(root, settings)
    checkpoint = NO_CHECKPOINT
    if path is not None:
        checkpoint = {"name": settings["CKPT_NAME"], "digest": checkpoint_digest(path)}
    return {
        "policy": policy,
        "simulator": settings["SIMULATOR"],
        "checkpoint": checkpoint,
        "code_hash": code_hash(CODE, root.policy_dir(policy)),
        "settings_hash": settings.hash(),
    }


def _checkpoint(root: Root, settings: Settings) -> Path | None:
    name = settings["CKPT_NAME"]
    return None if name is None else root.find_checkpoint(name, settings["POLICY_NAME"])


def _join(
    root: Root, paths: RunPaths, settings: Settings, warnings: list[str], record: Mapping[str, Any]
) -> Run:
    agreed = {**record["settings"], **record.get("shared", {})}
    joined = settings.joining(agreed)
    shared = {name: value for name, value in joined.shared().items() if name in agreed}
    _refuse_other_settings(paths, {**joined.sealed(), **shared}, agreed)
    identity, sealed = _identity(root, joined), record["identity"]
    _refuse_other_checkpoint(paths, identity["checkpoint"], sealed["checkpoint"])
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
        checkpoint=_checkpoint(root, joined),
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
        _refuse_other_checkpoint(run.paths, now, sealed)


def _refuse_other_checkpoint(
    paths: RunPaths, now: Mapping[str, str], was: Mapping[str, str]
) -> None:
    if now != was:
        raise RollpoolError(
            f"run {paths.name!r}: checkpoint {now['name']}",
            f"its content is {now['digest']}, the run began with {was['name']} {was['digest']}",
            "put that checkpoint back, or choose another STUDY_RUN",
        )


def refuse_other_code(run: Run) -> None:
    """Asked by what is about to add rows to the run. Raises ``RollpoolError`` where they would be
    other code's than those that are there, unless ``EVAL_CODE_CHANGE=mark``."""
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


def budgets(paths: RunPaths, settings: Settings) -> tuple[int, int]:
    """``EVAL_RETRIES`` and ``EVAL_LOST_RETRIES`` as the workers of the run have them."""
    try:
        shared = json.loads(paths.run_json.read_bytes()).get("shared", {})
    except (OSError, ValueError):  # results without a run
        shared = {}
    names = ("EVAL_RETRIES", "EVAL_LOST_RETRIES")
    retries, lost_retries = (shared.get(name, settings[name]) for name in names)
    return retries, lost_retries


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
    rows = (row for file in metrics_files(paths.results) for row in read_file(file))
    return any(True for _ in decisions.current(rows))


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
