"""The simulator process behind ``list``, ``queue`` and ``prepare``: it names and seals, and renders
nothing."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import RollpoolError

if TYPE_CHECKING:
    from harness.settings import Settings
    from harness.simulator_process import SimulatorProcess


@contextlib.contextmanager
def simulator(settings: Settings, log: Path) -> Iterator[SimulatorProcess]:
    """The run's simulator, without a renderer. Raises ``RollpoolError`` where it cannot start."""
    from harness.children import environment
    from harness.simulator_process import SimulatorProcess

    python = settings["ROBOTWIN_PY"]
    if not python.exists():
        raise RollpoolError(
            f"simulator '{settings['SIMULATOR']}'", f"no Python at ROBOTWIN_PY={python}",
            "run scripts/setup.sh, or set ROBOTWIN_PY to the Python the simulator is installed in",
        )  # fmt: skip
    env = {**environment(), **settings.exports()}
    with SimulatorProcess(python, settings["SIMULATOR"], log, env=env) as process:
        yield process


def describe(settings: Settings) -> Mapping[str, Any]:
    """``SimulatorProcess.describe`` of a process that lives for this question alone."""
    with (
        tempfile.TemporaryDirectory(prefix="rollpool-") as folder,
        simulator(settings, Path(folder) / "simulator.log") as process,
    ):
        return process.describe()
