"""Language instructions: YAML templates, one chosen by a generator that the episode seeds."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import yaml

from harness.errors import RollpoolError

KINDS = ("seen", "unseen")


def instruction(
    scene: str, task: str, kind: str, words: Mapping[str, str], rng: np.random.Generator
) -> str:
    """One instruction for a task, its slots filled with ``words``.

    Raises:
        RollpoolError: the scene's file lacks the task, or its templates of this ``kind``.
    """
    templates = _templates(scene).get(task, {}).get(kind, [])
    if not templates:
        raise RollpoolError(
            f"'{kind}' instructions of task '{task}'",
            f"none in instructions/{scene}.yml",
            f"add a list '{kind}' there",
        )
    return str(templates[int(rng.integers(len(templates)))]).format(**words)


@functools.cache
def _templates(scene: str) -> Mapping[str, Mapping[str, list[str]]]:
    path = Path(__file__).parent / f"{scene}.yml"
    if not path.exists():
        raise RollpoolError(f"instructions of scene '{scene}'", f"no file {path.name}", "write it")
    templates: Mapping[str, Mapping[str, list[str]]] = yaml.safe_load(path.read_text("utf-8"))
    return templates
