"""The tasks of the large kitchen: open a door, put away an apple, pour beans, slide a pan."""

from __future__ import annotations

import itertools
import math

import numpy as np
import sapien

from harness.simulators.tabletop import hands, skills
from harness.simulators.tabletop.bodies import Zone
from harness.simulators.tabletop.expert import Waypoint
from harness.simulators.tabletop.robot import BASE_X, BASE_Y
from harness.simulators.tabletop.task import Task
from harness.simulators.tabletop.tasks.kitchenl_things import (
    APPLE,
    BEAN,
    BOWL_RIM,
    PAN_RADIUS,
    POT_HEIGHT,
    POT_RADIUS,
    apple,
    bean,
    bowl,
    burner,
    cabinet,
    pan,
    pot,
)
from harness.simulators.tabletop.things import cup, turned
from harness.simulators.tabletop.world import World


class OpenCabinetDoor(Task):
    """Swing the door of a small cabinet open by its handle."""

    name = "open_cabinet_door"
    targets = ("cabinet",)
    _OPEN, _PULL = math.radians(40), math.radians(50)
    _BAR, _ACROSS, _LEVEL = -0.125, 0.078, 0.072  # of the handle, in the cabinet's frame

    def layout(self, rng: np.random.Generator) -> None:
        side = float(rng.choice([-1.0, 1.0]))
        self._handle = (self._BAR, -side * self._ACROSS, self._LEVEL)
        self._cabinet = cabinet(self._handle, hinge=side)  # on the far side from the middle
        self.put(
            self._cabinet,
            rng.uniform(0.04, 0.17),
            side * rng.uniform(0.02, 0.24),
            rng.uniform(-0.3, 0.3),
        )

    def success(self, world: World) -> bool:
        return world.joint("cabinet") > self._OPEN

    def plan(self, world: World) -> list[Waypoint]:
        if self.success(world):
            return []
        shut = world.base_pose("cabinet") * hands.pointing_down(np.array(self._handle))
        grasp = skills.along_joint(world, "cabinet", world.joint("cabinet")) * shut
        side = "left" if self.place_of("cabinet").xy[1] > 0 else "right"
        return skills.pull(world, side, "cabinet", grasp, self._PULL, steps=4, opening=0.6)

    def _handle_at(self, angle: float) -> tuple[float, float]:
        """Where the handle is over the table when the door stands at an angle."""
        placed, pivot, hinge = self.place_of("cabinet"), self._cabinet.pivot, -self._cabinet.axis[2]
        arm = complex(self._handle[0] - pivot[0], self._handle[1] - pivot[1])
        swung = complex(*pivot[:2]) + arm * np.exp(-1j * hinge * angle)
        at = complex(*placed.xy) + swung * np.exp(1j * placed.yaw)
        return (at.real, at.imag)

    def keep_clear(self) -> list[Zone]:
        """Where the door and the hand at its handle swing."""
        ways = [self._handle_at(angle) for angle in (0.0, self._PULL / 2, self._PULL)]
        return [Zone(a, b, 0.075) for a, b in itertools.pairwise(ways)]

    def route(self) -> list[tuple[float, float]]:
        return [super().route()[0], self._handle_at(0.0)]


class PutAppleInBowl(Task):
    """Pick an apple up and lay it in a bowl."""

    name = "put_apple_in_bowl"
    targets = ("apple", "bowl")

    def layout(self, rng: np.random.Generator) -> None:
        side = rng.choice([-1.0, 1.0])
        self.put(apple(), rng.uniform(-0.20, 0.08), side * rng.uniform(0.26, 0.42))
        self.put(bowl(), rng.uniform(-0.16, 0.08), side * rng.uniform(-0.06, 0.10))

    def success(self, world: World) -> bool:
        at = (world.pose("bowl").inv() * world.pose("apple") * sapien.Pose([0, 0, APPLE])).p
        inside = math.hypot(at[0], at[1]) < 0.6 * BOWL_RIM and 0.02 < at[2] < 2 * APPLE
        return inside and not world.touched("apple") and world.at_rest("apple", 0.1, 2.0)

    def plan(self, world: World) -> list[Waypoint]:
        apple_at, bowl_at = world.pose("apple"), world.pose("bowl")
        middle = (apple_at * sapien.Pose([0, 0, APPLE])).p
        side = world.holder("apple") or hands.reaching_arm(middle, bowl_at.p)
        off = middle - bowl_at.p
        if math.hypot(off[0], off[1]) < 0.6 * BOWL_RIM and not world.touched("apple"):
            return skills.retreat(world.robot.arms[side].commanded_tcp(), side)
        grasp = hands.pointing_down(middle)
        goal = sapien.Pose(bowl_at.p + [0, 0, 0.035], apple_at.q)
        return [
            *skills.pick(world, side, "apple", grasp),
            *skills.place(world, side, "apple", goal, grasp=grasp),
        ]


