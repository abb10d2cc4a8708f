"""What the checkout's two arms are told to do: the kinds of actions and their bounds."""

from __future__ import annotations

import numpy as np

from harness.errors import RollpoolError
from harness.simulators.contract import ActionSpace
from harness.simulators.robotwin.arguments import arm_dims, task_arguments
from harness.simulators.robotwin.checkout import Checkout

#: Metres from the robot's base beyond which no pose is meant; components of rotations.
_REACH, _UNIT = 2.0, 2.0


def action_spaces(checkout: Checkout, native: str) -> dict[str, ActionSpace]:
    """Kind -> space, ``native`` first: joints within a turn, grippers 0 to 1, poses within reach.

    Raises:
        RollpoolError: no such kind, or a checkout without a task or a configuration.
    """
    left, right = _arm_dims(checkout)
    low = [-np.pi] * left + [0.0] + [-np.pi] * right + [0.0]
    high = [np.pi] * left + [1.0] + [np.pi] * right + [1.0]
    spaces = {"qpos": ActionSpace(len(high), tuple(low), tuple(high))}
    for kind, rotation in (("ee", 4), ("ee6d", 6)):
        top = (*[_REACH] * 3, *[_UNIT] * rotation, 1.0) * 2
        floor = (*[-_REACH] * 3, *[-_UNIT] * rotation, 0.0) * 2
        spaces[kind] = ActionSpace(len(top), floor, top)
    if native not in spaces:
        raise RollpoolError(f"native: {native}", "no such kind", f"use of {', '.join(spaces)}")
    return {native: spaces[native], **spaces}


def _arm_dims(checkout: Checkout) -> tuple[int, int]:
    """As any configuration has them: those of one checkout are for one robot."""
    for scene in dict.fromkeys(scene for scene, _ in checkout.cells()):
        for task_config in checkout.task_configs(scene):
            return arm_dims(task_arguments(checkout, "", task_config))
    raise RollpoolError(
        f"the checkout {checkout.root}", "it has no task or no configuration",
        f"restore {checkout.configs} from its git",
    )  # fmt: skip
