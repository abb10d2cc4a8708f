"""What one seat concludes of what its simulator and its model say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.episodes.episode import error_result
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
