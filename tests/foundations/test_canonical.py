"""Equal content is equal text, and a line of a manifest is that of its episode alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import canonical_json, episode_line, seed_of
from tests.plain_values import objects

prints = st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=2)


@given(st.integers(), st.text(max_size=5), objects, prints)
def test_a_line_is_the_text_of_its_episode(
    seed: int, instruction: str, reset: dict[str, Any], fingerprint: dict[str, str]
) -> None:
    line = episode_line(seed, instruction, reset, fingerprint)
    says = {"seed": seed, "instruction": instruction, "reset": reset}
    assert json.loads(line) == says | ({"fingerprint": fingerprint} if fingerprint else {})
    assert canonical_json(json.loads(line)) == line, "whoever reads it would write it so again"
    assert line.splitlines() == [line] and line.isascii(), "a file of lines is split where they end"
    assert seed_of(line) == seed


def test_what_is_no_json_has_no_text() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        episode_line(1, "go", {"at": float("nan")})
