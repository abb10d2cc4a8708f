"""Tests of the tests, part by part: where one promise is broken, the test named beside it fails.

``test_mutations`` does the same for what only whole histories show.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.foundations.atomic import AppendLog
from harness.leases.budget import Budget, Streak
from harness.leases.claims import Claims
from harness.leases.durations import Durations
from harness.leases.heartbeat import Heartbeat
from harness.leases.lease import LeaseBook
from harness.leases.names import Claim
from harness.leases.observer import Observer
from harness.leases.order import Order
from harness.leases.standing import Standing
from harness.leases.takeover import Takeover
from tests.foundations import test_atomic
from tests.lease import (
    test_budget,
    test_claims,
    test_decisions,
    test_heartbeat,
    test_order,
    test_takeover,
)
from tests.lease.conftest import Cluster, Unsynced


def writes_through_a_held_descriptor(self: Unsynced, file: Path, data: bytes) -> None:
    """After somebody unlinked the file, it goes on without an error."""
    with contextlib.suppress(FileNotFoundError), file.open("r+b") as stream:
        stream.write(data)


def beats_while_its_loop_hangs(self: Heartbeat) -> None:
    self._write(patience=0)


def is_taken_while_nobody_names_it(self: Observer, claim: Claim) -> bool:
    owner = self.owner(claim)
    return owner is not None and self.dead(owner["worker"])


def looks_at_the_whole_cell(self: Claims, standing: Standing, first: int, last: int) -> Any:
    standing.refresh()
    return _claim(self, standing, first, last)


_claim = Claims._claim


def removes_claims_before_their_summary(
    self: LeaseBook, shard: int, over: Callable[[int], bool]
) -> int:
    folder = self._leases / self.cell_dir / str(shard)
    names = self._fs.names(folder)
    for name in names:
        self._fs.remove(folder / name)
    return len(names)


def nothing(*args: Any, **more: Any) -> None:
    return None


#: Broken promise -> where, what it is replaced by, the test that notices.
BROKEN: dict[str, tuple[type, str, Any, Callable[..., None]]] = {
    "a heartbeat through a held descriptor": (
        Unsynced, "rewrite", writes_through_a_held_descriptor,
        test_takeover.test_an_unlinked_heartbeat_stops_its_owner_before_it_is_replaced,
    ),
    "a beat without its loop": (
        Heartbeat, "tick", beats_while_its_loop_hangs,
        test_takeover.test_a_hung_supervising_loop_stops_the_beats,
    ),
    "a worker that cannot write works on": (
        Heartbeat, "check", nothing,
        test_heartbeat.test_a_failing_disk_stops_the_owner_in_half_its_ttl,
    ),
    "an abandoned claim stays taken": (
        Observer, "abandoned", is_taken_while_nobody_names_it,
        test_takeover.test_a_claim_that_its_living_owner_forgot_is_taken_after_ttl,
    ),
    "a marker is believed without rows": (
        Standing, "_backed", lambda self, claim: True,
        test_claims.test_a_done_marker_without_rows_is_void,
    ),
    "a death leaves no row": (
        Takeover, "_bury_episode", nothing,
        test_takeover.test_the_dead_are_replaced_at_once_on_proof,
    ),
    "a host tries its own errors again": (
        Budget, "error_hosts", lambda self, manifest, position: set(),
        test_claims.test_a_host_leaves_its_own_errors_to_others,
    ),
    "a sick worker works on": (
        Streak, "verdict", None, test_budget.test_a_worker_that_fails_everywhere_is_told_so,
    ),
    "a row behind a torn one": (
        AppendLog, "close", nothing,
        test_atomic.test_what_a_log_accepted_is_there_whole_whatever_the_disk_does,
    ),
    "a claim that costs more in a long queue": (
        Claims, "_claim", looks_at_the_whole_cell,
        test_claims.test_a_claim_costs_the_same_in_a_long_queue,
    ),
    "names alone say that nothing is left": (
        Claims, "_nothing_left", lambda self: True,
        test_decisions.test_nothing_is_left_only_if_rows_say_so,
    ),
    "compaction where somebody works": (
        LeaseBook, "compact", removes_claims_before_their_summary,
        test_decisions.test_nothing_is_compacted_where_somebody_is_at_work,
    ),
    "the longest wait for their turn in the queue": (
        Durations, "known", lambda self, cell: False, test_order.test_the_longest_comes_first,
    ),
    "who joins goes where most is left": (
        Order, "_when", lambda self, standing, fresh, workers: fresh,
        test_order.test_who_is_free_joins_a_long_cell_before_beginning_a_short_one,
    ),
    "the last batches are as large as the first": (
        Order, "at_most", lambda self, standing: 128,
        test_order.test_batches_get_smaller_as_less_is_left,
    ),
    "a batch is taken back by nobody": (
        Claims, "may_record", lambda self, batch: True,
        test_takeover.test_a_frozen_owner_is_replaced_after_ttl_and_stops_when_it_wakes,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_caught(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, replacement, test = BROKEN[name]
    monkeypatch.setattr(owner, attribute, replacement)
    fixtures = {"cluster": Cluster(tmp_path), "paths": test_heartbeat.RunPaths(tmp_path)}
    wanted = test.__code__.co_varnames[: test.__code__.co_argcount]
    with pytest.raises((Exception, pytest.fail.Exception)):
        test(**{argument: fixtures[argument] for argument in wanted if argument in fixtures})
