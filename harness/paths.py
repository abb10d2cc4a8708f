"""The one owner of every file name of an installation and of a run (see DESIGN.md, "On disk").

Nothing here creates a file; ``find_*`` and ``policy_dir`` look, everything else only names.
Names that come from a simulator (scenes, tasks, configurations) are percent-encoded where they hold
anything but letters, digits, ``_`` and ``-``, so that any of them is one path component.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from harness.errors import RollpoolError

#: The folder that holds the package: code, policies and banks that ship with the toolkit.
CODE = Path(__file__).resolve().parent.parent

#: Names of checkpoints that move on while a model is trained.
LATEST = ("latest", "last")

#: A file of metrics rows, as ``metrics_name`` calls it.
METRICS_NAME = re.compile(r"_metrics(\.\d+)?\.jsonl")

_RUN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]*")


def component(name: str) -> str:
    """``name`` as one path component without dots: ``PushT-v0`` as it is, ``a/b.c`` encoded."""
    return quote(name, safe="").replace(".", "%2E").replace("~", "%7E")


def metrics_name(number: int) -> str:
    """``_metrics.jsonl``, and ``_metrics.<number>.jsonl`` where that and others were of no use."""
    return f"_metrics.{number}.jsonl" if number else "_metrics.jsonl"


def suggest(name: str, known: Sequence[str]) -> str:
    """What to write instead of an unknown name: the close ones, else all that there are."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    some = close or sorted(known)[:20]
    more = ", ..." if not close and len(known) > len(some) else ""
    return f"pick one of: {', '.join(some)}{more}" if some else "there is none to pick from yet"


class Root:
    """``EVAL_ROOT``: what an installation or a user's own folder holds; the runs may lie apart."""

    def __init__(self, path: Path, runs: Path | None = None) -> None:
        self.path = path
        self.envs = path / "envs"
        self.runs = runs or path / "runs"
        self.durations = self.runs / "durations.json"
        self.checkpoints = path / "checkpoints"
        self.ablation_checkpoints = path / "ablation_ckpts"
        self.policy = path / "policy"
        self.seeds = path / "seeds"
        self.profiles = CODE / "harness" / "profiles"

    def place(self, text: str) -> Path:
        """What a user's path means, absolute: a relative one is where the user stands if it is
        there, else in this root."""
        here = Path(text).expanduser()
        return here.absolute() if here.exists() or here.is_absolute() else self.path / here

    def run(self, name: str) -> RunPaths:
        """The names of run ``name``. Raises ``RollpoolError`` for a name that is no folder name."""
        return RunPaths(self.runs / checked(name))

    def report(self, model: str, config: str) -> Path:
        """Where a model's tables go; configurations other than ``clean`` are kept apart."""
        name = model if config == "clean" else f"{model}_{component(config)}"
        return self.runs / checked(name)

    def policies(self) -> list[str]:
        """The policies of this root and those that ship with the toolkit, by name."""
        found = {f.parent.name for folder in self._policy_folders() for f in _configs(folder)}
        return sorted(found)

    def policy_dir(self, name: str) -> Path:
        """``policy/<name>``, this root's before the shipped one. Raises ``RollpoolError``."""
        for folder in self._policy_folders():
            if name and (folder / name / "deploy_policy.yml").is_file():
                return folder / name
        raise RollpoolError(
            f"policy {name!r}", f"no {self.policy}/{name}/deploy_policy.yml",
            suggest(name, self.policies()),
        )  # fmt: skip

    def checkpoint_folders(self, policy: str) -> list[Path]:
        """Where a checkpoint name is looked up, in this order."""
        own = [folder / policy / "checkpoints" for folder in self._policy_folders()]
        return [self.checkpoints, self.ablation_checkpoints, *own]

    def find_checkpoint(self, name: str, policy: str) -> Path:
        """The file or directory called ``name`` or ``name.safetensors``, else ``RollpoolError``."""
        folders = self.checkpoint_folders(policy)
        for folder in folders:
            for candidate in (folder / name, folder / f"{name}.safetensors"):
                if candidate.exists():
                    return candidate
        there = sorted({f.name for d in folders if d.is_dir() for f in d.iterdir()})
        looked = ", ".join(dict.fromkeys(str(folder) for folder in folders))
        raise RollpoolError(f"checkpoint {name!r}", f"not in {looked}", suggest(name, there))

    def resolve_latest(self, name: str, policy: str) -> str:
        """A checkpoint's name with its part ``latest`` (or ``last``) as what that stands for now:
        the target of a link, or what a file of that name names. Other names stay as they are."""
        parts = Path(name).parts
        for number, part in enumerate(parts):
            if Path(part).stem not in LATEST:
                continue
            for folder in self.checkpoint_folders(policy):
                above = Path(*parts[:number])
                for candidate in (part, f"{part}.safetensors"):
                    if target := _stands_for(folder / above / candidate):
                        return str(Path(above, target, *parts[number + 1 :]))
        return name

    def _policy_folders(self) -> list[Path]:
        return list(dict.fromkeys((self.policy, CODE / "policy")))


