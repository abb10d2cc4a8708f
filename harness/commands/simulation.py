"""The simulator process behind ``list``, ``queue`` and ``prepare``: it names and seals, and renders
nothing."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.foundations.settings import Settings
    from harness.workers.simulator_process import SimulatorProcess


@contextlib.contextmanager
def simulator(settings: Settings, log: Path) -> Iterator[SimulatorProcess]:
    """The run's simulator, without a renderer. Raises ``RollpoolError`` where it cannot start."""
    from harness.workers import chosen_simulator

    with chosen_simulator.start(settings, log, render=False) as process:
        yield process


def describe(settings: Settings) -> Mapping[str, Any]:
    """``SimulatorProcess.describe`` of a process that lives for this question alone."""
    with (
        tempfile.TemporaryDirectory(prefix="rollpool-") as folder,
        simulator(settings, Path(folder) / "simulator.log") as process,
    ):
        return process.describe()
