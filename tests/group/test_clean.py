"""``rollpool clean`` says what can go, and takes nothing that a table or a job needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.nodes.node_store import Store
from harness.nodes.staging import Item, stage
from tests.e2e.conftest import Home, home
from tests.staging.conftest import Node, node

pytestmark = pytest.mark.slow

__all__ = ["home", "node"]  # fixtures of theirs


def finished(home: Home) -> Path:
    queue = home.queue("reach_goal", seeds=range(1, 3))
    assert home.call("run", "r", "--queue", str(queue))[0] == 0
    return home.path / "runs" / "r"


def test_nothing_goes_unless_asked(home: Home) -> None:
    run = finished(home)
    video = next((run / "eval_result").rglob("_metrics.jsonl")).with_name("a.mp4")
    video.write_bytes(b"v" * 2_000_000)
    os.utime(video, (1, 1))
    before = sorted(run.rglob("*"))
    code, out, _ = home.call("clean", DXVLA_LOCAL=str(home.path / "none"))
    assert code == 0
    assert "2.0 MB  1 videos of run r" in out
    assert "lease names of the finished run r" in out
    assert "2.0 MB would be freed; add --yes" in out
    assert sorted(run.rglob("*")) == before


def test_tables_stay_what_they_were(home: Home) -> None:
    run = finished(home)
    outcomes = home.outcomes("r")
    assert home.call("clean", "r", "--leases", "--yes")[0] == 0
    assert not (run / "queue.txt.leases").exists()
    code, out, _ = home.call("run", "r")
    assert code == 0 and "resuming: 4 of 4" in out
    assert home.outcomes("r") == outcomes
    assert len(home.rows("r")) == 4


def test_leases_of_a_run_that_goes_on_stay(home: Home) -> None:
    run = finished(home)
    queue = home.queue("reach_goal", seeds=range(1, 4))
    home.call("prepare", "r", "--queue", str(queue))
    _, out, _ = home.call("clean", "r", "--leases", "--yes")
    assert "lease names" not in out
    assert (run / "queue.txt.leases").exists()


def test_young_videos_and_those_a_report_shows(home: Home) -> None:
    run = finished(home)
    folder = next((run / "eval_result").rglob("_metrics.jsonl")).parent
    young, shown = folder / "young.mp4", folder / "shown.mp4"
    for video in (young, shown):
        video.write_bytes(b"v" * 1_000_000)
    os.utime(shown, (1, 1))
    (home.path / "runs" / "report.mp4").hardlink_to(shown)
    _, out, _ = home.call("clean", "r", "--videos", "--yes")
    assert "0.0 MB  1 videos" in out and "0.0 MB freed" in out
    assert (young.exists(), shown.exists()) == (True, False)
    assert (home.path / "runs" / "report.mp4").stat().st_size == 1_000_000


def test_copies_in_use_stay(home: Home, node: Node) -> None:
    used, unused = (
        Item("assets", name, node.source(name, file="f" * 1_500_000)) for name in ("used", "unused")
    )
    copies = stage(node.store, [used, unused])
    node.user(copies[0].path)
    local = str(node.store.path)
    _, out, _ = home.call("clean", "--staged", DXVLA_LOCAL=local)
    assert "1.5 MB  staged assets unused" in out and "assets used" not in out
    home.call("clean", "--staged", "--yes", DXVLA_LOCAL=local)
    assert Store(node.store.path, cap_gb=1).copies() == [copies[0].path]


def test_an_unknown_run_is_refused(home: Home) -> None:
    code, _, err = home.call("clean", "absent", "--videos")
    assert code == 2 and "clean absent: no " in err