class RunPaths:
    """Every name in ``runs/<RUN>/``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = root.name
        self.run_json = root / "run.json"
        self.token = root / "token"
        self.queue = root / "queue.txt"
        self.leases = root / "queue.txt.leases"
        self.manifests = root / "manifests"
        self.preparing = root / "preparing"
        self.decisions = root / "decisions"
        self.workers = root / "workers"
        self.nodes = root / "nodes"
        self.servers = root / "servers"
        self.logs = root / "logs"
        self.results = root / "eval_result"

    @staticmethod
    def cell(scene: str, task: str, task_config: str) -> str:
        """``<scene>.<task>.<task_config>``; dots inside the three are encoded, so it splits."""
        return ".".join(component(part) for part in (scene, task, task_config))

    def manifest_dir(self, cell: str) -> Path:
        return self.manifests / cell

    def manifest(self, cell: str, seq: int, digest: str) -> Path:
        return self.manifest_dir(cell) / f"{seq:03d}.{digest}.jsonl"

    def selection(self, cell: str, seq: int, digest: str, first: int) -> Path:
        return self.manifest_dir(cell) / f"{seq:03d}.{digest}.first{first}"

    def step_limit(self, cell: str, seq: int, digest: str, limit: int) -> Path:
        return self.manifest_dir(cell) / f"{seq:03d}.{digest}.limit{limit}"

    def lease_dir(self, cell: str, manifest: str) -> Path:
        return self.leases / f"{cell}.{manifest[:12]}"

    def heartbeat(self, worker: str) -> Path:
        return self.workers / f"{worker}.json"

    def log(self, worker: str, part: str = "") -> Path:
        """The worker's own log, or that of its part: ``model``, ``sim0``, ``sim1``, ..."""
        return self.logs / (f"{worker}.{part}.log" if part else f"{worker}.log")

    def log_names(self, worker: str, seat: int = 0) -> dict[str, str]:
        """Part of a worker -> its log relative to the run directory, as a row names them."""
        parts = {"worker": "", "model": "model", "simulator": f"sim{seat}"}
        return {part: self.relative(self.log(worker, name)) for part, name in parts.items()}

    def relative(self, path: Path | str) -> str:
        """``path`` as it stands in a row: relative to the run directory."""
        return str(Path(path).relative_to(self.root))

    def metrics_dir(self, task: str, policy: str, task_config: str, worker: str) -> Path:
        return self.results / component(task) / component(policy) / component(task_config) / worker

    def video(self, folder: Path, manifest: str, position: int, seed: int, attempt: int) -> Path:
        """The video of one attempt, in the ``metrics_dir`` that holds its row."""
        return folder / f"{manifest[:8]}_p{position}_seed{seed}_a{attempt}.mp4"


def _stands_for(place: Path) -> str | None:
    """What a moving name stands for: a name beside it, or an absolute path."""
    try:
        if place.is_symlink():
            target = Path(os.readlink(place))
            return target.name if target.parent == place.parent else str(target)
        if not place.is_file() or place.stat().st_size > 255:
            return None
        named = place.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):  # weights that are called so
        return None
    return named if named and place.with_name(named).exists() else None


def checked(name: str) -> str:
    """``name``, if it can be a folder under ``runs/``; raises ``RollpoolError`` otherwise."""
    if not _RUN_NAME.fullmatch(name):
        raise RollpoolError(
            f"run or model name {name!r}", "not a folder name",
            "use letters, digits and _ . + = -, beginning with a letter, a digit or _",
        )  # fmt: skip
    return name


def _configs(folder: Path) -> list[Path]:
    return list(folder.glob("*/deploy_policy.yml"))
