"""bc: behaviour cloning of Meta-World's experts, the smallest learned policy there is.

``training/train.py`` makes its checkpoint in seconds; docs/bc.md has the commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.policies.contract import Observation, PolicyError, Session
from policy.bc.network import Weights, act, load


class Clone:
    def __init__(self, skills: dict[str, Weights]) -> None:
        self._skills = skills

    def infer(self, observation: Observation) -> np.ndarray:
        """One action ``(1, 4)``, by the instruction and Meta-World's observation."""
        return act(self._place(observation)[None], self._skills[observation["instruction"]])

    def infer_batch(
        self, observations: Sequence[Observation], sessions: Sequence[Session]
    ) -> list[np.ndarray]:
        """The same for several, those with one instruction at once."""
        places = [self._place(observation) for observation in observations]
        alike: dict[str, list[int]] = {}
        for row, observation in enumerate(observations):
            alike.setdefault(observation["instruction"], []).append(row)
        actions: dict[int, np.ndarray] = {}
        for text, rows in alike.items():
            taken = act(np.stack([places[row] for row in rows]), self._skills[text])
            actions.update(zip(rows, taken[:, None], strict=True))
        return [actions[row] for row in range(len(places))]

    def _place(self, observation: Observation) -> np.ndarray:
        """Meta-World's observation ``(39,)``. PolicyError where it, or the skill, is missing."""
        text = observation["instruction"]
        if text not in self._skills:
            raise PolicyError(
                f"the instruction {text!r}", f"bc was taught {sorted(self._skills)}",
                "train it on that task: policy/bc/training/train.py",
            )  # fmt: skip
        if "observation" not in observation["state"]:
            raise PolicyError(
                "state['observation']", f"the state has {sorted(observation['state'])}",
                "evaluate bc on SIMULATOR=metaworld",
            )  # fmt: skip
        place: np.ndarray = observation["state"]["observation"]
        return place


def get_model(usr_args: dict[str, Any]) -> Clone:
    """Raises ``RollpoolError`` where there is no checkpoint, or none of ours."""
    path = usr_args.get("checkpoint")
    todo = "make one: bash policy/bc/measure.sh"
    if not path:
        raise RollpoolError("policy bc", "no checkpoint", todo)
    try:
        return Clone(load(Path(path)))
    except (OSError, ValueError) as error:
        raise RollpoolError(f"checkpoint {path}", str(error), todo) from error
