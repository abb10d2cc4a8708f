"""A bank becomes one manifest: in parts where that is slow, and taken over where it is sealed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.canonical import Sealed, episode_line
from harness.errors import Declined, RollpoolError
from harness.foundations.settings import Settings
from harness.leases.heartbeat import holdings
from harness.paths import Root, RunPaths
from harness.runs import population, sealing
from harness.runs.population import Cell, Manifest
from harness.runs.prepare import prepare
from harness.runs.preparer import Preparer
from harness.runs.sealing import Parts, Sealing, SealLines, work_name

Launch = Callable[..., Settings]
CELL = Cell("study", "put_cup_in_box", "bench_demo_study_clean")
SEEDS = list(range(10))


class Killed(BaseException):
    pass


@pytest.fixture
def paths(root: Root) -> RunPaths:
    run = root.run("demo")
    run.root.mkdir(parents=True)
    run.queue.write_text("study put_cup_in_box\n")
    return run


def test_who_dies_loses_the_last_part(
    paths: RunPaths, sealer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "_RECORD_S", 0.0)
    monkeypatch.setattr(sealing, "_REQUEST", 4)

    def dying(cell: Cell, seeds: Sequence[int]) -> Sealed:
        if 8 in seeds:
            raise Killed
        sealed: Sealed = sealer.seal(cell, seeds)
        return sealed

    with (
        pytest.raises(Killed),
        Preparer(paths, 60.0, lambda: None) as preparer,
    ):
        preparer.finish([Sealing(paths, preparer, CELL, SEEDS, dying, lambda: "tabletop")])
    assert not population.has_manifests(paths, CELL)
    sealer.sealed, sealer.wording = [], "Do otherwise"
    with Preparer(paths, 60.0, lambda: None) as preparer:
        work = Sealing(paths, preparer, CELL, SEEDS, sealer.seal, lambda: "tabletop")
        preparer.finish([work])
    assert sealer.sealed == [(CELL.name, (8, 9))]
    assert work.manifest is not None
    assert [e.instruction for e in work.manifest.episodes][::9] == ["Do it 0.", "Do otherwise 9."]


def test_the_simulator_says_how_many_lines_it_has_come_to(paths: RunPaths, sealer: Any) -> None:
    """It stops where a request has taken long enough: no pace is foretold."""

    def slow(cell: Cell, seeds: Sequence[int]) -> Sealed:
        sealed: Sealed = sealer.seal(cell, seeds)
        return Sealed(sealed.lines[:1000], sealed.step_limit)

    with Preparer(paths, 60.0, lambda: None) as preparer:
        work = Sealing(paths, preparer, CELL, range(2500), slow, lambda: "tabletop")
        preparer.finish([work])
    assert [len(seeds) for _, seeds in sealer.sealed] == [1024, 1024, 500]
    assert work.manifest is not None and work.manifest.episodes.seeds() == list(range(2500))


NEXT = Cell("study", "press_bell", "bench_demo_study_clean")
LAST = Cell("office", "open_drawer", "bench_demo_office_clean")


@pytest.fixture
def banks(paths: RunPaths) -> Callable[[Preparer, SealLines], list[Sealing]]:
    """The banks of three cells as works of a preparer."""

    def works(preparer: Preparer, seal: SealLines) -> list[Sealing]:
        return [
            Sealing(paths, preparer, cell, SEEDS, seal, lambda: "tabletop")
            for cell in (CELL, NEXT, LAST)
        ]

    return works


Banks = Callable[[Preparer, SealLines], list[Sealing]]


def claims(paths: RunPaths) -> dict[str, list[str]]:
    """Cell -> the names of its shard: claims and their markers."""
    found: dict[str, list[str]] = {}
    for entry in sorted(paths.preparing.glob("*/0/*")):
        found.setdefault(entry.parts[-3].partition(".seal-")[0], []).append(entry.name)
    return found


def named(paths: RunPaths) -> set[str]:
    """The claims that heartbeats name."""
    records = [json.loads(file.read_bytes()) for file in paths.workers.glob("*.json")]
    return {held["claim"] for record in records for held in holdings(record) if held["claim"]}


def test_the_next_bank_is_asked_for_while_one_is_published_and_both_are_held(
    paths: RunPaths, sealer: Any, banks: Banks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the simulator declines one in between."""
    asked, publish = threading.Event(), population.seal

    def publishing(paths: RunPaths, cell: Cell, *of: Any) -> Manifest:
        assert cell == LAST or asked.wait(30)
        return publish(paths, cell, *of)

    def seal(cell: Cell, seeds: Sequence[int]) -> Sealed:
        if cell == NEXT:
            raise Declined("simulator", "no room for the bell", "see its log")
        if cell == LAST and not asked.is_set():
            assert not population.has_manifests(paths, CELL), "it is being published"
            assert named(paths) == {f"{work_name(c, SEEDS)}/0/0-0.1" for c in (CELL, LAST)}
            with Preparer(paths, 60.0, lambda: None) as other:
                assert not any(work.advance() for work in banks(other, never)[::2])
            asked.set()
        sealed: Sealed = sealer.seal(cell, seeds)
        return sealed

    monkeypatch.setattr(population, "seal", publishing)
    with (
        pytest.raises(Declined, match="no room for the bell"),
        Preparer(paths, 60.0, lambda: None) as preparer,
    ):
        preparer.finish(banks(preparer, seal))
    for cell in (CELL, LAST):
        (manifest,) = population.load(paths, cell)
        assert manifest.episodes.seeds() == SEEDS
        assert claims(paths)[cell.name] == ["0-0.1", "0-0.1.done"]


