"""``organize_results.py --upstream``: what RoboTwin's and RoboPRO's own tools would find."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from pathlib import Path

import pytest

from harness.canonical import Sealed, episode_line
from harness.errors import RollpoolError
from harness.paths import Root
from harness.reports.organize import organize
from harness.runs import population
from harness.runs.population import Cell
from tests.report.handmade import HandMade

BEGAN = 1_764_440_000  # 2025-11-29 18:13:20 UTC
CUP = "eval_result/bench_eval_result/put_cup_in_box/tinyvla/bench_demo_study_clean/tiny"
TIME = "2025-11-29 18:13:20"


@pytest.fixture
def run(root: Root) -> HandMade:
    run = HandMade(root, "made")
    cup = run.seal("study", "put_cup_in_box", [40000, 40001, 40002])
    bell = run.seal("office", "press_bell", [7, 8])
    run.write(
        run.row(cup, 0),
        run.row(cup, 1, hard_success=False, collision_count=2),
        run.row(cup, 2, "fail", collision_count=None, hard_success=None),
        run.row(bell, 0),
        run.row(bell, 1, "error"),
    )
    os.utime(run.paths.run_json, (BEGAN, BEGAN))
    return run


def made(run: HandMade) -> Path:
    organize(run.root, run.name, "m", say=lambda text: None, upstream=True)
    return run.root.report("m", "clean") / "upstream"


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_episodes_and_the_rate_lie_where_robopro_puts_them(run: HandMade) -> None:
    folder = made(run) / CUP / TIME
    assert lines(folder / "_episodes.jsonl") == [
        {"episode": 0, "seed": 40000, "success": True, "collision": False, "hard_success": True},
        {"episode": 1, "seed": 40001, "success": True, "collision": True, "hard_success": False},
        {"episode": 2, "seed": 40002, "success": False, "collision": None},
    ]
    assert lines(folder / "_metrics.jsonl")[0]["task"] == "put_cup_in_box"
    assert (folder / "_result.txt").read_text().splitlines() == [
        f"Timestamp: {TIME}", "", "Instruction Type: sealed", "",
        "Eval seeds: 40000 40001 40002", "", "0.6666666666666666",
    ]  # fmt: skip


def test_a_cell_that_lacks_an_episode_has_no_rate(run: HandMade) -> None:
    (folder,) = made(run).glob("eval_result/bench_eval_result/press_bell/*/*/*/*")
    assert sorted(file.name for file in folder.iterdir()) == ["_episodes.jsonl", "_metrics.jsonl"]


def test_the_leaderboard_has_its_six_columns(run: HandMade) -> None:
    rows = list(csv.reader(io.StringIO((made(run) / "leaderboard.csv").read_text())))
    assert rows == [
        ["scene", "task", "n", "SR", "HSR", "CR"],
        ["office", "press_bell", "1", "100.0", "100.0", "0.0"],
        ["study", "put_cup_in_box", "3", "66.7", "50.0", "50.0"],
    ]


def test_it_is_the_same_again_and_goes_when_it_is_not_asked_for(run: HandMade) -> None:
    before = {file: file.read_bytes() for file in made(run).rglob("*") if file.is_file()}
    assert before == {file: file.read_bytes() for file in made(run).rglob("*") if file.is_file()}
    organize(run.root, run.name, "m", say=lambda text: None)
    assert not (run.root.report("m", "clean") / "upstream").exists()


def test_what_is_written_reads_as_the_results_of_another_tool(run: HandMade) -> None:
    written = made(run)
    other = run.root.run("other").root
    shutil.copytree(written / "eval_result", other / "eval_result")
    for file in other.rglob("_metrics.jsonl"):
        file.unlink()  # either of the two is enough
    organize(run.root, "other", "o", say=lambda text: None)
    rows = list(csv.DictReader((run.root.report("o", "clean") / "results.csv").open()))
    cup = next(row for row in rows if row["task"] == "put_cup_in_box")
    assert (cup["n"], cup["SR"], cup["HSR"], cup["CR"]) == ("3", "66.67", "50.00", "50.00")


def test_two_policies_have_no_common_folder(run: HandMade) -> None:
    cup = run.seal("study", "put_cup_in_box", [40000, 40001, 40002, 40003])
    run.write(run.row(cup, 3, policy="another"))
    with pytest.raises(RollpoolError, match="more than one policy: another, tinyvla"):
        made(run)


def test_a_plain_configuration_lies_where_robotwin_puts_it(root: Root) -> None:
    run = HandMade(root, "plain")
    cell = Cell("robotwin", "beat_block_hammer", "demo_clean")
    sealed = Sealed([episode_line(100000, "", {})])
    manifest = population.select(run.paths, population.seal(run.paths, cell, "robotwin", sealed), 1)
    run.write(run.row(manifest, 0))
    organize(root, "plain", "p", say=lambda text: None, upstream=True)
    (found,) = root.path.rglob("upstream/eval_result/beat_block_hammer/tinyvla/demo_clean/tiny/*")
    assert (found / "_result.txt").read_text().endswith("\n1.0")
