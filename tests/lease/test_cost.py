"""The benchmark of claims: it runs, and counts what the tests of claims count."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.lease_costs import case, inodes


@pytest.mark.parametrize("workers", [1, 3])
def test_a_claim_costs_mkdir_listing_and_marker(tmp_path: Path, workers: int) -> None:
    batches, of, calls, _, ratio, rate = case(tmp_path, 200, workers, 20).split()
    assert (batches, of) == ("200", str(workers))
    assert 3 <= float(calls) <= 5
    assert float(ratio) > 0
    assert float(rate.replace(",", "")) > 0
    assert not list(tmp_path.iterdir())


def test_inodes_are_two_an_episode_and_few_when_compacted(tmp_path: Path) -> None:
    said = inodes(tmp_path, 256)
    assert re.findall(r"\d+", said) == ["256", "515", "5"]
