"""Simulators behind one contract, found by name."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

from harness.episodes.rendering import probe
from harness.errors import RollpoolError
from harness.simulators.contract import Simulator
from harness.simulators.registry import BUILT_IN

__all__ = ["BUILT_IN", "load", "rendering_options"]


def load(name: str, **options: Any) -> Simulator:
    """A simulator by name, or a user's own by ``package.module:factory``.

    Args:
        name: one of ``BUILT_IN``, or the place of a callable that returns a ``Simulator``.
        options: handed to the factory: ``render``, ``config``, whatever else it takes.

    Raises:
        RollpoolError: no such simulator, its module or factory cannot be found, or it takes no
            ``config`` and one was given.
    """
    place = BUILT_IN[name].place if name in BUILT_IN else name
    module_name, colon, factory_name = place.partition(":")
    asked = f"simulator '{name}'"
    if not colon:
        known = ", ".join(sorted(BUILT_IN))
        raise RollpoolError(asked, "no such simulator", f"use {known} or package.module:factory")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise RollpoolError(
            asked, f"no module '{error.name}'", "run it with its own environment's Python"
        ) from error
    if not hasattr(module, factory_name):
        raise RollpoolError(asked, f"'{module_name}' has no '{factory_name}'", "correct the name")
    factory: Callable[..., Simulator] = getattr(module, factory_name)
    if "config" in options and not _takes_config(factory):
        raise RollpoolError(f"SIM_CONFIG for {asked}", "it takes no configuration", "unset it")
    return factory(**options)


def rendering_options(name: str, python: str = sys.executable) -> dict[str, Any]:
    """The options of ``load`` with which this simulator renders as this machine can: those on
    SAPIEN have to be told the device, another finds its own."""
    if name not in ("tabletop", "maniskill"):
        return {"render": True}
    backend = probe(python)
    return {"render": True, "backend": backend.device if backend else None}


def _takes_config(factory: Callable[..., Simulator]) -> bool:
    parameters = inspect.signature(factory).parameters
    return "config" in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )
