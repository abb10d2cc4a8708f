"""The scenes: one module each, found by name, each with a ``SCENE``.

To add one, write ``scenes/<name>.py`` with ``SCENE = Scene(...)`` (``study.py`` is the example),
``tasks/<name>.py``, ``instructions/<name>.yml``, and a look of that name in ``looks.py``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import RollpoolError
from harness.simulators.tabletop.bodies import Body, Placed


@dataclass(frozen=True)
class Scene:
    """A furnished place of work.

    ``furniture`` holds ``fixed`` bodies, placed relative to the middle of the table top, which is
    at the origin and ``table_height`` above the floor; hitting any of it is a collision.
    ``work_area`` (x from, x to, y from, y to) is where obstacles may stand, and ``obstacles`` make
    one each, given its name: loose things 14 to 19 cm tall, so that a hand or what it carries
    runs into them at the height it works at, and not the forearm above it.
    """

    name: str
    table_height: float
    furniture: tuple[Placed, ...]
    work_area: tuple[float, float, float, float]
    obstacles: tuple[Callable[[str], Body], ...]


def names() -> tuple[str, ...]:
    """All scenes, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def load(name: str) -> Scene:
    """A scene by name.

    Raises:
        RollpoolError: no such scene.
    """
    if name not in names():
        raise RollpoolError(
            f"scene '{name}'", "no such scene", f"pick one of: {', '.join(names())}"
        )
    scene: Scene = importlib.import_module(f"{__name__}.{name}").SCENE
    return scene
