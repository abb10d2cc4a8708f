"""Laps add up to the time that passed, whatever was measured in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stopwatch import OTHER, PARTS, Stopwatch


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


PASSING = st.lists(st.tuples(st.sampled_from([*PARTS[:4], None]), st.floats(0, 1e4)), max_size=20)


@given(PASSING)
def test_a_lap_adds_up_and_each_part_has_its_own_seconds(passing: list[tuple[str, float]]) -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    expected: dict[str, float] = {}
    for part, seconds in passing:
        expected[part or OTHER] = expected.get(part or OTHER, 0.0) + seconds
        if part is None:
            clock.now += seconds
        else:
            with watch.part(part):
                clock.now += seconds
    lap = watch.lap()
    assert sum(lap.values()) == pytest.approx(clock.now, abs=1e-4)
    for part, seconds in expected.items():
        assert lap.get(part, 0.0) == pytest.approx(seconds, abs=1e-4)
    assert watch.lap() == {}, "the next lap begins where this one ended"


def test_a_part_counts_when_it_ends_by_an_exception() -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    with pytest.raises(KeyError), watch.part("reset"):
        clock.now += 2
        raise KeyError
    assert watch.lap() == {"reset": 2}


def test_anothers_lap_is_taken_in_and_its_other_stays_unmeasured() -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    with watch.part("claim"):
        clock.now += 1
    clock.now += 10
    watch.take({"reset": 3.0, "simulate": 6.0, OTHER: 1.0})
    assert watch.lap() == {"claim": 1, "reset": 3, "simulate": 6, OTHER: 1}
