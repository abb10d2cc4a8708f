"""From queue and bank to a population: what is refused, and what a repetition costs."""

from __future__ import annotations

import errno
import functools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.canonical import Sealed
from harness.errors import Declined, RollpoolError
from harness.foundations.atomic import publish_name, publish_once
from harness.foundations.settings import Settings
from harness.leases.filesystem import Filesystem
from harness.paths import Root, RunPaths
from harness.runs import population
from harness.runs.population import Cell, selected_positions
from harness.runs.prepare import install_queue, prepare, read_bank, read_cells, read_queue

Launch = Callable[..., Settings]
WriteBank = Callable[..., Path]

QUEUE = "study put_cup_in_box\noffice open_drawer\n"


@pytest.fixture
def paths(root: Root) -> RunPaths:
    run = root.run("demo")
    run.root.mkdir(parents=True)
    run.queue.write_text(QUEUE)
    return run


def seeds_of(paths: RunPaths, settings: Settings, sealer: Any) -> dict[str, list[int]]:
    """Prepare; task -> the selected seeds."""
    found: dict[str, list[int]] = {}
    for m in prepare(paths, settings, sealer.describe, sealer.seal, sealer.check):
        seeds = [m.episodes[p].seed for p in selected_positions(m)]
        found.setdefault(m.cell.task, []).extend(seeds)
    return found


def test_queue_and_bank_become_the_population(
    paths: RunPaths, settings: Launch, write_bank: WriteBank, sealer: Any
) -> None:
    launch = settings(SEEDS_ROOT=str(write_bank("40000 40001\n40002")), EVAL_TEST_NUM="2")
    expected = [40000, 40001]
    assert seeds_of(paths, launch, sealer) == {"put_cup_in_box": expected, "open_drawer": expected}
    assert read_cells(paths, "clean") == [
        Cell("study", "put_cup_in_box", "bench_demo_study_clean"),
        Cell("office", "open_drawer", "bench_demo_office_clean"),
    ]
    assert [len(seeds) for _, seeds in sealer.sealed] == [3, 3], "the whole bank is sealed"


def test_preparing_again_asks_the_simulator_nothing(
    paths: RunPaths, settings: Launch, write_bank: WriteBank, sealer: Any
) -> None:
    launch = settings(SEEDS_ROOT=str(write_bank("1 2 3")), EVAL_TEST_NUM="1")
    first = prepare(paths, launch, sealer.describe, sealer.seal, sealer.check)
    sealer.wording, sealer.described, sealer.sealed = "Do otherwise", 0, []
    assert prepare(paths, launch, sealer.describe, sealer.seal, sealer.check) == first
    assert (sealer.described, sealer.sealed) == (0, [])


def test_more_seeds_of_the_same_bank_need_no_bank(
    paths: RunPaths, settings: Launch, write_bank: WriteBank, sealer: Any
) -> None:
    prepare(
        paths,
        settings(SEEDS_ROOT=str(write_bank("1 2 3")), EVAL_TEST_NUM="1"),
        sealer.describe,
        sealer.seal,
        sealer.check,
    )
    assert seeds_of(paths, settings(), sealer)["open_drawer"] == [1]
    assert seeds_of(paths, settings(EVAL_TEST_NUM="3"), sealer)["open_drawer"] == [1, 2, 3]
    with pytest.raises(RollpoolError, match=r"EVAL_TEST_NUM=4: the bank .* has 3 seeds"):
        seeds_of(paths, settings(EVAL_TEST_NUM="4"), sealer)


def test_a_further_bank_fills_in(
    paths: RunPaths, settings: Launch, write_bank: WriteBank, sealer: Any
) -> None:
    first = settings(SEEDS_ROOT=str(write_bank("0 1 2 3")), EVAL_TEST_NUM="2")
    seeds_of(paths, first, sealer)
    further = settings(SEEDS_ROOT=str(write_bank("2 3", bank="fill")))
    assert seeds_of(paths, further, sealer)["open_drawer"] == [0, 1, 2, 3]
    with pytest.raises(RollpoolError, match=r"has 2 banks; say which one"):
        seeds_of(paths, settings(EVAL_TEST_NUM="2"), sealer)


class Interrupted(Exception):
    pass


