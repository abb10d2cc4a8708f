"""What one seat concludes of what its simulator and its model say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.episodes.episode import error_result
from harness.errors import RollpoolError
from harness.foundations.settings import Settings
from harness.workers.model_link import ModelLink
from harness.workers.seats import Seat
from harness.workers.simulator_process import SimulatorProcess
from tests.processes.conftest import episode

SETTINGS = {"STALL_TIMEOUT": 60.0, "PER_TASK_TIMEOUT": 60.0, "EVAL_VIDEO": "none"}


@pytest.mark.parametrize(
    ("kind", "concluded"), [("policy", "policy"), ("simulator", "simulator"), ("protocol", "stall")]
)
def test_an_error_that_came_before_the_server_was_ended_stays_what_it_was(
    kind: str, concluded: str
) -> None:
    ended = {"say": "ended", "result": error_result(kind, "its own words", "")}
    sim = SimpleNamespace(
        alive=lambda: True, started=lambda: True, versions={"sim": "1"}, close=lambda: None,
        start_episode=lambda *arguments: None, poll=lambda timeout_s: ended,
    )  # fmt: skip
    link = SimpleNamespace(
        alive=lambda: True, address=dict, death=lambda: ("stall", "ended for another one"),
        broken=lambda: None,
    )  # fmt: skip
    settings: Any = SETTINGS
    seat = Seat(
        lambda: cast(SimulatorProcess, sim), cast(ModelLink, link), cast(Settings, settings)
    )
    assert seat.prepare()
    seat.begin(episode("never_succeed"), 1, None)
    result = seat.look()
    assert result is not None and result["error"]["kind"] == concluded


class Starting:
    """Simulators of one seat: whether each of them, in order, starts."""

    def __init__(self, *starts: bool) -> None:
        self._starts, self.made, self.closed = iter(starts), 0, 0

    def make(self) -> SimulatorProcess:
        self.made += 1
        starts = next(self._starts)
        sim = SimpleNamespace(
            alive=lambda: True, close=self._close, versions={"sim": "1"} if starts else {},
            started=lambda: starts or self._refuse(),
        )  # fmt: skip
        return cast(SimulatorProcess, sim)

    def _refuse(self) -> None:
        raise RollpoolError("simulator", f"no device for number {self.made}", "see its log")

    def _close(self) -> None:
        self.closed += 1


def seat_of(simulators: Starting) -> Seat:
    link = cast(ModelLink, SimpleNamespace(alive=lambda: True))
    return Seat(simulators.make, link, cast(Settings, SETTINGS))


def test_a_start_may_fail_where_one_has_succeeded_before() -> None:
    simulators = Starting(True, False, False, True, False, True)
    seat = seat_of(simulators)
    for failing in (0, 2, 1):  # starts in a row that fail, before one that does not
        for _ in range(failing):
            assert not seat.prepare()
        assert seat.prepare()
        seat.close()
    assert simulators.made == simulators.closed == 6


@pytest.mark.parametrize(("starts", "number"), [((False,), 1), ((True, False, False, False), 4)])
def test_a_start_that_cannot_succeed_is_an_error(starts: tuple[bool, ...], number: int) -> None:
    simulators = Starting(*starts)
    seat = seat_of(simulators)
    with pytest.raises(RollpoolError, match=f"no device for number {number}"):
        for _ in range(5):
            if seat.prepare():
                seat.close()
