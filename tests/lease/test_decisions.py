"""Decisions: their order, what they do to budgets and claims, and who may be late."""

from __future__ import annotations

import itertools
import json
import shutil
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RollpoolError
from harness.foundations.records import counted
from harness.leases.budget import Budget
from harness.leases.claims import Wait
from harness.leases.compaction import compact
from harness.leases.decisions import RESET, RETRY, SKIP, Decisions, Verdict, decide
from tests.lease.conftest import TTL, Cluster, Member
from tests.lease.scripted import manifest, row

BANK = manifest("a", 1)
KEY = (BANK.hash, 0)


def read(folder: Path) -> Decisions:
    decisions = Decisions(folder)
    decisions.refresh()
    return decisions


def test_nothing_decided_is_nothing(tmp_path: Path) -> None:
    decisions = Decisions(tmp_path / "decisions")
    assert not decisions.refresh()
    assert decisions.of(*KEY) == Verdict()


def test_each_decision_has_a_number_of_its_own(tmp_path: Path) -> None:
    start = threading.Barrier(8)

    def one() -> None:
        start.wait()
        decide(tmp_path, SKIP, {KEY: 1}, "me")

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [f"{k:06d}.json" for k in range(1, 9)]
    assert sorted(file.name for file in tmp_path.iterdir()) == numbers


@given(st.lists(st.tuples(st.sampled_from([RETRY, SKIP, RESET]), st.integers(0, 9)), max_size=6))
def test_the_last_of_skip_and_retry_holds_and_floors_only_rise(
    decided: list[tuple[str, int]],
) -> None:
    verdict = Verdict()
    floors = []
    for do, attempt in decided:
        verdict = verdict.then(do, attempt, "why")
        floors.append(verdict.floor)
    assert floors == sorted(floors)
    assert bool(verdict.skipped) == (bool(decided) and decided[-1][0] == SKIP)


@pytest.mark.parametrize("order", [(SKIP, RETRY), (RETRY, SKIP)])
def test_the_decision_of_the_higher_number_is_the_last(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    for do in order:
        decide(tmp_path, do, {KEY: 1}, "me")
    assert bool(read(tmp_path).of(*KEY).skipped) == (order[1] == SKIP)


def test_a_decision_that_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "000001.json").write_text('{"format":1,"do":"retry"')
    with pytest.raises(RollpoolError, match=r"000001\.json: not readable"):
        read(tmp_path)
    dance = {"format": 1, "do": "dance", "by": "", "why": "", "episodes": {}}
    (tmp_path / "000001.json").write_text(json.dumps(dance))
    with pytest.raises(RollpoolError, match="newer toolkit"):
        read(tmp_path)


def test_retry_forgives_what_was_and_not_what_comes(tmp_path: Path) -> None:
    decide(tmp_path, RETRY, {KEY: 3}, "me")
    budget = Budget(0, 0, read(tmp_path))
    for attempt in (1, 2, 3):
        budget.add(row(BANK, 0, attempt, "h1-1", "error", "crash"))
    assert budget.quarantined(*KEY) is None
    assert not budget.failed(*KEY)
    budget.add(row(BANK, 0, 4, "h1-1", "error", "crash"))
    assert "1 errors (crash x1)" in (budget.quarantined(*KEY) or "")


def test_skip_sets_aside_with_its_reason_until_a_result_comes(tmp_path: Path) -> None:
    decide(tmp_path, SKIP, {KEY: 0}, "ann", "the table is broken")
    budget = Budget(2, 4, read(tmp_path))
    assert budget.quarantined(*KEY) == "left out by ann: the table is broken"
    budget.add(row(BANK, 0, 1, "h1-1", "fail", ""))
    assert budget.quarantined(*KEY) is None


def test_a_late_row_of_an_earlier_generation_never_counts(tmp_path: Path) -> None:
    decide(tmp_path, RESET, {KEY: 2}, "me")
    decisions = read(tmp_path)
    rows = [row(BANK, 0, n, "h1-1", outcome, "") for n, outcome in [(3, "fail"), (2, "success")]]
    for order in itertools.permutations(rows):
        assert counted(decisions.current(order))[KEY].outcome == "fail"


def decided(cluster: Cluster, *members: Member) -> None:
    """Let each hear of decisions, as a run's workers do."""
    for member in members:
        decisions = Decisions(cluster.paths.decisions)
        member.claims._news = decisions.refresh
        for standing in member.claims._standings:
            standing.budget._decisions = decisions


def test_a_worker_takes_a_retry_in_before_it_says_that_nothing_is_left(cluster: Cluster) -> None:
    member = cluster.join(BANK)
    decided(cluster, member)
    for _ in range(3):
        member.run(member.take(), "error")
    assert member.claims.next() is None
    decide(cluster.paths.decisions, RETRY, {KEY: 3}, "me")
    assert member.take().attempt == 4


def test_a_skipped_episode_is_handed_to_nobody(cluster: Cluster) -> None:
    bank = manifest("a", 2)
    member = cluster.join(bank)
    decided(cluster, member)
    decide(cluster.paths.decisions, SKIP, {(bank.hash, 1): 0}, "me")
    cluster.now += 60
    assert member.take().positions == (0,)
    assert isinstance(member.claims.next(), Wait)


