"""A model that comes to its simulator by itself, or does not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.errors import RollpoolError
from harness.paths import RunPaths
from harness.runs.run import Run
from harness.workers.model_link import ComingModel
from harness.workers.server_process import ModelServerProcess
from harness.workers.simulator_process import SimulatorProcess

NOBODY = "none came within 2 s; 10.0.0.9 was turned away"


class Waiting:
    """A simulator to which a model comes at the last of ``looks``."""

    def __init__(self, looks: int) -> None:
        self.looks, self.listened = looks, 0

    def alive(self) -> bool:
        return True

    def listen(self, host: str, port: int, token: str) -> tuple[str, int]:
        self.listened += 1
        return host, 4242

    def await_model(self, server: Any, deadline_s: float) -> str:
        self.looks -= 1
        return NOBODY if self.looks else ""


def link(path: Path, now: list[float], own: Any = None) -> ComingModel:
    settings = {"SIM_SERVER_HOST": None, "SIM_SERVER_PORT": None, "STALL_TIMEOUT": 60.0}
    identity = {"policy": "p", "checkpoint": {}, "settings_hash": "", "code_hash": ""}
    run = SimpleNamespace(
        paths=RunPaths(path), settings=settings, token="t", id="r", identity=identity
    )
    process = cast(ModelServerProcess, own) if own else None
    return ComingModel(cast(Run, run), "w", process, deadline_s=100.0, clock=lambda: now[0])


def test_who_waits_for_a_model_looks_round_and_goes_on(tmp_path: Path) -> None:
    sim, now = Waiting(looks=3), [0.0]
    coming = link(tmp_path, now)
    for _ in range(2):
        coming.start(cast(SimulatorProcess, sim))
        assert not coming.alive()
        now[0] += 40
    coming.start(cast(SimulatorProcess, sim))
    assert coming.alive() and sim.listened == 1


def test_a_model_that_does_not_come_is_an_error_in_the_end(tmp_path: Path) -> None:
    sim, now = Waiting(looks=1000), [0.0]
    coming = link(tmp_path, now)
    coming.start(cast(SimulatorProcess, sim))
    now[0] = 101.0
    with pytest.raises(RollpoolError, match=r"none for 100 s.*was turned away"):
        coming.start(cast(SimulatorProcess, sim))


def test_a_model_of_its_own_that_dies_is_not_waited_for(tmp_path: Path) -> None:
    died = RollpoolError("model server", "it died of signal 9", "see its log")
    own = SimpleNamespace(
        alive=lambda: False, start=lambda: None, join=lambda host, port: None, died=lambda: died
    )
    with pytest.raises(RollpoolError, match="died of signal 9"):
        link(tmp_path, [0.0], own).start(cast(SimulatorProcess, Waiting(looks=9)))
