"""The expert's skills: each returns the waypoints **still to go** from the current state.

Promises: asked again at any moment, a skill leaves out the stages already reached, for any chunk
length; hands travel above whatever stands on their way. A skill never decides whether its purpose
is fulfilled: that is the task's to ask first.
"""

from __future__ import annotations

import math

import numpy as np
import sapien

from harness.rotations import quaternion_from_rotation_vector, rotation_vector
from harness.simulators.tabletop import hands
from harness.simulators.tabletop.arm_body import FINGER_TIP
from harness.simulators.tabletop.bodies import Mechanism
from harness.simulators.tabletop.expert import CAREFUL, SLOW, Waypoint
from harness.simulators.tabletop.world import World

#: A hand this far from the middle of what it handed over lets it be carried away.
_CLEAR_OF_HANDED = 0.14
#: How far a hand backs off, metres.
_RETREAT = 0.10
#: The opening of a hand that pushes.
_PUSHING = 0.9
#: A hand goes straight between waypoints: this far apart (radians) they keep to the arc of tipping.
_TIP_STEP = 0.7


def pick(
    world: World, side: str, name: str, grasp: sapien.Pose, *, opening: float = 1.0
) -> list[Waypoint]:
    """Approach ``grasp`` (TCP, world) and close on the thing; nothing if the arm holds it."""
    if world.holds(side, name):
        return []
    arm = world.robot.arms[side]
    plan = []
    if not hands.arrived(arm.commanded_tcp(), grasp):
        plan += hands.approach(world, side, grasp, opening)
        if arm.grip < opening - 0.05 and len(plan) == 1:  # in the funnel with a closed hand
            plan.insert(0, hands.move(side, arm.commanded_tcp(), opening))
    return [*plan, hands.move(side, grasp, 0.0, hold=2)]


def place(
    world: World, side: str, name: str, there: sapien.Pose, *, grasp: sapien.Pose | None = None
) -> list[Waypoint]:
    """Carry the thing to ``there`` (its own pose, world) and let go, then back off.

    Args:
        grasp: where ``pick`` will take it; needed while the arm does not hold it yet.
    """
    tcp = world.robot.arms[side].commanded_tcp()
    if not world.holds(side, name):  # lift only: how it lies in the hand decides the way on
        start = grasp if grasp is not None else tcp
        return [hands.move(side, hands.shifted(start, np.array([0, 0, hands.APPROACH])), 0.0)]
    goal = there * world.pose(name).inv() * tcp
    plan = [] if hands.arrived(tcp, goal) else hands.approach(world, side, goal, 0.0, load=name)
    plan.append(hands.move(side, goal, 1.0, hold=2))
    return [*plan, *retreat(goal, side)]


def retreat(tcp: sapien.Pose, side: str) -> list[Waypoint]:
    """Straight back from where the hand points to, open."""
    return [hands.move(side, tcp * sapien.Pose([0, 0, -_RETREAT]), 1.0)]


def press(world: World, side: str, point: np.ndarray, depth: float) -> list[Waypoint]:
    """With a closed hand, push ``point`` (world) down by ``depth``."""
    contact = hands.pointing_down(np.asarray(point) + [0, 0, FINGER_TIP])
    return press_along(world, side, contact, depth)


def press_along(world: World, side: str, contact: sapien.Pose, depth: float) -> list[Waypoint]:
    """With a closed hand, push on by ``depth`` from ``contact`` (TCP), where the hand points to."""
    bottom = contact * sapien.Pose([0, 0, depth])
    now = world.robot.arms[side].commanded_tcp()
    plan = [] if hands.in_funnel(now, bottom) else hands.approach(world, side, contact, 0.0)
    return [*plan, hands.move(side, bottom, 0.0, SLOW, hold=4)]


def push(
    world: World, side: str, name: str, to: np.ndarray, *, reach: float, height: float
) -> list[Waypoint]:
    """Push a thing over the table until its origin is at ``to``.

    Two open fingers touch the face that lies away from the goal, so that it does not turn.

    Args:
        to: world position; only x and y count.
        reach: from the thing's origin to the pushed face, metres.
        height: of the TCP above the table.
    """
    here = world.pose(name).p
    way = np.asarray(to, dtype=float)[:2] - here[:2]
    distance = float(np.linalg.norm(way))
    ahead = way / max(distance, 1e-6)
    behind = reach + 0.012
    now = world.robot.arms[side].commanded_tcp()
    # The hand pushes with either side: the one it need not turn round for.
    yaw = hands.like_yaw(math.atan2(ahead[1], ahead[0]), math.pi, near=hands.yaw_of(now))
    z = world.table_height + height

    def at(back: float) -> sapien.Pose:
        return hands.pointing_down(np.array([*(here[:2] - back * ahead), z]), yaw)

    offset = now.p[:2] - here[:2]
    aside, back = abs(float(offset @ [-ahead[1], ahead[0]])), -float(offset @ ahead)
    level = abs(now.p[2] - z) < hands.NEAR
    ready = level and aside < 0.02 and back > behind - 0.02
    plan = [] if ready else hands.approach(world, side, at(behind + 0.025), _PUSHING)
    return [*plan, hands.move(side, at(behind - distance - 0.004), _PUSHING, SLOW * 1.5)]


