"""The tree of DESIGN.md, name by name, and what is looked up where."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RollpoolError
from harness.paths import Root, RunPaths, component


def test_the_tree_of_a_run() -> None:
    run = Root(Path("/root")).run("demo")
    cell = run.cell("study", "put_cup_in_box", "bench_demo_study_clean")
    folder = run.metrics_dir("put_cup_in_box", "tinyvla", "bench_demo_study_clean", "w-1")
    names = [
        run.run_json,
        run.token,
        run.queue,
        run.manifest(cell, 0, "ab" * 32),
        run.selection(cell, 0, "ab" * 32, 5),
        run.lease_dir(cell, "ab" * 32),
        run.heartbeat("w-1"),
        run.log("w-1"),
        run.log("w-1", "model"),
        run.log("w-1", "sim0"),
        run.video(folder, "ab" * 32, 3, 40003, 2),
    ]
    name = "study.put_cup_in_box.bench_demo_study_clean"
    assert [f.relative_to("/root/runs/demo").as_posix() for f in names] == [
        "run.json",
        "token",
        "queue.txt",
        f"manifests/{name}/000.{'ab' * 32}.jsonl",
        f"manifests/{name}/000.{'ab' * 32}.first5",
        f"queue.txt.leases/{name}.abababababab",
        "workers/w-1.json",
        "logs/w-1.log",
        "logs/w-1.model.log",
        "logs/w-1.sim0.log",
        "eval_result/put_cup_in_box/tinyvla/bench_demo_study_clean/w-1/"
        "abababab_p3_seed40003_a2.mp4",
    ]


def test_reports_of_other_configurations_are_kept_apart() -> None:
    root = Root(Path("/root"))
    assert root.report("k320", "clean") == Path("/root/runs/k320")
    assert root.report("k320", "d6") == Path("/root/runs/k320_d6")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a b", "-x", ".hidden"])
def test_a_run_name_is_a_plain_folder_name(name: str) -> None:
    with pytest.raises(RollpoolError, match="not a folder name"):
        Root(Path("/root")).run(name)


@given(st.lists(st.text(min_size=1), min_size=3, max_size=3))
def test_any_names_make_one_component_that_splits_again(names: list[str]) -> None:
    cell = RunPaths.cell(*names)
    assert "/" not in cell
    assert cell.split(".") == [component(name) for name in names]


def test_checkpoints_are_looked_up_in_order(tmp_path: Path) -> None:
    root = Root(tmp_path)
    lowest_first = [
        "policy/mine/checkpoints/net.safetensors",
        "ablation_ckpts/net",
        "checkpoints/net.safetensors",
        "checkpoints/net",
    ]
    for name in lowest_first:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        assert root.find_checkpoint("net", "mine") == tmp_path / name


def test_an_unknown_checkpoint_names_the_close_ones(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "da3-xvla-k320").mkdir(parents=True)
    with pytest.raises(RollpoolError, match="pick one of: da3-xvla-k320"):
        Root(tmp_path).find_checkpoint("da3-xvla-k32", "mine")


def test_an_own_policy_goes_before_a_shipped_one(tmp_path: Path) -> None:
    own = tmp_path / "policy" / "mine"
    own.mkdir(parents=True)
    (own / "deploy_policy.yml").touch()
    root = Root(tmp_path)
    assert root.policy_dir("mine") == own
    assert "mine" in root.policies()
    with pytest.raises(RollpoolError, match=r"policy 'mien'.*pick one of: mine"):
        root.policy_dir("mien")
