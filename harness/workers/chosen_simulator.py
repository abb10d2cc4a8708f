"""The simulator that the settings ask for, started: its Python, its configuration, its renderer.

Everything that starts a simulator for a user goes through here, so that ``list``, ``prepare``, the
doctor and the workers mean the same one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.errors import RollpoolError
from harness.foundations.settings import Settings
from harness.simulators import registry, rendering_options
from harness.workers.children import environment
from harness.workers.simulator_process import SimulatorProcess


def start(settings: Settings, log: Path, *, render: bool, **more: Any) -> SimulatorProcess:
    """A process of ``SIMULATOR`` with ``SIM_CONFIG``.

    Args:
        render: False for states alone, which need no graphics driver.
        more: passed on to ``SimulatorProcess``.

    Raises:
        RollpoolError: there is no Python for it.
    """
    name = settings["SIMULATOR"]
    setup = registry.environment(name)
    python = interpreter(settings["SIM_PY"], "SIM_PY", f"simulator {name!r}", setup)
    options = rendering_options(name, str(python)) if render else {"render": False}
    if settings["SIM_CONFIG"] is not None:
        options["config"] = settings["SIM_CONFIG"]
    env = {**environment(), **settings.exports()}
    return SimulatorProcess(python, name, log, options=options, env=env, **more)


def interpreter(python: Path, variable: str, what: str, setup: str) -> Path:
    """``python``, the value of ``variable``. Raises ``RollpoolError`` where there is none."""
    if not python.exists():
        raise RollpoolError(
            what, f"no Python at {variable}={python}",
            f"run scripts/setup.sh {setup}, or set {variable} to the Python it is installed in",
        )  # fmt: skip
    return python
