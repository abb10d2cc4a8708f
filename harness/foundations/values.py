"""A variable's value, and the text that a user writes for it.

Promises: a text that is no value is refused with what it may be; what ``as_text`` writes, ``parse``
reads as the same value.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.canonical import canonical_json
from harness.errors import RollpoolError
from harness.foundations.variables import Variable
from harness.foundations.yaml_files import is_yaml, load_yaml
from harness.paths import Root


def parse(variable: Variable, text: object, source: str, root: Root) -> Any:
    """The value of a variable's text. Raises ``RollpoolError`` naming what it may be."""
    try:
        text = as_text(text)
    except (TypeError, ValueError) as error:
        raise _not_plain(f"{variable.name} ({source})", error) from error
    asked = f"{variable.name}={text} ({source})"
    if variable.type == "flag":
        if text not in ("0", "1"):
            raise RollpoolError(asked, "neither 0 nor 1", "set it to 0 or 1")
        return text == "1"
    if variable.type == "path":
        return _path(variable, text, asked, root)
    if variable.type == "name or path":
        return str(root.place(text)) if "/" in text or is_yaml(text) else text
    if variable.type == "mapping":
        return _mapping(text, asked, root)
    if variable.choices and text not in variable.choices:
        raise RollpoolError(asked, "no such choice", f"set it to {' or '.join(variable.choices)}")
    return text if variable.type == "text" else _number(variable, text, asked)


def _path(variable: Variable, text: str, asked: str, root: Root) -> Path:
    if variable.whole and not Path(text).expanduser().is_absolute():
        raise RollpoolError(
            asked, "not a whole path, and every process may stand in another folder",
            "write it from / on",
        )  # fmt: skip
    return root.place(text)


def as_text(value: object) -> str:
    """A value as one writes it in the environment."""
    if isinstance(value, dict):
        return canonical_json(value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _mapping(text: str, asked: str, root: Root) -> dict[str, Any]:
    """The content of the YAML file ``text``, or what ``as_text`` made of it, as JSON values."""
    try:
        content = json.loads(text) if text.startswith("{") else load_yaml(root.place(text))
        # Through JSON and back, so that it is the same on joining, where JSON is all there is.
        mapping: dict[str, Any] = json.loads(canonical_json(content))
    except (TypeError, ValueError) as error:
        raise _not_plain(asked, error) from error
    return mapping


def _not_plain(asked: str, error: Exception) -> RollpoolError:
    return RollpoolError(
        asked, f"not plain values ({error})", "use text, numbers, lists and mappings alone"
    )


def _number(variable: Variable, text: str, asked: str) -> int | float:
    """A finite number within the variable's range."""
    try:
        number = int(text) if variable.type == "int" else float(text)
    except ValueError:
        kind = "a whole number" if variable.type == "int" else "a number"
        raise RollpoolError(asked, f"not {kind}", f"set it to {kind}{_range(variable)}") from None
    low, high = variable.low, variable.high
    inside = (low is None or number >= low) and (high is None or number <= high)
    if not inside or number in (float("inf"), float("-inf")) or number != number:
        raise RollpoolError(asked, "out of range", f"set it to a number{_range(variable)}")
    return number


def _range(variable: Variable) -> str:
    low, high = variable.low, variable.high
    if high is not None:
        return f" from {low:g} to {high:g}"
    return "" if low is None else f" of at least {low:g}"
