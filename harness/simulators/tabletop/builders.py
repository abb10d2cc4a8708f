"""Turns bodies into SAPIEN actors and articulations.

Promises: with ``visuals=False`` nothing here touches the renderer (a visual in a scene without one
aborts the process), and the physics is the same either way.
"""

from __future__ import annotations

import sapien
from sapien.wrapper.actor_builder import ActorBuilder

from harness.simulators.tabletop.bodies import Body, Mechanism, Part, Vector

#: SAPIEN's cylinders and capsules lie along x; ours stand along z.
_X_TO_Z = sapien.Pose([0, 0, 0], [0.5**0.5, 0, -(0.5**0.5), 0])


def add_parts(
    builder: ActorBuilder,
    parts: tuple[Part, ...],
    *,
    mass: float,
    friction: float,
    visuals: bool,
) -> None:
    """Adds the solid parts (sharing ``mass`` by volume) and, if asked, the visible ones."""
    volume = sum(part.volume() for part in parts if part.solid)
    surface = sapien.physx.PhysxMaterial(friction, friction, 0.0)
    for part in parts:
        if part.solid:
            _add_collision(builder, part, surface, mass / volume)
        if visuals and part.visible:
            _add_visual(builder, part)


def build_body(scene: sapien.Scene, body: Body, pose: sapien.Pose, visuals: bool) -> sapien.Entity:
    """Adds a body to the scene at ``pose`` and returns its entity."""
    builder = scene.create_actor_builder()
    add_parts(builder, body.parts, mass=body.mass, friction=body.friction, visuals=visuals)
    builder.set_initial_pose(pose)
    builder.set_physx_body_type("dynamic" if body.kind == "loose" else "static")
    return builder.build(body.name)


def build_mechanism(
    scene: sapien.Scene, mechanism: Mechanism, pose: sapien.Pose, visuals: bool
) -> sapien.physx.PhysxArticulation:
    """Adds a mechanism to the scene, its base fixed at ``pose``."""
    builder = scene.create_articulation_builder()
    builder.set_initial_pose(pose)
    base = builder.create_link_builder()
    base.set_name(f"{mechanism.name}_base")
    add_parts(base, mechanism.base, mass=1.0, friction=0.7, visuals=visuals)
    moving = builder.create_link_builder(base)
    moving.set_name(mechanism.name)
    moving.set_joint_name(mechanism.name)
    add_parts(moving, mechanism.moving, mass=mechanism.mass, friction=0.7, visuals=visuals)
    axis = joint_frame(mechanism.pivot, mechanism.axis)
    moving.set_joint_properties(
        "prismatic" if mechanism.joint == "slide" else "revolute_unwrapped",
        [list(mechanism.travel)],
        pose_in_parent=axis,
        pose_in_child=axis,
        friction=mechanism.friction,
        damping=mechanism.damping,
    )
    articulation = builder.build(fix_root_link=True)
    articulation.name = mechanism.name
    joint = articulation.active_joints[0]
    joint.set_drive_properties(mechanism.spring, mechanism.damping)
    joint.set_friction(mechanism.friction)
    for link in articulation.links:
        link.disable_gravity = True
    return articulation


def joint_frame(pivot: Vector, axis: Vector) -> sapien.Pose:
    """The joint frame whose x axis (the one SAPIEN moves about) is ``axis``, at ``pivot``."""
    ax, ay, az = axis
    if ax < -0.999:
        return sapien.Pose(pivot, [0, 0, 0, 1])
    # The quaternion (1 + x.axis, x cross axis) is half-way to the axis once it is normalised.
    q = (1 + ax, 0.0, -az, ay)
    norm = sum(c * c for c in q) ** 0.5
    return sapien.Pose(pivot, [c / norm for c in q])


def _local(part: Part) -> sapien.Pose:
    pose = sapien.Pose(part.at, part.turn)
    return pose * _X_TO_Z if part.shape in ("cylinder", "capsule") else pose


def _add_collision(
    builder: ActorBuilder, part: Part, surface: sapien.physx.PhysxMaterial, density: float
) -> None:
    pose = _local(part)
    if part.shape == "box":
        builder.add_box_collision(pose, part.size, surface, density)
    elif part.shape == "sphere":
        builder.add_sphere_collision(pose, part.size[0], surface, density)
    elif part.shape == "cylinder":
        builder.add_cylinder_collision(pose, *part.size, material=surface, density=density)
    else:
        builder.add_capsule_collision(pose, *part.size, material=surface, density=density)


def _add_visual(builder: ActorBuilder, part: Part) -> None:
    from harness.simulators.tabletop import looks  # needs a renderer, which may be missing

    pose, material = _local(part), looks.material(part.material)
    if part.shape == "box":
        builder.add_box_visual(pose, part.size, material)
    elif part.shape == "sphere":
        builder.add_sphere_visual(pose, part.size[0], material)
    elif part.shape == "cylinder":
        builder.add_cylinder_visual(pose, *part.size, material=material)
    else:
        builder.add_capsule_visual(pose, *part.size, material=material)
