"""One simulator for all tests of a scene, and each task of it for the tests of a ``SceneSuite``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.simulators.tabletop.adapter import Tabletop


@pytest.fixture(scope="module")
def sim() -> Tabletop:
    from harness.simulators.tabletop.adapter import Tabletop  # the module that asks has SAPIEN

    return Tabletop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    scene = getattr(metafunc.cls, "SCENE", None)
    if scene is not None and "task" in metafunc.fixturenames:
        from harness.simulators.tabletop import tasks  # whoever has a SCENE has the simulator

        metafunc.parametrize("task", [task.name for task in tasks.of_scene(scene)])
