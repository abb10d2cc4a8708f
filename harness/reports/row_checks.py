"""The SQL that tells a line which is a row from one that is none, field by field.

Promises: no line passes whose fields ``Row.from_json`` would refuse (one that it accepts may fail
to). What DuckDB takes for JSON and Python does not, a comma too many, or NaN within a value that is
no field's own, is not looked for: no row is written so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from harness.foundations.records import ERROR_KINDS, FORMAT, OUTCOMES, SCHEMA
from harness.stopwatch import PARTS

#: Fields of which ``valid`` says more than their type.
_SPECIAL = ("outcome", "success", "error", "profile")
#: Of a profile the known parts are read, to the microsecond and below 10^12 s.
PROFILE = "STRUCT(" + ", ".join(f'"{part}" DECIMAL(18, 6)' for part in PARTS) + ")"
#: Field -> the type that DuckDB reads it as.
FIELDS = {name: "VARCHAR" if str in kinds else "JSON" for name, (kinds, _) in SCHEMA.items()} | {
    "profile": PROFILE
}


def valid(shared: Collection[str]) -> str:
    """SQL that holds for no line which ``Row.from_json`` would refuse; it says nothing of
    ``shared`` fields, and is null where nothing of the profile is known, which may be none.
    """
    checks = []
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
        _or("format IS NULL", f"{whole('format')} <= {FORMAT}"),
        f"{whole('position')} >= 0 AND {whole('attempt')} >= 1",
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
    split = f"(contains({text}, '.') OR contains({text}, 'e'))"
    texts = f"[json_type(one) = 'VARCHAR' FOR one IN json_extract({name}, '$[*]')]"
    return {
        str: f"NOT json_valid({name})",
        dict: f"{text} >= '{{'",
        list: _or(f"{text} = '[]'", f"{text} BETWEEN '[' AND '\\' AND list_bool_and({texts})"),
        bool: f"{text} IN ('true', 'false')",
        int: f"({whole(name)} IS NOT NULL AND NOT {split})",
        float: f"isfinite({real(name)})"
        f" AND {_or(f'strlen({text}) < 19', f'{split} OR try_cast({text} AS BIGINT) IS NOT NULL')}",
    }[kind]


def _or(usual: str, else_: str) -> str:
    """SQL: one or the other; the other is not computed where the first holds."""
    return f"(CASE WHEN {usual} THEN true ELSE {else_} END)"


def whole(name: str) -> str:
    """The column of ``PARSED`` that holds the whole number."""
    return f"{name}_whole"


def real(name: str) -> str:
    """The column of ``PARSED`` that holds the number."""
    return f"{name}_real"


#: Numbers that are asked for more than once.
PARSED = ", ".join(
    f"try_cast({name}::VARCHAR AS DOUBLE) AS {real(name)}" if float in kinds
    else f"try_cast({name}::VARCHAR AS BIGINT) AS {whole(name)}"
    for name, (kinds, _) in SCHEMA.items() if int in kinds
)  # fmt: skip


def mistaken(name: str) -> str:
    """SQL: the field, a text or an object, may be none."""
    ((kind,), _) = SCHEMA[name]
    return f"NOT coalesce({_is(kind, name)}, false)"
