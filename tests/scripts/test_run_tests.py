"""The suite's own arithmetic: who runs what, and what counts as passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.lib.run_tests import Count, complaints, count, plan

IGNORES = ["--ignore=tests/tabletop", "--ignore=tests/rendering", "--ignore=tests/policies_torch"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("tests/wire", "tests/tabletop", "tests/policies_torch", "scripts"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "tests/tabletop/test_robot.py").touch()
    return tmp_path


def test_everything_runs_in_its_environment(checkout: Path) -> None:
    assert plan(["-x"], checkout) == {
        "toolkit": ["tests", *IGNORES, "-x"],
        "tabletop": ["tests/tabletop", "tests/rendering", "-x"],
        "model": ["tests/policies_torch", "-x"],
    }


def test_paths_go_to_the_run_they_belong_to(checkout: Path) -> None:
    one_test = "tests/tabletop/test_robot.py::test_ik"
    assert plan([one_test, "-k", "scripts", "tests/wire"], checkout) == {
        "tabletop": [one_test, "-k", "scripts"],
        "toolkit": ["tests/wire", *IGNORES, "-k", "scripts"],
    }


def junit(path: Path, **numbers: int) -> Path:
    attributes = " ".join(f'{name}="{value}"' for name, value in numbers.items())
    path.write_text(f"<testsuites><testsuite {attributes}/></testsuites>")
    return path


@pytest.mark.parametrize(
    ("numbers", "exit_code", "expected"),
    [
        ({"tests": 9, "failures": 0, "errors": 0, "skipped": 0}, 0, "9 passed, 0 failed"),
        (
            {"tests": 9, "failures": 2, "errors": 1, "skipped": 1},
            1,
            "5 passed, 3 failed, 1 skipped",
        ),
        ({"tests": 0, "failures": 0, "errors": 0, "skipped": 0}, 5, "0 passed, 0 failed"),
        ({"tests": 4, "failures": 0, "errors": 0, "skipped": 0}, 2, "4 passed, 1 failed"),
        ({"tests": 1, "failures": 1, "errors": 1, "skipped": 0}, 1, "0 passed, 2 failed"),
    ],
)
def test_count(tmp_path: Path, numbers: dict[str, int], exit_code: int, expected: str) -> None:
    assert str(count(junit(tmp_path / "r.xml", **numbers), exit_code)) == expected


def test_a_run_without_a_report_is_a_failure(tmp_path: Path) -> None:
    assert count(tmp_path / "none.xml", -11) == Count(failed=1)


def test_sums() -> None:
    assert str(Count(1, 2, 3) + Count(10, 20)) == "11 passed, 22 failed, 3 skipped"


def test_a_whole_suite_needs_tests_in_every_run() -> None:
    ends = [("toolkit", 0, Count(3)), ("model", 5, Count())]
    assert complaints(ends, everything=True) == ["model: no tests were collected"]
    assert complaints(ends, everything=False) == []
    assert complaints(ends[1:], everything=False) == ["the arguments select no test"]
    assert complaints([("model", -11, Count(failed=1))], everything=False) == [
        "model: pytest ended with -11"
    ]