def test_interrupted_anywhere_and_repeated_is_the_same(
    paths: RunPaths, settings: Launch, write_bank: WriteBank, sealer: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    launch = settings(SEEDS_ROOT=str(write_bank("1 2 3")), EVAL_TEST_NUM="2")
    undisturbed = None
    for stop in range(8):
        shutil.rmtree(paths.manifests, ignore_errors=True)
        count = 0

        def stopping(publish: Callable[..., object], *of: object, stop: int = stop) -> object:
            nonlocal count
            count += 1
            if count == stop:
                raise Interrupted
            return publish(*of)

        for publish in (publish_once, publish_name):
            stops = functools.partial(stopping, publish)
            monkeypatch.setattr(population, publish.__name__, stops)
        try:
            prepare(paths, launch, sealer.describe, sealer.seal, sealer.check)
        except Interrupted:
            monkeypatch.undo()
        repeated = prepare(paths, launch, sealer.describe, sealer.seal, sealer.check)
        undisturbed = undisturbed or repeated
        assert repeated == undisturbed
        assert [(m.selected, m.step_limit) for m in repeated] == [(2, 400), (2, 400)]


def test_a_cell_that_was_sealed_but_not_selected_is_never_taken_for_an_empty_one(
    paths: RunPaths, settings: Launch, write_bank: WriteBank, sealer: Any
) -> None:
    launch = settings(SEEDS_ROOT=str(write_bank("1 2 3")))
    expected = seeds_of(paths, launch, sealer)
    next(paths.manifests.glob("office*/*.first*")).unlink()  # as a kill just before it leaves it

    with pytest.raises(RollpoolError, match="office open_drawer is not sealed yet"):
        read_cells(paths, "clean")
    with pytest.raises(RollpoolError, match="SEEDS_ROOT: not set"):
        seeds_of(paths, settings(), sealer)
    assert seeds_of(paths, launch, sealer) == expected
    assert len(list(paths.manifests.glob("office*/*.jsonl"))) == 1


def test_nothing_is_sealed_where_anything_is_wrong(
    paths: RunPaths, settings: Launch, write_bank: WriteBank, sealer: Any
) -> None:
    bank = write_bank("1 2")
    (bank / "open_drawer" / "bench_demo_office_clean.txt").unlink()
    with pytest.raises(RollpoolError, match=r"open_drawer/bench_demo_office_clean.txt: No such"):
        prepare(paths, settings(SEEDS_ROOT=str(bank)), sealer.describe, sealer.seal, sealer.check)
    assert not paths.manifests.exists() and sealer.sealed == []


def test_a_simulator_that_seals_other_seeds_is_refused(
    paths: RunPaths, settings: Launch, write_bank: WriteBank, sealer: Any
) -> None:
    def backwards(cell: Cell, seeds: Sequence[int]) -> Sealed:
        return Sealed(sealer.seal(cell, seeds).lines[::-1])

    launch = settings(SEEDS_ROOT=str(write_bank("1 2")))
    for seal in (backwards, lambda cell, seeds: Sealed([])):
        with pytest.raises(RollpoolError, match="other seeds than were asked for"):
            prepare(paths, launch, sealer.describe, seal, sealer.check)


def test_what_the_simulator_declines_keeps_nothing_else_from_being_sealed(
    paths: RunPaths, settings: Launch, write_bank: WriteBank, sealer: Any
) -> None:
    launch = settings(SEEDS_ROOT=str(write_bank("1 2")))
    paths.queue.write_text("study put_cup_in_box\nstudy press_bell\noffice open_drawer\n")

    def sealing(cell: Cell, seeds: Sequence[int]) -> Sealed:
        if cell.scene == "study":
            raise Declined("simulator", "seed 2: ValueError: no room for the cup", "see its log")
        sealed: Sealed = sealer.seal(cell, seeds)
        return sealed

    for _ in range(2):
        with pytest.raises(RollpoolError) as refused:
            prepare(paths, launch, sealer.describe, sealing, sealer.check)
        assert str(refused.value) == (
            "seal study.put_cup_in_box.bench_demo_study_clean, "
            "seal study.press_bell.bench_demo_study_clean: simulator: seed 2: ValueError: "
            "no room for the cup; see its log; mend that, or leave out the seed in its bank, "
            "or the task in queue.txt"
        )
        assert sealer.sealed == [("office.open_drawer.bench_demo_office_clean", (1, 2))]
    paths.queue.write_text("office open_drawer\n")
    assert seeds_of(paths, launch, sealer) == {"open_drawer": [1, 2]}
    assert len(sealer.sealed) == 1


@pytest.mark.parametrize("call", ["names", "mkdir", "create"])
def test_what_the_disk_refuses_is_said_in_plain_words(
    paths: RunPaths, settings: Launch, write_bank: WriteBank, sealer: Any, call: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    launch, does = settings(SEEDS_ROOT=str(write_bank("1 2"))), getattr(Filesystem, call)

    def full(fs: Filesystem, at: Path, *of: object) -> object:
        if paths.preparing in at.parents:  # a claim, or its marker
            raise OSError(errno.ENOSPC, "No space left on device")
        return does(fs, at, *of)

    with monkeypatch.context() as patch:
        patch.setattr(Filesystem, call, full)
        with pytest.raises(RollpoolError, match="No space left on device; free the disk"):
            prepare(paths, launch, sealer.describe, sealer.seal, sealer.check)
    assert len(seeds_of(paths, launch, sealer)) == 2


def test_other_configurations(
    paths: RunPaths, settings: Launch, write_bank: WriteBank, sealer: Any
) -> None:
    bank = write_bank("1", config="d6")
    launch = settings(SEEDS_ROOT=str(bank), BENCH_CONFIG="d6")
    manifests = prepare(paths, launch, sealer.describe, sealer.seal, sealer.check)
    assert manifests[0].cell.task_config == "bench_demo_study_d6"
    for task in ("put_cup_in_box", "open_drawer"):
        (bank / task / "bench_vision_blur.txt").write_text("1 2")
    launch = settings(SEEDS_ROOT=str(bank), BENCH_CONFIG="bench_vision_blur")
    manifests = prepare(paths, launch, sealer.describe, sealer.seal, sealer.check)
    assert manifests[0].cell.task_config == "bench_vision_blur"
    with pytest.raises(RollpoolError, match=r"no bench_demo_study_d66; pick one of: d6"):
        launch = settings(SEEDS_ROOT=str(bank), BENCH_CONFIG="d66")
        prepare(paths, launch, sealer.describe, sealer.seal, sealer.check)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "SEEDS_ROOT: not set"),
        ({"BENCH_CONFIG": ""}, "BENCH_CONFIG: not set"),
        ({"USE_EVAL_SEEDS": "0"}, "EVAL_TEST_NUM: not set; say how many"),
    ],
)
def test_what_prepare_must_be_told(
    paths: RunPaths, settings: Launch, sealer: Any, environ: dict[str, str], message: str
) -> None:
    with pytest.raises(RollpoolError, match=message):
        prepare(paths, settings(**environ), sealer.describe, sealer.seal, sealer.check)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study put_cup_in_bax\n", "line 1: .*no task .*in scene 'study'; pick one of: put_cup_in"),
        ("# scenes\n\nstudio put_cup_in_box", "line 3: .*no scene 'studio'; pick one of: study"),
        ("study\n", "line 1: 'study': not two words"),
        ("study a b # c\n", "line 1: 'study a b': not two words"),
        ("study press_bell\noffice open_drawer\nstudy press_bell\n",
         "line 3: .*stands already in line 1"),
        ("# nothing\n", "no lines in it"),
    ],
)  # fmt: skip
def test_a_queue_line_that_cannot_be_is_refused(
    tmp_path: Path, sealer: Any, text: str, message: str
) -> None:
    file = tmp_path / "queue.txt"
    file.write_text(text)
    known = {(scene, task) for scene, task in sealer.describe()["cells"]}
    with pytest.raises(RollpoolError, match=message):
        read_queue(file, known)


