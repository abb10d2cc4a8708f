"""A table of all rows says exactly what ``records`` says, whatever stands in the files."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.foundations.metrics_files import read_file
from harness.foundations.records import SCHEMA, Row, counted
from harness.leases.decisions import Decisions, decide
from harness.paths import Root
from harness.reports.episode_table import CountedEpisodes, EpisodeTable
from harness.reports.report import Counted
from harness.reports.row_table import RowTable
from tests.lease.scripted import manifest, row
from tests.report.handmade import HandMade

BANK = manifest("a", 3)
OTHER = manifest("b", 3)

TABLE = EpisodeTable(RowTable())

_TEXT = st.text(st.characters(codec="utf-8"), max_size=6)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    outcome = draw(st.sampled_from(["success", "fail", "error"]))
    made = row(
        draw(st.sampled_from([BANK, OTHER])), draw(st.integers(0, 2)), draw(st.integers(1, 3)),
        draw(st.sampled_from(["h1-1", "h2-2", "h\u00e9"])), outcome,
        draw(st.sampled_from(["crash", "lost", "policy"])),
    )  # fmt: skip
    return replace(
        made,
        instruction=draw(_TEXT), seed=draw(st.integers(-(2**63), 2**63 - 1)),
        hard_success=draw(st.sampled_from([None, True, False])),
        collision_count=draw(st.sampled_from([None, 0, 3])),
        collision_names=tuple(draw(st.lists(_TEXT, max_size=2))),
        video=draw(st.none() | _TEXT), finished=draw(st.floats(0, 1e10)),
        profile=draw(st.dictionaries(st.sampled_from(["reset", "other", ""]), st.floats(0, 1e6))),
    )  # fmt: skip


_VALUES: Sequence[Any] = [
    None, True, 0, -1, 2**63, 2**80, 1.5, 1e300, "", "1", "true", "success", "error", "\x00", [],
    ["a"], [1], ["a", None], {}, {"kind": "crash"}, {"kind": "bad"}, {"kind": 1},
]  # fmt: skip


def _changed(made: Row, name: str, value: Any) -> str:
    return json.dumps({**json.loads(made.to_json()), name: value})


def _without(made: Row, name: str) -> str:
    return json.dumps({k: v for k, v in json.loads(made.to_json()).items() if k != name})


_NAMES = st.sampled_from(sorted(SCHEMA))
_GOOD = rows().map(Row.to_json)
_LINES = st.one_of(
    _GOOD, _GOOD, _GOOD,
    st.builds(_changed, rows(), _NAMES, st.sampled_from(_VALUES)),
    st.builds(_without, rows(), _NAMES),
    st.builds(lambda a, b: a + b, _GOOD, _GOOD),  # glued
    st.builds(lambda text, at: text[: len(text) * at // 9], _GOOD, st.integers(0, 9)),  # torn
    st.builds(lambda text: text.replace('"seed":', '"seed":NaN,"was":'), _GOOD),
    st.builds(lambda text: text.replace('"started":0.0', '"started":1e400'), _GOOD),
    st.builds(lambda text: text.replace('"do it"', '"\\ud800"'), _GOOD),
    _GOOD.map(lambda text: text[:-1] + ',"seed":9,"success":false,"s\\u0065ed":"x"}'),
    _GOOD.map(lambda text: '{"outcome":"fail","success":false,' + text[1:]),
    _GOOD.map(lambda text: text.replace(":", ":\n", 1)),  # split
    st.sampled_from(["", " ", "null", "[]", "7", "{}", "\u2028"]),
)  # fmt: skip


def _write(folder: Path, contents: Sequence[tuple[list[str], bool]]) -> list[Path]:
    files = []
    for number, (lines, ended) in enumerate(contents):
        file = folder / f"_metrics.{number}.jsonl"
        file.write_bytes(("\n".join(lines) + ("\n" if ended and lines else "")).encode())
        files.append(file)
    return files


def _by_the_rule(
    files: Sequence[Path], decisions: Decisions, problems: list[str]
) -> dict[tuple[str, int], Counted]:
    valid = [made for file in files for made in read_file(file, problems)]
    return {
        episode: _reduced(best)
        for episode, best in counted(decisions.current(valid)).items() if best.error is None
    }  # fmt: skip


def _reduced(row: Row) -> Counted:
    assert row.success is not None
    collision = None if row.collision_count is None else row.collision_count > 0
    return Counted(
        row.scene, row.task, row.task_config, row.seed, row.success, row.hard_success, collision,
        row.position, row.manifest, row.video,
    )  # fmt: skip


def _of_table(table: EpisodeTable) -> dict[tuple[str, int], Counted]:
    table.refresh([])
    found = list(CountedEpisodes(table, table.tallies()))
    assert len({(one.manifest, one.position) for one in found}) == len(found)
    return {(one.manifest, one.position): one for one in found}


_FILES = st.lists(st.tuples(st.lists(_LINES, max_size=6), st.booleans()), max_size=3)
_FLOORS = st.dictionaries(st.integers(0, 2), st.integers(1, 2), max_size=1)


@settings(max_examples=15)
@given(_FILES, _FLOORS)
def test_the_table_counts_by_the_rule(
    contents: list[tuple[list[str], bool]], floors: dict[int, int]
) -> None:
    _count(contents, floors)


@pytest.mark.slow
@settings(max_examples=150)
@given(_FILES, _FLOORS)
def test_many_tables_count_by_the_rule(
    contents: list[tuple[list[str], bool]], floors: dict[int, int]
) -> None:
    _count(contents, floors)


def _count(contents: list[tuple[list[str], bool]], floors: dict[int, int]) -> None:
    """Files of these lines, whole or with a torn last one, by the table and by the rule."""
    with tempfile.TemporaryDirectory() as folder:
        files = _write(Path(folder), contents)
        decisions = Decisions(Path(folder, "decisions"))
        if floors:
            floor = {(BANK.hash, position): attempt for position, attempt in floors.items()}
            decide(Path(folder, "decisions"), "reset", floor, by="test")
        decisions.refresh()
        problems: list[str] = []
        TABLE.rows.refresh(files, decisions)  # and forgets the files of the example before
        assert _of_table(TABLE) == _by_the_rule(files, decisions, problems)
        assert TABLE.rows.problems == problems


def test_each_value_of_each_field_is_judged_alike(tmp_path: Path) -> None:
    good = row(BANK, 0, 1, "h1-1", "success", "")
    lines = [_changed(good, name, value) for name in SCHEMA for value in _VALUES]
    lines += [_without(good, name) for name in SCHEMA]
    odd = ("1E400", "-1e400", "-Infinity", "NaN", "-0", "0.0", "1E5", "12345678901234567890.5")
    lines += [_changed(good, name, 7).replace(f'"{name}": 7', f'"{name}": {text}')
              for name in ("started", "seed", "wall_s") for text in odd]  # fmt: skip
    files = _write(tmp_path, [([line], True) for line in lines])
    problems: list[str] = []
    valid = sum(len(list(read_file(file, problems))) for file in files)
    table = RowTable()
    table.refresh(files, Decisions(tmp_path / "decisions"))
    assert sorted(table.problems) == sorted(problems)
    assert table.db.execute("SELECT count(*) FROM rows").fetchall() == [(valid,)]


@pytest.mark.parametrize("seconds", ["NaN", "Infinity", "1e400", '"long"', "[1]", "null"])
def test_seconds_that_are_no_number_are_left_out(tmp_path: Path, seconds: str) -> None:
    made = [row(BANK, p, 1, "h1-1", "success", "") for p in range(2)]
    lines = [replace(one, profile={"reset": 1.5, "other": 2.0}).to_json() for one in made]
    lines[0] = lines[0].replace("1.5", seconds)
    table = EpisodeTable(RowTable())
    table.rows.refresh(_write(tmp_path, [(lines, True)]), Decisions(tmp_path / "decisions"))
    table.refresh([])
    ((_, found),) = table.profiles()
    assert (found["reset"], found["other"]) == (1.5, 4.0)


def test_a_text_that_looks_like_another_value_is_a_text(tmp_path: Path) -> None:
    made = replace(row(BANK, 0, 1, "h1-1", "success", ""), profile={"reset": 1.0})
    names = [name for name, (kinds, _) in SCHEMA.items() if str in kinds and name != "outcome"]
    values: list[Any] = [5, 1.5, True, None, {}, ["a"], float("nan"), float("-inf")]
    texts = [text for value in values for text in (json.dumps(value), str(value))]
    pairs = [(name, text) for name in names for text in texts]
    odd = [replace(made, **{name: text}, position=k) for k, (name, text) in enumerate(pairs)]
    lines = [one.to_json() for one in odd]
    lines += [_changed(one, names[k % len(names)], values[k % len(values)])
              for k, one in enumerate(odd)]  # fmt: skip
    files = _write(tmp_path, [(lines[k::7], True) for k in range(7)])
    problems: list[str] = []
    valid = [one for file in files for one in read_file(file, problems)]
    table = EpisodeTable(RowTable())
    table.rows.refresh(files, Decisions(tmp_path / "decisions"))
    assert table.rows.problems == problems
    assert _of_table(table) == {key: _reduced(one) for key, one in counted(valid).items()}
    assert sum(found["reset"] for _, found in table.profiles()) == len(valid) > len(odd)


def test_a_task_that_nobody_measured_has_no_profile(tmp_path: Path) -> None:
    made = row(BANK, 0, 1, "h1-1", "success", "")
    lines = [made.to_json(), _without(made, "profile"), _changed(made, "profile", None)]
    table = EpisodeTable(RowTable())
    table.rows.refresh(_write(tmp_path, [(lines, True)]), Decisions(tmp_path / "decisions"))
    table.refresh([])
    assert not table.rows.problems
    assert not list(table.profiles())


def test_seconds_add_up_exactly_in_any_order(tmp_path: Path) -> None:
    made = [row(BANK, 0, attempt, "h1-1", "success", "") for attempt in range(1, 6)]
    laps: list[dict[str, float]] = [{"reset": 0.1}, {"reset": 0.2}, {"reset": 1e9}, {}, {"new": 1}]
    lines = [replace(one, profile=lap).to_json() for one, lap in zip(made, laps, strict=True)]
    for order in (lines, lines[::-1]):
        table = EpisodeTable(RowTable())
        table.rows.refresh(_write(tmp_path, [(order, True)]), Decisions(tmp_path / "decisions"))
        table.refresh([])
        ((_, found),) = table.profiles()
        assert not table.rows.problems
        assert {part: spent for part, spent in found.items() if spent} == {"reset": 1000000000.3}


@pytest.mark.parametrize("folder", ["r[12]", "r*", "r?", "**", "r\\*", "r'\"{1,2}"])
def test_a_file_is_itself_and_no_pattern(tmp_path: Path, folder: str) -> None:
    table, decisions = EpisodeTable(RowTable()), Decisions(tmp_path / "decisions")
    files = []
    for position, name in enumerate((folder, "r1")):
        (tmp_path / name).mkdir()
        line = row(BANK, position, 1, "h1-1", "success", "").to_json()
        files += _write(tmp_path / name, [([line], True)])
    for chosen in (files[:1], files, files[1:]):
        table.rows.refresh(chosen, decisions)
        assert [position for _, position in _of_table(table)] == [files.index(f) for f in chosen]


def test_temporary_files_may_lie_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aside = tmp_path / "it's [1]*"
    aside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(aside))
    table, line = RowTable(), row(BANK, 0, 1, "h1-1", "success", "").to_json()
    table.refresh(_write(tmp_path, [([line, "bad"], True)]), Decisions(tmp_path / "decisions"))
    assert len(table.problems) == 1
    assert table.db.execute("SELECT count(*) FROM rows").fetchall() == [(1,)]
    (where,) = table.db.execute("SELECT current_setting('temp_directory')").fetchall()[0]
    assert Path(where).parent.parent == aside


def test_first_lines_that_make_a_value_together_cost_nothing(tmp_path: Path) -> None:
    good = row(BANK, 0, 1, "h1-1", "success", "").to_json()
    files = _write(tmp_path, [(['{"a":', good], True), (["1}", good], True), ([good], True)])
    table, problems = RowTable(), list[str]()
    valid = sum(len(list(read_file(file, problems))) for file in files)
    table.refresh(files, Decisions(tmp_path / "decisions"))
    assert table.problems == problems and len(problems) == 2
    assert table.db.execute("SELECT count(*) FROM rows").fetchall() == [(valid,)]


def test_files_that_grow_shrink_and_go_are_read_again(tmp_path: Path) -> None:
    lines = [row(BANK, position, 1, "h1-1", "success", "").to_json() for position in range(3)]
    files = _write(tmp_path, [(lines[:1], True), (["bad"], True)])
    rows, decisions = RowTable(), Decisions(tmp_path / "decisions")
    table = EpisodeTable(rows)
    rows.refresh(files, decisions)
    assert [position for _, position in _of_table(table)] == [0]
    assert rows.problems == [f"{files[1]}:1: {_why(files[1])}"]
    _write(tmp_path, [(lines[:2], True), (lines[2:], True)])
    rows.refresh(files, decisions)
    assert [position for _, position in _of_table(table)] == [0, 1, 2]
    assert rows.problems == []
    rows.refresh(files[1:], decisions)
    assert [position for _, position in _of_table(table)] == [2]
    rows.close()


def _why(file: Path) -> str:
    problems: list[str] = []
    list(read_file(file, problems))
    return problems[0].partition(": ")[2]


MILLION = """
import resource, sys, time
from pathlib import Path
from harness.paths import Root
from harness.reports.report import tables
from harness.reports.results import RunReader
began = time.process_time()
results = RunReader(Root(Path(sys.argv[1])).run("big")).gather()
found = results.configs["clean"]
rates = tables(found.counted.tallies, found.holes)
tally = sum((t for tasks in rates.values() for t in tasks.values()), start=type(next(iter(
    next(iter(rates.values())).values())))())
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(tally.success.n, tally.success.hits, tally.missing, len(results.problems),
      time.process_time() - began, memory)
