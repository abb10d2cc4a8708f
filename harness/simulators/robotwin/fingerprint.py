"""Digests of what an episode was sealed with: the checkout's code and assets, the version of
SAPIEN, the configuration, and the scene after the set-up."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.simulators.robotwin.arguments import task_arguments
from harness.simulators.robotwin.checkout import Checkout
from harness.simulators.robotwin.observing import state_digest

DIGITS = 16
#: Cloned into the checkout by its installer: not its own code, and large.
_NOT_OURS = {"curobo", "__pycache__"}


class Fingerprints:
    """Those of one checkout's episodes; ``config``: the content of ``SIM_CONFIG``.

    ``fixed``: the parts ``code assets sapien``, which are the same for all.
    """

    def __init__(self, checkout: Checkout, config: Mapping[str, Any]) -> None:
        self._checkout = checkout
        self._of_scenes = bool(config.get("fingerprint_scene", True))
        self.fixed = {"code": _code(checkout.code_folders)}
        if config.get("fingerprint_assets", True):
            self.fixed["assets"] = _assets(checkout.asset_folders)
        self.fixed["sapien"] = _sapien()

    def of(self, env: Any, task: str, task_config: str) -> dict[str, str]:
        """All parts, of an environment that was just set up."""
        made = task_arguments(self._checkout, task, task_config)
        found = {**self.fixed, "settings": _settings(made)}
        if self._of_scenes:
            found["scene"] = state_digest(env)[:DIGITS]
        return found


def _code(folders: Iterable[Path]) -> str:
    """Of the names and contents of all Python files."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in _files(folder, ".py"):
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:DIGITS]


def _assets(folders: Iterable[Path]) -> str:
    """Of the names and sizes of all files: their contents are gigabytes."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in _files(folder):
            digest.update(f"{file.relative_to(folder)}:{file.stat().st_size}\n".encode())
    return digest.hexdigest()[:DIGITS]


def _settings(arguments: Any) -> str:
    """Of the arguments of ``setup_demo``: configuration, camera and embodiment."""
    text = json.dumps(arguments, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _sapien() -> str:
    """Its version; physics and pictures depend on it."""
    try:
        return metadata.version("sapien")
    except metadata.PackageNotFoundError:
        return "not installed"


def _files(folder: Path, ending: str = "") -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if name not in _NOT_OURS)
        yield from (Path(parent, name) for name in sorted(names) if name.endswith(ending))
