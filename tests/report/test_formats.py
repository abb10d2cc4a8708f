"""What a report refuses to read, and what it says is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import EXIT_PARTIAL, RollpoolError
from harness.paths import Root
from harness.reports.organize import organize
from harness.reports.report_files import LEDGER, refuse_report_of_another
from harness.reports.status import StatusReader


def test_a_run_of_a_newer_toolkit_is_refused(tmp_path: Path) -> None:
    paths = Root(tmp_path).run("later")
    paths.results.mkdir(parents=True)
    paths.run_json.write_text('{"format": 99}')
    for read in (
        lambda: organize(Root(tmp_path), "later", "model"),
        lambda: StatusReader(paths).look(),
    ):
        with pytest.raises(RollpoolError, match="format 99, this toolkit knows 1; update"):
            read()


def test_a_torn_line_of_another_tool_makes_the_table_partial(tmp_path: Path) -> None:
    folder = tmp_path / "runs/foreign/eval_result/put_cup/XVLA/bench_demo_study_clean/c/t"
    folder.mkdir(parents=True)
    whole = '{"episode": 0, "seed": 1, "success": true, "collision": false}\n'
    said: list[str] = []
    (folder / "_episodes.jsonl").write_text(whole)
    assert organize(Root(tmp_path), "foreign", "xvla", say=said.append) == 0
    (folder / "_episodes.jsonl").write_text(whole + '{"episode": 1, "see')
    assert organize(Root(tmp_path), "foreign", "xvla", say=said.append) == EXIT_PARTIAL
    assert any(line.startswith("note: PARTIAL: lines of other tools") for line in said)


def test_a_new_run_does_not_move_in_where_another_runs_report_lives(tmp_path: Path) -> None:
    paths = Root(tmp_path).run("expert")
    paths.root.mkdir(parents=True)
    refuse_report_of_another(paths)
    (paths.root / LEDGER).write_text('{"run": "stall", "files": {}}')
    with pytest.raises(RollpoolError, match="holds the report of run 'stall'"):
        refuse_report_of_another(paths)
    paths.run_json.write_text('{"format": 1}')
    refuse_report_of_another(paths)
