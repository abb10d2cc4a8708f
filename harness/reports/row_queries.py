"""The SQL of ``row_table``: which lines are rows, and what is kept of one.

Promises: no line passes whose fields ``Row.from_json`` would refuse (one that it accepts may fail
to). What DuckDB takes for JSON and Python does not, a comma too many, or NaN within a value that is
no field's own, is not looked for: no row is written so. What many rows have in common is in the
table as a code, a hash of 64 bits, and ``texts`` says once what of, and whether it is what it
should be. Of a profile there are the known parts, to the microsecond and below 10^12 s, whose sums
are exact and so the same in any order.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.foundations.records import ERROR_KINDS, FORMAT, OUTCOMES, SCHEMA
from harness.stopwatch import PARTS

#: Fields of which ``_valid`` says more than their type.
_SPECIAL = ("outcome", "success", "error", "profile")
IDENTITY = ("policy", "checkpoint", "simulator", "settings_hash", "code_hash")
_SHARED = {
    "manifest": ("manifest",),
    "place": ("scene", "task", "task_config"),
    "identity": IDENTITY,
    "worker": ("worker",),
    "host": ("host", "run"),
}


def _valid() -> str:
    """SQL that holds for no line which ``Row.from_json`` would refuse; null where only ``ODD`` can
    tell. Of what is shared it says nothing, but ``MISTAKEN`` does.
    """
    checks = []
    shared = {name for of in _SHARED.values() for name in of}
    for name, (kinds, optional) in SCHEMA.items():
        if name in shared or name in _SPECIAL:
            continue
        wanted = [float] if float in kinds else [kind for kind in kinds if kind is not type(None)]
        check = f"({' OR '.join(_is(kind, name) for kind in wanted)})"
        checks.append(_or(f"{name} IS NULL", check) if optional else check)
    success = " ".join(
        f"WHEN '{outcome}' THEN '{str(success).lower()}'"
        for outcome, success in OUTCOMES.items() if success is not None
    )  # fmt: skip
    checks += [
        f"outcome IN ({_listed(OUTCOMES)})",
        f"success::VARCHAR IS NOT DISTINCT FROM CASE outcome {success} END",
        "((outcome = 'error') = (error IS NOT NULL))",
        _or("error IS NULL", f"(error->>'$.kind') IN ({_listed(ERROR_KINDS)})"),
        _or("format IS NULL", f"{_whole('format')} <= {FORMAT}"),
        f"{_whole('position')} >= 0 AND {_whole('attempt')} >= 1",
    ]
    parts = ", ".join(f"profile.{part}" for part in reversed(PARTS))
    known = f"profile IS NULL OR coalesce({parts}) IS NOT NULL"
    return f"CASE WHEN {' AND '.join(checks)} THEN (CASE WHEN {known} THEN true END) ELSE false END"


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(f"'{text}'" for text in texts)


def _is(kind: type, name: str) -> str:
    """SQL: ``name`` is of this Python type, where it is neither null nor absent.

    A text is read as it is, and anything else in its place as the JSON of it: so a text that is no
    JSON was one. Any other field is read as its JSON, whose beginning tells its type (asking DuckDB
    for the type would parse it once more): first characters come in the order of ``"``, ``-``,
    digits, ``[``, letters, ``{``; a whole number has neither point nor exponent, and may have more
    than 64 bits.
    """
    text = f"{name}::VARCHAR"
    real = f"(contains({text}, '.') OR contains({text}, 'e'))"
    texts = f"[json_type(one) = 'VARCHAR' FOR one IN json_extract({name}, '$[*]')]"
    return {
        str: f"NOT json_valid({name})",
        dict: f"{text} >= '{{'",
        list: _or(f"{text} = '[]'", f"{text} BETWEEN '[' AND '\\' AND list_bool_and({texts})"),
        bool: f"{text} IN ('true', 'false')",
        int: f"({_whole(name)} IS NOT NULL AND NOT {real})",
        float: f"isfinite({_real(name)})"
        f" AND {_or(f'strlen({text}) < 19', f'{real} OR try_cast({text} AS BIGINT) IS NOT NULL')}",
    }[kind]


def _or(usual: str, else_: str) -> str:
    """SQL: one or the other; the other is not computed where the first holds."""
    return f"(CASE WHEN {usual} THEN true ELSE {else_} END)"


def _whole(name: str) -> str:
    """The column of ``_PARSED`` that holds the whole number."""
    return f"{name}_whole"


def _real(name: str) -> str:
    return f"{name}_real"


#: Numbers that are asked for more than once.
_PARSED = ", ".join(
    f"try_cast({name}::VARCHAR AS DOUBLE) AS {_real(name)}" if float in kinds
    else f"try_cast({name}::VARCHAR AS BIGINT) AS {_whole(name)}"
    for name, (kinds, _) in SCHEMA.items() if int in kinds
)  # fmt: skip


def _code(name: str) -> str:
    return f"hash({', '.join(f'{text}::VARCHAR' for text in _SHARED[name])})"


_PROFILE = "STRUCT(" + ", ".join(f'"{part}" DECIMAL(18, 6)' for part in PARTS) + ")"
#: Column of the table -> its type and what it is made of.
_KEPT = {
    **{name: ("UBIGINT", _code(name)) for name in _SHARED},
    **{name: ("BIGINT", _whole(name)) for name in ("position", "attempt", "seed")},
    **{name: ("VARCHAR", name) for name in ("video", "error")},
    **{name: ("BOOLEAN", f"try_cast({name}::VARCHAR AS BOOLEAN)")
       for name in ("success", "hard_success")},
    "collision": ("BOOLEAN", f"{_whole('collision_count')} > 0"),
    **{name: ("DOUBLE", _real(name)) for name in ("started", "finished")},
    "profile": (_PROFILE, "profile"),
}  # fmt: skip

COLUMNS = ", ".join(
    ["file INTEGER", "valid BOOLEAN", *(f"{name} {kind}" for name, (kind, _) in _KEPT.items())]
)

_FIELDS = {name: "VARCHAR" if str in kinds else "JSON" for name, (kinds, _) in SCHEMA.items()} | {
    "profile": _PROFILE
}
#: Files to read. (Of every value that is bound, DuckDB's client asks whether it is of pandas, and
#: looks for that where it is not installed: so any number of them is one text.)
FILES = "SET VARIABLE files = from_json(?, '[\"VARCHAR\"]')"
#: The number of the first of them; the others follow.
FIRST = "SET VARIABLE first = ?"
#: The lines ``v`` of a table as one text: JSON, an array of arrays. ``v[1]`` is a text or null.
LINES = """(SELECT unnest(from_json(?, '[["VARCHAR"]]')) AS v)"""


def _read(**columns: str) -> str:
    fields = ", ".join(f"{name}: '{kind}'" for name, kind in columns.items())
    return f"""
read_json(getvariable('files'), format = 'newline_delimited', ignore_errors = true,
          columns = {{{fields}}})
"""


READ = f"""
INSERT INTO rows
SELECT getvariable('first') + file_index, {_valid()},
  {", ".join(made for _, made in _KEPT.values())}
FROM (SELECT *, file_index, {_PARSED} FROM {_read(**_FIELDS)})
"""
TEXTS = "CREATE TABLE texts (code UBIGINT, words VARCHAR[], mistaken BOOLEAN)"
_WORDS = [f"[{', '.join(f'{text}::VARCHAR' for text in of)}]" for of in _SHARED.values()]


def _mistaken(name: str) -> str:
    ((kind,), _) = SCHEMA[name]
    return f"NOT coalesce({_is(kind, name)}, false)"


_MISTAKEN = [" OR ".join(map(_mistaken, of)) for of in _SHARED.values()]
#: Learn the texts of the lines of files.
LEARN = f"""
INSERT INTO texts SELECT DISTINCT code, words, mistaken FROM (
  SELECT unnest([{", ".join(map(_code, _SHARED))}]) AS code, unnest([{", ".join(_WORDS)}]) AS words,
    unnest([{", ".join(_MISTAKEN)}]) AS mistaken
  FROM {_read(**_FIELDS)}
) ANTI JOIN texts USING (code)
"""
_CODES = " UNION ALL ".join(
    f"SELECT {name} AS code, any_value(file) AS file FROM rows GROUP BY {name}" for name in _SHARED
)
#: A file for each text that is not known yet.
UNKNOWN = f"SELECT DISTINCT file FROM ({_CODES}) ANTI JOIN texts USING (code)"

_CODED = " OR ".join(f"{name} IN (SELECT code FROM texts WHERE mistaken)" for name in _SHARED)
#: The files that hold what is shared and may be of another type.
MISTAKEN = f"SELECT DISTINCT file FROM rows WHERE file >= getvariable('first') AND ({_CODED})"

#: The files of which not every line is a row.
FAILED = "SELECT DISTINCT file FROM rows WHERE NOT valid"
#: Those with a profile of which nothing is known, an empty one or what is none.
DOUBTFUL = "SELECT DISTINCT file FROM rows WHERE valid IS NULL AND file >= getvariable('first')"
#: The numbers, in ``FILES``, of those with a profile that is none.
ODD = f"""
SELECT DISTINCT file_index FROM {_read(profile="JSON")} WHERE profile::VARCHAR < '{{'
"""

FLOORS = f"INSERT INTO floors SELECT hash(v[1]), v[2]::BIGINT, v[3]::BIGINT FROM {LINES}"

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
TIES = f"""
SELECT DISTINCT words[1], position, file
FROM (SELECT rows.manifest AS code, rows.position, file {_TIED}) JOIN texts USING (code)
"""
DELETE_TIES = f"DELETE FROM rows WHERE rowid IN (SELECT rows.rowid {_TIED})"
