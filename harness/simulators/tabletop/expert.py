"""Waypoints, and the actions that follow them: what every expert's plan is made of.

Promises: actions start at the last commanded poses, keep to each waypoint's speed with soft starts
and stops, and end exactly on it. A hand already moving the right way is not slowed down first, so
that a plan asked for anew at every action goes as far as one followed to its end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sapien

from harness.rotations import quaternion_from_rotation_vector, rotation_vector
from harness.simulators.tabletop.actions import ee6d
from harness.simulators.tabletop.robot import CONTROL_HZ, Robot

TRAVEL, CAREFUL, SLOW = 0.38, 0.20, 0.10  # metres a second
_TURN_RATE = 1.6  # radians a second
_GRIP_RATE = 2.5  # of the stroke a second
_RAMP = 3  # actions to full speed, and to rest


@dataclass(frozen=True)
class Goal:
    """Where one arm's TCP shall be (world frame), and its gripper (0 closed, 1 open)."""

    tcp: sapien.Pose
    grip: float


@dataclass(frozen=True)
class Waypoint:
    """A goal for one arm or both at once; an arm without a goal stays where it is."""

    goals: Mapping[str, Goal]
    speed: float = TRAVEL
    hold: int = 0  # actions to wait there


def follow(robot: Robot, plan: Sequence[Waypoint], length: int) -> np.ndarray:
    """The first actions, at most ``length`` and at least one, of following ``plan``.

    Returns:
        ``(n, 20)`` float32 ``ee6d`` actions; one that stays where it is for an empty plan.
    """
    stay = {side: Goal(arm.commanded_tcp(), arm.grip) for side, arm in robot.arms.items()}
    actions: list[np.ndarray] = []
    now = stay
    for number, waypoint in enumerate(plan):
        then = {**now, **waypoint.goals}
        rolling = number == 0 and _rolling(robot, then)
        for goals in _between(now, then, waypoint, rolling):
            if len(actions) == length:
                break
            actions.append(_action(goals))
        now = then
    return np.stack(actions or [_action(stay)]).astype(np.float32)


def _action(goals: Mapping[str, Goal]) -> np.ndarray:
    return np.concatenate([ee6d(goal.tcp, goal.grip) for goal in goals.values()])


def _rolling(robot: Robot, then: Mapping[str, Goal]) -> bool:
    """Whether a hand already moves towards its goal, within 25 degrees."""
    for side, arm in robot.arms.items():
        step, way = arm.last_step, then[side].tcp.p - arm.commanded_tcp().p
        lengths = float(np.linalg.norm(step) * np.linalg.norm(way))
        if np.linalg.norm(step) > 0.0005 and float(step @ way) > 0.9 * lengths:
            return True
    return False


def _between(
    start: Mapping[str, Goal], end: Mapping[str, Goal], waypoint: Waypoint, rolling: bool
) -> Iterator[dict[str, Goal]]:
    seconds = max(_seconds(start[side], end[side], waypoint.speed) for side in start)
    if seconds > 1e-3:
        start_ramp = 0 if rolling else _RAMP
        steps = math.ceil(seconds * CONTROL_HZ + (start_ramp + _RAMP) / 2)
        for step in range(1, steps + 1):
            progress = _progress(step, steps, start_ramp)
            yield {side: _blend(start[side], end[side], progress) for side in start}
    for _ in range(waypoint.hold):
        yield dict(end)


def _seconds(start: Goal, end: Goal, speed: float) -> float:
    turn = float(np.linalg.norm(rotation_vector((start.tcp.inv() * end.tcp).q)))
    return max(
        float(np.linalg.norm(end.tcp.p - start.tcp.p)) / speed,
        turn / _TURN_RATE,
        abs(end.grip - start.grip) / _GRIP_RATE,
    )


def _progress(step: int, steps: int, start_ramp: float) -> float:
    """0 to 1 at a constant speed, but for a constant acceleration over the first ``start_ramp``
    steps and the last ``_RAMP``."""
    start_ramp, end_ramp = min(start_ramp, steps / 2), min(_RAMP, steps / 2)
    peak = 1.0 / (steps - (start_ramp + end_ramp) / 2)
    if step < start_ramp:
        return 0.5 * peak * step * step / start_ramp
    if step > steps - end_ramp:
        return 1.0 - 0.5 * peak * (steps - step) ** 2 / end_ramp
    return peak * (step - 0.5 * start_ramp)


def _blend(start: Goal, end: Goal, progress: float) -> Goal:
    turn = rotation_vector((start.tcp.inv() * end.tcp).q) * progress
    rotation = sapien.Pose(q=start.tcp.q) * sapien.Pose(q=quaternion_from_rotation_vector(turn))
    position = start.tcp.p + progress * (end.tcp.p - start.tcp.p)
    grip = start.grip + progress * (end.grip - start.grip)
    return Goal(sapien.Pose(position, rotation.q), grip)
