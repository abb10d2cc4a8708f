"""The one text of a JSON value, and of an episode as a line of a sealed manifest.

Promises: equal content is equal text in every process, so a hash of it says what is in it. A line
is made once, by the process that seals: whoever else has it passes its text on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class Sealed(NamedTuple):
    """What a simulator says of some seeds of a cell."""

    lines: Sequence[str]  # of the manifest, one a seed
    step_limit: int = 0  # the task's; 0 where nobody said


def canonical_json(value: Any) -> str:
    """The one text of a JSON value, made to be hashed: ASCII, keys sorted, no spaces, no NaN."""
    return _ENCODER.encode(value)


def episode_line(
    seed: int, instruction: str, reset: Mapping[str, Any],
    fingerprint: Mapping[str, str] | None = None,
) -> str:  # fmt: skip
    """An episode's line of a manifest, without its newline."""
    line = {"seed": seed, "instruction": instruction, "reset": reset}
    return canonical_json(line | {"fingerprint": fingerprint} if fingerprint else line)


def seed_of(line: str) -> int:
    """The seed in an ``episode_line``: the last of its keys."""
    return int(line[line.rindex(":") + 1 : -1])
