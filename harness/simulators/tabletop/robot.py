"""Two arms (``arm_body``) behind the table's near edge, and how actions drive them.

With the arms at home both hands point straight down.

Promises: an action moves each arm by a bounded step towards its target, whatever the target, so a
far one is approached at full speed and nothing explodes; the three action kinds meet in one joint
target, so equal joint targets give bit-equal motion; NaN or a wrong shape is refused before
anything moves.
"""

from __future__ import annotations

import numpy as np
import sapien

from harness.rotations import matrix_from_rot6d, quaternion_from_rotation_vector, rotation_vector
from harness.simulators.tabletop.actions import SIDES, check_action, ee6d
from harness.simulators.tabletop.arm_body import (
    FINGER_TRAVEL,
    HOME,
    LIMITS,
    TCP_DISTANCE,
    arm_kinematics,
    build,
)

#: Actions a second.
CONTROL_HZ = 20
#: Where the arms stand: x behind the table's near edge, y to the left (+) and to the right (-).
BASE_X, BASE_Y = -0.48, 0.28
#: Over which point of the table the left hand starts; the right one over its mirror image.
HOME_XY = (-0.21, BASE_Y)
_TCP = sapien.Pose([0, 0, TCP_DISTANCE])
_LARGEST_STEP = 0.03  # metres an action: 0.6 m/s
_LARGEST_TURN = 0.16  # radians an action: 3.2 rad/s
_LARGEST_JOINT_STEP = 0.22  # radians an action
_LARGEST_GRIP_STEP = 0.125  # of the full stroke an action: 0.4 s to close
_ARM_DRIVE = {"stiffness": 20000.0, "damping": 800.0, "force_limit": 300.0, "mode": "force"}
_FINGER_DRIVE = {"stiffness": 1800.0, "damping": 90.0, "force_limit": 90.0, "mode": "force"}


