"""Real processes around the fake simulator and the real model server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.runs.population import Cell
from harness.simulators.contract import Episode
from harness.workers.children import ROOT
from harness.workers.server_process import ModelServerProcess
from harness.workers.simulator_process import SimulatorProcess

POINTSIM = "tests.fakes.pointsim:make"
TOKEN = "a token of the tests' own"

StartSim = Callable[..., SimulatorProcess]


@pytest.fixture
def start_sim(tmp_path: Path) -> Iterator[StartSim]:
    started: list[SimulatorProcess] = []

    def start(**options: Any) -> SimulatorProcess:
        simulator = options.pop("simulator", POINTSIM)
        sim = SimulatorProcess(sys.executable, simulator, tmp_path / "sim.log", **options)
        started.append(sim)
        return sim

    yield start
    for sim in started:
        sim.close()


@pytest.fixture(scope="session")
def expert(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServerProcess]:
    """A model server with the policy ``expert``, shared by all tests that do it no harm."""
    usr_args = {"action_kind": "ee6d", "action_dim": 20, "chunk": 8, "needs": ["expert"]}
    log = tmp_path_factory.mktemp("expert") / "model.log"
    policy = ROOT / "policy" / "expert"
    with ModelServerProcess(sys.executable, policy, usr_args, {}, TOKEN, log) as server:
        server.start(60)
        yield server


def address(server: ModelServerProcess, session: str = "s1") -> dict[str, Any]:
    return {
        "host": server.host, "port": server.port, "token": TOKEN, "session": session,
        "expect": {}, "answer_s": 120.0,
    }  # fmt: skip


def cell(task: str, config: str = "clean") -> Cell:
    return Cell("plane", task, f"bench_demo_plane_{config}")


def episode(task: str, seed: int = 4) -> Episode:
    c = cell(task)
    reset = {"goal": [0.5, 0.5 + seed / 100]}
    return Episode(c.scene, c.task, c.task_config, seed, "go", reset, "m" * 64, seed)


def outcome(sim: SimulatorProcess) -> dict[str, Any]:
    """The result of the running episode."""
    while (message := sim.poll(60)) is not None:
        if message["say"] == "ended":
            result: dict[str, Any] = message["result"]
            return result
    raise AssertionError("no sign of life")
