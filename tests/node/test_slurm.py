"""What SLURM's variables and ``squeue`` mean."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.foundations import slurm


def job(**more: str) -> dict[str, str]:
    return {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1", "SLURM_CPUS_ON_NODE": "4", **more}


def test_outside_a_job_everything_has_an_answer() -> None:
    given = slurm.allocation({})
    assert not given.inside and given.gpus is None and given.alone
    assert given.cpus == len(os.sched_getaffinity(0)) and given.node == os.uname().nodename
    assert slurm.identity({}) == {} and slurm.time_left({}) is None


@pytest.mark.parametrize(
    ("visible", "gpus"),
    [
        ({}, ()),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, ()),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"CUDA_VISIBLE_DEVICES": "0"}, ("0",)),
        ({"CUDA_VISIBLE_DEVICES": "1,3"}, ("1", "3")),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8a6f,MIG-77"}, ("GPU-8a6f", "MIG-77")),
    ],
)
def test_gpus_are_those_that_slurm_gave(visible: dict[str, str], gpus: tuple[str, ...]) -> None:
    assert slurm.allocation(job(**visible)).gpus == gpus


def test_cpus_of_the_task_go_before_those_of_the_node() -> None:
    assert slurm.allocation(job()).cpus == 4
    assert slurm.allocation(job(SLURM_CPUS_PER_TASK="3")).cpus == 3


@pytest.mark.parametrize(
    ("more", "alone"),
    [
        ({}, True),
        ({"SLURM_LOCALID": "0"}, True),
        ({"SLURM_LOCALID": "1"}, False),
        ({"SLURM_LOCALID": "1", "SLURM_GPUS_PER_TASK": "1"}, True),
    ],
)
def test_a_second_task_of_a_node_shares_its_gpus(more: dict[str, str], alone: bool) -> None:
    assert slurm.allocation(job(**more)).alone is alone


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:45", 45), ("59:59\n", 3599), ("1:00:00", 3600), ("2-03:04:05", 183845), ("30", 30),
        ("UNLIMITED", None), ("NOT_SET", None), ("INVALID", None), ("", None),
    ],
)  # fmt: skip
def test_durations_as_slurm_writes_them(text: str, seconds: float | None) -> None:
    assert slurm.seconds(text) == seconds


def test_squeue_is_asked_about_this_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text('#!/bin/sh\n[ "$*" = "--noheader --jobs=7 --format=%L" ] && echo 1:30\n')
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert slurm.time_left(job()) == 90
    squeue.write_text("#!/bin/sh\nexit 1\n")
    assert slurm.time_left(job()) is None
    squeue.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert slurm.time_left(job()) is None
