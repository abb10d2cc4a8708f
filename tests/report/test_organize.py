"""organize_results.py on runs made by hand: tables as whole texts, and whose files are whose."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from harness.canonical import Sealed, episode_line
from harness.errors import EXIT_OK, EXIT_PARTIAL, RollpoolError
from harness.paths import Root
from harness.reports import report_files
from harness.reports.organize import organize
from harness.runs import population
from harness.runs.population import Cell
from tests.report.handmade import HandMade

WHOLE = """\
tiny / clean / all scenes      (run demo)
policy tinyvla  checkpoint tiny (sha256:01234567)  simulator pointsim

scene   tasks         SR % [95 %]  n        HSR % [95 %]  n        CR % [95 %]  n  error  missing
-------------------------------------------------------------------------------------------------
office      1  100.0 [20.7,100.0]  1  100.0 [20.7,100.0]  1   0.0 [ 0.0, 79.3]  1      0        0
study       2   75.0 [30.1, 95.4]  4   33.3 [ 6.1, 79.2]  3  50.0 [ 9.5, 90.5]  2      0        0
-------------------------------------------------------------------------------------------------
TOTAL       3   80.0 [37.6, 96.4]  5   50.0 [15.0, 85.0]  4  33.3 [ 6.1, 79.2]  3      0        0