def test_comments_and_blank_lines_are_allowed(tmp_path: Path) -> None:
    file = tmp_path / "queue.txt"
    file.write_text("# all\n\nstudy  press_bell # first\r\n office\topen_drawer")
    assert read_queue(file) == [("study", "press_bell"), ("office", "open_drawer")]


def test_a_missing_queue_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(RollpoolError, match=r"No such file .*rollpool queue"):
        read_queue(tmp_path / "queue.txt")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"1 2 three", "'three', number 3: not a seed"),
        (b"1 2.0", "'2.0', number 2: not a seed"),
        (b"1 -2", "'-2', number 2: not a seed"),
        ("1 \u0662".encode(), "number 2: not a seed"),
        (b"1 2 1", "'1', number 3: the seed stands twice"),
        (b"1 \xff", "not a text file"),
    ],
)
def test_a_bad_bank_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "config.txt").write_bytes(data)
    with pytest.raises(RollpoolError, match=rf"task/config.txt.*{message}"):
        read_bank(tmp_path, "task", "config")


def test_a_run_that_is_not_prepared_says_so(paths: RunPaths) -> None:
    with pytest.raises(RollpoolError, match=r"not sealed yet; run: rollpool prepare demo"):
        read_cells(paths, "clean")


def test_a_queue_is_installed_once(paths: RunPaths, tmp_path: Path) -> None:
    source = tmp_path / "mine.txt"
    source.write_text(QUEUE)
    install_queue(paths, source)
    source.write_text("study press_bell\n")
    with pytest.raises(RollpoolError, match=r"run demo has another queue.txt"):
        install_queue(paths, source)
    assert paths.queue.read_text() == QUEUE


def test_without_a_bank_the_first_solvable_seeds_are_found_and_sealed(
    paths: RunPaths, settings: Launch, sealer: Any
) -> None:
    sealer.solves = lambda seed: seed % 3 == 0
    launch = settings(USE_EVAL_SEEDS="0", EVAL_TEST_NUM="2")
    assert seeds_of(paths, launch, sealer) == {
        "put_cup_in_box": [100002, 100005], "open_drawer": [100002, 100005]
    }  # fmt: skip
    more = settings(USE_EVAL_SEEDS="0", EVAL_TEST_NUM="3")
    assert seeds_of(paths, more, sealer)["open_drawer"] == [100002, 100005, 100008]
    sealer.checked = []
    prepare(paths, more, sealer.describe, sealer.seal, sealer.check)
    assert not sealer.checked, "sealed is sealed"
    sealer.solves = lambda seed: False
    with pytest.raises(RollpoolError, match="the expert solved only 4 of those tried"):
        launch = settings(USE_EVAL_SEEDS="0", EVAL_TEST_NUM="5")  # 100011 has its verdict
        prepare(paths, launch, sealer.describe, sealer.seal, sealer.check)
