"""Forward and inverse kinematics of one arm, on SAPIEN's own pinocchio model.

Promises: a pure function of its arguments (no state, no randomness), the same for both arms, in the
frame of the arm's base; the solution starts from the joint positions given and stays near them,
within the joint limits, and drifts towards a tidy elbow where the task leaves it free.
"""

from __future__ import annotations

import numpy as np
import sapien
from sapien.pysapien_pinocchio import PinocchioModel

from harness.rotations import rotation_vector

_ITERATIONS = 12
_PRECISION = 1e-4  # metres and radians: thirty times finer than the arms track
_DAMPING = 1e-4
_POSTURE_GAIN = 0.1
_LARGEST_STEP = 0.4  # radians per iteration


class ArmKinematics:
    """Kinematics of the link ``hand`` (index ``link``) of an articulation.

    Args:
        model: the pinocchio model; fingers follow the seven arm joints.
        limits: ``(7, 2)`` radians.
        posture: ``(7,)`` radians, what the free elbow drifts towards.
    """

    def __init__(
        self, model: PinocchioModel, link: int, limits: np.ndarray, posture: np.ndarray
    ) -> None:
        self._model, self._link = model, link
        self._limits, self._posture = limits, posture

    def forward(self, joints: np.ndarray) -> sapien.Pose:
        """``(7,)`` radians -> pose of the hand in the base frame."""
        self._model.compute_forward_kinematics(_with_fingers(joints))
        return self._model.get_link_pose(self._link)

    def inverse(self, hand: sapien.Pose, start: np.ndarray) -> np.ndarray:
        """Joint positions ``(7,)`` that bring the hand to ``hand``, or as near as it goes.

        Damped least squares from ``start``, with the posture in the null space.
        """
        joints, posture = start, _POSTURE_GAIN * (self._posture - start)
        for _ in range(_ITERATIONS):
            error = self._error(hand, joints)
            if np.abs(error).max() < _PRECISION:
                break
            step = self._step(error, joints, posture)
            joints = np.clip(joints + step, self._limits[:, 0], self._limits[:, 1])
            posture = np.zeros(7)  # once is enough, and the rest converges in a step or two
        return joints

    def _error(self, hand: sapien.Pose, joints: np.ndarray) -> np.ndarray:
        """``(6,)`` twist in the hand's own frame that is still missing."""
        missing = self.forward(joints).inv() * hand
        return np.concatenate([missing.p, rotation_vector(missing.q)])

    def _step(self, error: np.ndarray, joints: np.ndarray, posture: np.ndarray) -> np.ndarray:
        jacobian = self._model.compute_single_link_local_jacobian(
            _with_fingers(joints), self._link
        )[:, :7]
        square = jacobian @ jacobian.T + _DAMPING * np.eye(6)
        step = posture + jacobian.T @ np.linalg.solve(square, error - jacobian @ posture)
        return step * min(1.0, _LARGEST_STEP / max(float(np.abs(step).max()), 1e-9))


def _with_fingers(joints: np.ndarray) -> np.ndarray:
    return np.concatenate([joints, np.zeros(2)])
