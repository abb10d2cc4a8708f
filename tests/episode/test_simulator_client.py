"""The client's own bookkeeping: one connection for many episodes, a new one after a failure."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
import pytest

from harness.episodes import model_connection
from harness.episodes.channel import Channel, ChannelClosed
from harness.episodes.recycling import Recycling, resident_mb
from harness.episodes.simulator_client import SimulatorClient
from harness.simulators.contract import Episode, Observation
from harness.wire import ConnectionLost
from tests.episode.test_episode import episode_of
from tests.fakes.models import FakeModel
from tests.fakes.pointsim import PointSim


class Connected(FakeModel):
    """Stands in for ModelClient; breaks when a session says so."""

    made: ClassVar[list[Connected]] = []

    def __init__(
        self, host: str, port: int, token: str, session: str, deadline_s: float, **more: Any
    ) -> None:
        super().__init__()
        self.address, self.session = (host, port, token), session
        self.deadline_s = deadline_s
        self.sessions: list[str] = []
        self.closed = False
        self.made.append(self)

    def reset(self, episode: Episode) -> None:
        self.sessions.append(self.session)

    def infer(
        self,
        step: int,
        observation: Observation,
        last_action: np.ndarray | None,
        expert: np.ndarray | None,
    ) -> tuple[np.ndarray, float]:
        if self.session.startswith("broken"):
            raise ConnectionLost("infer", "the peer is gone", "look")
        return super().infer(step, observation, last_action, expert)

    def gone(self) -> bool:
        return self.session == "left"

    def close(self) -> None:
        self.closed = True


def request(task: str, port: int = 1, session: str = "s", answer_s: float = 60.0) -> dict[str, Any]:
    """To run an episode of the task, against a server at that port."""
    server = {"host": "h", "port": port, "token": "t", "session": session, "expect": {},
              "answer_s": answer_s}  # fmt: skip
    episode = asdict(episode_of(task))
    return {"do": "run", "episode": episode, "attempt": 1, "video": None, "server": server}


def outcomes(*runs: tuple[str, int, str], **more: float) -> list[str]:
    """Run an episode of each (task, port, session) in one client; ``more`` of the server."""
    ours, theirs = (Channel(end) for end in socket.socketpair())
    for run in runs:
        ours.send(request(*run, **more))
    ours.send({"do": "quit"})
    SimulatorClient(PointSim(), theirs).serve()
    theirs.close()
    ended: list[str] = []
    while len(ended) < len(runs):
        message = ours.receive(0)
        assert message is not None
        if message["say"] == "ended":
            ended.append(message["result"]["outcome"])
    ours.close()
    return ended


@pytest.fixture(autouse=True)
def _fake_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_connection, "ModelClient", Connected)
    monkeypatch.setattr(Connected, "made", [])


def test_one_connection_and_a_session_for_each_episode() -> None:
    runs = [("reach_goal", 1, "a"), ("raise_in_step", 1, "b"), ("reach_goal", 1, "c")]
    assert outcomes(*runs) == ["success", "error", "success"]
    assert [model.sessions for model in Connected.made] == [["a", "b", "c"]]


def test_a_broken_connection_is_not_used_again() -> None:
    runs = [("reach_goal", 1, "broken"), ("reach_goal", 1, "b")]
    assert outcomes(*runs) == ["error", "success"]
    assert [model.sessions for model in Connected.made] == [["broken"], ["b"]]
    assert Connected.made[0].closed


def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    assert outcomes(("reach_goal", 1, "left"), ("reach_goal", 1, "b")) == ["success"] * 2
    assert [model.sessions for model in Connected.made] == [["left"], ["b"]]


def test_a_server_elsewhere_gets_a_connection_of_its_own() -> None:
    assert outcomes(("reach_goal", 1, "a"), ("reach_goal", 2, "b")) == ["success"] * 2
    assert [model.address for model in Connected.made] == [("h", 1, "t"), ("h", 2, "t")]
    assert Connected.made[0].closed and not Connected.made[1].closed


def test_the_worker_says_how_long_an_answer_may_take() -> None:
    outcomes(("reach_goal", 1, "a"), answer_s=630.0)
    assert [model.deadline_s for model in Connected.made] == [630.0]


def told(recycling: Recycling, runs: int) -> list[bool]:
    """Whether it says after each episode that it leaves; it is asked for ``runs`` of them."""
    ours, theirs = (Channel(end) for end in socket.socketpair())
    ours.send({"do": "describe"})  # is no episode
    for _ in range(runs):
        ours.send(request("reach_goal"))
    ours.send({"do": "quit"})
    SimulatorClient(PointSim(), theirs, recycling=recycling).serve()
    theirs.close()
    said = []
    with contextlib.suppress(ChannelClosed):
        while message := ours.receive(0):
            if message["say"] == "ended":
                said.append(bool(message.get("leaves")))
    ours.close()
    return said


@pytest.mark.parametrize(
    ("limits", "leaves"),
    [
        ({}, [False] * 4),
        ({"episodes": 3}, [False, False, True]),
        ({"mb": 1}, [True]),
        ({"mb": 10**7}, [False] * 4),
        ({"episodes": 2, "mb": 10**7}, [False, True]),
    ],
)
def test_it_leaves_when_it_has_done_enough(limits: dict[str, int], leaves: list[bool]) -> None:
    assert told(Recycling(**limits), 4) == leaves


def test_memory_is_that_of_the_process() -> None:
    before = resident_mb()
    held = np.ones(64 * 2**20, np.uint8)
    assert resident_mb() - before == pytest.approx(64, rel=0.2)
    assert held[0] == 1
