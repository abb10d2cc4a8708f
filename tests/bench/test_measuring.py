"""The common part of the benchmark: turns, ratios, goals, and the table that is made of them."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

import bench.cli
from bench import __main__ as command
from bench import machine, table
from bench.measuring import QUICK, Effort, Figure, Goal, Series, interleaved, ratios
from harness.errors import EXIT_OK, EXIT_PARTIAL, RollpoolError


def test_subjects_take_turns_and_another_one_begins_each_round() -> None:
    order: list[str] = []

    def subject(name: str) -> float:
        order.append(name)
        return float(len(order))

    took = interleaved({n: lambda n=n: subject(n) for n in "abc"}, 3)  # type: ignore[misc]
    assert "".join(order) == "abc" + "bca" + "cab"
    assert took == {"a": (1, 6, 8), "b": (2, 4, 9), "c": (3, 5, 7)}


def test_ratios_compare_measurements_of_one_turn() -> None:
    assert ratios((2, 9), (1, 3)) == (2, 3)
    with pytest.raises(ValueError, match="shorter"):
        ratios((2, 9), (1,))


@pytest.mark.parametrize(
    ("values", "at_most", "reached"),
    [((1, 2, 9), True, True), ((1, 3, 9), True, False), ((1, 2, 9), False, True),
     ((1, 1.9, 9), False, False)],
)  # fmt: skip
def test_a_goal_is_judged_by_its_median(
    values: tuple[float, ...], at_most: bool, reached: bool
) -> None:
    assert Goal("what", values, 2.0, at_most=at_most).reached is reached


def test_an_effort_scales_sizes_and_keeps_what_is_needed() -> None:
    assert [QUICK.of(100_000), QUICK.of(20, least=3)] == [10_000, 3]


RECORD = Figure(
    "a figure", (Series("peer", "ms", (10.0, 12.0, 30.0)),),
    (Goal("ours / peer", (0.5, 0.25), 0.6), Goal("rate", (1500, 1700), 2000, "/s", False)),
    ("something was left out",),
).record()  # fmt: skip


def test_the_screen_says_what_was_reached_and_what_was_left_out() -> None:
    title, peer, ours, rate, note = table.lines("name", RECORD | {"seconds": 3.0})
    assert title == "name: a figure (3 s)"
    assert peer.split() == ["peer", "12", "ms", "[10,", "30]"]
    assert " ".join(ours.split()) == "ours / peer 0.375 x [0.25, 0.5] reach: ≤ 0.6 x reached"
    assert " ".join(rate.split()) == "rate 1,600 /s [1,500, 1,700] reach: ≥ 2,000 /s MISSED"
    assert note == "  note: something was left out"


def test_the_table_replaces_what_stands_between_the_markers(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    results = {"figures": {"name": RECORD}, "command": "python -m bench name",
               "machine": machine.describe()}  # fmt: skip
    with pytest.raises(FileNotFoundError):
        table.write(readme, results)
    readme.write_text("before\n")
    with pytest.raises(RollpoolError, match="bench: begin"):
        table.write(readme, results)
    readme.write_text(f"before\n{table.BEGIN}old\n{table.END}\nafter\n")
    table.write(readme, results)
    once = readme.read_text()
    table.write(readme, results)
    assert readme.read_text() == once
    assert once.startswith("before\n") and once.endswith("\nafter\n") and "old" not in once
    assert "| `name`: a figure | ours / peer | 0.375 x [0.25, 0.5] | ≤ 0.6 x | yes |" in once
    assert "|  | rate | 1,600 /s [1,500, 1,700] | ≥ 2,000 /s | **no** |" in once
    assert "python -m bench name" in once


@pytest.mark.parametrize(
    ("error", "said"),
    [(RollpoolError("figure", "no such thing", "make one"), "figure: no such thing"),
     (OSError(28, "No space left"), "[Errno 28]"), (ValueError("of a peer"), "ValueError: of a")],
)  # fmt: skip
def test_a_figure_that_cannot_be_measured_does_not_cost_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    error: Exception, said: str,
) -> None:  # fmt: skip
    def measure(effort: Effort) -> Figure:
        raise error

    monkeypatch.setattr(bench.cli, "measure", measure)
    broken = ModuleType("bench.broken")
    figures = [broken, bench.cli]
    broken.TITLE, broken.measure = "works", lambda effort: Figure("works")  # type: ignore[attr-defined]
    monkeypatch.setattr(command.importlib, "import_module", lambda name: figures.pop())
    out = tmp_path / "out.json"
    assert command.main(["cli", "wire", "--quick", "--out", str(out)]) == EXIT_PARTIAL
    found = json.loads(out.read_text())
    assert found["effort"] == "quick" and found["machine"]["cores"] >= 1
    assert found["figures"]["cli"]["failed"] and not found["figures"]["wire"]["failed"]
    assert f"not measured: {said}" in capsys.readouterr().out
    figures.append(broken)
    assert command.main(["wire", "--out", str(out)]) == EXIT_OK


@pytest.mark.parametrize("option", ["--readme", "--out"])
def test_what_cannot_be_written_is_said_before_anything_is_measured(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "README.md"
    file.write_text("no markers")
    with pytest.raises(SystemExit):
        command.main(["all", option, str(file / "x" if option == "--out" else file)])
    assert "markers" in (said := capsys.readouterr().err) or "File exists" in said


def test_half_a_table_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(whole := f"{table.BEGIN}old\n{table.END}")
    with pytest.raises(SystemExit):
        command.main(["cli", "wire", "--readme", str(readme)])
    assert "stack, claims" in capsys.readouterr().err and readme.read_text() == whole


@pytest.mark.parametrize("name", command.FIGURES)
def test_a_title_names_no_size_that_a_quick_measurement_makes_smaller(name: str) -> None:
    assert not re.search(r"\d{3}", importlib.import_module(f"bench.{name}").TITLE)


def test_an_interrupt_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def measure(effort: Effort) -> Figure:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench.cli, "measure", measure)
    assert command.main(["cli", "--out", str(tmp_path / "out.json")]) == 130
    assert capsys.readouterr().err == "bench: interrupted\n"
