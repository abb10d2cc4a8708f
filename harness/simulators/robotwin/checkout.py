"""A user's checkout: where its files are, what it offers, how its code is imported.

Promises: nothing of it is written to or copied; listing tasks imports none of them; one process
serves one checkout, since its package names (``envs``) are not its own. The working directory is
the checkout's only while its code runs (``inside``).
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.errors import RollpoolError
from harness.simulators.robotwin.default_arguments import watch_defaults
from harness.simulators.robotwin.profiles import CLASSIC_SCENE, PROFILES, Profile

#: Where the step-limit file does not name a task; upstream's own default.
DEFAULT_STEP_LIMIT = 1000
_KEYS = (
    *("root", "bench_root", "profile", "native", "instruction_type", "control_hz"),
    *("fingerprint_scene", "fingerprint_assets"),
)
_GET_IT = "clone RoboTwin (classic, up to c3ddfa8) or RoboPRO, and name its folder"


class Checkout:
    """``config``: the content of ``SIM_CONFIG`` (``docs/robotwin.md``); ``ROBOTWIN_ROOT``,
    ``BENCH_ROOT`` and ``ROBOTWIN_BENCH_TASK`` of the environment stand in for what it leaves out.

    Raises:
        RollpoolError: an unknown key, or folders that are no checkout of that profile.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        if unknown := sorted(set(config) - set(_KEYS)):
            raise RollpoolError(
                f"SIM_CONFIG of robotwin: {', '.join(unknown)}", "no such key",
                f"use of {', '.join(_KEYS)}",
            )  # fmt: skip
        self.root = _folder("root", config.get("root") or os.environ.get("ROBOTWIN_ROOT"), "envs")
        self.profile = _profile(config)
        self.bench: Path | None = None
        if self.profile.scenes:
            given = config.get("bench_root") or os.environ.get("BENCH_ROOT")
            self.bench = _folder("bench_root", given, "bench_envs")
        self.configs = self.bench / "bench_task_config" if self.bench else self.root / "task_config"

    @property
    def asset_folders(self) -> list[Path]:
        return [base / "assets" for base in (self.root, self.bench) if base]

    @property
    def code_folders(self) -> list[Path]:
        return [self.root / "envs", *([self.bench / "bench_envs"] if self.bench else [])]

    def cells(self) -> list[tuple[str, str]]:
        """``(scene, task)`` of every file that defines a class of its own name."""
        if self.bench is None:
            return [(CLASSIC_SCENE, task) for task in _tasks(self.root / "envs")]
        folders = {scene: self.bench / "bench_envs" / scene for scene in self.profile.scenes}
        return [(scene, task) for scene, folder in folders.items() for task in _tasks(folder)]

    def task_configs(self, scene: str) -> list[str]:
        """The configurations that are the scene's, or no scene's in particular."""
        others = {other for other in self.profile.scenes if other != scene}
        prefix = self.profile.config_prefix
        names = sorted(file.stem for file in self.configs.glob(f"{prefix}*.yml"))
        return [n for n in names if not n.startswith("_") and not others & set(n.split("_"))]

    def step_limit(self, task: str) -> int:
        name = "_bench_eval_step_limit.yml" if self.bench else "_eval_step_limit.yml"
        return int((read_yaml(self.configs / name) or {}).get(task, DEFAULT_STEP_LIMIT))

    def task_class(self, scene: str, task: str) -> type:
        """The task's class; one object of it is one episode."""
        module = self.module(f"bench_envs.{scene}.{task}" if self.bench else f"envs.{task}")
        found: type = getattr(module, task)
        return found

    def module(self, name: str) -> Any:
        """A module of the checkout, by name. Call it ``inside``."""
        self._enter()
        return importlib.import_module(name)

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Upstream's paths are relative to its root."""
        before = os.getcwd()
        os.chdir(self.root)
        try:
            yield
        finally:
            os.chdir(before)

    def _enter(self) -> None:
        folders = [self.root, self.root / "description" / "utils", *filter(None, [self.bench])]
        loaded = getattr(sys.modules.get("envs"), "__file__", None)
        if loaded and Path(loaded).resolve().parent.parent != self.root:
            raise RollpoolError(
                f"the checkout {self.root}", f"this process has imported 'envs' from {loaded}",
                "use one checkout a process",
            )  # fmt: skip
        os.environ["ROBOTWIN_ROOT"] = str(self.root)
        if self.bench:
            os.environ |= {"BENCH_ROOT": str(self.bench), "ROBOTWIN_BENCH_TASK": "bench"}
        sys.path[:0] = [str(folder) for folder in folders if str(folder) not in sys.path]
        watch_defaults(folders)


def read_yaml(file: Path) -> Any:
    """Its content. Raises ``RollpoolError`` naming the file that is missing or is no YAML."""
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RollpoolError(
            f"the checkout's {file}", error.strerror or str(error),
            "complete the checkout: its code from git, its assets by its own download script",
        ) from error  # fmt: skip
    except yaml.YAMLError as error:
        found = " ".join(str(error).split())
        raise RollpoolError(f"the checkout's {file}", found, "restore it from git") from error


def _profile(config: Mapping[str, Any]) -> Profile:
    bench = bool(config.get("bench_root")) or os.environ.get("ROBOTWIN_BENCH_TASK") == "bench"
    name = config.get("profile") or ("robopro" if bench else "classic")
    if name not in PROFILES:
        known = " or ".join(sorted(PROFILES))
        raise RollpoolError(f"profile {name!r} of robotwin", "no such profile", f"use {known}")
    return PROFILES[name]


def _folder(key: str, given: str | None, holds: str) -> Path:
    variable = {"root": "ROBOTWIN_ROOT", "bench_root": "BENCH_ROOT"}[key]
    todo = f"{_GET_IT} by {variable}, or by `{key}:` in SIM_CONFIG"
    if not given:
        raise RollpoolError("simulator 'robotwin'", f"no {key} is named", todo)
    if not Path(given).expanduser().is_absolute():  # it is sealed; a run is joined from anywhere
        raise RollpoolError(
            f"simulator 'robotwin', {key} {given}", "no whole path", "write it from / on"
        )
    folder = Path(given).expanduser().resolve()
    if not (folder / holds).is_dir():
        raise RollpoolError(f"simulator 'robotwin', {key} {folder}", f"no {holds}/ in it", todo)
    return folder


def _tasks(folder: Path) -> list[str]:
    files = sorted(file for file in folder.glob("*.py") if not file.name.startswith("_"))
    return [
        file.stem
        for file in files
        if re.search(rf"^class {file.stem}\b", file.read_text(encoding="utf-8"), re.MULTILINE)
    ]
