"""What is reckoned name by name is what a whole look would find."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.foundations.records import Row
from harness.leases.budget import Budget
from harness.leases.filesystem import Filesystem
from harness.leases.lease import LeaseBook
from harness.leases.names import Claim
from harness.leases.standing import Standing
from tests.lease.conftest import Cluster
from tests.lease.scripted import manifest, row

BANK, SELECTED = manifest("a", 6), range(5)
#: Of a longer bank and of other minibatches, too.
NAMES = [
    f"{first}-{first + more}.{attempt}{marker}"
    for first in range(5) for more in (0, 1, 3) for attempt in (1, 2)
    for marker in ("", ".done", ".short", ".released")
]  # fmt: skip


class Names(Filesystem):
    """One shard, with whatever names the test puts there."""

    def __init__(self) -> None:
        self.there: set[str] = set()

    def names(self, directory: Path) -> list[str]:
        return sorted(self.there) if directory.name == "0" else ["0"]

    def create(self, file: Path, data: bytes = b"") -> bool:
        self.there.add(file.name)
        return True


def standing(fs: Filesystem, rows: list[Row]) -> Standing:
    book = LeaseBook(Path("/leases"), "cell", fs)
    return Standing(BANK, SELECTED, book, Budget(1, 1), lambda: rows)


names = st.sampled_from(NAMES)
row_of = st.tuples(st.integers(0, 5), st.integers(1, 2), st.sampled_from(["success", "error"]))
turns = st.one_of(
    st.tuples(st.just("come"), names), st.tuples(st.just("go"), names),
    st.tuples(st.just("finish"), names), st.tuples(st.just("record"), row_of),
)  # fmt: skip


@given(st.lists(st.lists(turns, max_size=5), min_size=1, max_size=8))
def test_what_is_reckoned_by_what_changed_is_what_a_whole_look_finds(
    history: list[list[tuple[str, Any]]],
) -> None:
    fs, rows = Names(), list[Row]()
    ours = standing(fs, rows)
    for turn in history:
        ours.refresh()
        for what, of in turn:
            if what == "come":
                fs.there.add(of)
            elif what == "go":
                fs.there.discard(of)
            elif what == "record":
                position, attempt, outcome = of
                rows.append(row(BANK, position, attempt, "w", outcome, "crash"))
                ours.recorded(rows[-1])
            else:
                claim = Claim.parse("cell", 0, ".".join(of.split(".")[:2]))
                assert claim
                ours.finish(claim, "short")
            whole(ours)
        ours.book.refresh(0)
        assert list(ours.fresh(0)) == whole(ours)
        same(ours.book, fs)


def whole(ours: Standing) -> list[int]:
    """What is fresh, by a look at every position; what is left is as such a look says."""
    left = [p for p in SELECTED if not ours.over(p)]
    taken = {p for p in left if ours.book.open(p)}
    assert ours.book.changed or ours.left.get(0, []) == left
    return [p for p in left if p not in taken and not ours.budget.failed(BANK.hash, p)]


def same(ours: LeaseBook, fs: Filesystem) -> None:
    """One that lists for the first time knows the same names."""
    anew = LeaseBook(Path("/leases"), "cell", fs)
    anew.refresh(0)
    assert ours.closed() == anew.closed()
    assert ours.done() == anew.done()
    for position in range(9):
        assert {*ours.covering(position)} == {*anew.covering(position)}
        assert {*ours.open(position)} == {*anew.open(position)}
        attempts = [claim.attempt for claim in ours.covering(position)]
        assert attempts == sorted(attempts)


@given(
    st.sets(st.integers(0, 127), min_size=1), st.floats(0, 1, exclude_max=True), st.integers(1, 9)
)
def test_batches_are_the_same_wherever_one_begins(
    positions: set[int], start: float, minibatch: int
) -> None:
    book = LeaseBook(Path("/leases"), "cell", Names())
    of = Standing(BANK, range(128), book, Budget(1, 1), list, minibatch)
    runs = [*of.runs(sorted(positions), start)]
    assert sorted(runs) == [*of.runs(sorted(positions))]
    covered = [p for first, last in sorted(runs) for p in range(first, last + 1)]
    assert covered == sorted(positions)
    assert all(first // minibatch == last // minibatch for first, last in runs)


def test_a_listing_costs_what_is_new_in_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    member, read, claims = cluster.join(manifest("a", 128)), Counter[str](), 100
    parse = Claim.parse
    monkeypatch.setattr(
        Claim, "parse", lambda *of: read.update([of[-1]]) or parse(*of)
    )  # fmt: skip
    for _ in range(claims):
        member.run(member.take())
    assert read.total() <= claims
    assert max(read.values()) == 1
