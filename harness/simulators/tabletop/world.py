"""One episode's physical world: the scene, its contents, the robot, and questions about them.

Promises: built from nothing for every episode, stepped the same with and without a renderer, and a
function of the scene, the contents and the actions alone, so that equal inputs give equal bits.
World frame: z up from the floor, x from the arms across the table, y to their left; the middle of
the table top is at x = y = 0.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import sapien

from harness.simulators.tabletop.bodies import Body, Mechanism, Placed
from harness.simulators.tabletop.builders import build_body, build_mechanism
from harness.simulators.tabletop.robot import CONTROL_HZ, Robot
from harness.simulators.tabletop.scenes import Scene
from harness.simulators.tabletop.things import turned

PHYSICS_HZ = 240
SUBSTEPS = PHYSICS_HZ // CONTROL_HZ
_SETTLE_STEPS = 60


@dataclass(frozen=True)
class Touch:
    """A contact of one of the robot's links in the last physics step."""

    side: str
    link: str
    body: str
    contact: sapien.physx.PhysxContact

    @property
    def impulse(self) -> float:
        """Newton seconds; 0 for things that are merely close. Worked out only when asked for:
        few of the thousands of contacts of an episode are."""
        return math.hypot(*sum(point.impulse for point in self.contact.points))


class World:
    """See the module.

    Args:
        scene: the furnished place.
        contents: what stands on the table.
        device: the renderer's device, or None to build no visuals at all.
    """

    def __init__(self, scene: Scene, contents: Sequence[Placed], device: str | None) -> None:
        _configure_physics()
        systems: list[sapien.System] = [sapien.physx.PhysxCpuSystem()]
        if device is not None:
            systems.append(sapien.render.RenderSystem(sapien.Device(device)))
        self.sapien_scene = sapien.Scene(systems)
        self.sapien_scene.timestep = 1.0 / PHYSICS_HZ
        self.sapien_scene.add_ground(0.0, render=False)  # what falls off the table stays near
        self.table_height = scene.table_height
        self.contents = {placed.name: placed for placed in contents}
        self.touches: list[Touch] = []
        self.physics_steps = 0
        self._visuals = device is not None
        self._entities: dict[str, sapien.Entity] = {}
        self._loose: dict[str, sapien.physx.PhysxRigidDynamicComponent] = {}
        self._mechanisms: dict[str, sapien.physx.PhysxArticulation] = {}
        self._owners: dict[sapien.Component, str] = {}  # furniture, bodies and mechanisms
        self.robot = Robot(self.sapien_scene, scene.table_height, self._visuals)
        self._links = {
            link: (side, link.name)
            for side, arm in self.robot.arms.items()
            for link in arm.articulation.links
        }
        for placed in (*scene.furniture, *contents):
            self._add(placed)
        self._settle()

    def _add(self, placed: Placed) -> None:
        height = self.table_height + placed.lift
        pose = sapien.Pose([*placed.xy, height], turned(placed.yaw))
        if isinstance(placed.thing, Mechanism):
            self._add_mechanism(placed.thing, pose)
        elif placed.thing.kind != "mark" or self._visuals:
            self._add_body(placed.thing, pose)

    def _add_body(self, body: Body, pose: sapien.Pose) -> None:
        entity = build_body(self.sapien_scene, body, pose, self._visuals)
        self._entities[body.name] = entity
        kind = (
            sapien.physx.PhysxRigidDynamicComponent
            if body.kind == "loose"
            else sapien.physx.PhysxRigidStaticComponent
        )
        component = entity.find_component_by_type(kind)
        self._owners[component] = body.name
        if body.kind == "loose":
            self._loose[body.name] = component

    def _add_mechanism(self, mechanism: Mechanism, pose: sapien.Pose) -> None:
        articulation = build_mechanism(self.sapien_scene, mechanism, pose, self._visuals)
        self._mechanisms[mechanism.name] = articulation
        self._owners.update(dict.fromkeys(articulation.links, mechanism.name))

    def _settle(self) -> None:
        for _ in range(_SETTLE_STEPS):
            self.advance(1.0)
        self.physics_steps = 0

    def advance(self, fraction: float) -> None:
        """One physics step, the arms driven to ``fraction`` of their control step."""
        self.robot.drive(fraction)
        self.sapien_scene.step()
        self.physics_steps += 1
        self.touches = list(self._robot_touches())

    def execute(self, action: np.ndarray, kind: str) -> Iterator[None]:
        """One action, yielding after each physics step so that the caller may look, and stop.

        Raises:
            RollpoolError: the action is not one.
        """
        self.robot.aim(action, kind)
        for substep in range(1, SUBSTEPS + 1):
            self.advance(substep / SUBSTEPS)
            yield

    def _robot_touches(self) -> Iterator[Touch]:
        for contact in self.sapien_scene.get_contacts():
            first, second = contact.bodies
            link, body = self._links.get(first), self._owners.get(second)
            if link is None:
                link, body = self._links.get(second), self._owners.get(first)
            if link is not None and body is not None:
                yield Touch(*link, body, contact)

    @property
    def loose(self) -> tuple[str, ...]:
        """Names of the bodies that can be moved, mechanisms aside."""
        return tuple(self._loose)

    def pose(self, name: str) -> sapien.Pose:
        """Where a body is (its underside), or the moving part of a mechanism (at joint position 0
        its frame is the base's)."""
        if name in self._mechanisms:
            return self._mechanisms[name].links[1].entity_pose
        if name in self._entities:
            return self._entities[name].pose
        placed = self.contents[name]  # a mark, which has no body without a renderer
        return sapien.Pose([*placed.xy, self.table_height + placed.lift], turned(placed.yaw))

    def base_pose(self, mechanism: str) -> sapien.Pose:
        """Where the fixed base of a mechanism stands."""
        return self._mechanisms[mechanism].links[0].entity_pose

    def joint(self, mechanism: str) -> float:
        """How far a mechanism is open: metres of a slide, radians of a hinge."""
        return float(self._mechanisms[mechanism].qpos[0])

    def at_rest(self, name: str, speed: float = 0.05, spin: float = 0.5) -> bool:
        """Whether a body moves slower than ``speed`` (m/s) and ``spin`` (rad/s)."""
        body = self._loose[name]
        return bool(
            np.linalg.norm(body.linear_velocity) < speed
            and np.linalg.norm(body.angular_velocity) < spin
        )

    def upright(self, name: str, tolerance: float = 0.25) -> bool:
        """Whether a body's own z axis is within ``tolerance`` radians of vertical."""
        _, x, y, _ = self.pose(name).q
        return bool(1.0 - 2.0 * (x * x + y * y) > np.cos(tolerance))

    def touched(self, name: str) -> bool:
        """Whether the robot touched a thing in the last physics step."""
        return any(touch.body == name and touch.impulse > 0.0 for touch in self.touches)

    def holds(self, side: str, name: str) -> bool:
        """Whether both fingers of an arm squeeze a thing."""
        arm = self.robot.arms[side]
        if arm.grip > arm.measured_joints()[-1] - 0.02:
            return False
        mine = (t for t in self.touches if t.side == side and t.body == name)
        return {finger.name for finger in arm.fingers} <= {t.link for t in mine if t.impulse > 0.0}

    def holder(self, name: str) -> str | None:
        """The arm that holds a thing."""
        return next((side for side in self.robot.arms if self.holds(side, name)), None)

    def state_hash(self) -> str:
        """sha256 over all poses, velocities, joint positions and joint velocities."""
        digest = hashlib.sha256()
        for body in self._loose.values():
            pose = body.entity_pose
            for numbers in (pose.p, pose.q, body.linear_velocity, body.angular_velocity):
                digest.update(np.ascontiguousarray(numbers).tobytes())
        articulations = [arm.articulation for arm in self.robot.arms.values()]
        for articulation in (*articulations, *self._mechanisms.values()):
            digest.update(np.ascontiguousarray(articulation.qpos).tobytes())
            digest.update(np.ascontiguousarray(articulation.qvel).tobytes())
        return digest.hexdigest()


def _configure_physics() -> None:
    """SAPIEN keeps these per process; set before every scene, so that no one else's remain."""
    sapien.physx.set_scene_config(
        gravity=np.array([0.0, 0.0, -9.81]),
        bounce_threshold=2.0,
        enable_pcm=True,
        enable_tgs=True,
        enable_ccd=False,
        enable_enhanced_determinism=True,
        enable_friction_every_iteration=True,
        cpu_workers=0,
    )
    sapien.physx.set_body_config(
        solver_position_iterations=10, solver_velocity_iterations=1, sleep_threshold=0.005
    )
    sapien.physx.set_shape_config(contact_offset=0.01, rest_offset=0.0)
