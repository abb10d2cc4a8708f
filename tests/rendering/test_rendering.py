"""The probe answers in time, says why not, and survives whatever a renderer does to its process."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from harness.episodes import rendering


@pytest.fixture
def impostor(tmp_path: Path):
    """Makes a stand-in for the simulator's interpreter; ``$4`` is the device it is asked about."""

    def make(body: str) -> str:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return make


@pytest.fixture(autouse=True)
def _forget():
    rendering._examine.cache_clear()
    yield
    rendering._examine.cache_clear()


def test_the_first_device_that_renders_is_taken(impostor):
    python = impostor('[ "$4" = cuda ] && exit 1; echo noise; echo "device $4"')
    findings = rendering.examine(python)
    assert findings.backend is not None
    assert (findings.backend.device, findings.backend.summary) == ("cpu", "device cpu")
    assert findings.refused == {"cuda": "ended with 1"}


def test_a_crash_of_the_renderer_is_a_no(impostor):
    findings = rendering.examine(impostor("kill -SEGV $$"))
    assert findings.backend is None
    assert set(findings.refused) == set(rendering.DEVICES)
    assert findings.refused["cpu"] == "ended with -11"


def test_a_renderer_that_hangs_is_given_up_at_the_deadline(impostor):
    findings = rendering.examine(impostor("exec sleep inf"), deadline_s=0.5)
    assert findings.backend is None
    assert findings.refused["cuda"].startswith("no picture within")
    assert findings.refused["pci:0"].startswith("not tried")


def test_an_interpreter_that_is_not_there_is_a_no(tmp_path: Path):
    findings = rendering.examine(str(tmp_path / "none"))
    assert findings.backend is None
    assert "cannot run" in findings.refused["cpu"]


def test_the_answer_is_kept_for_the_process(impostor, tmp_path: Path):
    python = impostor(f'echo x >> "{tmp_path}/calls"; echo fine')
    assert rendering.probe(python) is rendering.probe(python)
    assert (tmp_path / "calls").read_text() == "x\n"


def test_the_software_driver_is_chosen_only_where_nothing_else_is(tmp_path, monkeypatch):
    monkeypatch.setattr(rendering, "_ICD_FOLDERS", (tmp_path,))
    monkeypatch.setattr(rendering, "_GPU_NODES", (tmp_path / "gpu",))
    assert rendering.driver_environment({}) == {}
    older = tmp_path / "lvp_icd.x86_64.json"
    older.touch()
    assert rendering.driver_environment({}) == {"VK_ICD_FILENAMES": str(older)}
    assert rendering.driver_environment({"VK_ICD_FILENAMES": "mine.json"}) == {}
    (tmp_path / "gpu").touch()
    assert rendering.driver_environment({}) == {}


def test_no_driver_at_all_is_none_and_not_a_crash():
    pytest.importorskip("sapien", reason="the real renderer is in the simulator's environment")
    environment = {**os.environ, "VK_ICD_FILENAMES": "/nonexistent/icd.json"}
    answer = subprocess.run(
        [sys.executable, "-m", "harness.episodes.rendering"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=rendering.DEADLINE_S,
        check=True,
    )
    found = json.loads(answer.stdout)
    assert found["backend"] is None
    assert set(found["refused"]) == set(rendering.DEVICES)


def test_what_is_found_here_renders(device: str):
    backend = rendering.probe()
    assert backend is not None and backend.device == device
    assert backend.summary and "\n" not in backend.summary
