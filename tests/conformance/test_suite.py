"""The conformance suite passes what keeps the contract and finds each fault of the faulty fakes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness import cli
from harness.errors import RollpoolError
from harness.paths import CODE
from harness.runs.population import Cell
from harness.simulators import load
from harness.workers import conforming
from harness.workers.conforming import Finding, Slice, choose_cells
from harness.workers.simulator_process import SimulatorProcess
from tests.fakes.faulty import FAULTS
from tests.fakes.pointsim import PointSim

CELLS = tuple(Cell(scene, "reach_goal", f"bench_demo_{scene}_d6") for scene in ("plane", "hill"))


class Trial:
    """The suite on a simulator, and the processes that it started."""

    def __init__(self, log: Path) -> None:
        self._log, self.started = log, list[SimulatorProcess]()

    def examine(self, place: str, cells: tuple[Cell, ...] = CELLS, **part: float) -> list[Finding]:
        def start(render: bool) -> SimulatorProcess:
            options = {"render": render}
            process = SimulatorProcess(sys.executable, place, self._log, options=options)
            self.started.append(process)
            return process

        deadline_s = part.get("deadline_s", 60)
        return list(conforming.examine(start, Slice(cells, (1, 2), 40, deadline_s)))


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path / "sim.log")


def test_what_keeps_the_contract_passes(trial: Trial) -> None:
    findings = trial.examine("tests.fakes.pointsim:make")
    assert [f for f in findings if f.complaints] == []
    assert len(findings) == 15 and all(f.asked for f in findings)
    assert not any(process.alive() for process in trial.started)


def test_without_cameras_pictures_do_not_apply(trial: Trial) -> None:
    findings = {f.check: f.word for f in trial.examine("tests.conformance.test_suite:Blind")}
    assert findings.pop("pictures") == "-" and set(findings.values()) == {"ok"}


class Blind(PointSim):
    def __init__(self, render: bool) -> None:
        super().__init__(render=False)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_fault_is_found(trial: Trial, fault: type[PointSim]) -> None:
    check, words = FAULTS[fault]
    deadline_s = 1 if fault.__name__ == "Hangs" else 60
    findings = trial.examine(f"tests.fakes.faulty:{fault.__name__}", deadline_s=deadline_s)
    failed = {f.check: " ".join(f.complaints) for f in findings if f.complaints}
    assert any(name.startswith(check) and words in said for name, said in failed.items()), failed
    for process in trial.started:
        assert not process.alive()
        with pytest.raises(ProcessLookupError):
            os.killpg(process.proc.pid, 0)


def test_one_that_does_not_start_is_a_finding(trial: Trial) -> None:
    first, *_ = trial.examine("tests.fakes.faulty:make_none")
    assert "process" in first.complaints[0] and first.word == "FAILED"


def test_cells_are_chosen_from_all_over() -> None:
    described = {
        "cells": [[scene, task] for scene in "ab" for task in "123"],
        "task_configs": {"a": ["clean", "d6"], "b": ["one"]},
    }
    assert choose_cells(described, 2) == [Cell("a", "1", "clean"), Cell("b", "1", "one")]
    for count in (4, 6, 99):
        assert len(set(choose_cells(described, count))) == min(count, 6)


def test_the_adapter_of_the_documentation_conforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (CODE / "docs" / "simulators.md").read_text(encoding="utf-8")
    (tmp_path / "cart.py").write_text(text.split("```python\n")[1].split("```")[0])
    (tmp_path / "cart.yml").write_text("marks: [0.4, 0.5]\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("SIM_PY", sys.executable)
    code = cli.main(["conform", "cart:Cart", "--config", str(tmp_path / "cart.yml")])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "4 solved by then" in said and "it conforms" in said


def test_a_fault_is_the_commands_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SIM_PY", sys.executable)
    cell = "plane/reach_goal/bench_demo_plane_clean"
    arguments = ["--cell", cell, "--seeds", "1", "--steps", "12"]
    code = cli.main(["conform", "tests.fakes.faulty:WrongShape", *arguments])
    said = capsys.readouterr().out
    assert code == 1 and "FAILED  observations\n        proprio is (1, 20) float64" in said


def test_a_configuration_for_one_that_takes_none_is_refused() -> None:
    with pytest.raises(RollpoolError, match="takes no configuration; unset it"):
        load("tests.conformance.test_suite:Blind", render=False, config={"a": 1})
