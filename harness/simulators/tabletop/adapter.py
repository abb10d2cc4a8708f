"""The ``tabletop`` benchmark behind the simulator contract.

Promises: an episode is a function of (task, task_config, seed) and the actions, bit by bit, in any
process and in any order; nothing is kept between episodes except what depends on none of them
(parsed files, the arms' kinematics).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import sapien

from harness.errors import RollpoolError
from harness.simulators import contract
from harness.simulators.tabletop import configs, instructions, scenes, tasks
from harness.simulators.tabletop.actions import ACTION_WIDTHS
from harness.simulators.tabletop.collisions import CollisionMeter
from harness.simulators.tabletop.expert import follow
from harness.simulators.tabletop.layout import generator, lay_out
from harness.simulators.tabletop.task import Task
from harness.simulators.tabletop.world import PHYSICS_HZ, SUBSTEPS, World

if TYPE_CHECKING:
    from harness.simulators.tabletop.cameras import CameraRig

#: Raised whenever equal seeds no longer give equal episodes; sealed into every episode.
BENCHMARK_VERSION = 1
_CAMERAS = (contract.COUNTERTOP, contract.LEFT_WRIST, contract.RIGHT_WRIST, contract.DEMO)


@dataclass
class _Running:
    """The episode in progress."""

    instruction: str
    task: Task
    world: World
    meter: CollisionMeter
    rig: CameraRig | None
    success: bool = False


class Tabletop(contract.Simulator):
    """See the module and ``contract.Simulator``.

    Args:
        render: False for states alone.
        backend: the rendering device ("cuda", "cpu", "pci:0"); without one there are states alone.
        camera_size: (width, height) of the pictures, or None for the task configuration's.
    """

    name = "tabletop"
    control_hz: float = PHYSICS_HZ / SUBSTEPS
    action_kinds: Mapping[str, contract.ActionSpace] = MappingProxyType(
        {kind: contract.ActionSpace(2 * width) for kind, width in ACTION_WIDTHS.items()}
    )

    def __init__(
        self,
        render: bool = True,
        backend: str | None = None,
        camera_size: tuple[int, int] | None = None,
    ) -> None:
        backend = backend if render else None
        self._backend, self._camera_size = backend, camera_size
        self.cameras: Sequence[str] = _CAMERAS if backend is not None else ()
        self._running: _Running | None = None
        summary = sapien.render.get_device_summary() if backend is not None else "none"
        self._renderer = " ".join(summary.split())

    @property
    def _now(self) -> _Running:
        if self._running is None:
            raise RollpoolError("an episode of tabletop", "none is running", "call reset first")
        return self._running

    def cells(self) -> Sequence[tuple[str, str]]:
        """All ``(scene, task)`` pairs."""
        return [(scene, task.name) for scene in scenes.names() for task in tasks.of_scene(scene)]

    def task_configs(self, scene: str) -> Sequence[str]:
        """The names of a scene's task configurations, the clean one first."""
        scenes.load(scene)
        return configs.names(scene)

    def step_limit(self, task: str, task_config: str) -> int:
        """Executed actions after which an episode has failed."""
        configs.load(task_config)
        return configs.step_limit(task)

    def seal(self, scene: str, task: str, task_config: str, seed: int) -> Mapping[str, Any]:
        """``{"instruction": str, "reset": {...}}``: pure data, no physics."""
        config = _config_of(scene, task_config)
        made = lay_out(scene, task, config.obstacle_density, seed).task
        sentence = instructions.instruction(
            scene, task, config.instruction_type, made.words(), generator(task, seed, "instruction")
        )
        return {"instruction": sentence, "reset": {"benchmark_version": BENCHMARK_VERSION}}

    def reset(self, episode: contract.Episode) -> None:
        """Builds the episode's scene from nothing.

        Raises:
            RollpoolError: unknown scene, task or configuration, or an episode that was sealed
                by another version of the benchmark.
        """
        version = episode.reset.get("benchmark_version", BENCHMARK_VERSION)
        if version != BENCHMARK_VERSION:
            raise RollpoolError(
                f"an episode sealed by tabletop version {version}",
                f"this is version {BENCHMARK_VERSION}",
                "seal the population again, for a new run",
            )
        config = _config_of(episode.scene, episode.task_config)
        layout = lay_out(episode.scene, episode.task, config.obstacle_density, episode.seed)
        self._running = None  # the old scene is freed before the new one is built
        world = World(layout.scene, layout.contents, self._backend)
        meter = CollisionMeter(world, layout.task.targets)
        rig = None
        if self._backend is not None:
            rig = _camera_rig(world, layout.scene, self._camera_size or config.camera_size)
        self._running = _Running(episode.instruction, layout.task, world, meter, rig)

    def observe(self, cameras: Collection[str]) -> contract.Observation:
        """``proprio`` is ``(20,)`` in the layout of ``ee6d``; ``state`` has ``qpos`` ``(16,)``."""
        now = self._now
        return contract.Observation(
            images={name: self.frame(name) for name in cameras},
            proprio=now.world.robot.proprio(),
            instruction=now.instruction,
            state={"qpos": now.world.robot.qpos()},
        )

    def step(self, action: np.ndarray, kind: str) -> bool:
        """Executes one action (1/20 s), or less of it: success is tried after every physics step
        and ends it. A task once solved stays solved, and its collisions are counted no further.

        Raises:
            RollpoolError: the action has the wrong shape, or is not finite.
        """
        now = self._now
        for _ in now.world.execute(action, kind):
            if not now.success:
                now.meter.after_physics_step()
                now.success = now.task.success(now.world)
                if now.success:
                    break
        if now.rig is not None:
            now.rig.moved()
        now.meter.after_action()
        return now.success

    def expert_chunk(self, length: int) -> np.ndarray:
        """``(1 to length, 20)`` ``ee6d`` actions of the expert from the current state."""
        now = self._now
        return follow(now.world.robot, now.task.plan(now.world), length)

    def score(self) -> contract.Score:
        """How the episode stands."""
        now = self._now
        names = now.meter.names
        return contract.Score(now.success, now.success and not names, len(names), names)

    def frame(self, camera: str) -> np.ndarray:
        """One ``(H, W, 3)`` uint8 picture.

        Raises:
            RollpoolError: no such camera, or no renderer.
        """
        rig = self._now.rig
        if rig is None:
            raise RollpoolError(
                f"camera '{camera}'", "running without a renderer", "ask for no cameras"
            )
        return rig.picture(camera)

    def sim_time(self) -> float:
        """Simulated seconds since reset."""
        return self._now.world.physics_steps / PHYSICS_HZ

    def state_hash(self) -> str:
        """sha256 over every pose, velocity, joint position and joint velocity."""
        return self._now.world.state_hash()

    def versions(self) -> Mapping[str, str]:
        """Simulator, benchmark, rendering backend and what the renderer says of its device."""
        return {
            "simulator": f"sapien {sapien.__version__}",
            "benchmark": f"tabletop {BENCHMARK_VERSION}",
            "backend": self._backend or "none",
            "renderer": self._renderer,
        }

    def close(self) -> None:
        """Frees the scene."""
        self._running = None


def _config_of(scene: str, task_config: str) -> configs.TaskConfig:
    config = configs.load(task_config)
    if config.scene != scene:
        raise RollpoolError(
            f"task_config '{task_config}' in scene '{scene}'",
            f"it belongs to scene '{config.scene}'",
            f"pick one of: {', '.join(configs.names(scene))}",
        )
    return config


def _camera_rig(world: World, scene: scenes.Scene, size: tuple[int, int]) -> CameraRig:
    from harness.simulators.tabletop import cameras, looks  # these need a renderer

    hands = {
        contract.LEFT_WRIST: world.robot.arms["left"].hand.entity,
        contract.RIGHT_WRIST: world.robot.arms["right"].hand.entity,
    }
    look = looks.LOOKS[scene.name]
    return cameras.CameraRig(world.sapien_scene, look, hands, size, scene.table_height)