def pull(
    world: World, side: str, mechanism: str, grasp: sapien.Pose, to: float, *, steps: int,
    opening: float,
) -> list[Waypoint]:  # fmt: skip
    """Take a mechanism's handle at ``grasp`` (TCP, world) and move its joint to ``to``.

    Args:
        steps: waypoints, between which the hand goes straight.
        opening: of the hand that comes to the handle.
    """
    plan = pick(world, side, mechanism, grasp, opening=opening)
    tcp = grasp if plan else world.robot.arms[side].commanded_tcp()
    start = world.joint(mechanism)
    for step in range(1, steps + 1):
        tcp_then = along_joint(world, mechanism, (to - start) * step / steps) * tcp
        plan.append(hands.move(side, tcp_then, 0.0, CAREFUL))
    return plan


def along_joint(world: World, mechanism: str, displacement: float) -> sapien.Pose:
    """The world transform that a joint displacement (metres or radians) does to its moving part."""
    thing = world.contents[mechanism].thing
    assert isinstance(thing, Mechanism)
    base = world.base_pose(mechanism)
    axis = np.asarray(thing.axis, dtype=float)
    if thing.joint == "slide":
        local = sapien.Pose(axis * displacement)
    else:
        pivot = sapien.Pose(thing.pivot)
        turn = sapien.Pose(q=quaternion_from_rotation_vector(axis * displacement))
        local = pivot * turn * pivot.inv()
    return base * local * base.inv()


def tip(
    world: World, side: str, name: str, over: sapien.Pose, angle: float, *, axis: np.ndarray
) -> list[Waypoint]:
    """Carry a held thing upright to ``over`` (its own pose, world) and tip it there.

    Args:
        angle: radians about ``axis`` (world) through the thing's origin; the hand goes with it.
    """
    tcp, here = world.robot.arms[side].commanded_tcp(), world.pose(name)
    in_hand = here.inv() * tcp
    turn = sapien.Pose(q=quaternion_from_rotation_vector(np.asarray(axis, dtype=float) * angle))
    tipped = sapien.Pose(over.p, (sapien.Pose(q=turn.q) * sapien.Pose(q=over.q)).q)
    plan, start = [], here
    if np.linalg.norm(here.p - over.p) > 0.03:
        plan, start = hands.approach(world, side, over * in_hand, 0.0, load=name), over
    missing = rotation_vector((start.inv() * tipped).q)
    steps = math.ceil(float(np.linalg.norm(missing)) / _TIP_STEP)
    for step in range(1, steps + 1):
        bit = sapien.Pose(q=quaternion_from_rotation_vector(missing * step / steps))
        now = sapien.Pose(over.p, (sapien.Pose(q=start.q) * bit).q)
        plan.append(hands.move(side, now * in_hand, 0.0, CAREFUL))
    return [*plan, hands.move(side, tipped * in_hand, 0.0, CAREFUL, hold=10)]


def hand_over(
    world: World,
    giver: str,
    taker: str,
    name: str,
    meeting: sapien.Pose,
    take: sapien.Pose,
) -> list[Waypoint]:
    """From the giver's hand, which holds the thing, into the taker's.

    Args:
        meeting: the thing's own pose (world) at which it changes hands.
        take: the taker's TCP in the thing's own frame.
    """
    arms = world.robot.arms
    giving, taking = world.holds(giver, name), world.holds(taker, name)
    given = arms[giver].commanded_tcp()
    if taking and giving:
        return [hands.move(giver, given, 1.0, hold=1), *retreat(given, giver)]
    if taking:
        near = np.linalg.norm(given.p - world.pose(name).p) < _CLEAR_OF_HANDED
        return retreat(given, giver) if near else []
    goal = meeting * world.pose(name).inv() * given
    plan = [] if hands.arrived(given, goal) else hands.travel(world, giver, goal, 0.0, load=name)
    if not hands.arrived(given, goal):
        plan.append(hands.move(giver, goal, 0.0, CAREFUL))
    grasp = meeting * take
    if not hands.arrived(arms[taker].commanded_tcp(), grasp):
        plan += hands.approach(world, taker, grasp, 1.0)
    plan.append(hands.move(taker, grasp, 0.0, hold=2))
    return [*plan, hands.move(giver, goal, 1.0, hold=1), *retreat(goal, giver)]
