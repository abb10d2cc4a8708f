"""Which cell comes next: what nobody has timed, then what would end last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.leases.budget import Budget
from harness.leases.claims import Batch
from harness.leases.lease import LeaseBook
from harness.leases.standing import Standing
from harness.runs.population import Manifest
from tests.lease.conftest import Cluster, Member
from tests.lease.disk import RUN
from tests.lease.scripted import manifest


def foretold(**seconds: float) -> Mapping[str, Mapping[str, float]]:
    """What earlier runs say of cell ``a``, ``b``, ..."""
    return {
        manifest(digit, 1).cell.name: {"seconds": of, "episodes": 10}
        for digit, of in seconds.items()
    }


def cells(size: int, digits: str = "abc") -> list[Manifest]:
    return [manifest(digit, size) for digit in digits]


def one_of(member: Member, seconds: Mapping[str, float]) -> str:
    """Runs a batch; returns the digit of its cell."""
    batch = member.take()
    member.run(batch, seconds=lambda of, _: seconds[digit(of)])
    return digit(batch)


def digit(batch: Batch) -> str:
    return batch.manifest.hash[0]


def test_the_longest_comes_first(cluster: Cluster) -> None:
    member = cluster.join(*cells(2), earlier=foretold(a=1.0, b=5.0, c=3.0))
    assert [one_of(member, {"a": 1.0, "b": 5.0, "c": 3.0}) for _ in range(6)] == [*"bbccaa"]


def test_what_nobody_has_timed_comes_before_in_queue_order(cluster: Cluster) -> None:
    member = cluster.join(*cells(1, "abcd"), earlier=foretold(a=1.0, c=3.0))
    assert [one_of(member, dict.fromkeys("abcd", 1.0)) for _ in range(4)] == [*"bdca"]


def test_without_history_the_largest_step_limit_comes_first(cluster: Cluster) -> None:
    limits = dict(zip("abcd", (100, 400, 0, 400), strict=True))
    known = [replace(manifest(d, 1), step_limit=limit) for d, limit in limits.items()]
    member = cluster.join(*known)
    assert [one_of(member, dict.fromkeys("abcd", 1.0)) for _ in range(4)] == [*"bdac"]


def test_who_is_free_joins_a_long_cell_before_beginning_a_short_one(cluster: Cluster) -> None:
    members = [cluster.join(*cells(6), earlier=foretold(a=1.0, b=9.0, c=1.0)) for _ in range(3)]
    assert [digit(member.take()) for member in members] == [*"bbb"]


def test_cells_alike_are_begun_before_any_is_joined(cluster: Cluster) -> None:
    members = [cluster.join(*cells(6), earlier=foretold(a=2.0, b=2.0, c=2.0)) for _ in range(3)]
    assert [digit(member.take()) for member in members] == [*"abc"]


def test_who_has_timed_a_cell_looks_at_the_next_while_others_work(cluster: Cluster) -> None:
    seconds = {"a": 1.0, "b": 5.0, "c": 1.0}
    member, other = cluster.join(*cells(3)), cluster.join(*cells(3))
    other.claims.next()  # and works on ``a``
    member.observer.look()
    assert [one_of(member, seconds) for _ in range(4)] == [*"bcbb"]


def test_who_is_alone_stays(cluster: Cluster) -> None:
    member = cluster.join(*cells(2))
    member.observer.look()
    assert [one_of(member, {"a": 1.0, "b": 5.0, "c": 1.0}) for _ in range(4)] == [*"aabb"]


def test_what_others_have_measured_is_read_on_looking_again(cluster: Cluster) -> None:
    """Who joined a cell before anybody had ended an episode there learns later that it is long."""
    seconds = {"a": 1.0, "b": 1.0, "c": 9.0}
    first, second = cluster.join(*cells(8, "c")), cluster.join(*cells(8, "bc"), *cells(1, "a"))
    held = first.take()
    standing = second.claims._standings[1]
    standing.refresh()
    assert not second.claims.durations.measured(standing.manifest.cell)
    first.run(held, seconds=lambda of, _: 9.0)
    one_of(second, seconds)  # ``b``
    second.claims._mine = None
    second.take()
    assert second.claims.durations.measured(standing.manifest.cell)


def test_batches_get_smaller_as_less_is_left(cluster: Cluster) -> None:
    earlier = foretold(a=2.0)
    members = [cluster.join(*cells(32, "a"), minibatch=8, earlier=earlier) for _ in range(2)]
    sizes = []
    while len(cluster.rows) < 32:
        for member in members:
            member.observer.look()
            if isinstance(batch := member.claims.next(), Batch):
                sizes.append(len(batch.positions))
                member.run(batch)
    assert sizes[:2] == [8, 4], "a quarter of 32, then of 24"
    assert sizes[-1] == 1
    assert sum(sizes) == 32


def test_a_batch_of_a_cell_that_nobody_has_timed_is_one_episode(cluster: Cluster) -> None:
    members = [cluster.join(*cells(32, "ab"), minibatch=8) for _ in range(2)]
    for member in members:
        member.observer.look()
        assert len(member.take().positions) == 1


def test_whole_cells_stay_whole_and_so_do_the_batches_of_who_is_alone(cluster: Cluster) -> None:
    alone = cluster.join(*cells(12, "a"), minibatch=8)
    alone.observer.look()
    assert [len(alone.take().positions) for _ in range(2)] == [8, 4]
    whole = cluster.join(*cells(12, "b"), minibatch=0)
    whole.observer.look()
    assert len(whole.take().positions) == 12


@given(
    minibatch=st.integers(1, 128), at_most=st.integers(1, 128),
    positions=st.sets(st.integers(0, 127)),
)  # fmt: skip
def test_smaller_batches_lie_within_larger_ones(
    minibatch: int, at_most: int, positions: set[int]
) -> None:
    bank = manifest("a", 128)
    standing = Standing(
        bank, range(128), LeaseBook(RUN.leases, "a"), Budget(2, 4), lambda: [], minibatch
    )
    large = list(standing.runs(sorted(positions)))
    small = list(standing.runs(sorted(positions), at_most=at_most))
    assert sorted(p for first, last in small for p in range(first, last + 1)) == sorted(positions)
    assert all(last - first < min(at_most, minibatch) for first, last in small)
    assert all(any(a <= first and last <= b for a, b in large) for first, last in small)


def test_a_long_queue_is_not_listed_for_each_cell(cluster: Cluster) -> None:
    """Eight workers, forty cells known from before: who looks lists only what may win."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCD"
    seconds = {d: 1.0 + k / 10 for k, d in enumerate(digits)}
    members = [cluster.join(*cells(10, digits), earlier=foretold(**seconds)) for _ in range(8)]
    while len(cluster.rows) < 320:
        for member in members:
            one_of(member, seconds)
    assert sum(m.fs.calls.total() for m in members) <= 5 * len(cluster.rows)
    assert len({(r.manifest, r.position) for r in cluster.rows}) == len(cluster.rows)
