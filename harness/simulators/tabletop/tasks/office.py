"""The tasks of the office: open a drawer, put a pen in its holder, hand a stapler over, stack."""

from __future__ import annotations

import math

import numpy as np
import sapien

from harness.simulators.tabletop import hands, skills
from harness.simulators.tabletop.bodies import Body, Part, Zone
from harness.simulators.tabletop.expert import Waypoint
from harness.simulators.tabletop.task import Task
from harness.simulators.tabletop.tasks.office_things import cabinet, pen, stapler
from harness.simulators.tabletop.things import block, open_box, turned
from harness.simulators.tabletop.world import World


class OpenDrawer(Task):
    """Pull the drawer of a small cabinet open by its handle."""

    name = "open_drawer"
    targets = ("drawer",)
    _OPEN, _PULL = 0.08, 0.105
    _HANDLE = (-0.142, 0.0, 0.068)  # in the cabinet's frame, the drawer shut
    _OPENING = 0.47  # one finger fits between the handle and the drawer

    def layout(self, rng: np.random.Generator) -> None:
        side = rng.choice([-1.0, 1.0])
        self.put(
            cabinet(self._HANDLE),
            rng.uniform(0.02, 0.14),
            side * rng.uniform(0.0, 0.22),
            rng.uniform(-0.25, 0.25),
        )

    def success(self, world: World) -> bool:
        return world.joint("drawer") > self._OPEN

    def plan(self, world: World) -> list[Waypoint]:
        if self.success(world):
            return []
        shut = world.base_pose("drawer") * hands.pointing_down(np.array(self._HANDLE), math.pi / 2)
        grasp = skills.along_joint(world, "drawer", world.joint("drawer")) * shut
        side = "left" if self.place_of("drawer").xy[1] > 0 else "right"
        return skills.pull(world, side, "drawer", grasp, self._PULL, steps=1, opening=self._OPENING)

    def _before(self, distance: float) -> tuple[float, float]:
        """The point so far in front of the cabinet's middle."""
        cabinet = self.place_of("drawer")
        return (
            cabinet.xy[0] - distance * math.cos(cabinet.yaw),
            cabinet.xy[1] - distance * math.sin(cabinet.yaw),
        )

    def keep_clear(self) -> list[Zone]:
        """Where the drawer comes out."""
        return [Zone(self._before(0.12), self._before(0.21), 0.085)]

    def route(self) -> list[tuple[float, float]]:
        return [super().route()[0], self._before(0.14)]


class PutPenInHolder(Task):
    """Lift a standing marker pen off its yellow note and slide it into a narrow holder."""

    name = "put_pen_in_holder"
    targets = ("pen", "holder")
    _HALF, _WALLS = 0.034, 0.09
    _GRIP = 0.108  # above the pen's foot: over the holder's rim when the pen stands in it

    def layout(self, rng: np.random.Generator) -> None:
        side = rng.choice([-1.0, 1.0])
        x, y = rng.uniform(-0.20, 0.06), side * rng.uniform(0.24, 0.42)
        note = Part("box", (0.038, 0.038, 0.0006), "yellow", at=(0, 0, 0.0006), solid=False)
        self.put(pen(), x, y)
        self.put(
            open_box("holder", "blue", (self._HALF, self._HALF), self._WALLS, mass=0.5),
            rng.uniform(-0.18, 0.06),
            side * rng.uniform(-0.02, 0.12),
            rng.uniform(-0.4, 0.4),
        )
        self.put(Body("note", (note,), 0.04, 0.0, kind="mark"), x, y, rng.uniform(-0.4, 0.4))

    def success(self, world: World) -> bool:
        foot = (world.pose("holder").inv() * world.pose("pen")).p
        inside = max(abs(foot[0]), abs(foot[1])) < self._HALF and 0.0 < foot[2] < 0.03
        if not inside or not world.upright("holder"):
            return False
        return not world.touched("pen") and world.at_rest("pen", 0.1, 1.0)

    def plan(self, world: World) -> list[Waypoint]:
        pen_at, holder_at = world.pose("pen"), world.pose("holder")
        side = world.holder("pen") or hands.reaching_arm(pen_at.p, holder_at.p)
        if self.success(world):
            return skills.retreat(world.robot.arms[side].commanded_tcp(), side)
        grasp = hands.pointing_down((pen_at * sapien.Pose([0, 0, self._GRIP])).p)
        goal = sapien.Pose(holder_at.p + np.array([0, 0, 0.012]))
        return [
            *skills.pick(world, side, "pen", grasp, opening=0.7),
            *skills.place(world, side, "pen", goal, grasp=grasp),
        ]

    def route(self) -> list[tuple[float, float]]:
        return list(super().route()[:3])


