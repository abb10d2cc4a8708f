"""What a node has to have before it evaluates: the items of the two staging scripts."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.errors import RollpoolError
from harness.foundations.settings import Settings
from harness.foundations.trees import read_tree
from harness.foundations.yaml_files import policy_config
from harness.nodes.node_store import WEIGHTS
from harness.nodes.relocate import environment_of, relocate, swap_sapien
from harness.nodes.staging import Item
from harness.simulators import registry


def names(text: str | None) -> list[str]:
    """The names in a variable such as ``GIANT_KEEP``: separated by commas or spaces."""
    return [name for name in re.split(r"[,\s]+", text or "") if name]


def base_items(settings: Settings) -> list[Item]:
    """Environments, model code, and the folders of ``code/`` and ``assets/``.

    A Python that is no environment (a system's own) is not here: it is used where it is.

    Raises:
        RollpoolError: SAPIEN 3.0.0b1 is asked for and there is none to put in.
    """
    policy = policy_config(settings.root, settings["POLICY_NAME"])
    simulator = registry.environment(settings["SIMULATOR"])
    pythons = {
        "toolkit": Path(sys.executable),
        simulator: settings["SIM_PY"],
        policy.get("env") or "model": settings["MODEL_PY"],
    }
    envs = settings["ROLLPOOL_ENVS"] or settings.root.envs
    items, seen = [], set()
    for name, python in pythons.items():
        source = environment_of(python)
        if source is not None and source not in seen:
            seen.add(source)
            b1 = name == simulator and bool(settings["DXVLA_SAPIEN_B1"])
            items.append(_environment(name, source, envs / "sapien_b1" if b1 else None))
    if settings["GIANT_CODE_DIR"]:
        source = settings["GIANT_CODE_DIR"]
        items.append(Item("model_code", source.name, source, leave_out=(".git",)))
    for kind in ("code", "assets"):
        folder = settings.root.path / kind
        for part in sorted(folder.iterdir()) if folder.is_dir() else ():
            items.append(Item(kind, part.name, part, leave_out=(".git",)))
    return items


def giant_items(settings: Settings, checkpoints: Sequence[str]) -> list[Item]:
    """The weights of these checkpoints, and the backbones they need. Raises ``RollpoolError``."""
    root, policy = settings.root, settings["POLICY_NAME"]
    found = [root.find_checkpoint(name, policy) for name in checkpoints]
    items = [Item(WEIGHTS, place.name, place) for place in found]
    for name in names(settings["GIANT_BACKBONES"]):
        folder = f"models--{name.replace('/', '--')}"
        source = _hub(settings) / folder
        if not source.is_dir():
            raise RollpoolError(
                f"backbone {name}", f"no {source}", "download it into HF_HOME once, on a login node"
            )
        items.append(Item("backbone", folder, source))
    return items


def _hub(settings: Settings) -> Path:
    home: Path = settings["HF_HOME"] or Path.home() / ".cache" / "huggingface"
    return home / "hub"


def _environment(name: str, source: Path, sapien: Path | None) -> Item:
    """An environment, with SAPIEN from the folder ``sapien`` in place of its own where given."""
    variant = ""
    if sapien is not None:
        if not sapien.is_dir():
            raise RollpoolError(
                "DXVLA_SAPIEN_B1=1", f"no {sapien}", "run: bash scripts/setup.sh sapien_b1"
            )
        variant = read_tree(sapien).signature()

    def finish(copy: Path, place: Path) -> None:
        if sapien is not None:
            swap_sapien(copy, sapien)
        relocate(copy, source, place)

    return Item("env", name, source, keep_links=True, variant=variant, finish=finish)
