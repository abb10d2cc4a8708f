"""A floor: hands that wander. A bounded random walk around where they are, seeded per episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.policies.contract import EE6D_DIM, Observation, PolicyError, Session

#: ee6d: xyz of both arms in metres, and their grippers (0 closed, 1 open).
XYZ, GRIPPERS = np.r_[0:3, 10:13], np.array([9, 19])
STEP_M, REACH_M, GRIPPER_STEP = 0.01, 0.10, 0.1


class RandomWalk:
    def __init__(self, chunk: int) -> None:
        self.chunk = chunk

    def infer(self, observation: Observation, session: Session) -> np.ndarray:
        """``(chunk, 20)`` ee6d; no hand gets further than REACH_M from where it is, per axis."""
        here = observation["proprio"]
        if here.shape != (EE6D_DIM,):
            raise PolicyError(
                "proprio in ee6d", f"shape {here.shape}", "use a simulator whose proprio is ee6d"
            )
        actions = np.tile(here, (self.chunk, 1))
        walk = session.rng.normal(0, STEP_M, (self.chunk, len(XYZ))).cumsum(axis=0)
        actions[:, XYZ] += walk.clip(-REACH_M, REACH_M)
        grip = session.rng.normal(0, GRIPPER_STEP, (self.chunk, len(GRIPPERS))).cumsum(axis=0)
        actions[:, GRIPPERS] = (actions[:, GRIPPERS] + grip).clip(0, 1)
        return actions


def get_model(usr_args: dict[str, Any]) -> RandomWalk:
    return RandomWalk(usr_args["chunk"])
