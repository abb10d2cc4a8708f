"""The tasks of the small kitchen: stack two cans, press the microwave's button, slide a plate.

In all of them a microwave stands at one of the walls, turned towards the middle of the counter.
"""

from __future__ import annotations

import math

import numpy as np
import sapien

from harness.simulators.tabletop import hands, skills
from harness.simulators.tabletop.arm_body import FINGER_TIP
from harness.simulators.tabletop.bodies import Zone
from harness.simulators.tabletop.expert import Waypoint
from harness.simulators.tabletop.task import Task
from harness.simulators.tabletop.tasks.kitchens_things import mat, microwave, plate
from harness.simulators.tabletop.things import can
from harness.simulators.tabletop.world import World

_TRAVEL = 0.014  # metres, of the button


class _InKitchen(Task):
    """What the tasks share: the microwave at one of the walls."""

    def put_microwave(self, rng: np.random.Generator, side: float) -> None:
        """Stands it at the wall on ``side``, +1 left or -1 right, the button towards the middle."""
        self.button = (-0.115, -side * 0.095, 0.064)  # in the microwave's frame
        self.put(
            microwave(self.button, _TRAVEL),
            rng.uniform(0.00, 0.13),
            side * rng.uniform(0.33, 0.40),
            side * rng.uniform(0.5, 1.1),
        )


class StackCans(_InKitchen):
    """Set the red can on top of the yellow one, so that it stays there."""

    name = "stack_cans"
    targets = ("red_can", "yellow_can")
    _RADIUS, _TALL, _GRIP = 0.028, 0.10, 0.068

    def layout(self, rng: np.random.Generator) -> None:
        side = rng.choice([-1.0, 1.0])
        self.put(
            can("red_can", "red", self._RADIUS, self._TALL),
            rng.uniform(-0.22, 0.06),
            side * rng.uniform(0.26, 0.40),
        )
        self.put(
            can("yellow_can", "yellow", self._RADIUS, self._TALL),
            rng.uniform(-0.16, 0.06),
            side * rng.uniform(-0.06, 0.10),
        )
        self.put_microwave(rng, -side)

    def _on_top(self, world: World) -> bool:
        off = world.pose("red_can").p - world.pose("yellow_can").p
        level = abs(off[2] - self._TALL) < 0.005
        return math.hypot(off[0], off[1]) < 0.8 * self._RADIUS and bool(level)

    def success(self, world: World) -> bool:
        return (
            self._on_top(world)
            and not world.touched("red_can")
            and world.upright("red_can", 0.05)
            and world.at_rest("red_can", speed=0.03, spin=0.3)
        )

    def plan(self, world: World) -> list[Waypoint]:
        red, yellow = world.pose("red_can").p, world.pose("yellow_can").p
        side = world.holder("red_can") or hands.reaching_arm(red, yellow)
        if self._on_top(world) and not world.holds(side, "red_can"):
            return skills.retreat(world.robot.arms[side].commanded_tcp(), side)
        grasp = hands.pointing_down(red + [0, 0, self._GRIP])
        goal = sapien.Pose(yellow + [0, 0, self._TALL + 0.002], world.pose("red_can").q)
        return [
            *skills.pick(world, side, "red_can", grasp),
            *skills.place(world, side, "red_can", goal, grasp=grasp),
        ]

    def route(self) -> list[tuple[float, float]]:
        return [*super().route()[:3]]


class PressMicrowaveButton(_InKitchen):
    """Press the button on the upright front of the microwave all the way in.

    The arm across the counter does it: it can point at the front, the near one cannot.
    """

    name = "press_microwave_button"
    targets = ("microwave",)
    _TILT = 0.70  # of the hand below the horizontal: its back stays above its fingertips

    def layout(self, rng: np.random.Generator) -> None:
        self.put_microwave(rng, rng.choice([-1.0, 1.0]))

    def success(self, world: World) -> bool:
        return world.joint("microwave") > 0.75 * _TRAVEL

    def plan(self, world: World) -> list[Waypoint]:
        if self.success(world):
            return []
        oven = self.place_of("microwave")
        button = world.base_pose("microwave") * sapien.Pose(self.button)
        face = hands.pointing(button.p, oven.yaw, self._TILT)
        contact = face * sapien.Pose([0, 0, -FINGER_TIP])
        side = "left" if oven.xy[1] < 0 else "right"
        return skills.press_along(world, side, contact, _TRAVEL)

    def _before(self, distance: float) -> tuple[float, float]:
        """The point so far in front of the button."""
        oven = self.place_of("microwave")
        cos, sin = math.cos(oven.yaw), math.sin(oven.yaw)
        x, y = self.button[0] - distance, self.button[1]
        return (oven.xy[0] + x * cos - y * sin, oven.xy[1] + x * sin + y * cos)

    def keep_clear(self) -> list[Zone]:
        """Where the fingers come to the button, level with it."""
        return [Zone(self._before(0.0), self._before(0.13), 0.055)]

    def route(self) -> list[tuple[float, float]]:
        x, y = super().route()[0]
        return [(x, -y), self._before(0.10)]


class SlidePlateToMat(_InKitchen):
    """Slide a plate from beside a wall inwards, until it lies on the mat."""

    name = "slide_plate_to_mat"
    targets = ("plate",)
    _RADIUS, _REACH = 0.07, 0.058  # from the middle of the plate to where two fingers touch it
    _TOLERANCE = 0.02

    def layout(self, rng: np.random.Generator) -> None:
        side = rng.choice([-1.0, 1.0])
        x, y = rng.uniform(-0.14, 0.04), side * rng.uniform(0.27, 0.35)
        yaw, way = side * (rng.uniform(-0.35, 0.35) - math.pi / 2), rng.uniform(0.16, 0.26)
        self.put(plate("plate", "ceramic_white", self._RADIUS), x, y, yaw)
        self.put(mat("mat", "orange", 0.085), x + way * math.cos(yaw), y + way * math.sin(yaw))
        self.put_microwave(rng, -side)

    def success(self, world: World) -> bool:
        off = world.pose("plate").p - world.pose("mat").p
        return math.hypot(off[0], off[1]) < self._TOLERANCE and bool(abs(off[2]) < 0.005)

    def plan(self, world: World) -> list[Waypoint]:
        if self.success(world):
            return []
        mat_at = world.pose("mat").p
        side = "left" if self.place_of("plate").xy[1] > 0 else "right"
        return skills.push(world, side, "plate", mat_at, reach=self._REACH, height=hands.FLOOR)

    def _behind(self) -> tuple[float, float]:
        """Where the hand comes down to push."""
        placed = self.place_of("plate")
        back = self._REACH + 0.04
        return (
            placed.xy[0] - back * math.cos(placed.yaw),
            placed.xy[1] - back * math.sin(placed.yaw),
        )

    def keep_clear(self) -> list[Zone]:
        return [Zone(self._behind(), self.place_of("mat").xy, self._RADIUS + 0.025)]

    def route(self) -> list[tuple[float, float]]:
        return [super().route()[0], self._behind(), self.place_of("mat").xy]


TASKS = (StackCans, PressMicrowaveButton, SlidePlateToMat)
