"""The SQL of ``row_table``: which lines are rows, and what is kept of one.

Promises: no line passes whose fields ``Row.from_json`` would refuse (one that it accepts may fail
to). What DuckDB takes for JSON and Python does not, a comma too many, or NaN within a value that is
no field's own, is not looked for: no row is written so. In the table a text is the JSON of it, as
DuckDB writes it, so equal texts are equal there, too. What many rows have in common is there as a
code, a hash of 64 bits, and ``texts`` says once what of.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.foundations.records import ERROR_KINDS, FORMAT, OUTCOMES, SCHEMA


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


IDENTITY = ("policy", "checkpoint", "simulator", "settings_hash", "code_hash")
_SHARED = {
    "manifest": ("manifest",),
    "place": ("scene", "task", "task_config"),
    "identity": IDENTITY,
}


def _code(name: str) -> str:
    return f"hash({', '.join(f'{text}::VARCHAR' for text in _SHARED[name])})"


#: Column of the table -> its type and what it is made of.
_KEPT = {
    **{name: ("UBIGINT", _code(name)) for name in _SHARED},
    **{name: ("BIGINT", _whole(name)) for name in ("position", "attempt", "seed")},
    **{name: ("VARCHAR", name) for name in ("worker", "host", "video", "error", "profile")},
    **{name: ("BOOLEAN", f"try_cast({name}::VARCHAR AS BOOLEAN)")
       for name in ("success", "hard_success")},
    "collision": ("BOOLEAN", f"{_whole('collision_count')} > 0"),
    **{name: ("DOUBLE", f"try_cast({name}::VARCHAR AS DOUBLE)")
       for name in ("started", "finished")},
}  # fmt: skip

COLUMNS = ", ".join(
    ["file INTEGER", "valid BOOLEAN", *(f"{name} {kind}" for name, (kind, _) in _KEPT.items())]
)

_FIELDS = ", ".join(f"{name}: 'JSON'" for name in SCHEMA)
#: Files to read. (Of every value that is bound, DuckDB's client asks whether it is of pandas, and
#: looks for that where it is not installed: so any number of them is one text.)
FILES = "SET VARIABLE files = from_json(?, '[\"VARCHAR\"]')"
#: The number of the first of them; the others follow.
FIRST = "SET VARIABLE first = ?"
#: The lines ``v`` of a table as one text: JSON, an array of arrays. ``v[1]`` is a text or null.
LINES = """(SELECT unnest(from_json(?, '[["VARCHAR"]]')) AS v)"""
_READ = f"""
read_json(getvariable('files'), format = 'newline_delimited', ignore_errors = true,
          columns = {{{_FIELDS}}})
"""
READ = f"""
INSERT INTO rows
SELECT getvariable('first') + file_index, {_or(_valid(), "false")},
  {", ".join(made for _, made in _KEPT.values())}
FROM {_READ}
"""
TEXTS = "CREATE TABLE texts (code UBIGINT, words VARCHAR[])"
_WORDS = [f"[{', '.join(f'{text}::VARCHAR' for text in of)}]" for of in _SHARED.values()]
#: Learn the texts of the lines of files.
LEARN = f"""
INSERT INTO texts SELECT DISTINCT code, words FROM (
  SELECT unnest([{", ".join(map(_code, _SHARED))}]) AS code, unnest([{", ".join(_WORDS)}]) AS words
  FROM {_READ}
) ANTI JOIN texts USING (code)
"""
_CODES = " UNION ALL ".join(
    f"SELECT {name} AS code, any_value(file) AS file FROM rows GROUP BY {name}" for name in _SHARED
)
#: A file for each text that is not known yet.
UNKNOWN = f"SELECT DISTINCT file FROM ({_CODES}) ANTI JOIN texts USING (code)"

#: The files of which not every line is a row.
FAILED = "SELECT DISTINCT file FROM rows WHERE NOT valid"

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
