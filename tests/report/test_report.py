"""Rates, their intervals, and the sums of tallies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report import Counted, Hole, Rate, Report, Tally, tables, wilson


def test_wilson_closed_forms() -> None:
    """With none of n the upper bound is z2 / (n + z2), z2 = 3.841459; at half the bounds are
    1/2 -+ 1/2 sqrt(z2 / (n + z2))."""
    assert wilson(0, 10) == pytest.approx((0.0, 0.277533), abs=1e-6)
    assert wilson(10, 10) == pytest.approx((0.722467, 1.0), abs=1e-6)
    assert wilson(5, 10) == pytest.approx((0.236593, 0.763407), abs=1e-6)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_bounds_solve_the_score_equation(case: tuple[int, int]) -> None:
    hits, n = case
    for bound in wilson(hits, n):
        distance = abs(hits / n - bound)
        assert distance**2 == pytest.approx(3.8414588 * bound * (1 - bound) / n, abs=1e-6)


def test_wilson_of_nothing_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert Rate().percent is None and Rate().interval is None


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate_and_mirrors(case: tuple[int, int]) -> None:
    hits, n = case
    low, high = wilson(hits, n)
    assert 0.0 <= low <= hits / n <= high <= 1.0
    assert wilson(n - hits, n) == pytest.approx((1 - high, 1 - low))


EPISODES = st.lists(
    st.builds(
        Counted,
        scene=st.sampled_from(["study", "office"]),
        task=st.sampled_from(["a", "b"]),
        task_config=st.just("c"),
        seed=st.integers(0, 9),
        success=st.booleans(),
        hard_success=st.sampled_from([True, False, None]),
        collision=st.sampled_from([True, False, None]),
    ),
    max_size=30,
)


@given(EPISODES, st.randoms())
def test_order_does_not_matter_and_sums_agree(counted: list[Counted], random: object) -> None:
    shuffled = list(counted)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    found = tables(counted, [])
    assert found == tables(shuffled, [])
    total = Report("m", "r", "clean", found).total
    assert total.success == Rate(sum(e.success for e in counted), len(counted))
    known = [e for e in counted if e.hard_success is not None]
    assert total.hard == Rate(sum(e.hard_success is True for e in known), len(known))


def test_holes_are_in_no_rate() -> None:
    holes = [Hole("s", "t", "c", k, kind) for k, kind in enumerate(("missing", "error"))]
    holes.append(Hole("s", "t", "c", 7, "quarantined"))
    (tally,) = tables([Counted("s", "t", "c", 9, True)], holes)["s"].values()
    assert tally == Tally(success=Rate(1, 1), errors=2, quarantined=1, missing=1)
    assert tally.partial and tally.selected == 4
