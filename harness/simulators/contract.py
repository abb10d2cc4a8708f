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
* action kinds of two arms, left arm first: ``qpos`` ``(16,)`` = per arm 7 joints + gripper; ``ee``
  ``(16,)`` = per arm xyz, wxyz, gripper; ``ee6d`` ``(20,)`` = per arm xyz, rot6d, gripper. A
  simulator whose actions are others names its own kinds.

An adapter imports ``harness.errors``, ``harness.rotations`` and this module of the toolkit, and is
made by a factory (its class, mostly) with keyword arguments: ``render`` (False: states alone, no
renderer is built) and, where the user gave a configuration, ``config`` (a mapping). It inherits
from ``Simulator``, which has the answers of a simulator without an expert, a fingerprint or an end
of its own. ``docs/simulators.md`` shows one from the first line to the last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import RollpoolError

if TYPE_CHECKING:  # whoever only names episodes (status, prepare) need not wait for it
    import numpy as np

#: The camera that shows the whole work surface; the wrists; the one that looks good in a video.
COUNTERTOP, LEFT_WRIST, RIGHT_WRIST, DEMO = "countertop", "left_wrist", "right_wrist", "demo"


@dataclass(frozen=True, slots=True)
class ActionSpace:
    """What one action of a kind is: ``(dim,)`` finite numbers.

    A bound is one number for all dimensions, one for each, or None where there is none. What lies
    outside is clipped by the adapter.
    """

    dim: int
    low: float | tuple[float, ...] | None = None
    high: float | tuple[float, ...] | None = None

    def clip(self, action: np.ndarray) -> np.ndarray:
        """``action`` within the bounds."""
        if self.low is None and self.high is None:
            return action
        import numpy as np

        return np.clip(action, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Episode:
    """One line of a sealed manifest: everything that identifies an episode.

    Its identity is ``(manifest, position)``; two episodes may share a seed. ``reset`` is the
    adapter's own, JSON, and read by nobody else; ``fingerprint`` names what the episode was sealed
    with (see ``Simulator.fingerprint``), empty where the adapter compares nothing.
    """

    scene: str
    task: str
    task_config: str
    seed: int
    instruction: str
    reset: Mapping[str, Any] = field(default_factory=dict)
    manifest: str = ""
    position: int = 0
    fingerprint: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.scene}/{self.task}/{self.task_config} seed {self.seed}"


@dataclass(frozen=True)
class Observation:
    """What a policy sees at a decision point."""

    images: Mapping[str, np.ndarray]  # camera name -> (H, W, 3) uint8
    proprio: np.ndarray  # (D,) float32, in a layout that the adapter's page documents
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
    action_kinds: Mapping[str, ActionSpace]  # the first is the native one
    cameras: Sequence[str]  # empty where nothing can be rendered
    control_hz: float  # executed actions a simulated second

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
        """``{"instruction": str, "reset": {...}, "fingerprint": {...}}`` for a seed: a function of
        its arguments, whatever was sealed or played before. The last may be left out."""
        ...

    def reset(self, episode: Episode) -> None:
        """Build the episode's scene from nothing."""
        ...

    def fingerprint(self) -> Mapping[str, str]:
        """The parts of the environment and the scene that make the episode what it is, after
        ``reset``: each a name and a short text or digest, as ``seal`` says them. An episode that
        was sealed with others is an ``error`` that names each part that differs."""
        return {}

    def observe(self, cameras: Collection[str]) -> Observation:
        """The current observation; renders the named cameras and no others."""
        ...

    def step(self, action: np.ndarray, kind: str) -> bool:
        """Execute one action; True as soon as the task has succeeded."""
        ...

    def ended(self) -> bool:
        """Whether the simulator has ended the episode for good without success."""
        return False

    def expert_chunk(self, length: int) -> np.ndarray:
        """``(1 <= n <= length, D)`` native actions of the privileged expert **from the current
        state**, whoever brought the episode there; one with nothing left to do holds still.

        Raises:
            RollpoolError: there is no expert.
        """
        raise RollpoolError(
            f"an expert of simulator {self.name!r}", "it has none", "use a policy that needs none"
        )

    def solvable(self, episode: Episode) -> bool | None:
        """Whether the expert plays this episode, which nobody has sealed yet, to success: asked
        where it plans a whole episode and gives no chunks, or a scene may not come to rest. None:
        find out by ``expert_chunk``."""
        return None

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

    def close(self) -> None:
        """Free what is held. Harmless when called again."""
        ...


def native(sim: Simulator) -> str:
    """The simulator's own action kind."""
    return next(iter(sim.action_kinds))


def taken(sim: Simulator, action: np.ndarray, kind: str) -> np.ndarray:
    """``action`` as the simulator takes it: ``(dim,)`` float64 within the bounds of ``kind``.

    Raises:
        RollpoolError: no such kind, another shape, or numbers that are not finite.
    """
    import numpy as np

    space, values = sim.action_kinds.get(kind), np.asarray(action, np.float64)
    if space is None or values.shape != (space.dim,) or not np.isfinite(values).all():
        kinds = ", ".join(f"{name} ({each.dim})" for name, each in sim.action_kinds.items())
        raise RollpoolError(
            f"an action of kind {kind!r} for simulator {sim.name!r}",
            f"shape {values.shape}: {values.tolist()}", f"give finite numbers: {kinds}",
        )  # fmt: skip
    return space.clip(values)


def require_cell(sim: Simulator, scene: str, task: str, task_config: str) -> None:
    """Raises ``RollpoolError`` unless the simulator has this cell; for ``seal``."""
    asked = f"episode {scene}/{task}/{task_config}"
    if (scene, task) not in sim.cells():
        raise RollpoolError(
            asked, f"no such cell in {sim.name}", "pick one of `rollpool list tasks`"
        )
    if task_config not in (known := list(sim.task_configs(scene))):
        raise RollpoolError(
            asked, f"{scene} has no such configuration", f"pick one of: {', '.join(known)}"
        )


def require_camera(sim: Simulator, camera: str) -> None:
    """Raises ``RollpoolError`` unless the simulator has this camera."""
    if camera not in sim.cameras:
        raise RollpoolError(
            f"camera {camera!r}", f"the cameras are {list(sim.cameras)}", "name one of these"
        )


def differing(sealed: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """``part: sealed X, found Y`` of each part in which two fingerprints differ."""
    return [
        f"{part}: sealed {sealed.get(part, 'without')}, found {found.get(part, 'none')}"
        for part in sorted({*sealed, *found})
        if sealed.get(part) != found.get(part)
    ]
