"""The body of one arm: seven joints and a parallel gripper, from primitives.

Frames: the tool centre point (TCP) lies between the finger pads, its z axis pointing out of the
hand, its y axis along the direction in which the fingers close.
"""

from __future__ import annotations

import functools

import numpy as np
import sapien
from sapien.wrapper.articulation_builder import ArticulationBuilder, LinkBuilder

from harness.simulators.tabletop.bodies import Part, Vector
from harness.simulators.tabletop.builders import add_parts, joint_frame
from harness.simulators.tabletop.kinematics import ArmKinematics

#: Half of the widest opening of a gripper, metres.
FINGER_TRAVEL = 0.045
#: The finger tips reach this far beyond the TCP.
FINGER_TIP = 0.012
#: From the origin of a hand link, along its z axis, to the TCP.
TCP_DISTANCE = 0.23
#: Of the joints, radians: ``(7, 2)`` and ``(7,)``.
LIMITS = np.array(
    [[-2.9, 2.9], [-1.9, 1.9], [-2.9, 2.9], [-0.1, 2.75], [-2.9, 2.9], [-2.3, 2.3], [-3.05, 3.05]]
)
HOME = np.array([0.0, 0.134, 0.0, 2.436, 0.0, np.pi - 2.436 - 0.134, 0.0])

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


def build(
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
            [LIMITS[number - 1]],
            joint_frame(offset, axis),
            joint_frame((0, 0, 0), axis),
        )
        links.append(link)
    links += [_add_finger(builder, links[-1], side, visuals) for side in (1, -1)]
    for link in links:
        link.collision_groups = [1, 1, 1, group]
    return builder.build(fix_root_link=True)


@functools.cache
def arm_kinematics() -> ArmKinematics:
    """The kinematics of either arm; made once a process, from an arm in a scene of its own."""
    scene = sapien.Scene([sapien.physx.PhysxCpuSystem()])  # a name: it must outlive the arm
    arm = build(scene, sapien.Pose(), False, 1)
    hand = next(index for index, link in enumerate(arm.links) if link.name == "hand")
    return ArmKinematics(arm.create_pinocchio_model(), hand, LIMITS, HOME)


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