class Arm:
    """One arm: where it is, where it was told to go, and how to tell it."""

    def __init__(self, scene: sapien.Scene, side: str, table_height: float, visuals: bool) -> None:
        self.side = side
        y = BASE_Y if side == "left" else -BASE_Y
        self._base = sapien.Pose([BASE_X, y, table_height])
        self._kinematics = arm_kinematics()
        self.articulation = build(scene, self._base, visuals, 1 + SIDES.index(side))
        self.articulation.name = f"{side}_arm"
        links = {link.name: link for link in self.articulation.links}
        self.hand, self.fingers = links["hand"], (links["finger_a"], links["finger_b"])
        for link in self.articulation.links:
            link.disable_gravity = True
        self._joints = self.articulation.active_joints
        for index, joint in enumerate(self._joints):
            joint.set_drive_properties(**(_ARM_DRIVE if index < 7 else _FINGER_DRIVE))
            joint.set_armature([0.01 if index < 7 else 0.0])
        self.command, self.grip = HOME.copy(), 1.0
        self._commanded = self._tcp_at(self.command)
        self.last_step = np.zeros(3)  # metres that the last action moved the commanded TCP by
        self._from = self._to = self._positions(self.command, self.grip)
        self._driven = np.full(9, np.nan)
        self.articulation.set_qpos(self._to)

    def _tcp_at(self, joints: np.ndarray) -> sapien.Pose:
        return self._base * self._kinematics.forward(joints) * _TCP

    @staticmethod
    def _positions(joints: np.ndarray, grip: float) -> np.ndarray:
        return np.concatenate([joints, np.full(2, grip * FINGER_TRAVEL)])

    def measured_tcp(self) -> sapien.Pose:
        """Where the TCP is, world frame."""
        return self.hand.entity_pose * _TCP

    def commanded_tcp(self) -> sapien.Pose:
        """Where the TCP was last told to be, world frame."""
        return self._commanded

    def measured_joints(self) -> np.ndarray:
        """``(8,)``: seven joint positions in radians, then the gripper's opening, 0 to 1."""
        position = self.articulation.qpos
        return np.append(position[:7], position[7:].mean() / FINGER_TRAVEL)

    def aim(self, target: np.ndarray, kind: str) -> None:
        """Takes one arm's share of an action as the goal of the coming control step."""
        if kind == "qpos":
            goal = target[:7]
        else:
            goal = self._kinematics.inverse(self._reachable_hand(target, kind), self.command)
        step = np.clip(goal - self.command, -_LARGEST_JOINT_STEP, _LARGEST_JOINT_STEP)
        self.command = np.clip(self.command + step, LIMITS[:, 0], LIMITS[:, 1])
        before, self._commanded = self._commanded, self._tcp_at(self.command)
        self.last_step = self._commanded.p - before.p
        wish = min(1.0, max(0.0, float(target[-1])))
        self.grip += min(_LARGEST_GRIP_STEP, max(-_LARGEST_GRIP_STEP, wish - self.grip))
        self._from, self._to = self._to, self._positions(self.command, self.grip)
        # Without these, the drives' damping would hold the joints back by a centimetre.
        for joint, span in zip(self._joints, self._to - self._from, strict=True):
            joint.set_drive_velocity_target(span * CONTROL_HZ)

    def _reachable_hand(self, target: np.ndarray, kind: str) -> sapien.Pose:
        """The hand pose, in the base frame, a bounded step from the last command to the target."""
        if kind == "ee6d":
            matrix = np.eye(4)
            matrix[:3, :3] = matrix_from_rot6d(target[3:9])
            wish = sapien.Pose(matrix)
        else:
            wish = sapien.Pose(q=target[3:7] / np.linalg.norm(target[3:7]))
        now = self.commanded_tcp()
        move, turn = target[:3] - now.p, rotation_vector((now.inv() * wish).q)
        move = move * min(1.0, _LARGEST_STEP / max(float(np.linalg.norm(move)), 1e-9))
        turn = turn * min(1.0, _LARGEST_TURN / max(float(np.linalg.norm(turn)), 1e-9))
        turned = sapien.Pose(now.p + move, now.q) * sapien.Pose(
            q=quaternion_from_rotation_vector(turn)
        )
        return self._base.inv() * turned * _TCP.inv()

    def drive(self, fraction: float) -> None:
        """Sets the joint drives at ``fraction`` of the control step."""
        target = self._from + fraction * (self._to - self._from)
        if np.array_equal(target, self._driven):
            return
        for joint, position in zip(self._joints, target, strict=True):
            joint.set_drive_target(position)
        self._driven = target


class Robot:
    """Both arms, and the door through which actions come in."""

    def __init__(self, scene: sapien.Scene, table_height: float, visuals: bool) -> None:
        self.arms = {side: Arm(scene, side, table_height, visuals) for side in SIDES}

    def aim(self, action: np.ndarray, kind: str) -> None:
        """Takes an action as the goal of the coming control step.

        Raises:
            RollpoolError: unknown kind, wrong shape, or a number that is not finite.
        """
        values = check_action(action, kind)
        for arm, share in zip(self.arms.values(), np.split(values, 2), strict=True):
            arm.aim(share, kind)

    def drive(self, fraction: float) -> None:
        """Moves the drive targets of both arms to ``fraction`` of the control step."""
        for arm in self.arms.values():
            arm.drive(fraction)

    def proprio(self) -> np.ndarray:
        """``(20,)`` float32: the measured TCPs and openings, laid out as an ``ee6d`` action."""
        shares = [
            ee6d(arm.measured_tcp(), float(arm.measured_joints()[-1])) for arm in self.arms.values()
        ]
        return np.concatenate(shares).astype(np.float32)

    def qpos(self) -> np.ndarray:
        """``(16,)`` float32: the measured joints and openings, laid out as a ``qpos`` action."""
        return np.concatenate([a.measured_joints() for a in self.arms.values()]).astype(np.float32)
