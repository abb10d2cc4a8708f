"""Two seven-joint arms with parallel grippers, built from primitives, and how actions drive them.

Frames: an arm's base stands at table height behind the near edge; the tool centre point (TCP) lies
between the finger pads, its z axis pointing out of the hand, its y axis along the direction in
which the fingers close. With the arms at home both hands point straight down.

Promises: an action moves each arm by a bounded step towards its target, whatever the target, so a
far one is approached at full speed and nothing explodes; the three action kinds meet in one joint
target, so equal joint targets give bit-equal motion; NaN or a wrong shape is refused before
anything moves.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import sapien
from sapien.wrapper.articulation_builder import ArticulationBuilder, LinkBuilder

from harness.errors import RollpoolError
from harness.rotations import (
    matrix_from_rot6d,
    quaternion_from_rotation_vector,
    rot6d_from_matrix,
    rotation_vector,
)
from harness.simulators.tabletop.bodies import Part, Vector
from harness.simulators.tabletop.builders import add_parts, joint_frame
from harness.simulators.tabletop.kinematics import ArmKinematics

SIDES = ("left", "right")
#: Actions a second.
CONTROL_HZ = 20
#: Where the arms stand: x behind the table's near edge, y to the left (+) and to the right (-).
BASE_X, BASE_Y = -0.48, 0.28
#: Over which point of the table the left hand starts; the right one over its mirror image.
HOME_XY = (-0.21, BASE_Y)
#: Half of the widest opening of a gripper, metres.
FINGER_TRAVEL = 0.045
#: The finger tips reach this far beyond the TCP.
FINGER_TIP = 0.012
#: Numbers per arm and action kind; the last one is always the gripper.
ACTION_WIDTHS: Mapping[str, int] = MappingProxyType({"ee6d": 10, "qpos": 8, "ee": 8})

#: From the origin of a hand link, along its z axis, to the TCP.
TCP_DISTANCE = 0.23
_TCP = sapien.Pose([0, 0, TCP_DISTANCE])
_LIMITS = np.array(
    [[-2.9, 2.9], [-1.9, 1.9], [-2.9, 2.9], [-0.1, 2.75], [-2.9, 2.9], [-2.3, 2.3], [-3.05, 3.05]]
)
_HOME = np.array([0.0, 0.134, 0.0, 2.436, 0.0, np.pi - 2.436 - 0.134, 0.0])
_LARGEST_STEP = 0.03  # metres an action: 0.6 m/s
_LARGEST_TURN = 0.16  # radians an action: 3.2 rad/s
_LARGEST_JOINT_STEP = 0.22  # radians an action
_LARGEST_GRIP_STEP = 0.125  # of the full stroke an action: 0.4 s to close
_ARM_DRIVE = {"stiffness": 20000.0, "damping": 800.0, "force_limit": 300.0, "mode": "force"}
_FINGER_DRIVE = {"stiffness": 1800.0, "damping": 90.0, "force_limit": 90.0, "mode": "force"}

_Z, _Y = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)
_WHITE, _GREY, _DARK, _PAD = "white", "grey", "graphite", "black"
#: The seven joints: axis, offset from the parent link, parts of the link behind it.
_LINKS: tuple[tuple[Vector, Vector, tuple[Part, ...]], ...] = (
    (_Z, (0, 0, 0.26), (Part("cylinder", (0.058, 0.05), _WHITE, (0, 0, 0.03)),)),
    (
        _Y,
        (0, 0, 0.08),
        (
            Part("sphere", (0.066,), _GREY),
            Part("capsule", (0.050, 0.06), _WHITE, (0, 0, 0.11)),
        ),
    ),
    (_Z, (0, 0, 0.20), (Part("capsule", (0.046, 0.06), _WHITE, (0, 0, 0.09)),)),
    (
        _Y,
        (0, 0, 0.20),
        (
            Part("sphere", (0.056,), _GREY),
            Part("capsule", (0.044, 0.06), _WHITE, (0, 0, 0.10)),
        ),
    ),
    (_Z, (0, 0, 0.20), (Part("capsule", (0.040, 0.06), _WHITE, (0, 0, 0.09)),)),
    (_Y, (0, 0, 0.20), (Part("sphere", (0.044,), _GREY),)),
    (
        _Z,
        (0, 0, 0.0),
        (
            Part("cylinder", (0.034, 0.028), _DARK, (0, 0, 0.062)),
            Part("box", (0.024, 0.062, 0.022), _WHITE, (0, 0, 0.112)),
        ),
    ),
)
_COLUMN = (
    Part("cylinder", (0.055, 0.12), _GREY, (0, 0, 0.12)),
    Part("cylinder", (0.075, 0.012), _DARK, (0, 0, 0.012)),
)


def _finger(side: int) -> tuple[Part, ...]:
    return (
        Part(
            "box",
            (0.011, 0.006, 0.055),
            _DARK,
            (0, side * 0.006, TCP_DISTANCE + FINGER_TIP - 0.055),
        ),
        Part(
            "box",
            (0.009, 0.001, 0.018),
            _PAD,
            (0, side * 0.0012, TCP_DISTANCE + FINGER_TIP - 0.018),
            solid=False,
        ),
    )


def _build(
    scene: sapien.Scene, base: sapien.Pose, visuals: bool, group: int
) -> sapien.physx.PhysxArticulation:
    """One arm. Links of one ``group`` never collide with each other."""
    builder: ArticulationBuilder = scene.create_articulation_builder()
    builder.set_initial_pose(base)
    parent = builder.create_link_builder()
    parent.set_name("base")
    add_parts(parent, _COLUMN, mass=20.0, friction=0.5, visuals=visuals)
    links = [parent]
    for number, (axis, offset, parts) in enumerate(_LINKS, 1):
        link = builder.create_link_builder(links[-1])
        link.set_name("hand" if number == len(_LINKS) else f"link{number}")
        link.set_joint_name(f"joint{number}")
        add_parts(link, parts, mass=2.0, friction=0.5, visuals=visuals)
        link.set_joint_properties(
            "revolute",
            [_LIMITS[number - 1]],
            joint_frame(offset, axis),
            joint_frame((0, 0, 0), axis),
        )
        links.append(link)
    links += [_add_finger(builder, links[-1], side, visuals) for side in (1, -1)]
    for link in links:
        link.collision_groups = [1, 1, 1, group]
    return builder.build(fix_root_link=True)


def _add_finger(
    builder: ArticulationBuilder, hand: LinkBuilder, side: int, visuals: bool
) -> LinkBuilder:
    finger = builder.create_link_builder(hand)
    name = "finger_a" if side > 0 else "finger_b"
    finger.set_name(name)
    finger.set_joint_name(name)
    add_parts(finger, _finger(side), mass=0.12, friction=1.6, visuals=visuals)
    axis = joint_frame((0, 0, 0), (0.0, float(side), 0.0))
    finger.set_joint_properties("prismatic", [[0.0, FINGER_TRAVEL]], axis, axis)
    return finger


@functools.cache
def arm_kinematics() -> ArmKinematics:
    """The kinematics of either arm; made once a process, from an arm in a scene of its own."""
    scene = sapien.Scene([sapien.physx.PhysxCpuSystem()])  # a name: it must outlive the arm
    arm = _build(scene, sapien.Pose(), False, 1)
    hand = next(index for index, link in enumerate(arm.links) if link.name == "hand")
    return ArmKinematics(arm.create_pinocchio_model(), hand, _LIMITS, _HOME)


class Arm:
    """One arm: where it is, where it was told to go, and how to tell it."""

    def __init__(self, scene: sapien.Scene, side: str, table_height: float, visuals: bool) -> None:
        self.side = side
        y = BASE_Y if side == "left" else -BASE_Y
        self._base = sapien.Pose([BASE_X, y, table_height])
        self._kinematics = arm_kinematics()
        self.articulation = _build(scene, self._base, visuals, 1 + SIDES.index(side))
        self.articulation.name = f"{side}_arm"
        links = {link.name: link for link in self.articulation.links}
        self.hand, self.fingers = links["hand"], (links["finger_a"], links["finger_b"])
        for link in self.articulation.links:
            link.disable_gravity = True
        self._joints = self.articulation.active_joints
        for index, joint in enumerate(self._joints):
            joint.set_drive_properties(**(_ARM_DRIVE if index < 7 else _FINGER_DRIVE))
            joint.set_armature([0.01 if index < 7 else 0.0])
        self.command, self.grip = _HOME.copy(), 1.0
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
        self.command = np.clip(self.command + step, _LIMITS[:, 0], _LIMITS[:, 1])
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


def ee6d(tcp: sapien.Pose, grip: float) -> np.ndarray:
    """``(10,)``: one arm's share of an ``ee6d`` action."""
    matrix = tcp.to_transformation_matrix()
    return np.concatenate([matrix[:3, 3], rot6d_from_matrix(matrix[:3, :3]), [grip]])


