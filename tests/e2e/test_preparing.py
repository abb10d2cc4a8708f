"""Several processes prepare one run, some of them killed in the middle: the same population."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from harness.paths import RunPaths
from harness.runs.feasible import BLOCK, FIRST_SEED
from tests.e2e.conftest import Home
from tests.waiting import DEADLINE_S, beats, wait_for

#: The expert is asked for the seeds.
SCAN = {"USE_EVAL_SEEDS": "0", "EVAL_TEST_NUM": "6"}


def sealed(home: Home, run: str) -> dict[str, bytes]:
    folder = home.path / "runs" / run / "manifests"
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in folder.glob("*/*")}


def verdicts(home: Home, run: str) -> list[Path]:
    return list((home.path / "runs" / run / "preparing").glob("*.scan/*/*.json"))


def second_blocks(home: Home, run: str) -> list[str]:
    """The claims of those who are at the second block of a cell."""
    claims = [beat["claim"] for beat in beats(RunPaths(home.path / "runs" / run).workers)]
    return [claim for claim in claims if claim and f"/{BLOCK}-{2 * BLOCK - 1}." in claim]


@pytest.mark.slow
def test_a_scan_that_two_share_and_one_is_killed_in(home: Home) -> None:
    queue = str(home.queue("reach_goal", "reach_even"))
    code, out, err = home.call("prepare", "alone", "--queue", queue, **SCAN)
    assert code == 0, err
    assert "run alone: 4 cells, 24 episodes" in out

    home.gate.close(passing=FIRST_SEED + BLOCK - 1)
    first = home.start("prepare", "shared", "--queue", queue, **SCAN)
    wait_for(lambda: second_blocks(home, "shared"), "it is in the middle", first)
    second = home.start("prepare", "shared", "--queue", queue, **SCAN)
    wait_for(lambda: len(second_blocks(home, "shared")) == 2, "both are", first, second)
    assert 0 < len(verdicts(home, "shared")) < len(verdicts(home, "alone"))
    os.kill(first.pid, signal.SIGKILL)
    first.communicate(timeout=DEADLINE_S)
    home.gate.open()
    out, err = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 0, err
    assert sealed(home, "shared") == sealed(home, "alone")
    assert len(verdicts(home, "shared")) == len(verdicts(home, "alone")), "none was checked in vain"


@pytest.mark.slow
def test_manifests_of_another_run_need_no_simulator(home: Home) -> None:
    queue = str(home.queue("reach_goal"))
    assert home.call("prepare", "old", "--queue", queue)[0] == 0
    nowhere = {"SEEDS_ROOT": "", "SIM_PY": str(home.path / "none"), "EVAL_TEST_NUM": "2"}
    given = ("--queue", queue, "--manifests", "old", "--policy", "random")
    code, out, err = home.call("prepare", "new", *given, **nowhere)
    assert code == 0, err
    assert "2 cells, 4 episodes" in out
    old = {name: data for name, data in sealed(home, "old").items() if name.endswith(".jsonl")}
    assert old.items() <= sealed(home, "new").items()


@pytest.mark.slow
def test_a_seed_that_cannot_be_sealed_costs_its_cell_alone(home: Home) -> None:
    queue = home.queue("raise_in_seal", "reach_goal")
    own = {"TMPDIR": str(home.path)}  # the log that the error names stays
    code, _, err = home.call("prepare", "holed", "--queue", str(queue), **own)
    assert code == 2
    for words in ("seal plane.raise_in_seal.bench_demo_plane_clean", "seed 1: RuntimeError",
                  "or the task in queue.txt"):  # fmt: skip
        assert words in err, err
    before = sealed(home, "holed")
    assert {name.split(".")[1] for name in before} == {"reach_goal"}
    in_run = home.path / "runs" / "holed" / "queue.txt"
    in_run.write_text("".join(in_run.read_text().splitlines(keepends=True)[2:]))
    code, out, err = home.call("prepare", "holed")
    assert code == 0, err
    assert "2 cells, 12 episodes" in out and sealed(home, "holed") == before
