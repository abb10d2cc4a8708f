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
from harness.simulators.tabletop.bodies import Mechanism, Zone
from harness.simulators.tabletop.expert import CAREFUL, SLOW, TRAVEL, Goal, Waypoint
from harness.simulators.tabletop.robot import BASE_X, BASE_Y, FINGER_TIP
from harness.simulators.tabletop.things import turned
from harness.simulators.tabletop.world import World

#: Free air kept between the lowest point of hand or load and what it passes over.
_CLEARANCE = 0.03
#: A hand passes over everything this close to its way: half a hand's breadth, and a margin.
_HALF_HAND = 0.085
#: How far above its goal a hand stops travelling when nothing is in the way.
_APPROACH = 0.06
#: A hand this near to where it belongs (metres, radians) is there.
_NEAR, _ALIGNED = 0.012, 0.12
#: A hand this far from the middle of what it handed over lets it be carried away.
_CLEAR_OF_HANDED = 0.14
#: A hand goes straight between waypoints: this far apart (radians) they keep to the arc of tipping.
_TIP_STEP = 0.7
_DOWN = sapien.Pose(q=[0.0, 0.0, 1.0, 0.0])
#: Lowest TCP above the table that keeps the fingertips off it.
FLOOR = FINGER_TIP + 0.006


def pointing_down(position: np.ndarray, yaw: float = 0.0) -> sapien.Pose:
    """A TCP pose with the hand pointing down; at yaw 0 the fingers close along y."""
    return sapien.Pose(position, (sapien.Pose(q=turned(yaw)) * _DOWN).q)


def pointing(position: np.ndarray, yaw: float, tilt: float) -> sapien.Pose:
    """A TCP pose with the hand pointing along ``yaw`` and ``tilt`` radians below the horizontal;
    the fingers close level."""
    pitch = 0.5 * (math.pi / 2 + tilt)
    forward = sapien.Pose(q=[math.cos(pitch), 0.0, math.sin(pitch), 0.0])
    return sapien.Pose(position, (sapien.Pose(q=turned(yaw)) * forward).q)


def reaching_arm(*points: np.ndarray) -> str:
    """The arm whose farthest way to any of the points is the shorter."""
    worst = {
        side: max(math.hypot(p[0] - BASE_X, p[1] - y) for p in points)
        for side, y in (("left", BASE_Y), ("right", -BASE_Y))
    }
    return min(worst, key=lambda side: worst[side])


def like_yaw(yaw: float, symmetry: float, near: float = 0.0) -> float:
    """The yaw nearest to ``near`` that is the same for a thing or a hand of this symmetry, e.g.
    ``pi / 2`` for a square block, ``pi`` for a hand."""
    return yaw - symmetry * round((yaw - near) / symmetry)


def yaw_of(tcp: sapien.Pose) -> float:
    """The yaw of a hand that points down: the direction square to its closing axis."""
    closing = tcp.to_transformation_matrix()[:3, 1]
    return math.atan2(-closing[0], closing[1])


def move(
    side: str, tcp: sapien.Pose, grip: float, speed: float = TRAVEL, hold: int = 0
) -> Waypoint:
    """A waypoint of one arm."""
    return Waypoint({side: Goal(tcp, grip)}, speed, hold)


def shifted(tcp: sapien.Pose, offset: np.ndarray) -> sapien.Pose:
    """The pose moved by ``offset``, world axes."""
    return sapien.Pose(tcp.p + np.asarray(offset), tcp.q)


def travel(
    world: World, side: str, above: sapien.Pose, grip: float, *, load: str | None = None
) -> list[Waypoint]:
    """Up, over everything on the way, to ``above`` or higher. ``load`` is what the hand carries."""
    now = world.robot.arms[side].commanded_tcp()
    hang = FINGER_TIP
    if load is not None:
        hang = max(hang, float(now.p[2] - world.pose(load).p[2]))
    cruise = max(float(above.p[2]), _highest(world, now.p, above.p, load) + hang + _CLEARANCE)
    plan = []
    if now.p[2] < cruise - _NEAR:
        plan.append(move(side, sapien.Pose([*now.p[:2], cruise], now.q), grip))
    plan.append(move(side, sapien.Pose([*above.p[:2], cruise], above.q), grip))
    return plan


