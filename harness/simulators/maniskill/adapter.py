"""ManiSkill on a CPU: its table-top tasks of one arm, with cameras where the machine can render.

One scene, ``tabletop``; a task is upstream's name, a seed is upstream's. An episode's scene is
built from nothing. Task configurations: ``default``, and ``registered`` with upstream's own step
limits.

Action kinds are upstream's control modes. ``pd_joint_pos`` ``(8,)``: targets of the seven joints
in radians, gripper; ``pd_joint_delta_pos`` ``(8,)`` and ``pd_ee_delta_pose`` ``(7,)`` in -1..1:
changes of them, or of the hand's xyz and rotation, gripper. The gripper is -1 closed, 1 open.
Proprio ``(16,)``: seven joints, two fingers, the hand's xyz and wxyz; ``state["qvel"]`` ``(9,)``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import gymnasium
import mani_skill.envs  # noqa: F401  (registers the tasks)
import numpy as np
import sapien
import torch

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
from harness.simulators.maniskill import expert
from harness.simulators.maniskill.tasks import TASKS

SCENE = "tabletop"
CONFIGS = ("default", "registered")
BASE, HAND = "base_camera", "hand_camera"
WITH_HAND_CAMERA = "panda_wristcam"
#: The loop counts steps, not upstream's wrapper.
_NO_LIMIT = 2**31
_NATIVE = "pd_joint_pos"


class ManiSkill(Simulator):
    """The adapter.

    Args:
        render: False for states alone.
        backend: the rendering device ("cuda", "cpu", "pci:0"); without one there are states alone.
        config: ``robot`` (``panda_wristcam`` puts a camera on every task's wrist; by default each
            task has upstream's), ``picture`` (pixels, 128); each may be left out.
    """

    name = "maniskill"
    control_hz = 20.0
    action_kinds: Mapping[str, ActionSpace] = MappingProxyType(
        {
            _NATIVE: ActionSpace(8),
            "pd_joint_delta_pos": ActionSpace(8, -1.0, 1.0),
            "pd_ee_delta_pose": ActionSpace(7, -1.0, 1.0),
        }
    )

    def __init__(
        self,
        render: bool = True,
        backend: str | None = None,
        config: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        if unknown := ", ".join(sorted(set(config) - {"robot", "picture"})):
            raise RollpoolError(
                "ManiSkill's SIM_CONFIG", f"unknown: {unknown}", "it may have robot and picture"
            )
        self._backend = backend if render and backend else "none"
        self._robot = config.get("robot")
        self._picture = int(config.get("picture", 128))
        hand = (HAND,) if self._robot == WITH_HAND_CAMERA else ()
        self.cameras: Sequence[str] = (BASE, *hand, DEMO) if self._backend != "none" else ()
        self._envs: dict[str, Any] = {}
        self._task = ""
        self._env: Any = None
        self._plan: expert.Plan | None = None
        self._kind, self._steps = _NATIVE, 0
        self._success = self._failed = False

    def cells(self) -> Sequence[tuple[str, str]]:
        return [(SCENE, task) for task in TASKS]

    def task_configs(self, scene: str) -> Sequence[str]:
        return CONFIGS

    def step_limit(self, task: str, task_config: str) -> int:
        found = TASKS[task]
        return found.registered if task_config == "registered" else found.limit

    def seal(self, scene: str, task: str, task_config: str, seed: int) -> Mapping[str, Any]:
        """Builds the scene: its fingerprint is known only then."""
        require_cell(self, scene, task, task_config)
        self._build(task, seed)
        return {
            "instruction": TASKS[task].instruction,
            "reset": {"seed": seed},
            "fingerprint": self.fingerprint(),
        }

    def fingerprint(self) -> Mapping[str, str]:
        """Versions, and a digest of where everything stands at first, to a tenth of a millimetre:
        the last bits depend on the processor's instructions."""
        names = ("mani_skill", "sapien")
        return {**{name: version(name) for name in names}, "scene": self._scene}

    def reset(self, episode: Episode) -> None:
        self._build(episode.task, episode.reset["seed"])
        self._instruction = episode.instruction

    def observe(self, cameras: Collection[str]) -> Observation:
        agent = self._env.agent
        pose = agent.tcp.pose
        parts = (agent.robot.get_qpos(), pose.p, pose.q)
        return Observation(
            images={name: self.frame(name) for name in cameras},
            proprio=np.concatenate([_flat(part) for part in parts]).astype(np.float32),
            instruction=self._instruction,
            state={"qvel": _flat(agent.robot.get_qvel())},
        )

    def step(self, action: np.ndarray, kind: str) -> bool:
        own = taken(self, action, kind).astype(np.float32)
        self._control_by(kind)
        if self._plan is not None:
            self._plan.executed(own)
        _, _, _, _, info = self._env.step(own[None])  # a batch of one
        self._steps += 1
        self._success = self._success or bool(info["success"])
        self._failed = bool(info.get("fail", False))
        return self._success

    def ended(self) -> bool:
        return self._failed and not self._success

    def expert_chunk(self, length: int) -> np.ndarray:
        """Upstream's motion planner, from the state it finds; after its plan it holds still."""
        if self._plan is None or not self._plan.followed:
            self._plan = expert.Plan(expert.plan(self._task, self._copy()))
        chunk = self._plan.next(length)
        return self._hold() if chunk is None else chunk

    def score(self) -> Score:
        return Score(self._success, None, None)

    def frame(self, camera: str) -> np.ndarray:
        require_camera(self, camera)
        if camera == DEMO:
            shown = self._env.render_rgb_array("render_camera")
        else:
            scene = self._env.scene
            for thing in self._env._hidden_objects:
                thing.hide_visual()
            scene.update_render(update_sensors=True, update_human_render_cameras=False)
            sensor = scene.sensors[camera]
            sensor.capture()
            shown = sensor.get_obs(rgb=True, depth=False, position=False, segmentation=False)["rgb"]
        return np.array(shown[0].cpu().numpy()[..., :3], np.uint8)

    def sim_time(self) -> float:
        return self._steps / self.control_hz

    def state_hash(self) -> str:
        """Of the physics engine's whole state, and of the arm's targets."""
        digest = hashlib.sha256(self._env.scene.px.pack())
        for joint in self._env.agent.robot.active_joints:
            digest.update(_flat(joint.drive_target).tobytes())
        return digest.hexdigest()

    def versions(self) -> Mapping[str, str]:
        summary = sapien.render.get_device_summary() if self.cameras else "none"
        return {
            "simulator": f"mani_skill {version('mani_skill')}",
            "physics": f"sapien {sapien.__version__}",
            "torch": torch.__version__,
            "backend": self._backend,
            "renderer": " ".join(summary.split()),
        }

    def close(self) -> None:
        for env in self._envs.values():
            env.close()
        self._envs, self._env = {}, None

    def _build(self, task: str, seed: int) -> None:
        """The scene of a seed, in the environment of its task; the other tasks' are closed."""
        if task != self._task or self._env is None:
            self.close()
            self._task = task
        self._seed, self._plan = seed, None
        self._env = self._reset("own", self._backend)
        self._kind, self._steps = _NATIVE, 0
        self._success = self._failed = False
        state = _flat(self._env.get_state())
        self._scene = hashlib.sha256((np.round(state, 4) + 0.0).tobytes()).hexdigest()[:16]

    def _reset(self, which: str, backend: str) -> Any:
        if which not in self._envs:
            robot = {} if self._robot is None else {"robot_uids": self._robot}
            size = {"width": self._picture, "height": self._picture}
            self._envs[which] = gymnasium.make(
                self._task, num_envs=1, obs_mode="none", reward_mode="none", control_mode=_NATIVE,
                sim_backend="physx_cpu", render_backend=backend,
                render_mode=None if backend == "none" else "rgb_array", sensor_configs=size,
                max_episode_steps=_NO_LIMIT, **robot,
            ).unwrapped  # fmt: skip
        env = self._envs[which]
        env.agent.set_control_mode(_NATIVE)
        env.reset(seed=self._seed, options={"reconfigure": True})
        return env

    def _copy(self) -> Any:
        """Another scene of the same seed, in this one's state."""
        copy = self._reset("copy", "none")
        if self._steps:
            copy.set_state_dict(self._env.get_state_dict())
        return copy

    def _control_by(self, kind: str) -> None:
        if kind != self._kind:
            self._env.agent.set_control_mode(kind)
            self._env.agent.controller.reset()
            self._kind = kind

    def _hold(self) -> np.ndarray:
        robot = self._env.agent.robot
        targets = [float(joint.drive_target) for joint in robot.active_joints[:7]]
        open_or_not = 1.0 if float(robot.active_joints[-1].drive_target) > 0 else -1.0
        return np.array([[*targets, open_or_not]], np.float32)


def _flat(tensor: Any) -> np.ndarray:
    """An environment's only row."""
    return np.asarray(tensor.cpu().numpy()[0], np.float32).reshape(-1)
