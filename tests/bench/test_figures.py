"""Each figure once, as small as it can be and without peers: it runs and measures what it says."""

from __future__ import annotations

import importlib
import math

import pytest

from bench.__main__ import FIGURES
from bench.measuring import TINY, Figure

GOALS = {
    "wire": 2, "stack": 1, "claims": 4, "overhead": 1, "makespan": 1, "servers": 1, "sealing": 2,
    "rows": 2, "cli": 2, "video": 1, "takeover": 2,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_measured(name: str) -> None:
    module = importlib.import_module(f"bench.{name}")
    figure: Figure = module.measure(TINY)
    if name == "overhead" and figure.notes:
        pytest.skip(f"{figure.notes[0]}")
    found = [*figure.series, *figure.goals]
    assert len(figure.series) >= 1 and figure.title == module.TITLE
    assert all(len(of.values) >= 1 and all(map(math.isfinite, of.values)) for of in found)
    assert all(value > 0 for series in figure.series for value in series.values)
    if not any("needs root" in note for note in figure.notes):
        assert len(figure.goals) == GOALS[name]
