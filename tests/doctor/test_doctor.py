"""``rollpool doctor`` as a process: what it says, what it leaves in the run, and its exit code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.nodes.node_words import words
from harness.paths import CODE
from tests.e2e.conftest import Home

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Home:
    shutil.copytree(CODE / "policy" / "expert", tmp_path / "policy" / "expert")
    return Home(tmp_path)


def test_a_sound_node_leaves_its_word(home: Home) -> None:
    assert home.call("prepare", "r", "--queue", str(home.queue("reach_goal")))[0] == 0
    code, out, err = home.call("doctor", "r", "--json")
    assert code == 0, out + err
    found = {finding["check"]: finding["level"] for finding in json.loads(out)["findings"]}
    assert found["simulator"] == found["known episode"] == found["shared folder"] == "ok"
    (line,) = words(home.path / "runs" / "r" / "nodes")
    assert line["level"] == "ok" and len(set(line["known_episode"]["states"])) == 1


def test_a_node_whose_state_differs_is_kept_out(home: Home) -> None:
    home.call("prepare", "r", "--queue", str(home.queue("reach_goal")))
    home.call("doctor", "r")
    nodes = home.path / "runs" / "r" / "nodes"
    for file in nodes.glob("*.json"):  # as if two other nodes had found another state
        line = json.loads(file.read_text())
        known = line.get("known_episode", line)
        known.update(node="n7", states=["f" * 64] * 2)
        file.write_text(json.dumps(line))
    code, out, _ = home.call("node", "r")
    assert code == 2
    assert "failure  known episode" in out and "n7" in out
    assert home.rows("r") == []
    page = home.call("status", "r")[1]
    assert "Nodes that take no work:" in page and "known episode: its state is" in page
    code, out, _ = home.call("status", "r", "--check")
    assert code == 1 and "takes no work: " in out
    assert sorted(line["level"] for line in words(nodes)) == ["failure", "ok"]


def test_a_broken_task_is_not_the_node_s_fault(home: Home) -> None:
    queue = home.queue("crash_in_reset", seeds=range(1, 2))
    queue.write_text("plane crash_in_reset\n" + home.queue("raise_in_reset").read_text())
    home.call("prepare", "r", "--queue", str(queue))
    code, out, _ = home.call("doctor", "r")
    assert code == 0, out
    assert "warning  known episode: no episode of the first cells can be played" in out


def test_a_simulator_that_dies_over_everything_is(home: Home) -> None:
    home.call("prepare", "r", "--queue", str(home.queue("crash_in_reset")))
    code, out, _ = home.call("doctor", "r")
    assert code == 2
    assert "failure  simulator: simulator 'tests.fakes.pointsim:make'" in out
    assert "SIGSEGV" in out
