"""The command's shape: help, errors on one line, exit codes, flags over the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness import cli
from harness.commands import launch
from harness.foundations.variables import VARIABLES
from harness.paths import CODE
from tests.cli.conftest import Rollpool


def test_help_names_every_command_and_imports_little() -> None:
    code = (
        "import sys; from harness.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'yaml', 'numpy', 'rich', 'duckdb'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CODE, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert all(f"    {name}" in done.stdout for name in cli.COMMANDS)


def test_who_prepares_needs_no_numpy() -> None:
    modules = "harness.commands.prepare, harness.runs.prepare, harness.workers.chosen_simulator"
    code = f"import sys, {modules}; sys.exit('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=CODE, timeout=60, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("command", list(cli.COMMANDS))
def test_help_of_each_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: rollpool {command}")


def test_every_flag_stands_for_a_declared_variable() -> None:
    assert set(launch.FLAGS.values()) <= set(VARIABLES)


def test_a_refusal_is_one_line_and_code_2(rollpool: Rollpool) -> None:
    done = rollpool("status", "nosuch")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("rollpool: error: status of run 'nosuch': no run in ")
    assert done.err.count("\n") == 1


def test_run_may_come_from_the_environment(
    rollpool: Rollpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "STUDY_RUN is not set" in rollpool("status").err
    monkeypatch.setenv("STUDY_RUN", "other")
    assert "run 'other'" in rollpool("status").err
    assert "run 'given'" in rollpool("status", "given").err


def test_flags_beat_the_environment(rollpool: Rollpool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_TEST_NUM", "5")
    assert "EVAL_TEST_NUM              5  (environment)" in rollpool("variables").out
    shown = rollpool("variables", "--test-num", "7").out
    assert "EVAL_TEST_NUM              7  (command line)" in shown


def test_misspelt_variable_is_refused(rollpool: Rollpool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_TEST_NUMM", "5")
    done = rollpool("variables")
    assert done.code == 2 and "did you mean EVAL_TEST_NUM?" in done.err


def test_a_defect_keeps_its_traceback(rollpool: Rollpool, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(arguments: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr("harness.commands.variables.run", broken)
    with pytest.raises(ZeroDivisionError):
        rollpool("variables")


def test_interrupted(rollpool: Rollpool, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.commands.variables.run", interrupted)
    done = rollpool("variables")
    assert done.code == 130 and "interrupted" in done.err


def test_organize_results_is_the_same_command(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(CODE / "organize_results.py"), "nosuch", "model"],
        capture_output=True, text=True, timeout=60, cwd=home,
    )  # fmt: skip
    assert done.returncode == 2
    assert "results of run 'nosuch': no sealed episode and no row" in done.stderr