"""


@pytest.mark.slow
def test_a_million_rows_take_seconds_and_bounded_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1,000 files of 1,000 rows: 100 tasks of 5,000 episodes, each tried twice; a few bad lines."""
    run = HandMade(Root(tmp_path), "big")
    _million(run)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", MILLION, str(tmp_path)], capture_output=True, text=True,
        cwd=Path(__file__).parents[2], timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    n, hits, missing, problems, cpu_s, memory = map(float, done.stdout.split())
    with capsys.disabled():
        wall_s = time.monotonic() - began
        print(f"[1,000,000 rows: {wall_s:.0f} s, {cpu_s:.0f} s of CPU, {memory:.0f} MB]")
    assert (n, hits, missing, problems) == (500_000, 250_000, 0, 3)
    assert memory < 600
    assert cpu_s < 60


def _million(run: HandMade) -> None:
    manifests = [run.seal("study", f"task_{number}", list(range(5000))) for number in range(100)]
    places = [_place_of(run, manifest) for manifest in manifests]
    for number in range(1000):
        worker = f"node{number % 64}-{number}-{number:016x}"
        task, half, attempt = number % 100, number // 100 % 5, 1 + number // 500
        positions = range(half * 1000, half * 1000 + 1000)
        lines = [places[task](worker, position, attempt) for position in positions]
        folder = run.paths.metrics_dir(f"task_{task}", "tinyvla", "bench_demo_study_clean", worker)
        folder.mkdir(parents=True)
        tail = {7: "{torn", 8: "not JSON\n", 9: '{"format":1}\n'}.get(number, "")
        (folder / "_metrics.jsonl").write_text("".join(lines) + tail)


def _place_of(run: HandMade, of: Any) -> Callable[[str, int, int], str]:
    """Makes rows of a manifest by replacing text: a hundredth of the time of making them one by
    one."""
    made = run.row(
        of, 4999, "success", worker="WORKER", steps=123, wall_s=5.5, state_hash="ab" * 32,
        video="eval_result/a/b/c/WORKER/video_p4999.mp4", seed=4999,
    ).to_json()  # fmt: skip

    def line(worker: str, position: int, attempt: int) -> str:
        text = made.replace("WORKER", worker).replace("4999", str(position))
        text = text.replace('"attempt":1,', f'"attempt":{attempt},')
        if (position + attempt) % 2:
            text = text.replace('"outcome":"success"', '"outcome":"fail"').replace(
                '"success":true', '"success":false'
            )
        return text + "\n"

    return line
