"""The SQL of ``row_table``: which lines are rows, and what is kept of one.

Promises: no line passes that ``Row.from_json`` would refuse (one that it accepts may fail to). In
the table a text is the JSON of it, as DuckDB writes it, so equal texts are equal there, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.records import ERROR_KINDS, FORMAT, OUTCOMES, SCHEMA


def _valid() -> str:
    """SQL that holds for no line which ``Row.from_json`` would refuse, and for each ``to_json``.

    A field is read as the text of its JSON, whose beginning tells its type: asking DuckDB for the
    type would parse each field once more.
    """
    checks = []
    for name, (kinds, optional) in SCHEMA.items():
        wanted = [float] if float in kinds else [kind for kind in kinds if kind is not type(None)]
        check = f"({' OR '.join(_is(kind, name) for kind in wanted)})"
        checks.append(_or(f"{name} IS NULL", check) if optional else check)
    success = " ".join(
        f"WHEN '\"{outcome}\"' THEN '{str(success).lower()}'"
        for outcome, success in OUTCOMES.items() if success is not None
    )  # fmt: skip
    checks += [
        f"outcome::VARCHAR IN ({_listed(OUTCOMES)})",
        f"success::VARCHAR IS NOT DISTINCT FROM CASE outcome::VARCHAR {success} END",
        "((outcome::VARCHAR = '\"error\"') = (error IS NOT NULL))",
        _or("error IS NULL", f"json_extract(error, '$.kind')::VARCHAR IN ({_listed(ERROR_KINDS)})"),
        _or("format IS NULL", f"{_whole('format')} <= {FORMAT}"),
        f"{_whole('position')} >= 0 AND {_whole('attempt')} >= 1",
    ]
    return " AND ".join(checks)


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(f"'\"{text}\"'" for text in texts)


def _is(kind: type, name: str) -> str:
    """SQL: the JSON ``name`` is of this Python type, where it is neither null nor absent.

    First characters come in the order of ``"``, ``-``, digits, ``[``, letters, ``{``; a whole
    number has neither point nor exponent, and may have more than 64 bits.
    """
    text = f"{name}::VARCHAR"
    real = f"(contains({text}, '.') OR contains({text}, 'e'))"
    texts = f"[json_type(one) = 'VARCHAR' FOR one IN json_extract({name}, '$[*]')]"
    return {
        str: f"{text} < '#'",
        dict: f"{text} >= '{{'",
        list: _or(f"{text} = '[]'", f"{text} BETWEEN '[' AND '\\' AND list_bool_and({texts})"),
        bool: f"{text} IN ('true', 'false')",
        int: f"({_whole(name)} IS NOT NULL AND NOT {real})",
        float: f"isfinite(try_cast({text} AS DOUBLE))"
        f" AND {_or(f'strlen({text}) < 19', f'{real} OR {_whole(name)} IS NOT NULL')}",
    }[kind]


def _or(usual: str, else_: str) -> str:
    """SQL: one or the other; the other is not computed where the first holds."""
    return f"(CASE WHEN {usual} THEN true ELSE {else_} END)"


def _whole(name: str) -> str:
    return f"try_cast({name}::VARCHAR AS BIGINT)"


#: Column of the table -> its type and what it is made of.
_KEPT = {
    "manifest": ("VARCHAR", "manifest"),
    "position": ("BIGINT", _whole("position")),
    "attempt": ("BIGINT", _whole("attempt")),
    **{name: ("VARCHAR", name) for name in ("worker", "host", "scene", "task", "task_config")},
    "seed": ("BIGINT", _whole("seed")),
    "success": ("BOOLEAN", "try_cast(success::VARCHAR AS BOOLEAN)"),
    "hard_success": ("BOOLEAN", "try_cast(hard_success::VARCHAR AS BOOLEAN)"),
    "collision": ("BOOLEAN", f"{_whole('collision_count')} > 0"),
    "video": ("VARCHAR", "video"),
    "error": ("VARCHAR", "error"),
    "started": ("DOUBLE", "try_cast(started::VARCHAR AS DOUBLE)"),
    "finished": ("DOUBLE", "try_cast(finished::VARCHAR AS DOUBLE)"),
    **{name: ("VARCHAR", name) for name in (
        "policy", "checkpoint", "simulator", "settings_hash", "code_hash", "profile"
    )},
}  # fmt: skip

COLUMNS = ", ".join(
    ["file INTEGER", "valid BOOLEAN", *(f"{name} {kind}" for name, (kind, _) in _KEPT.items())]
)

_FIELDS = ", ".join(f"{name}: 'JSON'" for name in SCHEMA)
READ = f"""
INSERT INTO rows
SELECT number, coalesce({_valid()}, false), {", ".join(made for _, made in _KEPT.values())}
FROM read_json(?, format = 'newline_delimited', ignore_errors = true, filename = 'source',
               columns = {{{_FIELDS}}})
JOIN (SELECT unnest(?) AS source, unnest(?) AS number) USING (source)
"""
#: The files of which not every line is a row.
FAILED = "SELECT DISTINCT file FROM rows WHERE NOT valid"

FLOORS = "INSERT INTO floors SELECT unnest(?::VARCHAR[]), unnest(?::BIGINT[]), unnest(?::BIGINT[])"

_SAME = "hash(manifest, position, attempt, worker, success IS NULL)"
_TIED = f"""
FROM rows SEMI JOIN (
  SELECT manifest, position, attempt, worker, success IS NULL AS failed FROM rows
  WHERE {_SAME} IN (SELECT {_SAME} FROM rows GROUP BY 1 HAVING count(*) > 1)
  GROUP BY ALL HAVING count(*) > 1
) AS tied ON rows.manifest = tied.manifest AND rows.position = tied.position
  AND rows.attempt = tied.attempt AND rows.worker = tied.worker AND (success IS NULL) = failed
"""
#: Rows that one worker wrote for one attempt with another one, an outcome or an error like it.
TIES = f"SELECT DISTINCT manifest, position, file {_TIED}"
DELETE_TIES = f"DELETE FROM rows WHERE rowid IN (SELECT rows.rowid {_TIED})"
