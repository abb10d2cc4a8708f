"""retry, skip and reset as commands: what they concern, and what reports say afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.cli import main
from harness.leases.lease import LeaseBook
from harness.reports.deciding import Chooser
from harness.reports.results import ConfigResults, RunReader
from tests.report.handmade import HandMade

Command = Callable[..., int]


@pytest.fixture
def command(run: HandMade, monkeypatch: pytest.MonkeyPatch) -> Command:
    """``rollpool COMMAND demo ...`` in the root of ``run``."""
    monkeypatch.setenv("EVAL_ROOT", str(run.root.path))

    def call(name: str, *more: str) -> int:
        return main([name, run.name, *more])

    return call


@pytest.fixture
def failed(run: HandMade) -> HandMade:
    """Seed 1 has its result, 2 is set aside, 3 failed once, 4 was never tried."""
    manifest = run.seal("study", "put_cup_in_box", [1, 2, 3, 4])
    run.write(run.row(manifest, 0), run.row(manifest, 2, "error"))
    run.write(*(run.row(manifest, 1, "error", attempt=k) for k in (1, 2, 3)))
    return run


def read(run: HandMade) -> ConfigResults:
    return RunReader(run.paths).gather().configs["clean"]


def kinds(run: HandMade) -> dict[int, str]:
    return {hole.seed: hole.kind for hole in read(run).holes}


def test_retry_gives_what_is_set_aside_a_fresh_budget(
    failed: HandMade, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kinds(failed) == {2: "quarantined", 3: "error", 4: "missing"}
    assert command("retry") == 0
    said = capsys.readouterr().out
    assert "retry study/put_cup_in_box bench_demo_study_clean seed 2: 3 errors" in said
    assert "1 episodes" in said
    assert kinds(failed) == {2: "error", 3: "error", 4: "missing"}


def test_skip_sets_aside_with_its_reason_and_retry_takes_it_back(
    failed: HandMade, command: Command
) -> None:
    assert command("skip", "--seed", "4", "--seed", "1", "--why", "the cup is upside down") == 0
    (hole,) = (hole for hole in read(failed).holes if hole.seed == 4)
    assert hole.kind == "quarantined"
    assert hole.reason.endswith("the cup is upside down")
    assert len(read(failed).counted) == 1  # seed 1 has its result, so it is not concerned
    assert command("retry", "--seed", "4") == 0
    assert kinds(failed)[4] == "missing"


def test_reset_keeps_rows_as_an_earlier_generation(failed: HandMade, command: Command) -> None:
    manifest = failed.seal("study", "put_cup_in_box", [1, 2, 3, 4])
    name = failed.paths.lease_dir(manifest.cell.name, manifest.hash).name
    book = LeaseBook(failed.paths.leases, name)
    assert book.try_claim(0, 0, 1)  # attempt 2 is under way
    assert command("reset", "--all") == 0
    results = RunReader(failed.paths).gather()
    assert results.notes == ["rows of an earlier generation (reset), left out: 5"]
    assert set(kinds(failed).values()) == {"missing"}
    failed.write(failed.row(manifest, 0, "fail", attempt=2))  # late: it had begun before
    assert kinds(failed)[1] == "missing"
    failed.write(failed.row(manifest, 0, "fail", attempt=3))
    assert [e.success for e in read(failed).counted] == [False]
    assert not failed.paths.leases.exists()
    (renamed,) = failed.paths.root.glob("queue.txt.leases.before-000001")
    assert renamed.is_dir()


def test_what_concerns_nothing_is_refused(
    failed: HandMade, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("reset") == 2
    assert "add --scene, --task, --seed, --quarantined or --all" in capsys.readouterr().err
    assert command("retry", "--task", "put_cup_in_bocks") == 2
    assert command("skip", "--seed", "4", "--dry-run") == 0
    assert not failed.paths.decisions.exists()


def test_an_attempt_under_way_is_known_by_rows_names_and_heartbeats(failed: HandMade) -> None:
    attempts = {s.episode.seed: s.attempt for s in Chooser(failed.paths, (2, 4)).standings()}
    assert attempts == {1: 1, 2: 3, 3: 1, 4: 0}