class PourBeansIntoPot(Task):
    """Carry a cup of beans over a pot and tip it, so that most of them land inside."""

    name = "pour_beans_into_pot"
    _BEANS, _ENOUGH = 6, 5
    targets = ("cup", "pot", *(f"bean_{number}" for number in range(_BEANS)))
    _CUP = (0.030, 0.085)  # radius, height
    _GRIP = 0.060  # above the cup's foot
    _TILT, _SHORT, _ABOVE = 2.1, 0.062, 0.22

    def layout(self, rng: np.random.Generator) -> None:
        side = rng.choice([-1.0, 1.0])
        x, y = rng.uniform(-0.18, 0.06), side * rng.uniform(0.27, 0.42)
        self.put(cup("cup", "yellow", *self._CUP, hollow=True), x, y)
        self.put(pot(), rng.uniform(-0.04, 0.10), side * rng.uniform(-0.02, 0.10))
        for number in range(self._BEANS):
            body, at = bean(number)
            self.put(body, x + at[0], y + at[1], lift=at[2])

    def success(self, world: World) -> bool:
        spilt = 0
        for number in range(self._BEANS):
            spilt += not self._poured(world, f"bean_{number}")
            if spilt > self._BEANS - self._ENOUGH:
                return False
        return True

    def _poured(self, world: World, name: str) -> bool:
        """Whether a bean lies in the pot, and not in a cup that lies in the pot."""
        at = (world.pose("pot").inv() * world.pose(name)).p
        if math.hypot(at[0], at[1]) > POT_RADIUS or not -0.01 < at[2] < POT_HEIGHT - 2 * BEAN:
            return False
        at = (world.pose("cup").inv() * world.pose(name)).p
        return bool(math.hypot(at[0], at[1]) > self._CUP[0] or not 0.0 < at[2] < self._CUP[1])

    def plan(self, world: World) -> list[Waypoint]:
        if self.success(world):
            return []
        cup_at, pot_at = world.pose("cup"), world.pose("pot").p
        side = world.holder("cup") or hands.reaching_arm(cup_at.p, pot_at)
        yaw = self._outwards(side, float(pot_at[0]), float(pot_at[1]))
        ahead = np.array([math.cos(yaw), math.sin(yaw), 0.0])
        over = sapien.Pose(pot_at + self._SHORT * ahead + [0, 0, self._ABOVE], turned(yaw))
        if world.holds(side, "cup"):
            axis = np.array([math.sin(yaw), -math.cos(yaw), 0.0])
            return skills.tip(world, side, "cup", over, self._TILT, axis=axis)
        grasp = hands.pointing_down((cup_at * sapien.Pose([0, 0, self._GRIP])).p)
        up = hands.shifted(grasp, np.array([0, 0, 0.08]))
        return [*skills.pick(world, side, "cup", grasp), hands.move(side, up, 0.0)]

    @staticmethod
    def _outwards(side: str, x: float, y: float) -> float:
        """The yaw from an arm to a point: the hand tips the cup back towards its own arm."""
        return math.atan2(y - (BASE_Y if side == "left" else -BASE_Y), x - BASE_X)

    def keep_clear(self) -> list[Zone]:
        """Where hand and wrist hang when the cup is tipped: between the pot and the arm."""
        x, y = self.place_of("pot").xy
        side = "left" if self.place_of("cup").xy[1] > 0 else "right"
        yaw = self._outwards(side, x, y)
        return [Zone((x, y), (x - 0.30 * math.cos(yaw), y - 0.30 * math.sin(yaw)), 0.075)]

    def route(self) -> list[tuple[float, float]]:
        return [*super().route()[:3]]


class SlidePanToBurner(Task):
    """Push a pan over the counter onto a burner."""

    name = "slide_pan_to_burner"
    targets = ("pan",)
    _TOLERANCE = 0.02
    _CHORD = 0.063  # from the pan's middle to where two spread fingers touch its side

    def layout(self, rng: np.random.Generator) -> None:
        side = float(rng.choice([-1.0, 1.0]))
        x, y = rng.uniform(-0.17, -0.05), side * rng.uniform(0.0, 0.16)
        yaw, way = rng.uniform(-0.5, 0.5), rng.uniform(0.12, 0.21)
        self.put(pan(), x, y, yaw + math.pi if side > 0 else yaw)  # its handle inwards
        self.put(burner(), x + way * math.cos(yaw), y + way * math.sin(yaw))

    def success(self, world: World) -> bool:
        off = world.pose("pan").p[:2] - world.pose("burner").p[:2]
        return bool(math.hypot(*off) < self._TOLERANCE)

    def plan(self, world: World) -> list[Waypoint]:
        if self.success(world):
            return []
        goal = world.pose("burner").p
        side = hands.reaching_arm(world.pose("pan").p, goal)
        return skills.push(world, side, "pan", goal, reach=self._CHORD, height=hands.FLOOR)

    def _behind(self) -> tuple[float, float]:
        """Where the hand comes down to push."""
        (x, y), (there_x, there_y) = self.place_of("pan").xy, self.place_of("burner").xy
        back = (PAN_RADIUS + 0.04) / math.hypot(there_x - x, there_y - y)
        return (x - back * (there_x - x), y - back * (there_y - y))

    def keep_clear(self) -> list[Zone]:
        """The corridor of the pan, and the one of its handle."""
        start, end = self.place_of("pan"), self.place_of("burner").xy
        reach = PAN_RADIUS + 0.055
        aside = (-reach * math.sin(start.yaw), reach * math.cos(start.yaw))
        tail = [(xy[0] + aside[0], xy[1] + aside[1]) for xy in (start.xy, end)]
        return [Zone(self._behind(), end, PAN_RADIUS + 0.02), Zone(tail[0], tail[1], 0.075)]

    def route(self) -> list[tuple[float, float]]:
        return [super().route()[0], self._behind(), self.place_of("burner").xy]


TASKS = (OpenCabinetDoor, PutAppleInBowl, PourBeansIntoPot, SlidePanToBurner)
