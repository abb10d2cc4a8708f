"""A policy to copy: it holds both hands still. Replace ``HoldStill`` with your model."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.policies.contract import Observation, Session


class HoldStill:
    def __init__(self, chunk: int) -> None:
        self.chunk = chunk

    def infer(self, observation: Observation, session: Session) -> np.ndarray:
        """``(chunk, action_dim)``: what to do next, given what is seen now."""
        return np.tile(observation["proprio"], (self.chunk, 1))


def get_model(usr_args: dict[str, Any]) -> HoldStill:
    """Called once per model server. ``usr_args`` is ``deploy_policy.yml``, with ``checkpoint`` as
    a path (or None): load weights here, and do what must follow the loading."""
    return HoldStill(usr_args["chunk"])