SR       success rate: share of the n episodes in which the task was done within its step limit
HSR      hard success rate: done, and nothing was hit or knocked over on the way
CR       collision rate: share of the n episodes with at least one collision
n        episodes the rate is a share of; HSR and CR leave out those where they are unknown
[a, b]   Wilson 95 % interval of the rate, in percent
error    episodes the infrastructure failed (crash, stall, timeout, broken policy): in no rate
missing  selected episodes without any result: in no rate
"""


def whole(run: HandMade) -> HandMade:
    """Five episodes, all with an outcome; hard success is unknown in one, collisions in two."""
    cup = run.seal("study", "put_cup_in_box", [1, 2])
    book = run.seal("study", "push_book_to_mark", [1, 2])
    bell = run.seal("office", "press_bell", [1])
    run.write(
        run.video(run.row(cup, 0), b"cup 1"),
        run.video(run.row(cup, 1, hard_success=False, collision_count=2), b"cup 2"),
        run.row(book, 0, hard_success=None, collision_count=None),
        run.row(book, 1, "fail", collision_count=None),
        run.row(bell, 0),
    )
    return run


def quiet(run: HandMade, model: str, replace: bool = False) -> int:
    return organize(run.root, run.name, model, replace, say=lambda text: None)


def tree(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def test_whole_table(run: HandMade) -> None:
    assert quiet(whole(run), "tiny") == EXIT_OK
    folder = run.root.runs / "tiny"
    assert (folder / "results.txt").read_text() == WHOLE
    assert (folder / "study" / "put_cup_in_box" / "seed2.mp4").read_bytes() == b"cup 2"
    names = {name for name in tree(folder) if not name.startswith(".")}
    assert names == {
        "results.txt", "results.csv", "results.json", "study/results.txt", "office/results.txt",
        "study/put_cup_in_box/seed1.mp4", "study/put_cup_in_box/seed2.mp4",
    }  # fmt: skip


TIMES = """\
where the time went, % of the hours (its parts: harness/DESIGN.md)
task                  simulate  render  infer  other  hours
-----------------------------------------------------------
office/press_bell          0.0     0.0   90.0   10.0  1.000
study/put_cup_in_box      50.0    25.0   25.0    0.0  2.000
-----------------------------------------------------------
TOTAL                     33.3    16.7   46.7    3.3  3.000
"""


def test_where_the_time_went(run: HandMade) -> None:
    cup = run.seal("study", "put_cup_in_box", [1, 2, 3])
    bell = run.seal("office", "press_bell", [1])
    took = {"simulate": 1800.0, "render": 900.0, "infer": 900.0}
    run.write(
        run.row(cup, 0, profile=took),
        run.row(cup, 1, "error", profile=took),  # its time has passed all the same
        run.row(cup, 2),  # nobody measured
        run.row(bell, 0, profile={"infer": 3240.0, "other": 360.0, "unheard of": 7.0}),
    )
    said: list[str] = []
    organize(run.root, run.name, "tiny", say=said.append)
    folder = run.root.runs / "tiny"
    assert (folder / "profile.txt").read_text() == TIMES
    largest = "infer 47 %, simulate 33 %, render 17 %, other 3 %"
    assert f"profile.txt  (3.000 hours of simulators, of them {largest})" in "\n".join(said)
    assert "hours" not in (folder / "results.txt").read_text()  # equal whenever it is played
    found = json.loads((folder / "results.json").read_text())["profiles"]
    assert found["study"]["put_cup_in_box"]["simulate"] == 3600


def test_csv_is_the_leaderboard_form(run: HandMade) -> None:
    quiet(whole(run), "tiny")
    lines = (run.root.runs / "tiny" / "results.csv").read_text().splitlines()
    assert lines[0].startswith("scene,task,n,SR,HSR,CR,")
    rows = list(csv.DictReader(lines))
    assert [(row["scene"], row["task"]) for row in rows] == [
        ("office", "press_bell"), ("study", "push_book_to_mark"), ("study", "put_cup_in_box"),
        ("office", "TOTAL"), ("study", "TOTAL"), ("TOTAL", "TOTAL"),
    ]  # fmt: skip
    assert (rows[1]["n"], rows[1]["SR"], rows[1]["HSR"], rows[1]["CR"]) == (
        "2",
        "50.00",
        "0.00",
        "",
    )
    assert (rows[1]["n_HSR"], rows[1]["n_CR"], rows[1]["partial"]) == ("1", "0", "0")
    assert (rows[5]["SR_low"], rows[5]["SR_high"]) == ("37.55", "96.38")


def test_partial_is_loud_and_exits_1(run: HandMade, capsys: pytest.CaptureFixture[str]) -> None:
    cup = run.seal("study", "put_cup_in_box", [1, 2, 3, 4])
    run.write(run.row(cup, 0), run.row(cup, 1, "error"), tail="{torn")
    run.write(*(run.row(cup, 2, "error", attempt=k) for k in (1, 2, 3)), worker="node-2-bb")
    assert organize(run.root, "demo", "tiny") == EXIT_PARTIAL
    text = (run.root.runs / "tiny" / "study" / "results.txt").read_text()
    head, _, legend_on = text.partition("SR       ")
    assert head == (
        "tiny / clean / scene study      (run demo)\n"
        "policy tinyvla  checkpoint tiny (sha256:01234567)  simulator pointsim\n"
        "\n" + "*" * 100 + "\n"
        "***  P A R T I A L\n"
        "***  3 of 4 selected episodes have no result: "
        "1 missing, 2 in error (1 of them set aside).\n"
        "***  The rates below are over the other episodes alone.\n" + "*" * 100 + "\n"
        "\n"
        "task                   SR % [95 %]  n        HSR % [95 %]  n       CR % [95 %]  n"
        "  error  missing\n" + "-" * 106 + "\n"
        "put_cup_in_box  100.0 [20.7,100.0]  1  100.0 [20.7,100.0]  1  0.0 [ 0.0, 79.3]  1"
        "      2        1  PARTIAL\n" + "-" * 106 + "\n"
        "TOTAL           100.0 [20.7,100.0]  1  100.0 [20.7,100.0]  1  0.0 [ 0.0, 79.3]  1"
        "      2        1  PARTIAL\n"
        "\n"
    )
    assert legend_on.endswith(
        "Not counted (3):\n"
        "  study/put_cup_in_box seed 2: error; stall: no progress for 300 s"
        " (log: runs/demo/logs/node-1-aa.log)\n"
        "  study/put_cup_in_box seed 3: set aside; 3 errors (stall x3) on node;"
        " the last: no progress for 300 s (log: runs/demo/logs/node-1-aa.log)\n"
        "  study/put_cup_in_box seed 4: missing\n"
    )
    printed = capsys.readouterr().out
    assert "P A R T I A L" in printed and "could not be read and are not counted: 1" in printed
    assert "_metrics.jsonl:3: torn last line" in printed


def test_organizing_again_changes_nothing(run: HandMade) -> None:
    quiet(whole(run), "tiny")
    before = tree(run.root.runs / "tiny")
    assert quiet(run, "tiny") == EXIT_OK
    assert tree(run.root.runs / "tiny") == before


def test_configurations_have_reports_of_their_own(run: HandMade) -> None:
    clean = run.seal("study", "put_cup_in_box", [1])
    cluttered = run.seal("study", "put_cup_in_box", [1], config="d6")
    run.write(run.row(clean, 0, "success"), run.row(cluttered, 0, "fail"))
    quiet(run, "tiny")
    rates = {
        name: json.loads((run.root.runs / name / "results.json").read_text())["total"]["SR"]
        for name in ("tiny", "tiny_d6")
    }
    assert (rates["tiny"]["percent"], rates["tiny_d6"]["percent"]) == (100.0, 0.0)


def test_run_and_model_of_one_name(run: HandMade) -> None:
    before = tree(whole(run).paths.root)
    assert quiet(run, "demo") == EXIT_OK
    after = tree(run.paths.root)
    assert {name: after[name] for name in before} == before
    assert {"results.txt", "study/put_cup_in_box/seed1.mp4"} <= set(after)
    assert quiet(run, "demo") == EXIT_OK
    assert tree(run.paths.root) == after


def test_scene_named_like_a_file_of_the_run(run: HandMade) -> None:
    manifest = run.seal("workers", "greet", [1])
    run.write(run.row(manifest, 0))
    with pytest.raises(RollpoolError, match="has the name of a file of the run"):
        quiet(run, "demo")
    assert quiet(run, "tiny") == EXIT_OK


def test_another_run_is_no_model(run: HandMade) -> None:
    other = whole(HandMade(run.root, "other"))
    before = tree(other.paths.root)
    with pytest.raises(RollpoolError, match="that is another run"):
        quiet(whole(run), "other", replace=True)
    assert tree(other.paths.root) == before


def test_report_of_another_run_needs_replace(run: HandMade) -> None:
    other = HandMade(run.root, "other")
    manifest = other.seal("study", "stack_cups", [7])
    other.write(other.video(other.row(manifest, 0)))
    quiet(other, "tiny")
    with pytest.raises(RollpoolError, match=r"holds the report of run 'other'.*--replace"):
        quiet(whole(run), "tiny")
    assert quiet(run, "tiny", replace=True) == EXIT_OK
    folder = run.root.runs / "tiny"
    assert (folder / "results.txt").read_text() == WHOLE
    assert not (folder / "study" / "stack_cups").exists()  # the other run's, and made by us


def test_stale_videos_go_and_foreign_files_stay(run: HandMade) -> None:
    cup = run.seal("study", "put_cup_in_box", [1, 2])
    run.write(run.video(run.row(cup, 0)), run.video(run.row(cup, 1), b"second"))
    quiet(run, "tiny")
    task = run.root.runs / "tiny" / "study" / "put_cup_in_box"
    (task / "mine.mp4").write_bytes(b"the user's own")
    run.write(run.row(cup, 1, "fail", attempt=2))  # counts now, and has no video
    quiet(run, "tiny")
    assert sorted(file.name for file in task.iterdir()) == ["mine.mp4", "seed1.mp4"]


def test_a_file_of_someone_else_is_not_overwritten(run: HandMade) -> None:
    task = run.root.runs / "tiny" / "study" / "put_cup_in_box"
    task.mkdir(parents=True)
    (task / "seed1.mp4").write_bytes(b"the user's own")
    with pytest.raises(RollpoolError, match=r"seed1\.mp4 is there already"):
        quiet(whole(run), "tiny")
    assert (task / "seed1.mp4").read_bytes() == b"the user's own"
    assert not (run.root.runs / "tiny" / "results.txt").exists()


@pytest.mark.parametrize("links_before_the_kill", [0, 1, 2])
def test_killed_in_the_middle_and_repeated(
    run: HandMade, monkeypatch: pytest.MonkeyPatch, links_before_the_kill: int
) -> None:
    whole(run)
    done: list[str] = []
    link = report_files.ReportFiles.link

    def killed(self: report_files.ReportFiles, name: str, source: Path) -> None:
        if len(done) == links_before_the_kill:
            raise KeyboardInterrupt
        link(self, name, source)
        done.append(name)

    with monkeypatch.context() as patched:
        patched.setattr(report_files.ReportFiles, "link", killed)
        if links_before_the_kill < 2:
            with pytest.raises(KeyboardInterrupt):
                quiet(run, "tiny")
    assert quiet(run, "tiny") == EXIT_OK
    assert (run.root.runs / "tiny" / "results.txt").read_text() == WHOLE


def test_copies_where_links_cannot_be_made(run: HandMade, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    whole(run)
    monkeypatch.setattr(os, "link", no_link)
    assert quiet(run, "tiny") == EXIT_OK
    copy = run.root.runs / "tiny" / "study" / "put_cup_in_box" / "seed1.mp4"
    assert copy.read_bytes() == b"cup 1" and copy.stat().st_nlink == 1
    assert quiet(run, "tiny") == EXIT_OK  # and its own copy is no stranger to it


def test_two_episodes_of_one_seed_have_two_videos(run: HandMade) -> None:
    cell = Cell("study", "put_cup_in_box", "bench_demo_study_clean")
    trials = Sealed([episode_line(1, "go", {"trial": k}) for k in range(2)])
    manifest = population.seal(run.paths, cell, "pointsim", trials)
    population.select(run.paths, manifest, 2)
    run.write(*(run.video(run.row(manifest, k), f"trial {k}".encode()) for k in (0, 1)))
    quiet(run, "tiny")
    task = run.root.runs / "tiny" / "study" / "put_cup_in_box"
    assert {file.name: file.read_bytes() for file in task.iterdir()} == {
        "seed1.mp4": b"trial 0",
        f"seed1_{manifest.hash[:8]}_p1.mp4": b"trial 1",
    }


def test_a_video_outside_the_run_is_not_taken(run: HandMade, tmp_path: Path) -> None:
    (tmp_path / "secret.mp4").write_bytes(b"secret")
    cup = run.seal("study", "put_cup_in_box", [1, 2])
    run.write(run.row(cup, 0, video="../../secret.mp4"))
    run.write(run.row(cup, 1, video=str(tmp_path / "secret.mp4")))
    assert quiet(run, "tiny") == EXIT_OK
    assert not list((run.root.runs / "tiny").rglob("*.mp4"))


@pytest.mark.parametrize("video", ["", "x" * 5000, "a\0b", "eval_result"])
def test_a_video_that_can_be_no_file_is_not_taken(run: HandMade, video: str) -> None:
    run.write(run.row(run.seal("study", "put_cup_in_box", [1]), 0, video=video))
    assert quiet(run, "tiny") == EXIT_OK
    assert not list((run.root.runs / "tiny").rglob("*.mp4"))


def test_nothing_to_organize(root: Root) -> None:
    with pytest.raises(RollpoolError, match="no sealed episode and no row"):
        organize(root, "nosuch", "tiny")
    with pytest.raises(RollpoolError, match="not a folder name"):
        organize(root, "../etc", "tiny")
