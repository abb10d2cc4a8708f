"""A population is its content: sealed once, selected by count, the same for every reader."""

from __future__ import annotations

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.canonical import Sealed, episode_line
from harness.errors import RollpoolError
from harness.paths import Root, RunPaths
from harness.runs import population
from harness.runs.population import Cell, Manifest
from tests.plain_values import objects

CELL = Cell("study", "put_cup_in_box", "bench_demo_study_clean")


def line(seed: int, **reset: Any) -> str:
    return episode_line(seed, f"Take cup {seed}.", reset)


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return Root(tmp_path).run("demo")


def sealed(paths: RunPaths, *seeds: int, first: int | None = None) -> Manifest:
    manifest = population.seal(paths, CELL, "tabletop", Sealed([line(seed) for seed in seeds]))
    return population.select(paths, manifest, len(seeds) if first is None else first)


def test_the_file_is_as_the_design_says(paths: RunPaths) -> None:
    manifest = sealed(paths, 40000, 40001, first=1)
    data = (
        b'{"format":1,"scene":"study","simulator":"tabletop","task":"put_cup_in_box",'
        b'"task_config":"bench_demo_study_clean"}\n'
        b'{"instruction":"Take cup 40000.","reset":{},"seed":40000}\n'
        b'{"instruction":"Take cup 40001.","reset":{},"seed":40001}\n'
    )
    digest = hashlib.sha256(data).hexdigest()
    folder = paths.manifest_dir(CELL.name)
    assert sorted(f.name for f in folder.iterdir()) == [
        f"000.{digest}.first1",
        f"000.{digest}.jsonl",
    ]
    assert (folder / f"000.{digest}.jsonl").read_bytes() == data
    assert population.load(paths, CELL) == [manifest]
    episode = manifest.episodes[1]
    assert (episode.manifest, episode.position, episode.seed) == (digest, 1, 40001)


def test_a_fingerprint_is_sealed_where_there_is_one(paths: RunPaths) -> None:
    fingerprint = {"mujoco": "3.8.1", "scene": "93fe"}
    lines = [episode_line(1, "go", {}, fingerprint), episode_line(2, "go", {}, {})]
    manifest = population.seal(paths, CELL, "tabletop", Sealed(lines))
    assert [dict(e.fingerprint) for e in manifest.episodes] == [fingerprint, {}]
    text = paths.manifest(CELL.name, 0, manifest.hash).read_text()
    assert text.count("fingerprint") == 1, "a line without one is as it always was"


def test_the_step_limit_stands_beside_the_manifest_and_not_in_its_hash(paths: RunPaths) -> None:
    bare = population.seal(paths, CELL, "tabletop", Sealed([line(1)]))
    assert population.load(paths, CELL)[0].step_limit == bare.step_limit == 0
    limited = population.seal(paths, CELL, "tabletop", Sealed([line(1)], 400))
    assert limited.hash == bare.hash
    population.select(paths, limited, 1)
    (read,) = population.load(paths, CELL)
    assert (read.step_limit, read.selected) == (400, 1)
    again = population.seal(paths, CELL, "tabletop", Sealed([line(1)], 500))
    assert again.step_limit == 400, "the first word stands"


def seal_anew(resets: list[dict[str, Any]]) -> Manifest:
    with TemporaryDirectory() as name:
        paths = Root(Path(name)).run("demo")
        lines = [episode_line(seed, "go", reset) for seed, reset in enumerate(resets)]
        manifest = population.seal(paths, CELL, "tabletop", Sealed(lines))
        assert [dict(e.reset) for e in manifest.episodes] == resets
        return manifest


@given(st.lists(objects, max_size=3))
def test_the_order_of_keys_changes_nothing(given_resets: list[dict[str, Any]]) -> None:
    backwards = [dict(reversed(reset.items())) for reset in given_resets]
    assert seal_anew(given_resets).hash == seal_anew(backwards).hash


@given(objects, objects)
def test_content_is_what_changes_the_hash(one: dict[str, Any], other: dict[str, Any]) -> None:
    assume(one != other)
    assert seal_anew([one]).hash != seal_anew([other]).hash


def test_sealing_again_is_no_new_manifest(paths: RunPaths) -> None:
    assert sealed(paths, 1, 2) == sealed(paths, 1, 2)
    assert len(population.load(paths, CELL)) == 1


def test_selections_only_grow(paths: RunPaths) -> None:
    sealed(paths, 1, 2, 3, first=2)
    sealed(paths, 1, 2, 3, first=1)
    (manifest,) = population.load(paths, CELL)
    assert list(population.selected_positions(manifest)) == [0, 1]
    sealed(paths, 1, 2, 3, first=3)
    (manifest,) = population.load(paths, CELL)
    assert list(population.selected_positions(manifest)) == [0, 1, 2]


def test_more_than_the_bank_is_refused(paths: RunPaths) -> None:
    with pytest.raises(RollpoolError, match=r"EVAL_TEST_NUM=3: the bank .* has 2 seeds"):
        sealed(paths, 1, 2, first=3)


def test_a_further_bank_is_appended_and_shared_episodes_count_once(paths: RunPaths) -> None:
    sealed(paths, 0, 1, 2, 3, first=2)
    sealed(paths, 1, 2, 9)
    first, further = population.load(paths, CELL)
    assert (first.seq, further.seq) == (0, 1)
    assert list(population.selected_positions(first)) == [0, 1]
    assert list(population.selected_positions(further)) == [1, 2]
    sealed(paths, 0, 1, 2, 3, first=4)
    first, further = population.load(paths, CELL)
    assert list(population.selected_positions(first)) == [0, 1, 2, 3]
    assert list(population.selected_positions(further)) == [2]


def test_preparers_at_once_are_the_same_to_every_reader(paths: RunPaths, tmp_path: Path) -> None:
    """Two list the empty folder, then both publish number 000, or one content twice."""
    here, there = paths, Root(tmp_path / "other").run("demo")
    one, other = sealed(here, 1), sealed(there, 2)
    for seq in (0, 1):
        data = there.manifest(CELL.name, 0, other.hash).read_bytes()
        here.manifest(CELL.name, seq, other.hash).write_bytes(data)
    found = population.load(here, CELL)
    assert [(m.seq, m.hash) for m in found] == sorted([(0, one.hash), (0, other.hash)])


def test_a_changed_manifest_is_refused(paths: RunPaths) -> None:
    manifest = sealed(paths, 1, 2)
    file = paths.manifest(CELL.name, 0, manifest.hash)
    file.write_bytes(file.read_bytes().replace(b"cup 2", b"cup 3"))
    with pytest.raises(RollpoolError, match="changed after it was sealed"):
        population.load(paths, CELL)


def test_a_manifest_of_another_cell_is_refused(paths: RunPaths) -> None:
    manifest = sealed(paths, 1)
    other = Cell("study", "press_bell", "bench_demo_study_clean")
    moved = paths.manifest(other.name, 0, manifest.hash)
    moved.parent.mkdir()
    paths.manifest(CELL.name, 0, manifest.hash).rename(moved)
    with pytest.raises(RollpoolError, match=r"it was sealed for study.put_cup_in_box"):
        population.load(paths, other)


def test_a_newer_format_is_refused(paths: RunPaths) -> None:
    data = b'{"format":2}\n'
    file = paths.manifest(CELL.name, 0, hashlib.sha256(data).hexdigest())
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    with pytest.raises(RollpoolError, match="format 2, this toolkit reads 1"):
        population.load(paths, CELL)
