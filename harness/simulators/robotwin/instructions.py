"""The sentence of an episode, chosen by what the episode is and sealed with it.

Upstream draws it anew in every process, from a generator that nobody seeded: the same seed, another
instruction. Here the choice is a function of task, configuration and seed, and of the checkout's
description files.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import RollpoolError
from harness.simulators.contract import Episode
from harness.simulators.robotwin.arguments import task_arguments
from harness.simulators.robotwin.checkout import Checkout
from harness.simulators.robotwin.hermetic import borrowed, derived

#: Descriptions that upstream has made for a choice among them.
_DESCRIPTIONS = 100
_PLAIN = "bench_description/plain_instructions.json"


def sentence(checkout: Checkout, kind: str, env: Any, episode: Episode) -> str:
    """Of RoboPRO's files where they know the task; else from templates of ``kind`` (``seen`` or
    ``unseen``), for which the expert plays the episode in ``env``: they name what it used.

    Call it inside the checkout. Raises ``RollpoolError`` where there is none.
    """
    number = derived("instruction", episode.task, episode.task_config, episode.seed)
    if checkout.bench is not None:
        found = _from_files(checkout, checkout.bench, episode, number)
        if found is not None:
            return found
    told = env.play_once() or env.info
    return _generated(checkout, kind, episode.task, number, told.get("info", {}))


def _generated(
    checkout: Checkout, kind: str, task: str, number: int, info: Mapping[str, str]
) -> str:
    """From the task's templates and what the expert's play told (``info``)."""
    descriptions = checkout.module("generate_episode_instructions")
    with borrowed(number):
        made = descriptions.generate_episode_descriptions(task, [dict(info)], _DESCRIPTIONS)
    pool = made[0].get(kind, []) if made else []
    return _chosen(number, pool, f"an instruction of {task}", f"no {kind} template fits {info}")


def _from_files(checkout: Checkout, bench: Path, episode: Episode, number: int) -> str | None:
    """From the configuration's language bank where it has one, else the plain sentences; None
    where neither knows the task."""
    task, task_config = episode.task, episode.task_config
    asked = f"an instruction of {task} in {task_config}"
    made = task_arguments(checkout, task, task_config)
    perturbed = made["domain_randomization"].get("language_perturbation") or {}
    if perturbed.get("enabled") and perturbed.get("instruction_bank"):
        folders = (bench.parent, bench, checkout.root)
        bank = _bank(folders, perturbed["instruction_bank"], asked)
        return _chosen(number, json.loads(bank.read_text()).get(task, []), asked, f"none in {bank}")
    plain = bench / _PLAIN
    known = json.loads(plain.read_text(encoding="utf-8")) if plain.is_file() else {}
    if task not in known:
        return None
    pool = [known[task]] if isinstance(known[task], str) else list(known[task])
    return _chosen(number, pool, asked, f"none in {plain}")


def _bank(folders: Sequence[Path], named: str, asked: str) -> Path:
    """The file, which is named from the repository's root, from the benchmark or from here."""
    for base in folders:
        if (base / named).is_file():
            return base / named
    raise RollpoolError(asked, f"no language bank {named}", "restore it from the checkout's git")


def _chosen(number: int, pool: list[str], asked: str, otherwise: str) -> str:
    if not pool:
        raise RollpoolError(asked, otherwise, "complete the checkout's descriptions of this task")
    return str(random.Random(number).choice(sorted(set(pool))))
