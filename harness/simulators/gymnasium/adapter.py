"""Any registered Gymnasium environment behind the contract, described by a file alone.

The file (``SIM_CONFIG``; docs/gymnasium.md has every key) names a scene and its tasks: each one
environment, what its success is, where proprio and pictures are found, and the instruction. An
episode is ``env.reset(seed=seed)`` of an environment made for it, with the global random number
generators seeded as well, since environments use them. An environment that terminates or truncates
without success has ended, which is a ``fail``. Tasks of one file that act differently are refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import random
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.simulators.contract import (
    Episode,
    Observation,
    Score,
    Simulator,
    require_camera,
    require_cell,
    taken,
)
from harness.simulators.gymnasium import fingerprint
from harness.simulators.gymnasium.actions import action_space, own_action
from harness.simulators.gymnasium.description import File, Task, at, leaves, read

CONFIG = "default"


class Gymnasium(Simulator):
    """The adapter of one file.

    Args:
        config: the file's content.
        render: False makes environments without a render mode and offers no camera.

    Raises:
        RollpoolError: the file is wrong, or a package it names is not installed.
    """

    name = "gymnasium"

    def __init__(self, config: Mapping[str, Any] | None = None, render: bool = True) -> None:
        self._file: File = read(config or {})
        for variable, value in self._file.environment.items():
            os.environ.setdefault(variable, value)
        self._gym, self._render = _import("gymnasium"), render
        for task in self._file.tasks.values():
            for module in task.modules:
                _import(module)
        self._env: Any = None
        name, first = next(iter(self._file.tasks.items()))
        with contextlib.closing(self._make(first)) as env:
            self.action_kinds = {self._file.action_kind: action_space(env.action_space, name)}
            self.control_hz = self._file.control_hz or _own_rate(env, name)
        named = [tuple(task.cameras) for task in self._file.tasks.values()]
        self.cameras: Sequence[str] = [c for c in named[0] if all(c in n for n in named) and render]

    def cells(self) -> Sequence[tuple[str, str]]:
        return [(self._file.scene, task) for task in self._file.tasks]

    def task_configs(self, scene: str) -> Sequence[str]:
        return [CONFIG]

    def step_limit(self, task: str, task_config: str) -> int:
        limit = self._file.tasks[task].step_limit
        limit = limit or self._gym.spec(self._file.tasks[task].id).max_episode_steps
        if limit is None:
            raise RollpoolError(
                f"the step limit of task {task!r}", "its environment is registered without one",
                "add step_limit to the task",
            )  # fmt: skip
        return int(limit)

    def seal(self, scene: str, task: str, task_config: str, seed: int) -> Mapping[str, Any]:
        require_cell(self, scene, task, task_config)
        self._begin(task, seed)
        sealed = {
            "instruction": self._sentence(),
            "reset": {"seed": seed},
            "fingerprint": self._fingerprint,
        }
        self.close()
        return sealed

    def fingerprint(self) -> Mapping[str, str]:
        return self._fingerprint

    def reset(self, episode: Episode) -> None:
        self._begin(episode.task, int(episode.reset["seed"]))
        self._instruction = episode.instruction

    def _begin(self, name: str, seed: int) -> None:
        """The environment of a seed, made and reset."""
        self.close()
        self._task = self._file.tasks[name]
        random.seed(seed)
        np.random.seed(seed % 2**32)
        self._env = self._make(self._task)
        space = action_space(self._env.action_space, name)
        if space != self.action_kinds[self._file.action_kind]:
            raise RollpoolError(
                f"task {name!r}", "it acts otherwise than the first task of its file",
                "describe it in a file of its own",
            )  # fmt: skip
        self._steps, self._gained, self._success, self._over = 0, 0.0, False, False
        self._seen, _ = self._env.reset(seed=seed, options=self._task.reset_options or None)
        scene = fingerprint.of_scene(self._state())
        self._fingerprint = fingerprint.of_task(self._task) | {"scene": scene}

    def _sentence(self) -> str:
        """The instruction that the file gives, or the environment in its first observation."""
        if not self._task.told:
            return self._task.instruction
        return str(np.asarray(at(self._seen, self._task.told, "the observation")))

    def observe(self, cameras: Collection[str]) -> Observation:
        state = {name: array for name, array in leaves(self._seen) if _is_state(array)}
        proprio = (
            at(self._seen, self._task.proprio, "the observation") if self._task.proprio else None
        )
        parts = state.values() if proprio is None else [np.asarray(proprio)]
        flat = [np.ravel(part).astype(np.float32) for part in parts]
        return Observation(
            images={name: self.frame(name) for name in cameras},
            proprio=np.concatenate(flat) if flat else np.zeros(0, np.float32),
            instruction=self._instruction,
            state={name: np.array(array, np.float32) for name, array in state.items()},
        )

    def step(self, action: np.ndarray, kind: str) -> bool:
        action = taken(self, action, kind)
        if self._over or self._success:
            return self._success
        own = own_action(self._env.action_space, action)
        self._seen, reward, terminated, truncated, info = self._env.step(own)
        self._steps += 1
        self._gained += float(reward)
        found = {"info": info, "terminated": terminated, "reward": reward, "return": self._gained}
        self._success = self._task.success.holds(found)
        self._over = bool(terminated or truncated)
        return self._success

    def ended(self) -> bool:
        return self._over and not self._success

    def score(self) -> Score:
        return Score(self._success, None, None)

    def frame(self, camera: str) -> np.ndarray:
        require_camera(self, camera)
        where = self._task.cameras[camera]
        picture = (
            self._env.render() if where == "render" else at(self._seen, where, "the observation")
        )
        if not _is_picture(picture):
            raise RollpoolError(
                f"camera {camera!r}", f"{where} is no picture: {np.shape(picture)}",
                "name an array of (height, width, 3) bytes, or give the environment a render mode"
                " that returns one",
            )  # fmt: skip
        return np.array(picture)

    def sim_time(self) -> float:
        return self._steps / self.control_hz

    def state_hash(self) -> str:
        """Of the attributes that the file calls its state; else of what is observed, without
        pictures. Rewards are left out: they may be sums over a set, whose order is by chance."""
        digest = hashlib.sha256(repr((self._steps, self._over)).encode())
        for part in self._state():
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def _state(self) -> list[np.ndarray]:
        paths, env = self._task.state, self._env.unwrapped
        if paths:
            return [np.asarray(at(env, path, "the environment"), np.float64) for path in paths]
        return [array for _, array in leaves(self._seen) if _is_state(array)]

    def versions(self) -> Mapping[str, str]:
        tasks = self._file.tasks.values()
        names = {name: None for task in tasks for name in fingerprint.packages(task)}
        return {
            "simulator": " ".join(f"{name} {version(name)}" for name in names),
            "renderer": os.environ.get("MUJOCO_GL", "its own") if self.cameras else "none",
        }

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
        self._env = None

    def _make(self, task: Task) -> Any:
        """A new environment without a step limit of its own: the loop counts."""
        options = {"render_mode": "rgb_array" if self._render else None, **task.kwargs}
        try:
            return self._gym.make(
                task.id, max_episode_steps=-1, disable_env_checker=True, **options
            )
        except self._gym.error.UnregisteredEnv as error:
            raise RollpoolError(
                f"environment {task.id}",
                str(error),
                "name the package that registers it in modules",
            ) from error


def _import(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise RollpoolError(
            f"simulator gymnasium: import {module}", f"no module {error.name!r}",
            "run bash scripts/setup.sh gymnasium; what is not in that, install into the Python of"
            " the simulator (SIM_PY)",
        ) from error  # fmt: skip


def _own_rate(env: Any, task: str) -> float:
    rate = env.metadata.get("render_fps")
    if not rate:
        raise RollpoolError(
            f"the rate of task {task!r}", "its environment has no render_fps",
            "add control_hz to the file: actions a simulated second",
        )  # fmt: skip
    return float(rate)


def _is_picture(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == np.uint8 and array.shape[2:] == (3,)


def _is_state(array: np.ndarray) -> bool:
    """Numbers that are no picture. Texts are told by ``instruction``."""
    return array.dtype.kind in "biuf" and not _is_picture(array)
