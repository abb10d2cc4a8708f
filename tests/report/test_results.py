"""What a run directory says, by the counting rule and against its manifests."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import RollpoolError
from harness.reports.report import Counted, Hole
from harness.reports.results import RunReader, RunResults, config_name
from tests.report.handmade import HandMade

BENCH = "bench_eval_result"


def read(run: HandMade) -> RunResults:
    return RunReader(run.paths).gather()


def test_config_names() -> None:
    assert config_name("study", "bench_demo_study_clean") == "clean"
    assert config_name("study", "bench_demo_study_d15") == "d15"
    assert config_name("study", "bench_vision_blur_study") == "bench_vision_blur"
    assert config_name("pusht", "default") == "default"


def test_duplicates_in_any_order_count_once(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [40000, 40001, 40002])
    rows = [
        run.row(manifest, 0, "fail", attempt=1),
        run.row(manifest, 0, "success", attempt=2),
        run.row(manifest, 0, "error", attempt=3),  # an error never beats an outcome
        run.row(manifest, 1, "success", attempt=2, worker="node-1-aa"),
        run.row(manifest, 1, "fail", attempt=2, worker="node-1-bb"),  # the greater worker
        run.row(manifest, 2, "fail", attempt=1),
    ]
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        made = HandMade(run.root, f"demo{seed}")
        made.seal("study", "put_cup_in_box", [40000, 40001, 40002])
        for row in rows:
            made.write(row)
        counted = read(made).configs["clean"].counted
        assert [(e.seed, e.success) for e in counted] == [
            (40000, True), (40001, False), (40002, False),
        ]  # fmt: skip
        assert read(made).configs["clean"].holes == []


def test_missing_error_and_set_aside(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1, 2, 3, 4, 5], first=4)
    run.write(run.row(manifest, 0), run.row(manifest, 1, "error"))
    run.write(*(run.row(manifest, 2, "error", attempt=k) for k in (1, 2, 3)))
    results = read(run).configs["clean"]
    assert [episode.seed for episode in results.counted] == [1]
    kinds = {hole.seed: hole.kind for hole in results.holes}
    assert kinds == {2: "error", 3: "quarantined", 4: "missing"}  # 5 is not selected
    reasons = {hole.seed: hole.reason for hole in results.holes}
    assert reasons[2] == "stall: no progress for 300 s"
    assert reasons[3] == "3 errors (stall x3) on node; the last: no progress for 300 s"
    assert results.holes[0].logs == ("logs/node-1-aa.log",)


def test_torn_and_bad_lines_are_named(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1, 2])
    file = run.write(run.row(manifest, 0), tail='{"format":1,"mani')
    other = run.write(run.row(manifest, 1), worker="node-2-bb")
    other.write_text("not json\n" + other.read_text())
    results = read(run)
    assert [episode.seed for episode in results.configs["clean"].counted] == [1, 2]
    assert any(problem.startswith(f"{file}:2: torn") for problem in results.problems)
    assert any(problem.startswith(f"{other}:1: ") for problem in results.problems)
    assert len(results.problems) == 2


def test_two_configurations_are_kept_apart(run: HandMade) -> None:
    clean = run.seal("study", "put_cup_in_box", [1])
    cluttered = run.seal("study", "put_cup_in_box", [1], config="d6")
    run.write(run.row(clean, 0, "success"), run.row(cluttered, 0, "fail"))
    configs = read(run).configs
    assert {name: [e.success for e in c.counted] for name, c in configs.items()} == {
        "clean": [True], "d6": [False],
    }  # fmt: skip


def test_unknown_hard_success_stays_unknown(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1])
    run.write(run.row(manifest, 0, hard_success=None, collision_count=None))
    (episode,) = read(run).configs["clean"].counted
    assert episode.hard_success is None and episode.collision is None


def test_rows_of_another_population_are_left_out(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1, 2], first=1)
    stray = replace(run.row(manifest, 0, "fail"), manifest="f" * 64, attempt=9)
    run.write(run.row(manifest, 0), run.row(manifest, 1, "fail"), stray)
    results = read(run)
    assert [episode.success for episode in results.configs["clean"].counted] == [True]
    assert results.notes == ["rows of episodes this run has not selected, left out: 2"]


def test_what_ran_again_after_a_freeze_is_counted_once_and_noted(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1, 2])
    frozen, heir = run.row(manifest, 0, "fail"), run.row(manifest, 0, attempt=2, worker="n-2-bb")
    run.write(run.row(manifest, 1, "error"), run.row(manifest, 1, attempt=2), frozen, heir)
    results = read(run)
    assert [episode.success for episode in results.configs["clean"].counted] == [True, True]
    assert results.notes == ["results of episodes that have another one, left out: 1"]


def test_cell_that_was_queued_but_not_sealed(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1])
    run.write(run.row(manifest, 0))
    run.paths.queue.write_text("study put_cup_in_box\n# office press_bell\noffice stack_cups\n")
    assert read(run).configs["clean"].unsealed == [("office", "stack_cups")]


def test_rows_without_any_manifest_count_with_a_note(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1])
    bare = HandMade(run.root, "bare")
    bare.write(run.row(manifest, 0), run.row(manifest, 0, "error", attempt=2))
    results = read(bare)
    assert [episode.success for episode in results.configs["clean"].counted] == [True]
    assert results.notes == [
        "cells without a sealed manifest, whose missing episodes are unknown: 1"
    ]


def test_different_code_in_one_run_is_noted(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1, 2])
    run.write(run.row(manifest, 0), run.row(manifest, 1, code_hash="dd" * 32))
    assert any("2 different code identities" in note for note in read(run).notes)


def test_robopro_episodes(run: HandMade) -> None:
    place = f"{BENCH}/put_cup_in_box/xvla/bench_demo_study_clean/ck/2026-05-01 10:00:00"
    run.foreign(
        f"{place}/_episodes.jsonl",
        {"episode": 0, "seed": 40000, "success": True, "collision": False, "hard_success": True},
        {"episode": 1, "seed": 40001, "success": True, "collision": None},
        {"episode": 2, "seed": 40002, "success": False, "collision": True},
        {"episode": 3, "seed": 40003, "success": None, "collision": None},
        "[1]\n",
        '{"episode": 4, "seed": "x", "success": true}\n',
        '{"episode": 5, "se',
    )
    results = read(run)
    study = results.configs["clean"]
    config = "bench_demo_study_clean"
    assert list(study.counted) == [
        Counted("study", "put_cup_in_box", config, 40000, True, True, False),
        Counted("study", "put_cup_in_box", config, 40001, True, None, None),
        Counted("study", "put_cup_in_box", config, 40002, False, None, True),
    ]
    assert study.holes == [
        Hole("study", "put_cup_in_box", config, 40003, "error", "no success recorded")
    ]
    assert results.problems[0].endswith("_episodes.jsonl:5: not a JSON object")
    assert [problem.rpartition("_episodes.jsonl:")[2][0] for problem in results.problems] == [
        "5", "6", "7",
    ]  # fmt: skip


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "field", [f'"seed": {10**30}', '"video": "\\ud800"', f'"more": {DEEP}', '"episode": "a/b"']
)
def test_a_line_of_another_tool_that_cannot_be_kept_is_named(run: HandMade, field: str) -> None:
    run.foreign(
        "put_cup_in_box/dxvla/bench_demo_study_clean/w0/_metrics.jsonl",
        {"seed": 1, "success": True},
        f'{{"seed": 2, "success": true, {field}}}\n',
        {"seed": 3, "success": True, "episode": "x" * 5000},
    )
    results = read(run)
    assert [episode.seed for episode in results.configs["clean"].counted] == [1, 3]
    (problem,) = results.problems
    assert "_metrics.jsonl:2: " in problem


def test_a_first_line_that_is_nested_too_deeply_is_named(run: HandMade) -> None:
    good = run.row(run.seal("study", "put_cup_in_box", [1]), 0)
    file = run.write(good)
    file.write_text(f"{DEEP}\n{good.to_json()}\n")
    results = read(run)
    assert len(results.configs["clean"].counted) == 1
    assert [problem.partition(": ")[0] for problem in results.problems] == [f"{file}:1"]


@pytest.mark.parametrize("logs", ["a.log", ["a.log"], 3, None])
def test_an_error_whose_logs_have_no_names_is_a_hole_without_them(run: HandMade, logs: Any) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1])
    run.write(run.row(manifest, 0, "error", error={"kind": "crash", "logs": logs}))
    (hole,) = read(run).configs["clean"].holes
    assert hole.logs == ()


def test_robopro_later_folder_counts(run: HandMade) -> None:
    for time, success in (("2026-05-01 10:00:00", True), ("2026-05-02 09:00:00", False)):
        run.foreign(
            f"{BENCH}/put_cup_in_box/xvla/bench_demo_office_d6/ck/{time}/_episodes.jsonl",
            {"seed": 1, "success": success},
            {"seed": 2, "success": True},
            {"seed": 2, "success": None},  # an error never beats an outcome
        )
    counted = read(run).configs["d6"].counted
    assert [(e.scene, e.seed, e.success) for e in counted] == [
        ("office", 1, False), ("office", 2, True),
    ]  # fmt: skip


def test_plain_metrics_of_the_guide(run: HandMade) -> None:
    run.foreign(
        "put_cup_in_box/dxvla/bench_demo_study_clean/w0/_metrics.jsonl",
        {"task": "put_cup_in_box", "seed": 40000, "success": False, "hard_success": False},
        {"task": "put_cup_in_box", "seed": 40000, "success": True, "hard_success": False},
    )
    (episode,) = read(run).configs["clean"].counted
    assert (episode.success, episode.hard_success) == (True, False)  # the later line


def test_two_checkpoints_in_one_table_are_refused(run: HandMade) -> None:
    for checkpoint in ("90k", "100k"):
        run.foreign(
            f"{BENCH}/put_cup_in_box/xvla/bench_demo_study_clean/{checkpoint}/t/_episodes.jsonl",
            {"seed": 1, "success": True},
        )
    with pytest.raises(RollpoolError, match=r"xvla/100k.*xvla/90k"):
        read(run)


def test_lines_of_other_tools_never_count_beside_ours(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1])
    run.write(run.row(manifest, 0, "fail"))
    run.foreign(
        f"{BENCH}/put_cup_in_box/tinyvla/bench_demo_study_clean/ck/t/_episodes.jsonl",
        {"seed": 1, "success": True},
    )
    results = read(run)
    assert [episode.success for episode in results.configs["clean"].counted] == [False]
    assert results.notes == ["lines of other tools, of cells that have rows of ours, left out: 1"]


def test_a_watched_run_is_read_anew_where_it_grew(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1, 2], first=1)
    reader = RunReader(run.paths)
    assert len(reader.gather().configs["clean"].holes) == 1
    run.write(run.row(manifest, 0))
    assert len(reader.gather().configs["clean"].counted) == 1
    run.write(run.row(manifest, 1))
    run.seal("study", "put_cup_in_box", [1, 2])
    assert len(reader.gather().configs["clean"].counted) == 2
