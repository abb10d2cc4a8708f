"""Rates, their intervals, and the sums of tallies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reports.report import Hole, Place, Rate, Report, Tally, tables, wilson


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


def _rates(hits: int, n: int) -> Rate:
    return Rate(min(hits, n), n)


TALLIES = st.dictionaries(
    st.builds(Place, st.sampled_from(["study", "office"]), st.sampled_from(["a", "b"]),
              st.sampled_from(["c", "d"])),
    st.builds(Tally, *(3 * [st.builds(_rates, st.integers(0, 9), st.integers(0, 9))])),
)  # fmt: skip


@given(TALLIES)
def test_order_does_not_matter_and_sums_agree(counted: dict[Place, Tally]) -> None:
    found = tables(counted, [])
    assert found == tables(dict(reversed(counted.items())), [])
    total = Report("m", "r", "clean", found).total
    assert total.success.hits == sum(tally.success.hits for tally in counted.values())
    assert total.hard.n == sum(tally.hard.n for tally in counted.values())


def test_holes_are_in_no_rate() -> None:
    holes = [Hole("s", "t", "c", k, kind) for k, kind in enumerate(("missing", "error"))]
    holes.append(Hole("s", "t", "c", 7, "quarantined"))
    (tally,) = tables({Place("s", "t", "c"): Tally(Rate(1, 1))}, holes)["s"].values()
    assert tally == Tally(success=Rate(1, 1), errors=2, quarantined=1, missing=1)
    assert tally.partial and tally.selected == 4
