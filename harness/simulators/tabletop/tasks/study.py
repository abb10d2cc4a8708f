"""The tasks of the study: put a cup in a box, press the bell, push a book to its mark."""

from __future__ import annotations

import math

import numpy as np
import sapien

from harness.simulators.tabletop import hands, skills
from harness.simulators.tabletop.bodies import Mechanism, Part, Zone
from harness.simulators.tabletop.expert import Waypoint
from harness.simulators.tabletop.task import Task
from harness.simulators.tabletop.things import book, cup, mark, open_box
from harness.simulators.tabletop.world import World


class PutCupInBox(Task):
    """Pick a cup up and stand it in an open box on the same side of the desk."""

    name = "put_cup_in_box"
    targets = ("cup", "box")
    _HALF = 0.085

    def layout(self, rng: np.random.Generator) -> None:
        side = rng.choice([-1.0, 1.0])
        self.put(cup("cup", "red"), rng.uniform(-0.20, 0.08), side * rng.uniform(0.26, 0.40))
        self.put(
            open_box("box", "blue", (self._HALF, self._HALF)),
            rng.uniform(-0.16, 0.06),
            side * rng.uniform(-0.04, 0.08),
            rng.uniform(-0.3, 0.3),
        )

    def success(self, world: World) -> bool:
        at = (world.pose("box").inv() * world.pose("cup")).p
        inside = abs(at[0]) < self._HALF and abs(at[1]) < self._HALF and -0.01 < at[2] < 0.04
        return bool(inside) and not world.touched("cup") and world.at_rest("cup", speed=0.1)

    def plan(self, world: World) -> list[Waypoint]:
        cup_at, box = world.pose("cup"), world.pose("box")
        side = world.holder("cup") or hands.reaching_arm(cup_at.p, box.p)
        inside = (box.inv() * cup_at).p
        if max(abs(inside[0]), abs(inside[1])) < self._HALF - 0.02 and not world.touched("cup"):
            return skills.retreat(world.robot.arms[side].commanded_tcp(), side)
        grasp = hands.pointing_down(cup_at.p + [0, 0, 0.058])
        goal = sapien.Pose(box.p + [0, 0, 0.014], cup_at.q)
        return [
            *skills.pick(world, side, "cup", grasp),
            *skills.place(world, side, "cup", goal, grasp=grasp),
        ]


class PressBell(Task):
    """Press the bell's knob all the way down."""

    name = "press_bell"
    targets = ("bell",)
    _TOP, _TRAVEL = 0.062, 0.012

    def layout(self, rng: np.random.Generator) -> None:
        bell = Mechanism(
            "bell",
            base=(
                Part("cylinder", (0.045, 0.008), "walnut", at=(0, 0, 0.008)),
                Part("cylinder", (0.036, 0.012), "brass", at=(0, 0, 0.028)),
            ),
            moving=(Part("cylinder", (0.016, 0.011), "red", at=(0, 0, self._TOP - 0.011)),),
            joint="slide",
            pivot=(0, 0, 0),
            axis=(0, 0, -1),
            travel=(0.0, self._TRAVEL),
            radius=0.046,
            height=self._TOP,
            spring=400.0,
            damping=8.0,
            mass=0.05,
        )
        self.put(bell, rng.uniform(-0.20, 0.10), rng.uniform(-0.32, 0.32))

    def success(self, world: World) -> bool:
        return world.joint("bell") > 0.75 * self._TRAVEL

    def plan(self, world: World) -> list[Waypoint]:
        if self.success(world):
            return []
        top = world.base_pose("bell").p + [0, 0, self._TOP]
        return skills.press(world, hands.reaching_arm(top), top, self._TRAVEL)


class PushBookToMark(Task):
    """Push a book from the middle of the desk outwards, until it lies in the painted frame."""

    name = "push_book_to_mark"
    targets = ("book",)
    _HALF = (0.065, 0.09)
    _TOLERANCE = 0.025

    def layout(self, rng: np.random.Generator) -> None:
        side = rng.choice([-1.0, 1.0])
        yaw = side * (math.pi / 2 + rng.uniform(-0.4, 0.4))
        x, y = rng.uniform(-0.16, 0.02), side * rng.uniform(0.06, 0.16)
        way = rng.uniform(0.11, 0.20)
        self.put(book("book", "navy", self._HALF), x, y, yaw)
        self.put(
            mark("mark", "white", (self._HALF[0] + 0.012, self._HALF[1] + 0.012)),
            x + way * math.cos(yaw),
            y + way * math.sin(yaw),
            yaw,
        )

    def success(self, world: World) -> bool:
        off = world.pose("book").p[:2] - world.pose("mark").p[:2]
        return bool(math.hypot(*off) < self._TOLERANCE)

    def plan(self, world: World) -> list[Waypoint]:
        if self.success(world):
            return []
        book_at, mark_at = world.pose("book").p, world.pose("mark").p
        side = hands.reaching_arm(book_at, mark_at)
        return skills.push(world, side, "book", mark_at, reach=self._HALF[0], height=hands.FLOOR)

    def _behind(self) -> tuple[float, float]:
        """Where the hand comes down to push."""
        book_at = self.place_of("book")
        back = self._HALF[0] + 0.04
        return (
            book_at.xy[0] - back * math.cos(book_at.yaw),
            book_at.xy[1] - back * math.sin(book_at.yaw),
        )

    def keep_clear(self) -> list[Zone]:
        return [Zone(self._behind(), self.place_of("mark").xy, self._HALF[1] + 0.015)]

    def route(self) -> list[tuple[float, float]]:
        home = super().route()[0]
        return [home, self._behind(), self.place_of("mark").xy]


TASKS = (PutCupInBox, PressBell, PushBookToMark)
