"""Finds out, without risk to the caller, where camera pictures can be rendered.

A renderer without a working driver does not raise, it ends its process; so each device is tried in
a process of its own, with a small scene whose picture must show something. Promises: ``probe``
returns within its deadline, leaves no process behind, and never raises because of a driver. It
does not promise that a device stays available.

    python -m harness.episodes.rendering          # what was found, as JSON
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

#: Fastest first: a GPU, the software driver, whatever is on the bus.
DEVICES = ("cuda", "cpu", "pci:0")
DEADLINE_S = 120.0

_ROOT = Path(__file__).resolve().parents[2]
_SHADERS = _ROOT / "harness" / "simulators" / "tabletop" / "shaders"
_DRIVERS = "VK_ICD_FILENAMES"  # the Vulkan loader's variable: which drivers it may load
_ICD_FOLDERS = (Path("/usr/share/vulkan/icd.d"), Path("/etc/vulkan/icd.d"))
_SOFTWARE_ICDS = ("lvp_icd.json", "lvp_icd.x86_64.json")  # Mesa 25, and its older name
_GPU_NODES = (Path("/dev/dri"), Path("/dev/nvidiactl"), Path("/dev/dxg"))


@dataclass(frozen=True)
class Backend:
    """Where pictures are rendered."""

    device: str  # for the simulator, one of DEVICES
    summary: str  # the renderer's own words about the device, on one line
    driver: str  # the Vulkan drivers it was restricted to; "" = the loader's own choice


@dataclass(frozen=True)
class Findings:
    """The first device that works, if any, and why those before it do not."""

    backend: Backend | None
    refused: Mapping[str, str]


def driver_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables to add to the environment of a process that renders.

    On a machine without a GPU the loader is held to Mesa's software driver, because drivers for
    absent hardware cost time and warnings. A choice made by the user stands.
    """
    if environ.get(_DRIVERS) or any(node.exists() for node in _GPU_NODES):
        return {}
    for folder in _ICD_FOLDERS:
        for name in _SOFTWARE_ICDS:
            if (folder / name).is_file():
                return {_DRIVERS: str(folder / name)}
    return {}


def probe(python: str = sys.executable, deadline_s: float = DEADLINE_S) -> Backend | None:
    """The first device of ``DEVICES`` that renders, or None.

    Args:
        python: the interpreter of the simulator's environment.
        deadline_s: for all devices together; one that does not answer in time does not render.
    """
    return examine(python, deadline_s).backend


def examine(python: str = sys.executable, deadline_s: float = DEADLINE_S) -> Findings:
    """``probe`` with its reasons. The answer is kept for the life of the calling process."""
    return _examine(python, deadline_s, os.environ.get(_DRIVERS, ""))


@functools.cache
def _examine(python: str, deadline_s: float, chosen_drivers: str) -> Findings:
    end = time.monotonic() + deadline_s
    added = driver_environment()
    refused: dict[str, str] = {}
    for device in DEVICES:
        left = end - time.monotonic()
        if left <= 0:
            refused[device] = f"not tried: the {deadline_s:g} s of the probe were over"
            continue
        summary, reason = _try(python, device, added, left)
        if summary is not None:
            driver = added.get(_DRIVERS, chosen_drivers)
            return Findings(Backend(device, summary, driver), refused)
        refused[device] = reason
    return Findings(None, refused)


def _try(
    python: str, device: str, added: Mapping[str, str], left_s: float
) -> tuple[str | None, str]:
    """``(summary, "")`` of a device that renders, ``(None, reason)`` of one that does not."""
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
    try:
        child = subprocess.run(
            [python, "-m", "harness.episodes.rendering", "--try", device],
            env={**os.environ, **added, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=left_s,
        )
    except subprocess.TimeoutExpired:
        return None, f"no picture within {left_s:.0f} s"
    except OSError as error:
        return None, f"cannot run {python}: {error.strerror}"
    # Drivers print too: the answer is the last line.
    *_, answer = child.stdout.splitlines() or [""]
    if child.returncode == 0:
        return answer, ""
    *_, complaint = child.stderr.strip().splitlines() or [f"ended with {child.returncode}"]
    return None, complaint


def _render(device: str) -> str:
    """Render a lit box on ``device`` in this process.

    Returns:
        the summary of the device, on one line.

    Raises:
        RuntimeError: no such device, no driver, or a picture that shows nothing.
    """
    import sapien

    summary = " ".join(sapien.render.get_device_summary().split())
    renderer = sapien.render.RenderSystem(sapien.Device(device))
    scene = sapien.Scene([sapien.physx.PhysxCpuSystem(), renderer])
    scene.set_ambient_light([0.4, 0.4, 0.4])
    scene.add_directional_light([1.0, 0.5, -1.0], [0.6, 0.6, 0.6], shadow=True, shadow_map_size=64)
    builder = scene.create_actor_builder()
    builder.add_box_visual(half_size=[0.2, 0.2, 0.2])
    builder.build_static().set_pose(sapien.Pose([1.0, 0.0, 0.0]))
    camera = sapien.render.RenderCameraComponent(32, 32, shader_dir=str(_SHADERS))
    stand = sapien.Entity()
    stand.add_component(camera)
    scene.add_entity(stand)
    scene.update_render()
    camera.take_picture()
    picture = camera.get_picture("Color")[..., :3]
    if not picture.any() or picture.min() == picture.max():
        raise RuntimeError("the picture shows nothing")
    return summary


def _answer(device: str) -> None:
    """The child's whole life. It leaves at once: a renderer that failed to start crashes in an
    orderly exit, and its crash would hide the reason."""
    try:
        summary = _render(device)
    except (ImportError, RuntimeError) as error:
        sys.stderr.write(f"\n{' '.join(str(error).split())}\n")
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.write(f"\n{summary}\n")
    sys.stdout.flush()
    os._exit(0)


def main(arguments: list[str]) -> int:
    """``--try DEVICE`` is the probe's own; without it, print the findings as JSON."""
    if len(arguments) == 2 and arguments[0] == "--try":
        _answer(arguments[1])
    print(json.dumps(asdict(examine()), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
