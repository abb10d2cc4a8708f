"""The metrics row: its schema, and which row counts.

Promises: ``Row.from_json(row.to_json())`` is the row; ``counted`` gives the same answer for rows in
any order. Keys of a row that this version does not know are ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from harness.canonical import canonical_json
from harness.errors import RollpoolError

#: The format of rows written by this version; rows of a newer one are noted, not guessed at.
FORMAT = 1

#: Outcome -> the value of ``success``: an error is never a failure of the policy.
OUTCOMES: Mapping[str, bool | None] = {"success": True, "fail": False, "error": None}

#: Who is at fault in an ``error``.
ERROR_KINDS = ("policy", "simulator", "crash", "stall", "timeout", "lost", "protocol")

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(text: str, **how: Any) -> Any:
    """The value, as ``json.loads`` reads it. ``ValueError`` where it is none, holds half a pair of
    surrogates, which is no text, or is nested too deeply."""
    try:
        value = json.loads(text, **how)
        if _SURROGATE.search(text):  # whole pairs are text
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


@dataclass(frozen=True, kw_only=True)
class Row:
    """One attempt at one episode; ``None`` where nobody can know (a lost worker's steps)."""

    format: int = FORMAT
    manifest: str  # sha256 of the sealed manifest
    position: int  # in the manifest, from 0
    attempt: int  # from 1
    worker: str
    host: str
    run: str
    scene: str
    task: str
    task_config: str
    seed: int
    instruction: str
    outcome: str  # a key of OUTCOMES
    success: bool | None = None
    hard_success: bool | None = None  # success without a collision
    collision_count: int | None = None
    collision_names: tuple[str, ...] = ()
    steps: int | None = None  # executed actions
    sim_s: float | None = None  # simulated seconds
    wall_s: float | None = None
    policy_s: float | None = None  # waiting for the policy
    # Seconds since its seat's last row by ``stopwatch.PARTS``; empty where nobody measured.
    profile: Mapping[str, float] = field(default_factory=dict)
    policy: str
    checkpoint: Mapping[str, str]  # name, digest
    simulator: str
    versions: Mapping[str, str] = field(default_factory=dict)
    settings_hash: str
    code_hash: str
    state_hash: str | None = None  # of the final physical state
    video: str | None = None  # relative to the run directory
    error: Mapping[str, Any] | None = None  # kind, message, traceback, logs
    started: float  # seconds since 1970, for people and rates; never decides which row counts
    finished: float

    def to_json(self) -> str:
        """The row as one line, without its newline."""
        return canonical_json(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Row:
        """Read a line. Raises ``RollpoolError`` naming the field that is wrong."""
        try:
            record = read_json(
                text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_first
            )
        except ValueError as error:
            raise _bad(f"not JSON ({error})") from error
        if not isinstance(record, dict):
            raise _bad(f"{type(record).__name__} instead of an object")
        if isinstance(record.get("format"), int) and record["format"] > FORMAT:
            raise _bad(f"format {record['format']}, newer than this toolkit's {FORMAT}")
        values = {name: _value(record, name) for name in SCHEMA}
        values["collision_names"] = tuple(values["collision_names"])
        row = cls(**values)
        _check(row)
        return row


_TYPES: Mapping[str, tuple[type, ...]] = {
    "int": (int,), "str": (str,), "float": (int, float), "bool": (bool,), "None": (type(None),),
    "tuple[str, ...]": (list,), "Mapping[str, str]": (dict,), "Mapping[str, Any]": (dict,),
    "Mapping[str, float]": (dict,),
}  # fmt: skip

_DEFAULTS: Mapping[str, Any] = {
    **{f.name: f.default for f in fields(Row) if f.default is not MISSING},
    **{f.name: {} for f in fields(Row) if f.default_factory is not MISSING},
}

#: Field -> the JSON types it accepts, from the annotations above, and whether it may be absent.
SCHEMA = {
    f.name: (
        tuple(kind for part in str(f.type).split(" | ") for kind in _TYPES[part]),
        f.name in _DEFAULTS,
    )
    for f in fields(Row)
}

#: Whole numbers in a row are stored in 64 bits by whoever reads many of them.
INT_BOUND = 2**63


def _value(record: Mapping[str, Any], name: str) -> Any:
    kinds, optional = SCHEMA[name]
    if name not in record and not optional:
        raise _bad(f"no {name!r}")
    value = record.get(name)
    if value is None:  # as good as absent
        value = _DEFAULTS.get(name)
    value = list(value) if isinstance(value, tuple) else value
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise _bad(f"{name!r} is {value!r}, not {wanted}")
    if isinstance(value, int) and not -INT_BOUND <= value < INT_BOUND:
        raise _bad(f"{name!r} is {value!r}, beyond 64 bits")
    return value


def _check(row: Row) -> None:
    if row.outcome not in OUTCOMES or row.success is not OUTCOMES[row.outcome]:
        raise _bad(f"outcome {row.outcome!r} with success {row.success!r}")
    if (row.outcome == "error") != (row.error is not None):
        raise _bad(f"outcome {row.outcome!r} with error {row.error!r}")
    if row.error is not None and row.error.get("kind") not in ERROR_KINDS:
        raise _bad(f"error kind {row.error.get('kind')!r}")
    if row.position < 0 or row.attempt < 1:
        raise _bad(f"position {row.position}, attempt {row.attempt}")
    if not all(isinstance(name, str) for name in row.collision_names):
        raise _bad(f"'collision_names' is {row.collision_names!r}")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite")
    return number


def _first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; a key that is given twice counts the first time, as it does for DuckDB."""
    return dict(reversed(pairs))


def _bad(found: str) -> RollpoolError:
    return RollpoolError("metrics row", found, "it is not counted; its episode runs again")


def count_key(row: Row) -> tuple[bool, int, str]:
    """What makes a row count, greatest first: an outcome, then the attempt, then the worker."""
    return row.outcome != "error", row.attempt, row.worker


def counted(rows: Iterable[Row]) -> dict[tuple[str, int], Row]:
    """``(manifest, position)`` -> the row that counts for that episode."""
    best: dict[tuple[str, int], Row] = {}
    for row in rows:
        episode = (row.manifest, row.position)
        other = best.setdefault(episode, row)
        mine, its = count_key(row), count_key(other)
        # One worker writes one row an attempt; the text decides only where that was broken.
        if mine > its or (mine == its and row.to_json() > other.to_json()):
            best[episode] = row
    return best