def test_a_bank_that_cannot_be_published_ends_it_and_both_are_given_back(
    paths: RunPaths, sealer: Any, banks: Banks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*of: Any) -> Manifest:
        raise RollpoolError("write", "No space left on device", "free the disk")

    with monkeypatch.context() as patch:
        patch.setattr(population, "seal", full)
        with (
            pytest.raises(RollpoolError, match="No space left"),
            Preparer(paths, 60.0, lambda: None) as preparer,
        ):
            preparer.finish(banks(preparer, sealer.seal))
    assert claims(paths) == {c.name: ["0-0.1", "0-0.1.released"] for c in (CELL, NEXT)}
    with Preparer(paths, 60.0, lambda: None) as preparer:
        works = banks(preparer, sealer.seal)
        preparer.finish(works)
    assert all(work.manifest for work in works)


def test_who_dies_at_a_bank_has_published_the_one_before(
    paths: RunPaths, sealer: Any, banks: Banks
) -> None:
    def dying(cell: Cell, seeds: Sequence[int]) -> Sealed:
        if cell == NEXT:
            raise Killed
        sealed: Sealed = sealer.seal(cell, seeds)
        return sealed

    with pytest.raises(Killed), Preparer(paths, 60.0, lambda: None) as preparer:
        works = banks(preparer, dying)
        preparer.finish(works)
    assert [work.manifest for work in works] == [*population.load(paths, CELL), None, None]
    assert claims(paths)[NEXT.name] == ["0-0.1", "0-0.1.released"]


def test_of_two_that_record_a_part_the_first_counts(tmp_path: Path) -> None:
    one, other = Parts(tmp_path), Parts(tmp_path)
    lines = [episode_line(0, 'Say "å".', {"at": [0.5]}, {"scene": "93fe"}), episode_line(1, "", {})]
    one.add(lines)
    other.add([episode_line(0, "Come late.", {})])
    assert other.lines == one.lines == Parts(tmp_path).lines == lines


def never(*of: object) -> Any:
    raise AssertionError("the simulator was asked")


def test_sealed_manifests_are_taken_over(
    root: Root, paths: RunPaths, settings: Launch, write_bank: Callable[..., Path], sealer: Any
) -> None:
    bank = str(write_bank("5 6 7"))
    (old,) = prepare(paths, settings(SEEDS_ROOT=bank), sealer.describe, sealer.seal, never)
    new = root.run("new")
    new.root.mkdir()
    new.queue.write_bytes(paths.queue.read_bytes())
    for place in ("demo", str(paths.root), str(paths.manifests)):
        launch = settings(EVAL_MANIFESTS=place, EVAL_TEST_NUM="2")
        (taken,) = prepare(new, launch, never, never, never)
        assert (taken.hash, taken.selected) == (old.hash, 2)
    both = settings(EVAL_MANIFESTS="demo", SEEDS_ROOT=bank)
    assert prepare(new, both, never, never, never)[0].selected == 3
    scan = settings(EVAL_MANIFESTS="demo", USE_EVAL_SEEDS="0", EVAL_TEST_NUM="3")
    assert [m.hash for m in prepare(new, scan, never, never, never)] == [old.hash]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda paths: next(paths.manifests.glob("*/*.jsonl")).write_text("{}\n"), "was changed"),
        (lambda paths: next(paths.manifests.glob("*/*.jsonl")).unlink(), "no sealed manifests in"),
        (lambda paths: paths.run_json.write_text('{"settings": {"SIMULATOR": "libero"}}'),
         "that run has SIMULATOR=libero"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_over_is_refused(
    root: Root, paths: RunPaths, settings: Launch, write_bank: Callable[..., Path], sealer: Any,
    damage: Callable[[RunPaths], object], message: str,
) -> None:  # fmt: skip
    bank = str(write_bank("5 6 7"))
    prepare(paths, settings(SEEDS_ROOT=bank), sealer.describe, sealer.seal, never)
    damage(paths)
    new = root.run("new")
    new.root.mkdir()
    new.queue.write_bytes(paths.queue.read_bytes())
    with pytest.raises(RollpoolError, match=message):
        prepare(new, settings(EVAL_MANIFESTS="demo"), never, never, never)
    assert not new.manifests.exists()