class HandOverStapler(Task):
    """Bring a stapler into a tray that the arm beside the stapler cannot reach."""

    name = "hand_over_stapler"
    targets = ("stapler", "tray")
    _TRAY = (0.125, 0.060)
    _HOLD = 0.062  # from the stapler's middle to where either hand takes it
    _MEETING = (-0.13, 0.0, 0.22)  # above the table

    def layout(self, rng: np.random.Generator) -> None:
        side = rng.choice([-1.0, 1.0])
        self.put(
            stapler(),
            rng.uniform(-0.20, 0.02),
            side * rng.uniform(0.24, 0.42),
            rng.uniform(-0.35, 0.35),
        )
        self.put(
            open_box("tray", "blue", self._TRAY, 0.03),
            rng.uniform(-0.04, 0.08),
            -side * rng.uniform(0.42, 0.52),
            rng.uniform(-0.15, 0.15),
        )

    def success(self, world: World) -> bool:
        at = (world.pose("tray").inv() * world.pose("stapler")).p
        inside = abs(at[0]) < 0.06 and abs(at[1]) < self._TRAY[1] and -0.01 < at[2] < 0.03
        return bool(inside) and not world.touched("stapler") and world.at_rest("stapler", 0.1, 1.0)

    def plan(self, world: World) -> list[Waypoint]:
        sign = 1.0 if self.place_of("stapler").xy[1] > 0 else -1.0
        giver, taker = ("left", "right") if sign > 0 else ("right", "left")
        if self.success(world):
            return skills.retreat(world.robot.arms[taker].commanded_tcp(), taker)
        if world.holder("stapler"):
            meeting = sapien.Pose(np.array(self._MEETING) + np.array([0, 0, world.table_height]))
            take = self._grip(-sign)
            handing = skills.hand_over(world, giver, taker, "stapler", meeting, take)
            if handing:
                return handing
        stapler_at = world.pose("stapler")
        if world.holds(taker, "stapler") or sign * stapler_at.p[1] < 0.0:
            return self._lay_down(world, taker, -sign)
        grasp = stapler_at * self._grip(sign)
        up = hands.shifted(grasp, np.array([0, 0, 0.08]))
        return [*skills.pick(world, giver, "stapler", grasp), hands.move(giver, up, 0.0)]

    def _grip(self, end: float) -> sapien.Pose:
        """The TCP, in the stapler's frame, of a hand about the half towards ``end`` * y."""
        return hands.pointing_down(np.array([0.0, end * self._HOLD, 0.032]), -end * math.pi / 2)

    def _lay_down(self, world: World, side: str, end: float) -> list[Waypoint]:
        """From wherever it is into the tray, lengthwise, the hand at home's angle."""
        grasp = world.pose("stapler") * self._grip(end)
        goal = world.pose("tray") * sapien.Pose([0, 0, 0.012], turned(end * math.pi / 2))
        return [
            *skills.pick(world, side, "stapler", grasp),
            *skills.place(world, side, "stapler", goal, grasp=grasp),
        ]


class StackBlocks(Task):
    """Set the red block on top of the blue one."""

    name = "stack_blocks"
    targets = ("red_block", "blue_block")
    _HALF = 0.025

    def layout(self, rng: np.random.Generator) -> None:
        side, half = rng.choice([-1.0, 1.0]), (self._HALF,) * 3
        self.put(
            block("red_block", "red", half),
            rng.uniform(-0.22, 0.08),
            side * rng.uniform(0.26, 0.42),
            rng.uniform(-0.7, 0.7),
        )
        self.put(
            block("blue_block", "blue", half),
            rng.uniform(-0.18, 0.06),
            side * rng.uniform(-0.04, 0.12),
            rng.uniform(-0.7, 0.7),
        )

    def success(self, world: World) -> bool:
        off = world.pose("red_block").p - world.pose("blue_block").p
        on_top = math.hypot(off[0], off[1]) < self._HALF and abs(off[2] - 2 * self._HALF) < 0.008
        return on_top and not world.touched("red_block") and world.at_rest("red_block")

    def plan(self, world: World) -> list[Waypoint]:
        red, blue = world.pose("red_block"), world.pose("blue_block")
        side = world.holder("red_block") or hands.reaching_arm(red.p, blue.p)
        if self.success(world):
            return skills.retreat(world.robot.arms[side].commanded_tcp(), side)
        yaw = hands.like_yaw(float(red.rpy[2]), math.pi / 2)
        grasp = hands.pointing_down(red.p + np.array([0, 0, 0.030]), yaw)
        turn = hands.like_yaw(float(blue.rpy[2] - red.rpy[2]), math.pi / 2)
        goal = sapien.Pose(blue.p + np.array([0, 0, 2 * self._HALF + 0.002]), turned(turn))
        return [
            *skills.pick(world, side, "red_block", grasp),
            *skills.place(world, side, "red_block", goal * sapien.Pose(q=red.q), grasp=grasp),
        ]


TASKS = (OpenDrawer, PutPenInHolder, HandOverStapler, StackBlocks)