def _highest(world: World, start: np.ndarray, end: np.ndarray, load: str | None) -> float:
    """The top of what stands within a hand's breadth, or the load's, of the way, world z."""
    breadth = _HALF_HAND
    if load is not None:  # it may stick out to one side
        aside = float(np.linalg.norm(world.pose(load).p[:2] - start[:2]))
        breadth = max(breadth, aside + world.contents[load].thing.radius)
    way = Zone(tuple(start[:2]), tuple(end[:2]), breadth)
    top = world.table_height
    for name, placed in world.contents.items():
        at = world.pose(name).p
        if name == load or (load is not None and _aboard(world, name, load)):
            continue
        if way.distance((at[0], at[1])) < placed.thing.radius:
            top = max(top, float(at[2]) + placed.thing.height)
    return top


def _aboard(world: World, name: str, load: str) -> bool:
    """Whether a thing lies inside the load, and so comes along."""
    vessel = world.contents[load].thing
    x, y, z = (world.pose(load).inv() * world.pose(name)).p
    return math.hypot(x, y) < vessel.radius and 0.0 < z < vessel.height


def _arrived(now: sapien.Pose, there: sapien.Pose) -> bool:
    turn = np.linalg.norm(rotation_vector((now.inv() * there).q))
    return bool(np.linalg.norm(now.p - there.p) < _NEAR and turn < _ALIGNED)


def _in_funnel(now: sapien.Pose, there: sapien.Pose) -> bool:
    """Whether the hand is on the straight approach to ``there``, along its pointing direction.

    From straight above the way is free from any height; from aside only the last bit is.
    """
    depth = _APPROACH + 0.03 if there.to_transformation_matrix()[2, 2] > -0.9 else 1.0
    offset = (there.inv() * now).p
    turn = np.linalg.norm(rotation_vector((now.inv() * there).q))
    return bool(
        np.linalg.norm(offset[:2]) < _NEAR and -depth < offset[2] < _NEAR and turn < _ALIGNED
    )


def _straight_above(now: sapien.Pose, there: sapien.Pose) -> bool:
    """Whether the hand has only to come down to ``there``."""
    return now.p[2] > there.p[2] and _arrived(sapien.Pose([*now.p[:2], there.p[2]], now.q), there)


def _approach(
    world: World,
    side: str,
    there: sapien.Pose,
    grip: float,
    *,
    load: str | None = None,
    speed: float = CAREFUL,
) -> list[Waypoint]:
    """Travel to before ``there`` and go straight in, along the hand's pointing direction."""
    now = world.robot.arms[side].commanded_tcp()
    plan = []
    if not _in_funnel(now, there):
        before = there * sapien.Pose([0, 0, -_APPROACH])
        if not _straight_above(now, before):
            plan += travel(world, side, before, grip, load=load)
        if not plan or plan[-1].goals[side].tcp.p[2] > before.p[2] + _NEAR:
            plan.append(move(side, before, grip))
    plan.append(move(side, there, grip, speed))
    return plan


def pick(
    world: World, side: str, name: str, grasp: sapien.Pose, *, opening: float = 1.0
) -> list[Waypoint]:
    """Approach ``grasp`` (TCP, world) and close on the thing; nothing if the arm holds it."""
    if world.holds(side, name):
        return []
    arm = world.robot.arms[side]
    plan = []
    if not _arrived(arm.commanded_tcp(), grasp):
        plan += _approach(world, side, grasp, opening)
        if arm.grip < opening - 0.05 and len(plan) == 1:  # in the funnel with a closed hand
            plan.insert(0, move(side, arm.commanded_tcp(), opening))
    return [*plan, move(side, grasp, 0.0, hold=2)]


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
        return [move(side, shifted(start, np.array([0, 0, _APPROACH])), 0.0)]
    goal = there * world.pose(name).inv() * tcp
    plan = [] if _arrived(tcp, goal) else _approach(world, side, goal, 0.0, load=name)
    plan.append(move(side, goal, 1.0, hold=2))
    return [*plan, *retreat(goal, side)]


