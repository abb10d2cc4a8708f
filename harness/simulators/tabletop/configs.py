"""The YAML files beside this module: task configurations and step limits.

A task configuration is ``task_config/<name>.yml`` with ``scene``, ``obstacle_density`` (how many
obstacles), ``instruction_type`` (``seen`` or ``unseen``) and ``camera`` (``width``, ``height``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from harness.errors import RollpoolError
from harness.simulators.tabletop import instructions

_HERE = Path(__file__).parent
_FOLDER = _HERE / "task_config"


@dataclass(frozen=True)
class TaskConfig:
    """How a task is set up, apart from its seed."""

    name: str
    scene: str
    obstacle_density: int
    instruction_type: str
    camera_size: tuple[int, int]  # width, height


def names(scene: str) -> tuple[str, ...]:
    """The configurations of a scene: the clean one first, then by density."""
    found = [load(path.stem) for path in _FOLDER.glob("*.yml")]
    mine = [config for config in found if config.scene == scene]
    return tuple(c.name for c in sorted(mine, key=lambda c: (c.obstacle_density, c.name)))


@functools.cache
def load(name: str) -> TaskConfig:
    """A configuration by name.

    Raises:
        RollpoolError: no such file, or not what a configuration must be.
    """
    path = _FOLDER / f"{name}.yml"
    if not path.is_file() or path.parent != _FOLDER:
        known = ", ".join(sorted(p.stem for p in _FOLDER.glob("*_clean.yml")))
        raise RollpoolError(f"task_config '{name}'", "no such file", f"e.g. one of: {known}")
    return _parse(name, yaml.safe_load(path.read_text("utf-8")))


def _parse(name: str, raw: Mapping[str, Any]) -> TaskConfig:
    asked = f"task_config '{name}'"
    expected = {"scene", "obstacle_density", "instruction_type", "camera"}
    if not isinstance(raw, dict) or set(raw) != expected:
        raise RollpoolError(asked, "other keys than expected", f"have exactly {sorted(expected)}")
    if raw["instruction_type"] not in instructions.KINDS:
        raise RollpoolError(
            asked,
            f"instruction_type {raw['instruction_type']!r}",
            f"use one of: {', '.join(instructions.KINDS)}",
        )
    size = (int(raw["camera"]["width"]), int(raw["camera"]["height"]))
    return TaskConfig(
        name, raw["scene"], int(raw["obstacle_density"]), raw["instruction_type"], size
    )


def step_limit(task: str) -> int:
    """Executed actions after which an episode of the task has failed.

    Raises:
        RollpoolError: ``step_limits.yml`` lacks the task.
    """
    limits = _step_limits()
    if task not in limits:
        raise RollpoolError(f"step limit of '{task}'", "not in step_limits.yml", "add a line there")
    return limits[task]


@functools.cache
def _step_limits() -> Mapping[str, int]:
    limits: Mapping[str, int] = yaml.safe_load((_HERE / "step_limits.yml").read_text("utf-8"))
    return limits
