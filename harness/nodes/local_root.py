"""A job's own ``EVAL_ROOT`` on the node's disk: code of its own, links to the copies it uses.

``<store>/roots/<user>/`` looks like an installation, so everything that runs from it knows nothing
of staging. Its code is copied from the shared filesystem for every job, which takes a fraction of
a second, so that edits arrive and a job that runs keeps what it began with. Runs, seeds and
checkpoints that are not staged stay where they are, behind links. ``uses`` names the copies, so
that they are not pruned.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.foundations.settings import Settings
from harness.foundations.trees import copy_tree, read_tree
from harness.nodes.node_store import WEIGHTS, Store
from harness.nodes.relocate import environment_of
from harness.nodes.staging import Staged
from harness.paths import CODE

#: What is code: small, and all of it that a job runs.
CODE_PARTS = (
    "harness",
    "scripts",
    "orchestrators",
    "requirements",
    "env.sh",
    "organize_results.py",
)
#: Kind of an item -> the folder of the root that links to it.
_FOLDERS = {"env": "envs", "code": "code", "assets": "assets", WEIGHTS: "checkpoints",
            "backbone": "hf/hub"}  # fmt: skip
_SHARED = ("seeds", "ablation_ckpts", "profiles")


def make_root(store: Store, user: str, settings: Settings) -> Path:
    """A root for an admitted user, with code and no copies yet. Raises ``RollpoolError``."""
    root, shared = store.roots / user, settings.root
    root.mkdir()
    (root / "uses").touch()
    for part in CODE_PARTS:
        source = CODE / part
        if source.exists():
            copy_tree(read_tree(source), root / part, {})
    _add_policies(root, shared.policy)
    links = {name: shared.path / name for name in _SHARED}
    for name, place in {**links, "runs": shared.runs}.items():
        if place.exists():
            (root / name).symlink_to(place.resolve())
    (root / "checkpoints").mkdir()
    for checkpoint in shared.checkpoints.iterdir() if shared.checkpoints.is_dir() else ():
        (root / "checkpoints" / checkpoint.name).symlink_to(_target(checkpoint))
    return root


def _target(checkpoint: Path) -> Path:
    """A name for another checkpoint beside it, such as ``latest``, stays one."""
    target = Path(os.readlink(checkpoint)) if checkpoint.is_symlink() else None
    return target if target and target.name == str(target) else checkpoint.resolve()


def link(store: Store, user: str, settings: Settings, staged: Sequence[Staged]) -> dict[str, str]:
    """Put the copies into the root of ``user``; returns what its processes need to be told."""
    root = store.roots / user
    with (root / "uses").open("a") as uses:
        uses.writelines(f"{copy.path.relative_to(store.path)}\n" for copy in staged)
    for copy in staged:
        if copy.item.kind in _FOLDERS:
            place = root / _FOLDERS[copy.item.kind] / copy.item.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            place.symlink_to(copy.path)
    return _exports(root, settings, staged)


def _exports(root: Path, settings: Settings, staged: Sequence[Staged]) -> dict[str, str]:
    exports = {"EVAL_ROOT": str(root), "ROLLPOOL_ENVS": str(root / "envs")}
    # What a node needs is here or in the shared cache; hundreds of nodes do not ask the hub for it.
    exports["HF_HUB_OFFLINE"] = os.environ.get("HF_HUB_OFFLINE", "1")
    kinds = {copy.item.kind for copy in staged}
    if settings["BUNDLE"] == settings.root.path:
        exports["BUNDLE"] = str(root)
    for variable in ("SIM_PY", "MODEL_PY", "ROBOTWIN_PY", "XVLA_PY"):
        for copy in staged:
            if copy.item.kind == "env" and copy.item.source == environment_of(settings[variable]):
                exports[variable] = str(root / "envs" / copy.item.name / "bin" / "python")
    if "backbone" in kinds:
        exports["HF_HOME"] = str(root / "hf")
    for copy in staged:
        if copy.item.kind == "model_code":
            exports.update(GIANT_CODE_DIR=str(copy.path), DA3_XVLA_ROOT=str(copy.path))
    return exports


def _add_policies(root: Path, policies: Path) -> None:
    """The policies of a user's own root beat those that ship with the code. Checkpoints stay where
    they are, behind a link, until they are staged."""
    for folder in dict.fromkeys((CODE / "policy", policies)):
        for policy in folder.iterdir() if folder.is_dir() else ():
            here = root / "policy" / policy.name
            if policy.is_dir():
                shutil.rmtree(here, ignore_errors=True)
                copy_tree(read_tree(policy, leave_out=("checkpoints",)), here, {})
            if (policy / "checkpoints").is_dir():
                (here / "checkpoints").symlink_to((policy / "checkpoints").resolve())
