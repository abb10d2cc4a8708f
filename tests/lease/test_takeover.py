"""Who takes over from whom: the dead, the frozen, and each hole that was once real."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from harness.foundations.records import Row, counted
from harness.leases.claims import Batch, Wait
from harness.leases.heartbeat import Heartbeat, WorkerId
from harness.leases.takeover import Lost
from tests.lease.conftest import TTL, Cluster, Member
from tests.lease.scripted import manifest, row


def test_the_dead_are_replaced_at_once_on_proof(cluster: Cluster) -> None:
    victim, heir = cluster.join(manifest("a", 1)), cluster.join(manifest("a", 1))
    victim.begin(victim.take(), 0)
    assert isinstance(heir.claims.next(), Wait)
    cluster.die(victim)
    assert heir.take().attempt == 2
    lost = cluster.rows[-1]
    assert (lost.error or {})["kind"] == "lost"
    assert (lost.position, lost.attempt) == (0, 1)


def test_an_episode_that_kills_its_workers_is_set_aside(cluster: Cluster) -> None:
    deaths = 0
    while True:
        worker = cluster.join(manifest("a", 1))
        batch = worker.claims.next()
        if batch is None:
            break
        worker.begin(batch, 0)  # type: ignore[arg-type]
        cluster.die(worker)
        deaths += 1
    assert deaths == 1 + 4
    reason = worker.claims._standings[0].budget.quarantined("a" * 64, 0)
    assert reason and "lost x5" in reason


def test_a_pid_of_another_namespace_proves_nothing(cluster: Cluster) -> None:
    owner = cluster.join(manifest("a", 1), namespace="one")
    other = cluster.join(manifest("a", 1), namespace="two")
    owner.take()
    cluster.pids.clear()  # what /proc of another namespace shows
    assert isinstance(other.claims.next(), Wait)


def frozen(cluster: Cluster) -> tuple[Member, Member]:
    return cluster.join(manifest("a", 1), host="h1"), cluster.join(manifest("a", 1), host="h2")


def test_a_frozen_owner_is_replaced_after_ttl_and_stops_when_it_wakes(cluster: Cluster) -> None:
    owner, heir = frozen(cluster)
    batch = owner.take()
    owner.begin(batch, 0)
    assert isinstance(heir.claims.next(), Wait)
    cluster.pass_time(TTL - TTL / 10, beating=[heir], looking=heir)
    assert isinstance(heir.claims.next(), Wait)
    cluster.pass_time(TTL / 5, beating=[heir], looking=heir)
    assert heir.take().attempt == 2
    owner.heartbeat.alive()
    owner.heartbeat.tick()  # its thread wakes first
    assert not owner.claims.may_record(batch)


def test_who_waits_as_told_takes_over_when_ttl_is_over(cluster: Cluster) -> None:
    """However much chance shortens the waits: the looks are an interval apart, and all of it
    counts."""
    owner, heir = frozen(cluster)
    owner.take()
    frozen_at = cluster.now
    while isinstance(waiting := heir.claims.next(), Wait):
        heir.heartbeat.alive()
        heir.heartbeat.tick()
        cluster.now += waiting.seconds + TTL / 1000  # nobody wakes on time
    assert waiting is not None
    assert TTL <= cluster.now - frozen_at <= TTL * 1.02


def test_an_owner_that_thaws_before_its_taker_is_there_keeps_its_claim(cluster: Cluster) -> None:
    """It lists before the taker's name is there; so the taker must see its beat."""
    owner, heir = frozen(cluster)
    batch = owner.take()
    assert isinstance(heir.claims.next(), Wait)
    cluster.pass_time(TTL * 1.2, beating=[heir], looking=heir)
    make = heir.fs.mkdir

    def late(directory: Path) -> bool:
        if directory.name == "0-0.2":
            assert owner.claims.may_record(batch)  # before its heartbeat's thread comes round
        return make(directory)

    heir.fs.mkdir = late  # type: ignore[method-assign]
    assert isinstance(heir.claims.next(), Wait)
    assert cluster.rows == []


def test_a_short_freeze_costs_a_listing_and_no_episode(cluster: Cluster) -> None:
    owner, _ = frozen(cluster)
    batch = owner.take()
    cluster.now += TTL * 0.7
    assert owner.claims.may_record(batch)
    before = owner.fs.calls["names"]
    owner.heartbeat.tick()
    assert owner.claims.may_record(batch)
    assert owner.fs.calls["names"] == before


def test_everyone_frozen_at_once_takes_nothing_from_anybody(cluster: Cluster) -> None:
    owner, other = frozen(cluster)
    owner.take()
    other.claims.next()
    cluster.now += 100 * TTL
    assert isinstance(other.claims.next(), Wait)
    cluster.pass_time(2 * TTL, beating=[owner, other], looking=other)
    assert isinstance(other.claims.next(), Wait)


