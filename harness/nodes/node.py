"""One node's share of a run: which workers it starts, and what each of them is given.

Promises: a worker for each GPU x ``WORKERS_PER_GPU``, pinned to that GPU alone; on a node without a
GPU ``WORKERS_PER_GPU`` workers that render nothing unless somebody asks for pictures. A value that
the user gave always stands. ``slots`` looks at nothing but its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import RollpoolError
from harness.foundations.gpus import Gpu
from harness.foundations.settings import Settings
from harness.foundations.slurm import Allocation
from harness.workers.pool import Slot

#: Where NVIDIA's packages put the description of their Vulkan driver.
VULKAN_DRIVERS = (
    Path("/usr/share/vulkan/icd.d/nvidia_icd.json"),
    Path("/etc/vulkan/icd.d/nvidia_icd.json"),
)


def gpus_of(allocation: Allocation, found: Sequence[Gpu]) -> tuple[str, ...]:
    """The GPUs to start workers on.

    Args:
        found: those of the node, which count where nobody said which ones this task may use.

    Raises:
        RollpoolError: another task of this node has the same GPUs.
    """
    if allocation.gpus is None:
        return tuple(str(number) for number in range(len(found)))
    if allocation.gpus and not allocation.alone:
        raise RollpoolError(
            f"node {allocation.node}", "several tasks share its GPUs",
            "start one task a node (--ntasks-per-node=1): it starts a worker for each GPU itself",
        )  # fmt: skip
    return allocation.gpus


def slots(
    settings: Settings, allocation: Allocation, gpus: Sequence[str], cache: Path, driver: str = ""
) -> list[Slot]:
    """The workers of this node.

    Args:
        gpus: as ``gpus_of`` gives them.
        cache: a folder on the node's own disk.
        driver: the Vulkan driver file of its GPUs, if there is one.
    """
    each = settings["WORKERS_PER_GPU"]
    places = [(gpu, _pinned(gpu, driver)) for gpu in gpus] or [("", {})]
    shared = _unless_given(settings, {
        "WARP_CACHE_PATH": str(cache / "warp"),
        "CUDA_CACHE_PATH": str(cache / "cuda"),
        **({} if gpus else {"EVAL_VIDEO": "none"}),
    })  # fmt: skip
    return [
        Slot(_name(allocation.node, gpu, number, each), {**shared, **_unless_given(settings, pins)})
        for gpu, pins in places
        for number in range(each)
    ]


def threads_each(settings: Settings, allocation: Allocation, gpus: Sequence[str]) -> int:
    """The threads of each worker here, for a run that is begun here. They are sealed: a model
    that sums in another order gives other actions, so a run has one number of them everywhere."""
    return max(1, allocation.cpus // (settings["WORKERS_PER_GPU"] * max(1, len(gpus))))


def find_driver(files: Sequence[Path] = VULKAN_DRIVERS) -> str:
    """NVIDIA's Vulkan driver file on this node; empty where there is none."""
    return next((str(file) for file in files if file.is_file()), "")


def _pinned(gpu: str, driver: str) -> dict[str, str]:
    """One GPU for CUDA, for Vulkan and for EGL. SAPIEN renders on the Vulkan device that is the
    first visible CUDA device; EGL's users count devices by themselves, under these two names."""
    pins = {"CUDA_VISIBLE_DEVICES": gpu}
    if driver:
        pins["VK_ICD_FILENAMES"] = driver
    if gpu.isdigit():
        pins |= {"EGL_DEVICE_ID": gpu, "MUJOCO_EGL_DEVICE_ID": gpu}
    return pins


def _unless_given(settings: Settings, values: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in values.items()
        if settings.sources.get(name, "default") == "default"
    }


def _name(node: str, gpu: str, number: int, each: int) -> str:
    place = f"{node} GPU {gpu}" if gpu else f"{node} without a GPU"
    return f"{place}, worker {number}" if each > 1 else place