def check_action(action: np.ndarray, kind: str) -> np.ndarray:
    """The action as float64, or a refusal that says what is wrong with it."""
    asked = f"action of kind {kind!r}"
    if kind not in ACTION_WIDTHS:
        raise RollpoolError(asked, "no such kind", f"use one of: {', '.join(ACTION_WIDTHS)}")
    values, shape = np.asarray(action, dtype=np.float64), (2 * ACTION_WIDTHS[kind],)
    if values.shape != shape:
        raise RollpoolError(asked, f"shape {values.shape}", f"give an array of shape {shape}")
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values)).tolist()
        raise RollpoolError(asked, f"not finite at positions {bad}", "repair the policy's output")
    _refuse_degenerate(asked, values, kind)
    return values


def _refuse_degenerate(asked: str, values: np.ndarray, kind: str) -> None:
    """A rotation that spans nothing would turn into NaN joints."""
    for side, share in zip(SIDES, np.split(values, 2), strict=True):
        if kind == "ee" and np.linalg.norm(share[3:7]) < 1e-6:
            raise RollpoolError(asked, f"a zero quaternion ({side})", "give a unit wxyz quaternion")
        if kind == "ee6d":
            x, y = share[3:9].reshape(3, 2).T
            if (x @ x) * (y @ y) - (x @ y) ** 2 < 1e-12:  # the area that they span, squared
                raise RollpoolError(asked, f"a rot6d that spans no plane ({side})", "repair it")
