"""What the order of work goes by: the mean, the scale, and a file that may be anything."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from harness.foundations.records import Row
from harness.leases.durations import Durations, read
from harness.runs.population import Cell
from tests.lease.scripted import manifest, row

A, B, C = (manifest(digit, 9) for digit in "abc")


def took(cell: Cell, position: int, seconds: float, outcome: str = "fail") -> Row:
    digit = cell.task[-1]
    made = row(manifest(digit, 9), position, 1, "h-1", outcome, "crash")
    return dataclasses.replace(made, wall_s=seconds)


def test_a_row_read_twice_is_one_and_errors_are_none() -> None:
    durations = Durations()
    for _ in range(2):
        durations.add(took(A.cell, 0, 2.0))
        durations.add(took(A.cell, 1, 4.0))
    durations.add(took(A.cell, 2, 900.0, "error"))
    assert durations.seconds(A.cell) == pytest.approx(3.0)


def test_a_cell_that_nobody_knows_is_like_the_others() -> None:
    durations = Durations()
    assert durations.seconds(A.cell) == 1.0
    assert not durations.known(A.cell)
    durations.add(took(A.cell, 0, 2.0))
    durations.add(took(B.cell, 0, 6.0))
    assert durations.seconds(C.cell) == pytest.approx(4.0)
    assert durations.known(A.cell)
    assert not durations.known(C.cell)


def test_this_run_sets_the_scale_of_earlier_ones() -> None:
    earlier = {of.cell.name: {"seconds": s, "episodes": 10} for of, s in ((A, 1.0), (B, 3.0))}
    durations = Durations(earlier)
    assert (durations.seconds(A.cell), durations.seconds(B.cell)) == (1.0, 3.0)
    durations.add(took(A.cell, 0, 10.0))  # a policy ten times as slow
    assert durations.seconds(A.cell) == pytest.approx(10.0)
    assert durations.seconds(B.cell) == pytest.approx(30.0)
    assert not durations.measured(B.cell)


def test_many_episodes_outweigh_what_earlier_runs_said() -> None:
    durations = Durations({of.cell.name: {"seconds": 1.0, "episodes": 9} for of in (A, B)})
    for position in range(9):
        durations.add(took(A.cell, position, 3.0))
        durations.add(took(B.cell, position, 1.0))
    assert 1.5 < durations.seconds(A.cell) / durations.seconds(B.cell) < 3.0


def test_what_is_saved_is_read_and_leaves_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "durations.json"
    for name, cell, seconds in (("one", A.cell, 2.0), ("two", A.cell, 5.0), ("one", B.cell, 3.0)):
        durations = Durations()
        durations.add(took(cell, 0, seconds))
        durations.save(file, name)
    one = read(file, "one")
    assert one == {
        A.cell.name: {"seconds": 2.0, "episodes": 1}, B.cell.name: {"seconds": 3.0, "episodes": 1},
    }  # fmt: skip
    assert read(file, "two")[A.cell.name]["seconds"] == 5.0
    assert (
        Durations(one).words([A.cell, C.cell]) == "longest first, by 1 earlier episodes of 1 tasks"
    )


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "1", '{"one": 1}', '{"one": {"a": 1}}', '{"one": {"a": {"seconds": "x"}}}',
     '{"one": {"a": {"seconds": 0, "episodes": 1}}}',
     '{"one": {"a": {"seconds": NaN, "episodes": 1}}}',
     '{"one": {"a": {"seconds": 1}}}', "\x00", "[" * 100_000,
     '{"one": {"a": {"seconds": 1e-320, "episodes": 1}}}',
     '{"one": {"a": {"seconds": 1e308, "episodes": 1}}}',
     '{"one": {"a": {"seconds": 1' + "0" * 400 + ', "episodes": 1}}}'],
)  # fmt: skip
def test_a_broken_file_says_nothing_and_is_replaced(tmp_path: Path, text: str) -> None:
    file = tmp_path / "durations.json"
    file.write_text(text)
    assert read(file, "one") == {}
    durations = Durations()
    durations.add(took(A.cell, 0, 2.0))
    durations.save(file, "one")
    assert [*read(file, "one")] == [A.cell.name]


def test_a_missing_file_says_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "durations.json", "one") == {}


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e-320, 1.7e308])
def test_whatever_rows_say_there_is_something_to_divide_by(seconds: float) -> None:
    durations = Durations({A.cell.name: {"seconds": 1.0, "episodes": 9}})
    for cell in (A.cell, B.cell):
        for position in range(2):
            durations.add(took(cell, position, seconds))
    assert all(0 < durations.seconds(of.cell) < 1e9 for of in (A, B, C))
