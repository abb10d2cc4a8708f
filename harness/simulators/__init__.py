"""Simulators by name: each is one object that keeps the contract of ``contract.py``."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from harness.errors import RollpoolError
from harness.simulators.contract import Simulator

#: Name -> where its factory is. Anything else is given as ``package.module:factory``.
BUILT_IN = {"tabletop": "harness.simulators.tabletop.adapter:Tabletop"}


def load(name: str, **options: Any) -> Simulator:
    """The simulator of this name, made with ``options`` (the adapter's own).

    Raises:
        RollpoolError: there is no such simulator, or it does not take these options.
    """
    module_name, colon, factory = BUILT_IN.get(name, name).partition(":")
    asked = f"simulator {name!r}"
    known = f"use one of {sorted(BUILT_IN)}, or package.module:factory"
    if not colon:
        raise RollpoolError(asked, "no such simulator", known)
    try:
        make = getattr(importlib.import_module(module_name), factory)
    except ModuleNotFoundError as error:
        raise RollpoolError(asked, f"cannot be imported here ({error})", known) from error
    except AttributeError as error:
        raise RollpoolError(asked, f"{module_name} has no {factory!r}", known) from error
    try:
        inspect.signature(make).bind(**options)
    except TypeError as error:
        raise RollpoolError(asked, f"its options: {error}", "check their names") from error
    simulator: Simulator = make(**options)
    return simulator