def test_a_claim_that_its_living_owner_forgot_is_taken_after_ttl(cluster: Cluster) -> None:
    owner, other = frozen(cluster)
    owner.take()
    owner.heartbeat.beat(claim=None)
    assert isinstance(other.claims.next(), Wait)
    cluster.pass_time(TTL * 0.9, beating=[owner, other], looking=other)
    assert isinstance(other.claims.next(), Wait)
    cluster.pass_time(TTL * 0.3, beating=[owner, other], looking=other)
    assert other.take().attempt == 2
    assert cluster.rows == []  # nobody died


def test_who_slept_has_not_looked_for_a_claims_owner(cluster: Cluster) -> None:
    owner, other = frozen(cluster)
    standing = owner.claims._standings[0]
    standing.book.touch()
    assert standing.book.try_claim(0, 0, 0)  # and froze before naming it
    for _ in range(3):
        assert isinstance(other.claims.next(), Wait)
        cluster.now += 5 * TTL


def test_a_hung_supervising_loop_stops_the_beats(cluster: Cluster) -> None:
    owner, heir = frozen(cluster)
    owner.take()
    heir.claims.next()
    for _ in range(20):
        cluster.now += TTL / 10
        owner.heartbeat.tick()
        heir.heartbeat.alive()
        heir.heartbeat.tick()
        heir.observer.look()
    assert heir.take().attempt == 2


def test_an_unlinked_heartbeat_stops_its_owner_before_it_is_replaced(cluster: Cluster) -> None:
    owner, heir = frozen(cluster)
    owner.take()
    heir.claims.next()
    cluster.paths.heartbeat(owner.id).unlink()
    stopped = replaced = 0.0
    for step in range(1, 20):
        cluster.pass_time(TTL / 10, beating=[owner, heir], looking=heir)
        try:
            owner.heartbeat.check()
        except Exception:
            stopped = stopped or step
        if not isinstance(heir.claims.next(), Wait):
            replaced = step
            break
    assert 0 < stopped < replaced


def test_two_workers_of_one_name_are_refused(cluster: Cluster) -> None:
    owner, _ = frozen(cluster)
    with pytest.raises(Exception, match="two workers of one name"):
        Heartbeat(cluster.paths, owner.id, TTL)


def test_a_requeued_job_is_another_worker_than_its_cut_off_node(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURM_PROCID"):
        monkeypatch.setenv(name, "7")
    assert WorkerId.new() != WorkerId.new()
    cut_off, requeued = frozen(cluster)
    batch = cut_off.take()
    cut_off.begin(batch, 0)
    assert isinstance(requeued.claims.next(), Wait)
    cluster.pass_time(TTL * 1.2, beating=[requeued], looking=requeued)
    requeued.run(requeued.take())
    # The node still writes, and has heard of nothing.
    cluster.rows.append(row(batch.manifest, 0, batch.attempt, cut_off.id, "fail", ""))
    cut_off.claims.finish(batch, "done")
    assert counted(cluster.rows)[batch.manifest.hash, 0].worker == requeued.id
    assert requeued.claims.next() is None
    assert cluster.join(manifest("a", 1)).claims.next() is None


def test_what_the_dead_had_finished_is_not_run_again(cluster: Cluster) -> None:
    victim = cluster.join(manifest("a", 4), minibatch=4)
    heir = cluster.join(manifest("a", 4), minibatch=4)
    batch = victim.take()
    assert isinstance(heir.claims.next(), Wait)  # and has read the rows there were
    for position in (0, 1):
        made = row(batch.manifest, position, 1, victim.id, "fail", "")
        cluster.rows.append(made)
    victim.begin(batch, 2)
    cluster.die(victim)
    assert heir.take().positions == (2, 3)
    assert [made.position for made in cluster.rows if made.error] == [2]


def test_a_taker_that_dies_leaves_the_death_to_be_found_again(cluster: Cluster) -> None:
    victim, taker, heir = (cluster.join(manifest("a", 1)) for _ in range(3))
    victim.begin(victim.take(), 0)
    cluster.die(victim)

    def die(lost: Lost) -> Row:
        cluster.die(taker)
        raise KeyboardInterrupt

    taker.claims._takeover._record_lost = die
    with pytest.raises(KeyboardInterrupt):
        taker.claims.next()
    assert heir.take().attempt == 3
    assert [made.attempt for made in cluster.rows] == [1]


def test_who_wakes_sees_a_taker_that_died_over_it_or_its_own_mark(cluster: Cluster) -> None:
    owner, taker = frozen(cluster)
    batch = owner.take()
    standing = taker.claims._standings[0]
    standing.refresh()
    cluster.now += 5 * TTL
    made = standing.book.try_claim(0, 0, 0, {batch.claim})
    assert made and made.attempt == 2  # and not a mark yet
    assert not owner.claims.may_record(batch)
    standing.book.finish(batch.claim, "released")
    made.path(cluster.paths.leases).rmdir()
    assert not owner.claims.may_record(batch)


def test_a_claim_that_took_too_long_to_be_named_is_looked_at_again(cluster: Cluster) -> None:
    """Its worker beats all the while: only the naming is late."""
    owner, heir = frozen(cluster)
    listed, taken = owner.fs.names, list[Batch]()

    def slow(directory: Path) -> list[str]:
        shown = listed(directory)
        if "0-0.1" in shown and not taken:
            assert isinstance(heir.claims.next(), Wait)
            cluster.pass_time(TTL * 1.2, beating=[owner, heir], looking=heir)
            taken.append(heir.take())
        return shown

    owner.fs.names = slow  # type: ignore[method-assign]
    assert isinstance(owner.claims.next(), Wait)
    assert [batch.attempt for batch in taken] == [2]


def test_a_claim_chosen_from_an_old_listing_is_given_back(cluster: Cluster) -> None:
    slow, quick = cluster.join(minibatch=1), cluster.join(minibatch=3)
    slow.run(slow.take())  # and remembers the rest as free
    batch = quick.claims._claim(quick.claims._standings[0], 1, 2)
    assert batch
    quick.run(batch, "error")
    assert slow.take().positions == (3,)  # 1 and 2 have gone wrong once, and wait their turn


def test_two_hosts_do_not_leave_an_episode_to_each_other_for_ever(cluster: Cluster) -> None:
    one, two = cluster.join(manifest("a", 1), host="h1"), cluster.join(manifest("a", 1), host="h2")
    batch = one.take()
    one.run(batch, "error")
    assert isinstance(one.claims.next(), Wait)  # the other host has not had its try
    cluster.rows.append(row(batch.manifest, 0, 1, two.id, "error", "crash"))  # a frozen one's, late
    cluster.pass_time(TTL * 1.2, beating=[one, two], looking=one)
    assert isinstance(one.claims.next(), Wait)
    assert one.take().attempt == 2


def test_a_name_that_no_listing_shows_keeps_nobody(cluster: Cluster) -> None:
    """On NFS a listing may stay old until the directory changes again."""
    owner, other = cluster.join(manifest("a", 1)), cluster.join(manifest("a", 1))
    owner.take()
    listed = other.fs.names
    other.fs.names = lambda directory: [  # type: ignore[method-assign]
        name for name in listed(directory) if not name.startswith("0-0.")
    ]
    answers: list[object] = []
    asking = threading.Thread(target=lambda: answers.append(other.claims.next()), daemon=True)
    asking.start()
    asking.join(20)
    assert isinstance(answers[0], Wait)


def test_a_name_given_twice_is_its_living_owners(cluster: Cluster) -> None:
    frozen, owner = (cluster.join(manifest("a", 1), host=host) for host in ("h1", "h2"))
    other = cluster.join(manifest("a", 1), host="h3")
    batch = frozen.take()
    frozen.begin(batch, 0)
    shutil.rmtree(cluster.paths.leases)
    assert owner.take().claim == batch.claim
    for seen in (frozen, owner), (owner, frozen):
        for member in seen:  # whichever was seen first
            other.observer._read(member.id)
        cluster.pass_time(TTL * 1.2, beating=[owner, other], looking=other)
        assert isinstance(other.claims.next(), Wait)
        other.observer._seen.clear()


def test_an_open_claim_of_a_lower_number_is_somebodys(cluster: Cluster) -> None:
    wide, narrow = cluster.join(minibatch=2), cluster.join()
    for _ in range(2):
        narrow.claims.finish(narrow.take(), "released")  # position 0 alone
    (standing,), (other,) = wide.claims._standings, narrow.claims._standings
    standing.refresh()
    assert narrow.claims._claim(other, 1, 1)
    assert wide.claims._claim(standing, 0, 1) is None


def test_a_claim_that_is_marked_when_it_is_made_is_nobodys(cluster: Cluster) -> None:
    """Somebody who froze before the leases were removed closes what he takes for his."""
    worker = cluster.join(manifest("a", 1))
    make = worker.fs.mkdir

    def make_and_mark(directory: Path) -> bool:
        made = make(directory)
        if directory.name == "0-0.1":
            directory.with_name("0-0.1.released").touch()
        return made

    worker.fs.mkdir = make_and_mark  # type: ignore[method-assign]
    assert worker.take().attempt == 2


def test_a_worker_that_reads_many_rows_again_moves(cluster: Cluster) -> None:
    """Its other seats hold leases meanwhile."""
    member = cluster.join(*(manifest(digit, 2) for digit in "abc"))

    def slow() -> list[Row]:
        member.heartbeat.tick()
        cluster.now += TTL / 3
        return member.rows

    for _ in range(6):
        member.run(member.take())
    for standing in member.claims._standings:
        standing._rows = slow
    member.heartbeat.alive()
    before = member.heartbeat._counter
    member.claims._news = lambda: True
    member.claims._take_news()
    assert member.heartbeat._counter == before + 3
