"""Play recorded actions back: the determinism check. Same actions, same state hash, same score.

``recording`` in deploy_policy.yml (or the checkpoint) names the file, of one of two formats:

* ``.jsonl``, as the knob ``record`` writes it: one line a chunk, ``{"task", "task_config",
  "seed", "chunk": k, "actions": [[...], ...]}``. Chunk 0 begins an episode anew, so the last
  attempt recorded is the one played.
* ``.npz``: an array ``(n, action_dim)`` under ``<task>/<task_config>/<seed>`` for each episode,
  played in chunks of ``chunk`` actions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.policies.contract import Observation, PolicyError, Session

Key = tuple[str, str, int]  # task, task_config, seed
Chunks = Sequence[np.ndarray]


class Replay:
    def __init__(self, episodes: dict[Key, Chunks]) -> None:
        self._episodes = episodes

    def infer(self, observation: Observation, session: Session) -> np.ndarray:
        """The episode's next recorded chunk; PolicyError where there is none."""
        key = (session.task, session.task_config, session.seed)
        if key not in self._episodes:
            raise PolicyError(
                f"replay of {key}", "the recording has no such episode", "record it first"
            )
        played = session.memory.get("played", 0)
        if played == len(self._episodes[key]):
            raise PolicyError(
                f"replay of {key}",
                f"the recording ends after {played} chunks and the episode goes on",
                "it does not repeat: compare simulator versions and settings",
            )
        session.memory["played"] = played + 1
        return self._episodes[key][played]


def read_lines(path: Path) -> dict[Key, Chunks]:
    episodes: dict[Key, list[np.ndarray]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        key = (entry["task"], entry["task_config"], int(entry["seed"]))
        if entry["chunk"] == 0:
            episodes[key] = []
        if entry["chunk"] != len(episodes.get(key, ())):
            raise ValueError(f"chunk {entry['chunk']} of {key} is out of order")
        episodes[key].append(np.array(entry["actions"], np.float32))
    return dict(episodes)


def read_arrays(path: Path, chunk: int) -> dict[Key, Chunks]:
    episodes: dict[Key, Chunks] = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name, actions in arrays.items():
            task, task_config, seed = name.split("/")
            starts = range(0, len(actions), chunk)
            episodes[task, task_config, int(seed)] = [actions[i : i + chunk] for i in starts]
    return episodes


def get_model(usr_args: dict[str, Any]) -> Replay:
    name = usr_args.get("recording") or usr_args.get("checkpoint")
    if not name:
        raise ValueError("`recording` names no file")
    path = Path(name)
    return Replay(
        read_arrays(path, usr_args["chunk"]) if path.suffix == ".npz" else read_lines(path)
    )
