"""``rollpool list``: what there is to evaluate, and with what. One name a line, for scripts too."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.commands.launch import add_flags, read_settings
from harness.commands.simulation import describe
from harness.errors import EXIT_OK, RollpoolError

if TYPE_CHECKING:
    from harness.foundations.settings import Settings

WHAT = ("scenes", "tasks", "configs", "checkpoints", "policies", "profiles", "simulators")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=WHAT)
    add_flags(parser, "simulator", "policy", "profile")


def run(arguments: argparse.Namespace) -> int:
    """Print the names, sorted; ``tasks`` are lines `scene task`, as in a queue."""
    settings = read_settings(arguments)
    names = list(_names(arguments.what, settings))
    if not names:
        raise RollpoolError(f"list {arguments.what}", "there are none", "see policy/README.md")
    print("\n".join(names))
    return EXIT_OK


def _names(what: str, settings: Settings) -> Iterable[str]:
    root = settings.root
    if what == "policies":
        return root.policies()
    if what == "profiles":
        return sorted(file.stem for file in root.profiles.glob("*.yml"))
    if what == "simulators":
        from harness.simulators import BUILT_IN

        return sorted(BUILT_IN)
    if what == "checkpoints":
        return _checkpoints(settings)
    described = describe(settings)
    if what == "configs":
        return [name for _, names in sorted(described["task_configs"].items()) for name in names]
    cells = [(str(scene), str(task)) for scene, task in described["cells"]]
    if what == "scenes":
        return sorted({scene for scene, _ in cells})
    return [f"{scene} {task}" for scene, task in sorted(cells)]


def _checkpoints(settings: Settings) -> list[str]:
    folders = settings.root.checkpoint_folders(settings["POLICY_NAME"])
    found = [entry for folder in folders if folder.is_dir() for entry in folder.iterdir()]
    shown = [f for f in found if f.is_dir() or f.suffix == ".safetensors"]
    return sorted({f.name.removesuffix(".safetensors") for f in shown if f.name[0] != "."})