@pytest.mark.parametrize("renamed", [False, True])
def test_reset_runs_all_anew_and_what_was_running_is_of_before(
    cluster: Cluster, renamed: bool
) -> None:
    bank = manifest("a", 2)
    slow, quick = cluster.join(bank), cluster.join(bank)
    decided(cluster, slow, quick)
    held = slow.take()
    quick.run(quick.take())
    episodes = {(bank.hash, position): 1 for position in (0, 1)}
    decide(cluster.paths.decisions, RESET, episodes, "me")
    if renamed:
        cluster.paths.leases.rename(cluster.paths.leases.with_suffix(".before"))
    slow.run(held)  # has not heard of it: its row and its marker say nothing any more
    cluster.now += 60
    assert [quick.take().attempt for _ in range(2)] == [2, 2]


def test_a_worker_that_hears_of_a_reset_drops_what_it_runs(cluster: Cluster) -> None:
    member = cluster.join(BANK)
    decided(cluster, member)
    held = member.take()
    decide(cluster.paths.decisions, RESET, {KEY: 1}, "me")
    member.claims._take_news()
    assert not member.claims.may_record(held)


def test_nothing_is_left_only_if_rows_say_so(cluster: Cluster) -> None:
    """A marker by somebody who had not heard of a retry, and died."""
    waiting, deaf = cluster.join(BANK), cluster.join(BANK)
    held = deaf.take()
    assert isinstance(waiting.claims.next(), Wait)
    deaf.claims.finish(held, "done")
    assert waiting.take().attempt == 2


def names(cluster: Cluster) -> list[str]:
    return sorted(path.name for path in cluster.paths.leases.glob("*/*/*"))


def compacted(member: Member) -> int:
    return compact(member.claims._standings, member.claims._news)


def test_finished_leases_become_a_name_a_range(cluster: Cluster) -> None:
    member = cluster.join(manifest("a", 300))
    member.work()
    assert len(names(cluster)) == 600
    assert compacted(member) == 600 - 3
    assert names(cluster) == ["0-127.1.done", "128-255.1.done", "256-299.1.done"]
    assert compacted(member) == 0
    assert cluster.join(manifest("a", 300)).claims.next() is None


def test_nothing_is_compacted_where_somebody_is_at_work(cluster: Cluster) -> None:
    member, other = cluster.join(manifest("a", 4)), cluster.join(manifest("a", 4))
    member.run(member.take())
    other.take()
    before = names(cluster)
    assert compacted(cluster.join(manifest("a", 4))) == 0
    assert names(cluster) == before


def test_a_claim_made_while_compaction_looks_stays(cluster: Cluster) -> None:
    bank = manifest("a", 4)
    member, other, cleaner = (cluster.join(bank) for _ in range(3))
    for _ in range(3):
        member.run(member.take())
    look = cleaner.fs.names
    begun: list[str] = []

    def meanwhile(directory: Path) -> list[str]:
        found = look(directory)
        if directory.name == "0" and not begun:
            begun.append(other.take().claim.name)
        return found

    cleaner.fs.names = meanwhile  # type: ignore[method-assign]
    compacted(cleaner)
    assert begun
    assert set(begun) <= set(names(cluster))


def test_a_claim_by_a_decision_made_while_compaction_looks_stays(cluster: Cluster) -> None:
    bank = manifest("a", 4)
    member, other, cleaner = (cluster.join(bank) for _ in range(3))
    decided(cluster, member, other, cleaner)
    member.work()
    touched, begun = cleaner.claims._standings[0].book.touched, list[str]()

    def meanwhile() -> set[int]:
        shards = touched()
        decide(cluster.paths.decisions, RESET, {(bank.hash, 2): 1}, "me")
        cluster.now += TTL
        begun.append(other.take().claim.name)
        return shards

    cleaner.claims._standings[0].book.touched = meanwhile  # type: ignore[method-assign]
    compacted(cleaner)
    assert begun == ["2-2.2"]
    assert set(begun) <= set(names(cluster))


def test_compaction_opens_nothing_and_forgets_no_attempt(cluster: Cluster) -> None:
    member = cluster.join(manifest("a", 3))
    book, remove = member.claims._standings[0].book, member.fs.remove
    member.work()
    assert book.try_claim(0, 0, 4) is None  # it is over: given back at once, as 5
    marks = [name for name in names(cluster) if name.endswith(".done")]

    def look(name: Path) -> None:
        remove(name)
        now = names(cluster)
        assert all(mark in now or mark.removesuffix(".done") not in now for mark in marks)

    member.fs.remove = look  # type: ignore[method-assign]
    assert compacted(member)
    assert names(cluster) == ["0-2.5.done"]


def test_workers_go_on_over_compacted_leases(cluster: Cluster) -> None:
    """Compaction between any two turns of workers changes nothing that they do."""
    members = [cluster.join(manifest("a", 200), minibatch=w) for w in (1, 3, 1)]
    cleaner = cluster.join(manifest("a", 200))
    while len({r.position for r in cluster.rows}) < 200:
        for member in members:
            batch = member.claims.next()
            if batch is not None and not isinstance(batch, Wait):
                member.run(batch)
        compacted(cleaner)
    assert len(cluster.rows) == 200
    assert len(names(cluster)) <= 4
    shutil.rmtree(cluster.paths.leases)
    assert members[0].claims.next() is None


def test_inodes_of_the_leases(cluster: Cluster) -> None:
    """Two names an episode and a folder each 128: 201,000 for 100,000 episodes, 1,600 compacted."""
    member = cluster.join(manifest("a", 1280))
    member.work()
    shards = 10
    assert sum(1 for _ in cluster.paths.leases.rglob("*")) == 2 * 1280 + shards + 1
    compacted(member)
    assert sum(1 for _ in cluster.paths.leases.rglob("*")) == 2 * shards + 1
    largest = max(len(list(shard.iterdir())) for shard in cluster.paths.leases.glob("*/*"))
    assert largest <= 256
