"""What the toolkit asks of a simulator: small, typed, standard library and numpy only.

A simulator adapter is one object in one process. It may keep what is expensive (assets, the
renderer) between episodes, but an episode depends on nothing except its own ``Episode`` record:
not on which episodes ran before, in which order, or in which process.

Conventions, the same everywhere in the toolkit:

* positions in metres, angles in radians, world frame, z up;
* quaternions are **wxyz**;
* ``rot6d`` is the first two columns of the rotation matrix, row by row
  (``R[:, :2].reshape(6)``, the interleaved layout of RoboTwin);
* grippers are 0 (closed) to 1 (open);
* action kinds: ``qpos`` ``(16,)`` = per arm 7 joints + gripper; ``ee`` ``(16,)`` = per arm
  xyz, wxyz, gripper; ``ee6d`` ``(20,)`` = per arm xyz, rot6d, gripper. Left arm first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

#: The camera that shows the whole work surface; the wrists; the one that looks good in a video.
COUNTERTOP, LEFT_WRIST, RIGHT_WRIST, DEMO = "countertop", "left_wrist", "right_wrist", "demo"


@dataclass(frozen=True, slots=True)
class Episode:
    """One line of a sealed manifest: everything that identifies an episode.

    Its identity is ``(manifest, position)``; two episodes may share a seed.
    """

    scene: str
    task: str
    task_config: str
    seed: int
    instruction: str
    reset: Mapping[str, Any] = field(default_factory=dict)  # opaque, the adapter's own
    manifest: str = ""
    position: int = 0


@dataclass(frozen=True)
class Observation:
    """What a policy sees at a decision point."""

    images: Mapping[str, np.ndarray]  # camera name -> (H, W, 3) uint8
    proprio: np.ndarray  # (D,) float32, in the layout of the simulator's native action kind
    instruction: str
    state: Mapping[str, np.ndarray] = field(default_factory=dict)  # named extras, e.g. "qpos"


@dataclass(frozen=True)
class Score:
    """How the episode stands. ``None`` means the simulator cannot know."""

    success: bool
    hard_success: bool | None  # success and no collision so far
    collision_count: int | None
    collision_names: tuple[str, ...] = ()


class Simulator(Protocol):
    """The contract. Every method may raise; the toolkit records that as an ``error``."""

    name: str
    action_kinds: Sequence[str]  # first = native
    cameras: Sequence[str]  # empty where nothing can be rendered

    def cells(self) -> Sequence[tuple[str, str]]:
        """All ``(scene, task)`` pairs."""
        ...

    def task_configs(self, scene: str) -> Sequence[str]:
        """The names of a scene's task configurations, e.g. ``bench_demo_study_clean``."""
        ...

    def step_limit(self, task: str, task_config: str) -> int:
        """Executed actions after which an episode has failed."""
        ...

    def seal(self, scene: str, task: str, task_config: str, seed: int) -> Mapping[str, Any]:
        """``{"instruction": str, "reset": {...}}`` for a seed: a pure function of its arguments."""
        ...

    def reset(self, episode: Episode) -> None:
        """Build the episode's scene from nothing."""
        ...

    def observe(self, cameras: Collection[str]) -> Observation:
        """The current observation; renders the named cameras and no others."""
        ...

    def step(self, action: np.ndarray, kind: str) -> bool:
        """Execute one action; True as soon as the task has succeeded."""
        ...

    def expert_chunk(self, length: int) -> np.ndarray:
        """``(n <= length, D)`` native actions of the privileged expert **from the current state**,
        whoever brought the episode there."""
        ...

    def score(self) -> Score: ...

    def frame(self, camera: str) -> np.ndarray:
        """One ``(H, W, 3)`` uint8 picture for the video. Never changes the physics."""
        ...

    def sim_time(self) -> float:
        """Simulated seconds since reset."""
        ...

    def state_hash(self) -> str:
        """A digest of the full physical state, equal when the state is bit-identical."""
        ...

    def versions(self) -> Mapping[str, str]:
        """Simulator, renderer and backend, for the results."""
        ...

    def close(self) -> None: ...
