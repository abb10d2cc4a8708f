"""Where a hand points, and its way through the free air.

Promises: a hand travels above whatever stands on its way, and goes the last bit straight, along the
direction in which it points; asked again on the way, it is told what is left of it.
"""

from __future__ import annotations

import math

import numpy as np
import sapien

from harness.rotations import rotation_vector
from harness.simulators.tabletop.arm_body import FINGER_TIP
from harness.simulators.tabletop.bodies import Zone
from harness.simulators.tabletop.expert import CAREFUL, TRAVEL, Goal, Waypoint
from harness.simulators.tabletop.robot import BASE_X, BASE_Y
from harness.simulators.tabletop.things import turned
from harness.simulators.tabletop.world import World

#: Free air kept between the lowest point of hand or load and what it passes over.
_CLEARANCE = 0.03
#: A hand passes over everything this close to its way: half a hand's breadth, and a margin.
_HALF_HAND = 0.085
#: How far above its goal a hand stops travelling when nothing is in the way.
APPROACH = 0.06
#: A hand this near to where it belongs (metres, radians) is there.
NEAR, _ALIGNED = 0.012, 0.12
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


def like_yaw(yaw: float, symmetry: float, near: float = 0.0) -> float:
    """The yaw nearest to ``near`` that is the same for a thing or a hand of this symmetry, e.g.
    ``pi / 2`` for a square block, ``pi`` for a hand."""
    return yaw - symmetry * round((yaw - near) / symmetry)


def yaw_of(tcp: sapien.Pose) -> float:
    """The yaw of a hand that points down: the direction square to its closing axis."""
    closing = tcp.to_transformation_matrix()[:3, 1]
    return math.atan2(-closing[0], closing[1])


def shifted(tcp: sapien.Pose, offset: np.ndarray) -> sapien.Pose:
    """The pose moved by ``offset``, world axes."""
    return sapien.Pose(tcp.p + np.asarray(offset), tcp.q)


def reaching_arm(*points: np.ndarray) -> str:
    """The arm whose farthest way to any of the points is the shorter."""
    worst = {
        side: max(math.hypot(p[0] - BASE_X, p[1] - y) for p in points)
        for side, y in (("left", BASE_Y), ("right", -BASE_Y))
    }
    return min(worst, key=lambda side: worst[side])


def move(
    side: str, tcp: sapien.Pose, grip: float, speed: float = TRAVEL, hold: int = 0
) -> Waypoint:
    """A waypoint of one arm."""
    return Waypoint({side: Goal(tcp, grip)}, speed, hold)


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
    if now.p[2] < cruise - NEAR:
        plan.append(move(side, sapien.Pose([*now.p[:2], cruise], now.q), grip))
    plan.append(move(side, sapien.Pose([*above.p[:2], cruise], above.q), grip))
    return plan


def approach(
    world: World, side: str, there: sapien.Pose, grip: float, *, load: str | None = None
) -> list[Waypoint]:
    """Travel to before ``there`` and go straight in, along the hand's pointing direction."""
    now = world.robot.arms[side].commanded_tcp()
    plan = []
    if not in_funnel(now, there):
        before = there * sapien.Pose([0, 0, -APPROACH])
        if not _straight_above(now, before):
            plan += travel(world, side, before, grip, load=load)
        if not plan or plan[-1].goals[side].tcp.p[2] > before.p[2] + NEAR:
            plan.append(move(side, before, grip))
    plan.append(move(side, there, grip, CAREFUL))
    return plan


def arrived(now: sapien.Pose, there: sapien.Pose) -> bool:
    """Whether a hand at ``now`` is where it belongs."""
    turn = np.linalg.norm(rotation_vector((now.inv() * there).q))
    return bool(np.linalg.norm(now.p - there.p) < NEAR and turn < _ALIGNED)


def in_funnel(now: sapien.Pose, there: sapien.Pose) -> bool:
    """Whether the hand is on the straight approach to ``there``, along its pointing direction.

    From straight above the way is free from any height; from aside only the last bit is.
    """
    depth = APPROACH + 0.03 if there.to_transformation_matrix()[2, 2] > -0.9 else 1.0
    offset = (there.inv() * now).p
    turn = np.linalg.norm(rotation_vector((now.inv() * there).q))
    return bool(np.linalg.norm(offset[:2]) < NEAR and -depth < offset[2] < NEAR and turn < _ALIGNED)


def _straight_above(now: sapien.Pose, there: sapien.Pose) -> bool:
    """Whether the hand has only to come down to ``there``."""
    return now.p[2] > there.p[2] and arrived(sapien.Pose([*now.p[:2], there.p[2]], now.q), there)


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
