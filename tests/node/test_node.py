"""Which workers a node starts, and what each of them gets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import RollpoolError
from harness.foundations.gpus import Gpu
from harness.foundations.settings import resolve
from harness.foundations.slurm import Allocation
from harness.nodes.node import find_driver, gpus_of, slots, threads_each

CACHE = Path("/tmp/cache")


def given(
    gpus: tuple[str, ...] | None = ("0", "1"), cpus: int = 8, alone: bool = True
) -> Allocation:
    return Allocation("n1", True, gpus, cpus, alone)


def environments(gpus: tuple[str, ...], cpus: int = 8, **environ: str) -> list[Mapping[str, str]]:
    settings, _ = resolve({"POLICY_NAME": "expert", **environ}, gpus=lambda: [])
    return [slot.env for slot in slots(settings, given(gpus, cpus), gpus, CACHE, "/icd.json")]


def test_each_gpu_has_a_worker_that_sees_no_other() -> None:
    first, second = environments(("0", "1"))
    assert first == {
        "WARP_CACHE_PATH": "/tmp/cache/warp",
        "CUDA_CACHE_PATH": "/tmp/cache/cuda", "CUDA_VISIBLE_DEVICES": "0",
        "VK_ICD_FILENAMES": "/icd.json", "EGL_DEVICE_ID": "0", "MUJOCO_EGL_DEVICE_ID": "0",
    }  # fmt: skip
    assert second["CUDA_VISIBLE_DEVICES"] == second["MUJOCO_EGL_DEVICE_ID"] == "1"


def test_several_workers_share_a_gpu() -> None:
    envs = environments(("2", "3"), cpus=9, WORKERS_PER_GPU="2")
    assert [env["CUDA_VISIBLE_DEVICES"] for env in envs] == ["2", "2", "3", "3"]


def threads(cpus: int, *gpus: str, **environ: str) -> int:
    settings, _ = resolve({"POLICY_NAME": "expert", **environ}, gpus=lambda: [])
    return threads_each(settings, given(gpus, cpus), gpus)


def test_workers_share_the_cpus() -> None:
    assert threads(8, "0", "1") == 4
    assert threads(9, "0", "1", WORKERS_PER_GPU="2") == 2
    assert threads(9, WORKERS_PER_GPU="3") == 3


def test_there_is_always_one_thread() -> None:
    assert threads(1, "0", "1") == 1


def test_a_run_has_the_threads_it_was_begun_with() -> None:
    """A model that sums in another order gives other actions."""
    here = resolve({"POLICY_NAME": "expert"}, gpus=lambda: [], defaults={"EVAL_THREADS": 4})[0]
    assert here.sealed()["EVAL_THREADS"] == 4
    there = resolve({"POLICY_NAME": "expert"}, gpus=lambda: [], defaults={"EVAL_THREADS": 2})[0]
    assert there.joining(here.sealed())["EVAL_THREADS"] == 4


def test_a_gpu_named_by_its_uuid_has_no_number_for_egl() -> None:
    (env,) = environments(("GPU-8a6f",))
    assert env["CUDA_VISIBLE_DEVICES"] == "GPU-8a6f" and "EGL_DEVICE_ID" not in env


def test_without_a_gpu_nothing_is_rendered_unless_asked_for() -> None:
    (env,) = environments(())
    assert env["EVAL_VIDEO"] == "none" and "CUDA_VISIBLE_DEVICES" not in env
    (env,) = environments((), EVAL_VIDEO="all")
    assert "EVAL_VIDEO" not in env
    assert len(environments((), WORKERS_PER_GPU="3")) == 3


def test_what_the_user_gave_stands() -> None:
    own = {"WARP_CACHE_PATH": "/x", "VK_ICD_FILENAMES": "/y"}
    for env in environments(("0",), **own):
        assert not own.keys() & env.keys()


def test_gpus_are_slurms_or_else_the_nodes() -> None:
    found = [Gpu("A", (9, 0)), Gpu("B", (9, 0))]
    assert gpus_of(given(("1",)), found) == ("1",)
    assert gpus_of(given(()), found) == ()
    assert gpus_of(given(None), found) == ("0", "1")
    assert gpus_of(given((), alone=False), []) == ()
    with pytest.raises(RollpoolError, match="several tasks share its GPUs"):
        gpus_of(given(("0",), alone=False), found)


def test_the_driver_is_the_first_there_is(tmp_path: Path) -> None:
    there = tmp_path / "nvidia_icd.json"
    there.touch()
    assert find_driver([tmp_path / "none.json", there]) == str(there)
    assert find_driver([tmp_path / "none.json"]) == ""
