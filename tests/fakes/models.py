"""A model client without a server: what the episode loop talks to, in the test's own process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.inference.model_client import Served
from harness.simulators.contract import Episode, Observation


class FakeModel:
    """Hands back the expert's chunk, or what ``act(step, observation, last_action)`` returns, and
    remembers what it was asked."""

    def __init__(
        self,
        act: Callable[..., Any] | None = None,
        *,
        needs: Sequence[str] = ("expert",),
        cameras: Sequence[str] = (),
        chunk: int = 5,
        action_kind: str = "ee6d",
    ) -> None:
        self.hello = {
            "policy": "fake",
            "action_kind": action_kind,
            "action_dim": 20,
            "chunk": chunk,
            "needs": list(needs),
            "cameras": list(cameras),
        }
        self._act = act
        self.resets: list[Episode] = []
        self.asked: list[tuple[int, Observation, np.ndarray | None, np.ndarray | None]] = []

    def reset(self, episode: Episode) -> None:
        self.resets.append(episode)

    def infer(
        self,
        step: int,
        observation: Observation,
        last_action: np.ndarray | None,
        expert: np.ndarray | None,
    ) -> tuple[np.ndarray, Served]:
        self.asked.append((step, observation, last_action, expert))
        if self._act is not None:
            return self._act(step, observation, last_action), Served()
        assert expert is not None
        return expert, Served()
