"""The things of the large kitchen's tasks: apple, bowl, pot, beans, pan, cabinet."""

from __future__ import annotations

import math

from harness.simulators.tabletop.bodies import Body, Mechanism, Part, Quaternion, Vector

APPLE = 0.034
BOWL_RIM, BOWL_HEIGHT = 0.088, 0.055
POT_RADIUS, POT_HEIGHT = 0.085, 0.07
BEAN = 0.010
PAN_RADIUS = 0.075


def _leaning(yaw: float, lean: float) -> Quaternion:
    """A lean away from the middle, turned about z by ``yaw``."""
    c, s, cl, sl = math.cos(yaw / 2), math.sin(yaw / 2), math.cos(lean / 2), math.sin(lean / 2)
    return (c * cl, -s * sl, c * sl, s * cl)


def _staves(foot: float, rim: float, z: tuple[float, float], material: str) -> tuple[Part, ...]:
    """The wall of a round vessel: twelve boards from radius ``foot`` to ``rim`` (outer)."""
    count, thick = 12, 0.004
    out, up = rim - foot, z[1] - z[0]
    lean, middle = math.atan2(out, up), (foot + rim - thick) / 2
    half = (thick / 2, max(foot, rim) * math.tan(math.pi / count), math.hypot(out, up) / 2)
    return tuple(
        Part(
            "box",
            half,
            material,
            at=(middle * math.cos(yaw), middle * math.sin(yaw), (z[0] + z[1]) / 2),
            turn=_leaning(yaw, lean),
        )
        for yaw in (2 * math.pi * k / count for k in range(count))
    )


def apple() -> Body:
    """An apple: a ball with a flat where it stands, so that it does not roll away."""
    parts = (
        Part("sphere", (APPLE,), "red", at=(0, 0, APPLE)),
        Part("cylinder", (0.014, 0.004), "red", at=(0, 0, 0.004)),
        Part("cylinder", (0.003, 0.008), "walnut", at=(0, 0, 2 * APPLE + 0.006), solid=False),
    )
    return Body("apple", parts, APPLE, 2 * APPLE, 0.15, friction=0.9)


def bowl() -> Body:
    """A wide bowl."""
    floor = Part("cylinder", (0.046, 0.004), "ceramic_blue", at=(0, 0, 0.004))
    wall = _staves(0.046, BOWL_RIM, (0.004, BOWL_HEIGHT), "ceramic_blue")
    return Body("bowl", (floor, *wall), BOWL_RIM, BOWL_HEIGHT, 0.5, friction=0.9)


def pot() -> Body:
    """A pot with two handles, its inside bright."""
    parts = (
        Part("cylinder", (POT_RADIUS - 0.002, 0.003), "orange", at=(0, 0, 0.003)),
        Part("cylinder", (POT_RADIUS - 0.006, 0.0005), "cream", at=(0, 0, 0.0065), solid=False),
        *_staves(POT_RADIUS, POT_RADIUS, (0.0, POT_HEIGHT), "orange"),
        *(
            Part("box", (0.010, 0.022, 0.004), "graphite", at=(x, 0, 0.055), solid=False)
            for x in (-POT_RADIUS - 0.008, POT_RADIUS + 0.008)
        ),
    )
    return Body("pot", parts, POT_RADIUS + 0.004, POT_HEIGHT, 0.9, friction=0.9)


def bean(number: int) -> tuple[Body, Vector]:
    """A bean, and where it lies in a cup of ``things.cup``'s size, three to a layer."""
    layer, place = divmod(number, 3)
    yaw = 2 * math.pi * place / 3 + layer * math.pi / 3
    at = (0.013 * math.cos(yaw), 0.013 * math.sin(yaw), 0.008 + 0.018 * layer)
    ball = Part("sphere", (BEAN,), "green", at=(0, 0, BEAN))
    return Body(f"bean_{number}", (ball,), BEAN, 2 * BEAN, 0.004, friction=0.4), at


def pan() -> Body:
    """A frying pan whose handle points along its y axis."""
    height = 0.036
    parts = (
        Part("cylinder", (PAN_RADIUS, height / 2), "orange", at=(0, 0, height / 2), visible=False),
        Part("cylinder", (PAN_RADIUS, 0.003), "orange", at=(0, 0, 0.003), solid=False),
        Part("cylinder", (PAN_RADIUS - 0.004, 0.001), "graphite", at=(0, 0, 0.007), solid=False),
        *_hollow(_staves(PAN_RADIUS, PAN_RADIUS, (0.0, height), "orange")),
        Part("box", (0.010, 0.055, 0.005), "graphite", at=(0, PAN_RADIUS + 0.05, 0.028)),
    )
    return Body("pan", parts, PAN_RADIUS + 0.02, height, 0.5, friction=0.4)


def _hollow(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The same, to be seen and not felt."""
    return tuple(Part(p.shape, p.size, p.material, p.at, p.turn, solid=False) for p in parts)


def burner() -> Body:
    """An induction plate let into the counter: black glass with a glowing ring."""
    side = PAN_RADIUS + 0.022
    parts = (
        Part("box", (side, side, 0.0006), "black", at=(0, 0, 0.0006), solid=False),
        Part("cylinder", (PAN_RADIUS + 0.010, 0.0008), "red", at=(0, 0, 0.0008), solid=False),
        Part("cylinder", (PAN_RADIUS + 0.001, 0.0010), "black", at=(0, 0, 0.0010), solid=False),
    )
    return Body("burner", parts, side, 0.0, kind="mark")


def cabinet(handle: Vector, hinge: float) -> Mechanism:
    """A cabinet whose front, a door hung at the side ``hinge`` (1: +y, -1: -y), faces -x."""
    x, y, top, wall = 0.075, 0.10, 0.13, 0.004
    shut = -x - 0.008
    base = (
        Part("box", (x, wall, top / 2), "oak", at=(0, y - wall, top / 2)),
        Part("box", (x, wall, top / 2), "oak", at=(0, wall - y, top / 2)),
        Part("box", (x, y, wall), "oak", at=(0, 0, top - wall)),
        Part("box", (x, y, wall), "oak", at=(0, 0, wall)),
        Part("box", (wall, y, top / 2), "oak", at=(x - wall, 0, top / 2)),
        Part("box", (x - 0.010, y - wall, 0.003), "birch", at=(0.006, 0, top / 2), solid=False),
    )
    bar, across, level = handle
    moving = (
        Part("box", (0.006, y - 0.002, top / 2 - 0.003), "teal", at=(shut, 0, top / 2)),
        Part("capsule", (0.006, 0.028), "yellow", at=(bar, across, level)),
        *(
            Part(
                "box", ((shut - bar) / 2, 0.004, 0.005), "yellow", at=((shut + bar) / 2, across, z)
            )
            for z in (level - 0.026, level + 0.026)
        ),
    )
    return Mechanism(
        "cabinet",
        base,
        moving,
        joint="hinge",
        pivot=(shut, hinge * (y - 0.002), 0.0),
        axis=(0.0, 0.0, -hinge),
        travel=(0.0, 1.7),
        radius=0.13,
        height=top,
        mass=0.5,
        damping=0.15,
        friction=0.02,
    )
