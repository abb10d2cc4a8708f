"""Rows survive the disk, damage is skipped and named, and counting knows no order."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RollpoolError
from harness.foundations.metrics_files import metrics_files, read_rows
from harness.foundations.records import ERROR_KINDS, OUTCOMES, Row, counted


def row(outcome: str = "success", **fields: Any) -> Row:
    error = {"kind": "crash", "message": "gone"} if outcome == "error" else None
    values: dict[str, Any] = {
        "manifest": "ab" * 32, "position": 0, "attempt": 1, "worker": "w", "host": "h",
        "run": "r", "scene": "study", "task": "put_cup_in_box",
        "task_config": "bench_demo_study_clean", "seed": 40000, "instruction": "Take it.",
        "outcome": outcome, "success": OUTCOMES[outcome], "error": error, "policy": "tinyvla",
        "checkpoint": {"name": "none", "digest": ""}, "simulator": "tabletop",
        "settings_hash": "", "code_hash": "", "started": 1.5, "finished": 2.5,
    }  # fmt: skip
    return Row(**{**values, **fields})


def write(folder: Path, data: bytes) -> Path:
    file = folder / "_metrics.jsonl"
    file.write_bytes(data)
    return file


text = st.text(max_size=20)
floats = st.floats(allow_nan=False, allow_infinity=False)
rows = st.builds(
    row,
    st.sampled_from(sorted(OUTCOMES)),
    manifest=st.sampled_from(["a", "b"]),
    position=st.integers(0, 2),
    attempt=st.integers(1, 3),
    worker=st.sampled_from(["v", "w"]),
    instruction=text,
    hard_success=st.none() | st.booleans(),
    collision_count=st.none() | st.integers(0, 2**63 - 1),
    collision_names=st.lists(text, max_size=3).map(tuple),
    steps=st.none() | st.integers(0, 2**63 - 1),
    wall_s=st.none() | floats,
    versions=st.dictionaries(text, text, max_size=2),
    video=st.none() | text,
)


@given(rows)
def test_a_row_comes_back_as_it_was(given_row: Row) -> None:
    line = given_row.to_json()
    assert "\n" not in line
    assert Row.from_json(line) == given_row


@given(rows)
def test_keys_of_later_versions_are_ignored(given_row: Row) -> None:
    record = json.loads(given_row.to_json()) | {"colour": "blue"}
    assert Row.from_json(json.dumps(record)) == given_row


def test_a_file_cut_at_any_byte_keeps_its_whole_lines(tmp_path: Path) -> None:
    wanted = [row(position=n, instruction=f"Take the tasse à café {n}.") for n in range(2)]
    data = "".join(r.to_json() + "\n" for r in wanted).encode()
    for cut in range(len(data) + 1):
        write(tmp_path, data[:cut])
        problems: list[str] = []
        found = list(read_rows(tmp_path, problems=problems))
        missing_newline = cut in (len(data) - 1, len(wanted[0].to_json().encode()))
        whole = data[:cut].count(b"\n") + missing_newline
        assert found == wanted[:whole]
        torn = cut > 0 and data[cut - 1 : cut] != b"\n" and not missing_newline
        assert [p.split(": ")[1] for p in problems] == ["torn last line, skipped"] * torn


@given(st.binary(max_size=60))
def test_garbage_between_rows_costs_no_row(garbage: bytes) -> None:
    lines = garbage.split(b"\n")
    good = row().to_json().encode()
    with TemporaryDirectory() as name:
        file = write(Path(name), b"\n".join([good, *lines, good]) + b"\n")
        problems: list[str] = []
        assert list(read_rows(Path(name), problems=problems)) == [row(), row()]
        assert [p.split(": ")[0] for p in problems] == [
            f"{file}:{number}" for number, line in enumerate(lines, start=2) if line.strip()
        ]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"position": "0"}, "'position' is '0', not int"),
        ({"position": True}, "'position' is True, not int"),
        ({"position": -1}, "position -1"),
        ({"attempt": 0}, "attempt 0"),
        ({"success": False}, "outcome 'success' with success False"),
        ({"outcome": "won"}, "outcome 'won'"),
        ({"hard_success": 1}, "'hard_success' is 1"),
        ({"error": {"kind": "crash"}}, "outcome 'success' with error"),
        ({"outcome": "error", "success": None, "error": {"kind": "bad luck"}}, "'bad luck'"),
        ({"collision_names": [1]}, "collision_names"),
        ({"format": 2}, "newer than this toolkit's 1"),
    ],
)
def test_a_bad_row_is_refused_by_what_is_wrong(change: dict[str, Any], what: str) -> None:
    with pytest.raises(RollpoolError, match=what):
        Row.from_json(json.dumps(json.loads(row().to_json()) | change))


def test_a_row_without_a_field_names_it() -> None:
    record = json.loads(row().to_json())
    del record["manifest"]
    with pytest.raises(RollpoolError, match="no 'manifest'"):
        Row.from_json(json.dumps(record))


def test_no_folder_is_opened_that_no_listing_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On NFS naming what is missing makes it stay missing for half a minute."""
    opened = list[Path]()
    monkeypatch.setattr(os, "walk", lambda top, **_: opened.append(top) or [])
    results = tmp_path / "eval_result"
    assert metrics_files(results) == metrics_files(results, "task/policy") == opened == []
    (results / "task").mkdir(parents=True)
    metrics_files(results, "task/policy")
    metrics_files(results, "task")
    assert opened == [results / "task"]


def test_metrics_files_are_found_by_their_names_alone(tmp_path: Path) -> None:
    for name in ("a/_metrics.jsonl", "a/_metrics.1.jsonl", "b/c/_metrics.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("a/_metrics.old.jsonl", "a/._metrics.jsonl.x.tmp", "a/metrics.jsonl"):
        (tmp_path / name).touch()
    found = [f.relative_to(tmp_path).as_posix() for f in metrics_files(tmp_path)]
    assert found == ["a/_metrics.1.jsonl", "a/_metrics.jsonl", "b/c/_metrics.jsonl"]


@given(st.lists(rows, max_size=8), st.randoms(use_true_random=False))
def test_what_counts_depends_on_no_order(given_rows: list[Row], random: Any) -> None:
    shuffled = list(given_rows)
    random.shuffle(shuffled)
    assert counted(shuffled) == counted(given_rows)


@pytest.mark.parametrize(
    ("loser", "winner"),
    [
        (row("error", attempt=3), row("fail", attempt=1)),
        (row("success", attempt=1), row("fail", attempt=2)),
        (row("fail", worker="v"), row("success", worker="w")),
        (row("success", worker="v"), row("fail", worker="w")),
        (row("error", attempt=1, worker="w"), row("error", attempt=2, worker="v")),
        (row(finished=9.0, worker="v"), row(finished=1.0, worker="w")),
    ],
)
def test_outcome_then_attempt_then_worker(loser: Row, winner: Row) -> None:
    assert list(counted([winner, loser]).values()) == [winner]


def test_every_error_kind_can_be_recorded() -> None:
    for kind in ERROR_KINDS:
        error: dict[str, Any] = {"kind": kind, "message": "", "traceback": None, "logs": {}}
        lost = dataclasses.replace(row("error"), error=error)
        assert Row.from_json(lost.to_json()) == lost


def test_a_row_of_before_there_were_profiles_has_an_empty_one() -> None:
    old = json.loads(row().to_json())
    del old["profile"]
    assert Row.from_json(json.dumps(old)).profile == {}