def retreat(tcp: sapien.Pose, side: str, distance: float = 0.10) -> list[Waypoint]:
    """Straight back from where the hand points to, open."""
    return [move(side, tcp * sapien.Pose([0, 0, -distance]), 1.0)]


def press(
    world: World, side: str, point: np.ndarray, depth: float, *, tcp_margin: float = FINGER_TIP
) -> list[Waypoint]:
    """With a closed hand, push ``point`` (world) down by ``depth``."""
    contact = pointing_down(np.asarray(point) + [0, 0, tcp_margin])
    return press_along(world, side, contact, depth)


def press_along(world: World, side: str, contact: sapien.Pose, depth: float) -> list[Waypoint]:
    """With a closed hand, push on by ``depth`` from ``contact`` (TCP), where the hand points to."""
    bottom = contact * sapien.Pose([0, 0, depth])
    now = world.robot.arms[side].commanded_tcp()
    plan = [] if _in_funnel(now, bottom) else _approach(world, side, contact, 0.0)
    return [*plan, move(side, bottom, 0.0, SLOW, hold=4)]


def push(
    world: World,
    side: str,
    name: str,
    to: np.ndarray,
    *,
    reach: float,
    height: float,
    opening: float = 0.9,
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
    yaw = like_yaw(math.atan2(ahead[1], ahead[0]), math.pi, near=yaw_of(now))
    z = world.table_height + height

    def at(back: float) -> sapien.Pose:
        return pointing_down(np.array([*(here[:2] - back * ahead), z]), yaw)

    offset = now.p[:2] - here[:2]
    aside = abs(float(offset @ [-ahead[1], ahead[0]]))
    ready = aside < 0.02 and -float(offset @ ahead) > behind - 0.02 and abs(now.p[2] - z) < _NEAR
    plan = [] if ready else _approach(world, side, at(behind + 0.025), opening)
    return [*plan, move(side, at(behind - distance - 0.004), opening, SLOW * 1.5)]


def pull(
    world: World,
    side: str,
    mechanism: str,
    grasp: sapien.Pose,
    to: float,
    *,
    steps: int = 8,
    opening: float = 1.0,
) -> list[Waypoint]:
    """Take a mechanism's handle at ``grasp`` (TCP, world) and move its joint to ``to``."""
    plan = pick(world, side, mechanism, grasp, opening=opening)
    tcp = grasp if plan else world.robot.arms[side].commanded_tcp()
    start = world.joint(mechanism)
    for step in range(1, steps + 1):
        tcp_then = along_joint(world, mechanism, (to - start) * step / steps) * tcp
        plan.append(move(side, tcp_then, 0.0, CAREFUL))
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
        plan, start = _approach(world, side, over * in_hand, 0.0, load=name), over
    missing = rotation_vector((start.inv() * tipped).q)
    steps = math.ceil(float(np.linalg.norm(missing)) / _TIP_STEP)
    for step in range(1, steps + 1):
        bit = sapien.Pose(q=quaternion_from_rotation_vector(missing * step / steps))
        now = sapien.Pose(over.p, (sapien.Pose(q=start.q) * bit).q)
        plan.append(move(side, now * in_hand, 0.0, CAREFUL))
    return [*plan, move(side, tipped * in_hand, 0.0, CAREFUL, hold=10)]


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
        return [move(giver, given, 1.0, hold=1), *retreat(given, giver)]
    if taking:
        near = np.linalg.norm(given.p - world.pose(name).p) < _CLEAR_OF_HANDED
        return retreat(given, giver) if near else []
    goal = meeting * world.pose(name).inv() * given
    plan = [] if _arrived(given, goal) else travel(world, giver, goal, 0.0, load=name)
    if not _arrived(given, goal):
        plan.append(move(giver, goal, 0.0, CAREFUL))
    grasp = meeting * take
    if not _arrived(arms[taker].commanded_tcp(), grasp):
        plan += _approach(world, taker, grasp, 1.0)
    plan.append(move(taker, grasp, 0.0, hold=2))
    return [*plan, move(giver, goal, 1.0, hold=1), *retreat(goal, giver)]
