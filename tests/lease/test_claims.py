"""Order, economy and budgets of claims."""

from __future__ import annotations

import dataclasses
import shutil

import pytest

from harness.foundations.records import Row
from harness.leases.claims import Wait
from tests.lease.conftest import Cluster
from tests.lease.scripted import manifest


def test_the_order_of_work(cluster: Cluster) -> None:
    cells = [manifest(digit, 6) for digit in "abc"]
    first, second = cluster.join(*cells), cluster.join(*cells)
    assert first.take().manifest == cells[0]
    assert second.take().manifest == cells[1]  # an untouched cell, not the first one's
    assert [first.take().positions for _ in range(5)] == [(p,) for p in range(1, 6)]
    assert first.take().manifest == cells[2]
    assert [second.take().manifest for _ in range(5)] == [cells[1]] * 5
    assert second.take().manifest == cells[2]  # joins what is left


def test_who_joins_takes_the_cell_with_the_most_left(cluster: Cluster) -> None:
    cells = [manifest("a", 3), manifest("b", 9)]
    first, second, third = (cluster.join(*cells) for _ in range(3))
    first.take()
    second.take()
    assert third.take().manifest == cells[1]


def test_nothing_left_is_none_and_something_held_is_wait(cluster: Cluster) -> None:
    first, second = cluster.join(manifest("a", 1)), cluster.join(manifest("a", 1))
    batch = first.take()
    waiting = second.claims.next()
    assert isinstance(waiting, Wait)
    assert waiting.episodes == 1
    first.run(batch)
    assert second.claims.next() is None


@pytest.mark.parametrize(("size", "minibatch"), [(1000, 1), (1000, 10), (100, 0)])
def test_a_claim_costs_a_handful_of_calls(cluster: Cluster, size: int, minibatch: int) -> None:
    member = cluster.join(*(manifest(d, size // 4) for d in "abcd"), minibatch=minibatch)
    assert len(member.work()) == size
    assert member.fs.calls.total() <= 5 * size


def test_a_claim_costs_the_same_in_a_long_queue(cluster: Cluster) -> None:
    member = cluster.join(manifest("a", 100_000))
    before, claims = member.fs.calls.total(), 300
    for _ in range(claims):
        member.run(member.take())
    assert member.fs.calls.total() - before <= 4 * claims


def test_workers_in_one_cell_do_not_race_for_each_batch(cluster: Cluster) -> None:
    members = [cluster.join(manifest("a", 640)) for _ in range(8)]
    while len(cluster.rows) < 600:
        for member in members:
            member.run(member.take())
    assert sum(m.fs.calls.total() for m in members) <= 4 * len(cluster.rows)
    assert len({r.position for r in cluster.rows}) == len(cluster.rows)


@pytest.mark.slow
def test_64_workers_in_one_cell_do_not_either(cluster: Cluster) -> None:
    members = [cluster.join(manifest("a", 1280)) for _ in range(64)]
    while len(cluster.rows) < 1216:  # twenty each, the first of which joins
        for member in members:
            member.run(member.take())
    assert sum(m.fs.calls.total() for m in members) <= 5 * len(cluster.rows)


def test_raising_the_test_number_runs_what_is_new(cluster: Cluster) -> None:
    bank = manifest("a", 10)
    assert cluster.join(dataclasses.replace(bank, selected=4), minibatch=4).work() == [0, 1, 2, 3]
    assert cluster.join(dataclasses.replace(bank, selected=6), minibatch=4).work() == [4, 5]
    assert sorted(cluster.join(bank, minibatch=4).work()) == [6, 7, 8, 9]


def test_another_minibatch_goes_on_where_the_first_stopped(cluster: Cluster) -> None:
    first = cluster.join(manifest("a", 10), minibatch=4)
    first.run(first.take())
    assert sorted(cluster.join(manifest("a", 10), minibatch=3).work()) == [4, 5, 6, 7, 8, 9]


def test_minibatches_that_differ_at_the_same_time_do_not_overlap(cluster: Cluster) -> None:
    narrow = cluster.join(manifest("a", 8), minibatch=2)
    wide = cluster.join(manifest("a", 8), minibatch=4)
    taken = [narrow.take().positions, wide.take().positions, narrow.take().positions]
    assert len(set().union(*taken)) == sum(map(len, taken))


def test_a_further_bank_is_further_work(cluster: Cluster) -> None:
    cluster.join(manifest("a", 3)).work()
    assert cluster.join(manifest("a", 3), manifest("b", 2)).work() == [0, 1]


def test_positions_that_are_not_selected_are_never_covered(cluster: Cluster) -> None:
    gap = dataclasses.replace(manifest("a", 6), repeated=frozenset({2, 3}))
    member = cluster.join(gap, minibatch=0)
    assert [member.take().positions, member.take().positions] == [(0, 1), (4, 5)]


def test_removing_the_leases_loses_nothing_that_is_recorded(cluster: Cluster) -> None:
    watcher, worker = cluster.join(manifest("a", 6)), cluster.join(manifest("a", 6))
    watcher.run(watcher.take())
    for _ in range(3):
        worker.run(worker.take())
    shutil.rmtree(cluster.paths.leases)
    watcher.work()
    assert sorted(r.position for r in cluster.rows) == [0, 1, 2, 3, 4, 5]


def test_removed_leases_are_news(cluster: Cluster) -> None:
    owner, other = cluster.join(manifest("a", 1)), cluster.join(manifest("a", 1))
    batch = owner.take()
    assert isinstance(other.claims.next(), Wait)
    owner.run(batch)
    shutil.rmtree(cluster.paths.leases)
    assert other.claims.next() is None


def test_who_joins_lists_names_before_it_reads_rows(cluster: Cluster) -> None:
    owner, other = cluster.join(), cluster.join()
    owner.take()
    standing, listed = other.claims._standings[0], list[bool]()

    def rows() -> list[Row]:
        listed.append(standing.book.listed(0))
        return []

    standing._rows = rows
    standing.refresh()
    assert listed[0]


def test_a_done_marker_without_rows_is_void(cluster: Cluster) -> None:
    cluster.join(manifest("a", 4)).work()
    cluster.rows[:] = [r for r in cluster.rows if r.position != 2]
    late = cluster.join(manifest("a", 4))
    assert late.take().positions == (2,)
    assert late.claims.next().__class__ is Wait


def test_an_error_is_tried_again_until_its_budget_is_spent(cluster: Cluster) -> None:
    member = cluster.join(manifest("a", 2))
    for _ in range(2):
        member.run(member.take(), "error")
    attempts = []
    while batch := member.claims.next():
        attempts.append(batch.attempt)  # type: ignore[union-attr]
        member.run(batch, "error")  # type: ignore[arg-type]
    assert attempts == [2, 2, 3, 3] or attempts == [2, 3, 2, 3]


def test_a_host_leaves_its_own_errors_to_others(cluster: Cluster) -> None:
    sick, well = cluster.join(host="h1"), cluster.join(host="h2")
    for outcome in ("error", "success", "success", "success"):
        sick.run(sick.take(), outcome)
    assert isinstance(sick.claims.next(), Wait)
    assert well.take().positions == (0,)


def test_what_is_given_back_costs_nothing(cluster: Cluster) -> None:
    first, second = cluster.join(manifest("a", 1)), cluster.join(manifest("a", 1))
    first.claims.finish(first.take(), "released")
    batch = second.take()
    assert (batch.positions, batch.attempt) == ((0,), 2)
    assert cluster.rows == []
