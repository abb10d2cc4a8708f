"""How a worker ends when what it has to do at its end fails."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from harness.leases.names import RELEASED
from harness.workers import worker
from harness.workers.stopping import Stopped, Stopping


@pytest.mark.parametrize("stuck", [0, 1, 2])
def test_each_batch_is_given_back_whatever_else_fails(
    monkeypatch: pytest.MonkeyPatch, stuck: int
) -> None:
    done: list[int] = []

    def ends(number: int, *marker: str) -> None:
        assert list(marker) == [RELEASED] * (number > 0)
        done.append(number)
        if number == stuck:
            raise OSError("it cannot be done")

    def seat(number: int) -> Any:
        return SimpleNamespace(close_batch=lambda marker: ends(number, marker))

    def stop() -> None:
        raise Stopped

    one: Any = object.__new__(worker.Worker)
    one._run, one._log = SimpleNamespace(cells=()), logging.getLogger("rollpool.worker")
    one._durations = SimpleNamespace(words=lambda cells: "")
    one._job_end = SimpleNamespace(limited=False)
    one._rig, one._players = SimpleNamespace(abandon=lambda: ends(0)), [seat(1), seat(2)]
    one._round = stop
    monkeypatch.setattr(worker, "anything_left", lambda run: True)
    with pytest.raises(OSError, match="it cannot be done"):
        one._loop()
    assert sorted(done) == [0, 1, 2] and done[0] == 0, "what plays is ended first"


@pytest.mark.parametrize("standing", [True, False])
def test_nothing_is_begun_on_what_broke_while_others_claimed(standing: bool) -> None:
    begun: list[int] = []
    player: Any = SimpleNamespace(
        seat=3, batch="claimed", playing=False, alone=False, begin=lambda: begun.append(3)
    )
    one: Any = object.__new__(worker.Worker)
    one._players = [player]
    one._rig = SimpleNamespace(standing=lambda seat: standing and seat == 3)
    one._begin()
    assert begun == [3] * standing


@pytest.mark.parametrize("left", [True, False])
def test_who_waits_for_a_model_notices_that_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    """Its servers have ended with the run: none will come."""
    asked: list[float] = []
    clock = iter((5.0, 70.0, 75.0))
    player: Any = SimpleNamespace(hungry=True, batch=None, finished=False, prepare=lambda: False)
    one: Any = object.__new__(worker.Worker)
    one._players, one.stopping, one._asked = [player], Stopping(), 0.0
    one._run = SimpleNamespace(settings={"LEASE_TTL": 60.0})
    monkeypatch.setattr(worker.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(worker, "anything_left", lambda run: asked.append(0) or left)
    one._fetch()
    assert not player.finished and not asked, "it has just begun to wait"
    one._fetch()
    assert player.finished is not left
    one._fetch()
    assert len(asked) == 1, "reading all rows costs time"
