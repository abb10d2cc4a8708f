"""A deterministic simulator without physics, for tests: a point on a unit square reaches a goal.

It keeps the whole contract of ``harness.simulators.contract`` (two scenes, clean and cluttered
configurations, cameras, a privileged expert, bit-exact replay) in microseconds a step, and does
the worst things simulators do when a task's name asks for it:

==================  =========================================================================
task                what it does
==================  =========================================================================
reach_goal          the expert reaches it at every seed
reach_even          the expert reaches it at even seeds; at odd ones the goal is walled off
never_succeed       fails at the step limit, whatever the policy does
raise_in_reset      raises in ``reset``
raise_in_step       raises in the third step
crash_in_step       dies of SIGSEGV in the third step
hang_in_step        never returns from the third step
crash_in_reset      dies of SIGSEGV in ``reset``
raise_in_seal       raises in ``seal``
end_in_step         the simulator ends the episode in the third step, without success
changed_scene       is sealed with another fingerprint than ``reset`` finds
crash_once          SIGSEGV in the third step, the first time each seed is tried
raise_once          raises in the third step, the first time each seed is tried
hang_once           never returns from the third step, the first time each seed is tried
==================  =========================================================================

The ``_once`` tasks remember in the directory ``POINTSIM_SCRATCH``. ``POINTSIM_STEP_S`` makes each
step take that many seconds of wall time. ``POINTSIM_GATE`` names the file of a ``Gate``, at which
episodes of every task wait while it is closed. Load it as ``tests.fakes.pointsim:make``.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
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
)
from tests.fakes.gate import Gate

SCENES = ("plane", "hill")
GOOD_TASKS = ("reach_goal", "reach_even", "never_succeed")
FAULTY_TASKS = (
    "raise_in_reset",
    "raise_in_step",
    "crash_in_step",
    "hang_in_step",
    "crash_in_reset",
    "raise_in_seal",
    "end_in_step",
    "changed_scene",
    "crash_once",
    "raise_once",
    "hang_once",
)
CAMERAS = ("countertop", "left_wrist", "right_wrist", DEMO)
STEP_LIMIT = 40
FAULT_STEP = 3
WORLD = "unit square 1"
SPEED, REACHED, POST_RADIUS = 0.08, 0.02, 0.1
#: Both arms: xyz, the identity as rot6d, gripper open.
REST = np.tile(np.array([0, 0, 0, 1, 0, 0, 1, 0, 0, 1], np.float32), 2)


class PointSim(Simulator):
    """The point is the left arm's xy; the right arm is along for the ride."""

    name = "pointsim"
    action_kinds: Mapping[str, ActionSpace] = MappingProxyType({"ee6d": ActionSpace(20)})
    control_hz: float = 20

    def __init__(
        self,
        cameras: bool = True,
        *,
        render: bool = True,
        step_s: float = 0.0,
        scratch: Path | None = None,
        gate: Gate | None = None,
    ):
        self.cameras: Sequence[str] = CAMERAS if cameras and render else ()
        self._step_s, self._scratch, self._gate = step_s, scratch, gate
        self._steps = 0

    def cells(self) -> Sequence[tuple[str, str]]:
        return [(scene, task) for scene in SCENES for task in (*GOOD_TASKS, *FAULTY_TASKS)]

    def task_configs(self, scene: str) -> Sequence[str]:
        return [f"bench_demo_{scene}_{name}" for name in ("clean", "d6", "d15")]

    def step_limit(self, task: str, task_config: str) -> int:
        return STEP_LIMIT

    def seal(self, scene: str, task: str, task_config: str, seed: int) -> Mapping[str, Any]:
        require_cell(self, scene, task, task_config)
        if task == "raise_in_seal":
            raise RuntimeError("pointsim was asked to raise in seal")
        goal = np.random.default_rng([seed, 1]).uniform(0.4, 0.9, 2).round(6).tolist()
        reset, world = {"goal": goal}, "another" if task == "changed_scene" else WORLD
        sentence = f"move to the mark {seed % 7}"
        return {"instruction": sentence, "reset": reset, "fingerprint": {"world": world}}

    def fingerprint(self) -> Mapping[str, str]:
        return {"world": WORLD}

    def reset(self, episode: Episode) -> None:
        self._episode, self._steps, self._hits = episode, 0, 0
        if episode.task == "crash_in_reset":
            os.kill(os.getpid(), signal.SIGSEGV)
        if episode.task == "raise_in_reset":
            raise RuntimeError("pointsim was asked to raise in reset")
        start = np.random.default_rng([episode.seed, 2]).uniform(0.0, 0.2, 2)
        self._goal = np.array(episode.reset["goal"], np.float64)
        self._arms = REST.astype(np.float64)
        self._arms[:2] = start
        # Odd seeds put the post on the straight way, where only a policy that looks gets past it.
        offset = np.zeros(2) if episode.seed % 2 else np.array([-1.0, 1.0])
        self._post = (start + self._goal) / 2 + offset
        self._cluttered = not episode.task_config.endswith("_clean")
        self._unreachable = episode.task == "never_succeed" or (
            episode.task == "reach_even" and episode.seed % 2 == 1
        )

    def observe(self, cameras: Collection[str]) -> Observation:
        return Observation(
            images={name: self._picture(name, 24, 32) for name in cameras},
            proprio=self._arms.astype(np.float32),
            instruction=self._episode.instruction,
            state={"goal": self._goal.astype(np.float32)},
        )

    def step(self, action: np.ndarray, kind: str) -> bool:
        if kind != "ee6d" or np.shape(action) != (20,) or not np.isfinite(action).all():
            raise RollpoolError(
                f"a pointsim action of kind {kind!r}",
                f"shape {np.shape(action)}",
                "give 20 finite ee6d numbers",
            )
        self._steps += 1
        if self._gate and self._steps == 1:
            self._gate.wait(self._episode.seed)
        if self._steps == FAULT_STEP:
            self._misbehave()
        if self._step_s:
            time.sleep(self._step_s)
        way = np.asarray(action[:2], np.float64) - self._arms[:2]
        distance = float(np.hypot(*way))
        self._arms[:2] += way if distance <= SPEED else way * (SPEED / distance)
        if self._unreachable:
            self._arms[:2] = np.minimum(self._arms[:2], 0.35)
        if self._cluttered and np.hypot(*(self._arms[:2] - self._post)) < POST_RADIUS:
            self._hits += 1
        return self._succeeded()

    def ended(self) -> bool:
        return self._episode.task == "end_in_step" and self._steps >= FAULT_STEP

    def expert_chunk(self, length: int) -> np.ndarray:
        chunk = np.tile(self._arms.astype(np.float32), (length, 1))
        chunk[:, :2] = self._goal
        return chunk

    def score(self) -> Score:
        success = self._succeeded()
        names = ("post",) if self._hits else ()
        return Score(success, success and not self._hits, self._hits, names)

    def frame(self, camera: str) -> np.ndarray:
        return self._picture(camera, 48, 64)

    def sim_time(self) -> float:
        return self._steps / self.control_hz

    def state_hash(self) -> str:
        state = np.concatenate([self._arms, self._goal, [self._steps, self._hits]])
        return hashlib.sha256(state.tobytes()).hexdigest()

    def versions(self) -> Mapping[str, str]:
        return {"simulator": "pointsim 1", "renderer": "numpy" if self.cameras else "none"}

    def close(self) -> None:
        self._steps = 0

    def _succeeded(self) -> bool:
        return bool(np.hypot(*(self._arms[:2] - self._goal)) < REACHED)

    def _picture(self, camera: str, height: int, width: int) -> np.ndarray:
        require_camera(self, camera)
        picture = np.full((height, width, 3), 40 + 40 * CAMERAS.index(camera), np.uint8)
        for (x, y), colour in ((self._goal, (0, 160, 0)), (self._arms[:2], (200, 30, 30))):
            row, column = int(np.clip(y, 0, 0.99) * height), int(np.clip(x, 0, 0.99) * width)
            picture[max(0, row - 2) : row + 3, max(0, column - 2) : column + 3] = colour
        return picture

    def _misbehave(self) -> None:
        fault, _, when = self._episode.task.partition("_")
        if when == "once" and not self._first_time():
            return
        if when not in ("once", "in_step") or fault == "end":
            return
        if fault == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if fault == "hang":
            print("pointsim hangs", flush=True)
            while True:
                signal.pause()
        raise RuntimeError("pointsim was asked to raise in step")

    def _first_time(self) -> bool:
        if self._scratch is None:
            raise RollpoolError(
                f"task {self._episode.task}", "POINTSIM_SCRATCH is unset", "set it to a directory"
            )
        mark = self._scratch / f"{self._episode.scene}.{self._episode.task}.{self._episode.seed}"
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def make_with_helper() -> PointSim:
    """One with a forked helper process, which holds every descriptor open that it inherits."""
    if os.fork() == 0:
        signal.pause()
        os._exit(0)
    return make()


def make(render: bool = True, cameras: bool = True) -> PointSim:
    """The factory ``harness.simulators.load`` calls. ``cameras=False``: nothing can be rendered."""
    scratch, gate = os.environ.get("POINTSIM_SCRATCH"), os.environ.get("POINTSIM_GATE")
    return PointSim(
        cameras=cameras,
        render=render,
        step_s=float(os.environ.get("POINTSIM_STEP_S", "0")),
        scratch=Path(scratch) if scratch else None,
        gate=Gate(Path(gate)) if gate else None,
    )
