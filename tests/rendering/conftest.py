"""What the tests of pictures share: the device that renders here, and a scene to look at."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.episodes import rendering

PROGRAM = Path(__file__).with_name("still_life.py")


@pytest.fixture(scope="session")
def device() -> str:
    """The device that renders; without one there are no pictures to test."""
    pytest.importorskip("sapien", reason="pictures are tested in the simulator's environment")
    findings = rendering.examine()
    if findings.backend is None:
        pytest.skip(f"nothing renders on this machine: {dict(findings.refused)}")
    return findings.backend.device


@pytest.fixture
def still_life(device: str) -> Callable[[str], Any]:
    """Builds the scene of ``still_life.py`` in the look of the given name."""
    spec = importlib.util.spec_from_file_location("still_life", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda look: module.StillLife(device, look)


@pytest.fixture(scope="session")
def still_life_program(device: str) -> Path:
    """The same scene as a program of its own."""
    assert device
    return PROGRAM
