"""The SQL of ``row_table``: what is read of files and kept of rows, and which are no rows.

What many rows have in common is in the table as a code, a hash of 64 bits, and ``texts`` says once
what of, and whether it is what it should be. A profile is whole numbers of microseconds, whose sums
are exact and so the same in any order. ``error`` is JSON.
"""

from __future__ import annotations

from harness.reports.row_checks import FIELDS, PARSED, PROFILE, mistaken, real, valid, whole

IDENTITY = ("policy", "checkpoint", "simulator", "settings_hash", "code_hash")
_SHARED = {
    "manifest": ("manifest",),
    "place": ("scene", "task", "task_config"),
    "identity": IDENTITY,
    "worker": ("worker",),
    "host": ("host", "run"),
}
_OF_MANY = {name for of in _SHARED.values() for name in of}


def _code(name: str) -> str:
    return f"hash({', '.join(f'{text}::VARCHAR' for text in _SHARED[name])})"


#: Column of the table -> its type and what it is made of.
_KEPT = {
    **{name: ("UBIGINT", _code(name)) for name in _SHARED},
    **{name: ("BIGINT", whole(name)) for name in ("position", "attempt", "seed")},
    **{name: ("VARCHAR", name) for name in ("video", "error")},
    **{name: ("BOOLEAN", f"try_cast({name}::VARCHAR AS BOOLEAN)")
       for name in ("success", "hard_success")},
    "collision": ("BOOLEAN", f"{whole('collision_count')} > 0"),
    **{name: ("DOUBLE", real(name)) for name in ("started", "finished")},
    "profile": (PROFILE, "profile"),
}  # fmt: skip

COLUMNS = ", ".join(
    ["file INTEGER", "valid BOOLEAN", *(f"{name} {kind}" for name, (kind, _) in _KEPT.items())]
)

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
SELECT getvariable('first') + file_index, {valid(_OF_MANY)},
  {", ".join(made for _, made in _KEPT.values())}
FROM (SELECT *, file_index, {PARSED} FROM {_read(**FIELDS)})
"""
TEXTS = "CREATE TABLE texts (code UBIGINT, words VARCHAR[], mistaken BOOLEAN)"
_WORDS = [f"[{', '.join(f'{text}::VARCHAR' for text in of)}]" for of in _SHARED.values()]
_MISTAKEN = [" OR ".join(map(mistaken, of)) for of in _SHARED.values()]
#: Learn the texts of the lines of files.
LEARN = f"""
INSERT INTO texts SELECT DISTINCT code, words, mistaken FROM (
  SELECT unnest([{", ".join(map(_code, _SHARED))}]) AS code, unnest([{", ".join(_WORDS)}]) AS words,
    unnest([{", ".join(_MISTAKEN)}]) AS mistaken
  FROM {_read(**FIELDS)}
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
