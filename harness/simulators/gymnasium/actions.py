"""Actions of a Gymnasium environment as the contract has them, and back.

Box actions are given as they are, flattened; a Discrete one is a single number, rounded to the
nearest choice. Other action spaces are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.simulators.contract import ActionSpace


def action_space(space: Any, task: str) -> ActionSpace:
    """As the contract has it. Raises ``RollpoolError`` for another kind; ``task`` names it."""
    kind = type(space).__name__
    if kind == "Discrete":
        return ActionSpace(1, float(space.start), float(space.start + space.n - 1))
    if kind != "Box":
        raise RollpoolError(
            f"task {task!r}", f"its actions are a {kind} space",
            "Box and Discrete can be used; wrap the environment in one of these",
        )  # fmt: skip
    low, high = (np.ravel(bound).astype(float) for bound in (space.low, space.high))
    return ActionSpace(
        int(np.prod(space.shape)),
        tuple(low.tolist()) if np.isfinite(low).any() else None,
        tuple(high.tolist()) if np.isfinite(high).any() else None,
    )


def own_action(space: Any, action: np.ndarray) -> Any:
    """What ``env.step`` takes for ``(dim,)`` numbers."""
    if type(space).__name__ == "Discrete":
        return int(np.rint(action[0]))
    return action.reshape(space.shape).astype(space.dtype)
