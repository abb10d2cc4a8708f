"""The SQL of ``row_table``: which lines are rows, and which row of an episode counts.

Promises: no line passes that ``Row.from_json`` would refuse (one that it accepts may fail to); the
row that counts is the greatest by ``records.count_key``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.records import ERROR_KINDS, FORMAT, OUTCOMES, SCHEMA
from harness.stopwatch import PARTS


class Attempt(NamedTuple):
    """What reports need of a row."""

    manifest: str
    position: int
    attempt: int
    worker: str
    host: str
    scene: str
    task: str
    task_config: str
    seed: int
    success: bool | None
    hard_success: bool | None
    collision: bool | None
    video: str | None
    error: Mapping[str, Any] | None
    rows: int = 1  # of its episode, itself included


_SQL_TYPES = {
    int: "'UBIGINT', 'BIGINT'", float: "'DOUBLE'", str: "'VARCHAR'", bool: "'BOOLEAN'",
    list: "'ARRAY'", dict: "'OBJECT'",
}  # fmt: skip


def _valid() -> str:
    """SQL that holds for no line which ``Row.from_json`` would refuse."""
    checks = []
    for name, (kinds, default) in SCHEMA.items():
        types = ", ".join(_SQL_TYPES[kind] for kind in kinds if kind in _SQL_TYPES)
        check = f"json_type({name}) IN ({types})"
        if float in kinds:
            check += f" AND isfinite(try_cast({name} AS DOUBLE))"
        optional = type(None) in kinds or default
        checks.append(f"({name} IS NULL OR ({check}))" if optional else f"({check})")
    outcomes = " OR ".join(
        f"(outcome = '\"{outcome}\"' AND success IS NOT DISTINCT FROM {_sql(success)})"
        for outcome, success in OUTCOMES.items()
    )
    kinds_ = ", ".join(f"'{kind}'" for kind in ERROR_KINDS)
    checks += [
        f"({outcomes})",
        "((outcome = '\"error\"') = (error IS NOT NULL))",
        f"(error IS NULL OR json_extract_string(error, '$.kind') IN ({kinds_}))",
        f"(format IS NULL OR format::BIGINT <= {FORMAT})",
        "position::BIGINT >= 0 AND attempt::BIGINT >= 1",
        "(collision_names IS NULL OR collision_names = '[]'"
        " OR list_bool_and([json_type(name) = 'VARCHAR'"
        " FOR name IN json_extract(collision_names, '$[*]')]))",
    ]
    return " AND ".join(checks)


def _sql(success: bool | None) -> str:
    return "NULL" if success is None else f"'{str(success).lower()}'"


COLUMNS = (
    "file INTEGER, manifest VARCHAR, position BIGINT, attempt BIGINT, worker VARCHAR, host VARCHAR,"
    " scene VARCHAR, task VARCHAR, task_config VARCHAR, seed BIGINT, success BOOLEAN,"
    " hard_success BOOLEAN, collision BOOLEAN, video VARCHAR, error VARCHAR, started DOUBLE,"
    " finished DOUBLE, policy VARCHAR, checkpoint VARCHAR, simulator VARCHAR,"
    " settings_hash VARCHAR, code_hash VARCHAR, profile VARCHAR"
)

_PLAIN = ("manifest", "worker", "host", "scene", "task", "task_config")
_SELECTED = (
    *(f"{name}->>'$'" for name in _PLAIN[:1]),
    "position::BIGINT", "attempt::BIGINT",
    *(f"{name}->>'$'" for name in _PLAIN[1:]),
    "seed::BIGINT", "success::BOOLEAN", "hard_success::BOOLEAN",
    "collision_count::BIGINT > 0", "video->>'$'", "error", "started::DOUBLE", "finished::DOUBLE",
    "policy->>'$'", "checkpoint", "simulator->>'$'", "settings_hash->>'$'", "code_hash->>'$'",
    "profile",
)  # fmt: skip

_FIELDS = ", ".join(f"{name}: 'JSON'" for name in SCHEMA)
READ = f"""
INSERT INTO rows SELECT number, {", ".join(_SELECTED)}
FROM read_json(?, format = 'newline_delimited', ignore_errors = true, filename = 'source',
               columns = {{{_FIELDS}}})
JOIN (SELECT unnest(?) AS source, unnest(?) AS number) USING (source)
WHERE {_valid()}
"""

CURRENT = """
FROM rows LEFT JOIN floors USING (manifest, position) WHERE attempt > coalesce(floor, 0)
"""
# One number in the order of ``records.count_key``: comparing rows would keep each in memory.
_KEY = """
(success IS NOT NULL)::INT::HUGEINT * (1::HUGEINT << 100) + (attempt::HUGEINT << 32) + place
"""
_PLACED = f"""
SELECT rows.rowid AS id, manifest, position, success, {_KEY} AS key
FROM rows JOIN (
  SELECT worker, row_number() OVER (ORDER BY worker) AS place
  FROM (SELECT DISTINCT worker FROM rows)
) USING (worker)
LEFT JOIN floors USING (manifest, position) WHERE attempt > coalesce(floor, 0)
"""
_BEST = f"""
SELECT max_by(id, key) AS id, count(*) AS tried, bool_or(success IS NOT NULL) AS settled,
       manifest, position
FROM ({_PLACED}) GROUP BY manifest, position
"""
_REDUCED = ", ".join(f"rows.{name}" for name in Attempt._fields[:-1])
COUNTED = f"""
SELECT {_REDUCED}, tried FROM rows JOIN ({_BEST}) AS best ON rows.rowid = best.id
LEFT JOIN sealed ON sealed.manifest = rows.manifest
WHERE settled ORDER BY rank NULLS LAST, rows.manifest, rows.position
"""
OTHERS = f"""
SELECT DISTINCT manifest {CURRENT} AND manifest NOT IN (SELECT manifest FROM sealed) ORDER BY 1
"""
ERRORS = f"""
SELECT {_REDUCED}, tried FROM rows JOIN ({_BEST}) AS best USING (manifest, position)
LEFT JOIN floors USING (manifest, position) WHERE NOT settled AND attempt > coalesce(floor, 0)
"""
_STRUCTURE = ", ".join(f'"{part}": "DOUBLE"' for part in PARTS)
PROFILES = f"""
SELECT scene, task, task_config, {", ".join(f"coalesce(sum(lap.{part}), 0)" for part in PARTS)}
FROM (SELECT scene, task, task_config, json_transform(profile, '{{{_STRUCTURE}}}') AS lap {CURRENT}
      AND profile IS NOT NULL) GROUP BY ALL ORDER BY ALL
"""
TIES = f"""
SELECT DISTINCT manifest, position, file FROM rows JOIN (
  SELECT manifest, position FROM ({_PLACED}) GROUP BY manifest, position, key HAVING count(*) > 1
) USING (manifest, position)
"""
