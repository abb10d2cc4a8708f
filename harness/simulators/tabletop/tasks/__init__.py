"""The tasks: one module per scene, of the scene's name, each with a tuple ``TASKS`` of classes."""

from __future__ import annotations

import importlib
import pkgutil

from harness.errors import RollpoolError
from harness.simulators.tabletop.task import Task


def of_scene(scene: str) -> tuple[type[Task], ...]:
    """The task classes of a scene; none for a scene without tasks."""
    if scene not in {module.name for module in pkgutil.iter_modules(__path__)}:
        return ()
    tasks: tuple[type[Task], ...] = importlib.import_module(f"{__name__}.{scene}").TASKS
    return tasks


def find(scene: str, task: str) -> type[Task]:
    """A task class by scene and name.

    Raises:
        RollpoolError: the scene has no such task.
    """
    classes = {cls.name: cls for cls in of_scene(scene)}
    if task not in classes:
        raise RollpoolError(
            f"task '{task}' in scene '{scene}'",
            "no such task",
            f"pick one of: {', '.join(classes) or 'none, the scene has no tasks'}",
        )
    return classes[task]
