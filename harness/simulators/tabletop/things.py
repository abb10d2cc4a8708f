"""The household goods of all scenes: each function makes one body from primitives.

Sizes are what a gripper that opens 9 cm can handle; every body stands on its origin.
"""

from __future__ import annotations

import math

from harness.simulators.tabletop.bodies import Body, Part, Quaternion


def turned(yaw: float) -> Quaternion:
    """A turn about z."""
    return (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))


def cup(
    name: str,
    material: str,
    radius: float = 0.030,
    height: float = 0.085,
    mass: float = 0.15,
    *,
    hollow: bool = False,
) -> Body:
    """A cup: a floor and a ring of wall segments. Something can be poured only from a ``hollow``
    one, whose many shapes cost physics; any other is one cylinder that looks the same."""
    wall, count = 0.004, 10
    width = radius * math.tan(math.pi / count)
    segments = tuple(
        Part(
            "box",
            (wall / 2, width, height / 2),
            material,
            at=(
                (radius - wall / 2) * math.cos(angle),
                (radius - wall / 2) * math.sin(angle),
                height / 2,
            ),
            turn=turned(angle),
            solid=hollow,
        )
        for angle in (2 * math.pi * k / count for k in range(count))
    )
    floor = Part("cylinder", (radius - wall / 2, 0.003), material, at=(0, 0, 0.003), solid=hollow)
    filled = Part("cylinder", (radius, height / 2), material, at=(0, 0, height / 2), visible=False)
    parts = (floor, *segments) if hollow else (filled, floor, *segments)
    return Body(name, parts, radius * 1.06, height, mass, friction=0.9)


def block(name: str, material: str, half: tuple[float, float, float]) -> Body:
    """A solid box; ``half`` sizes in metres."""
    part = Part("box", half, material, at=(0, 0, half[2]))
    return Body(name, (part,), math.hypot(half[0], half[1]), 2 * half[2], 0.15, friction=0.8)


def can(name: str, material: str, radius: float = 0.028, height: float = 0.11) -> Body:
    """A tin with two bright rims and a coloured lid."""
    rim, lid = height - 0.0025, height + 0.0005
    parts = (
        Part("cylinder", (radius, height / 2), material, at=(0, 0, height / 2)),
        Part("cylinder", (radius + 0.001, 0.003), "steel", at=(0, 0, 0.003), solid=False),
        Part("cylinder", (radius + 0.001, 0.003), "steel", at=(0, 0, rim), solid=False),
        Part("cylinder", (radius * 0.85, 0.0005), material, at=(0, 0, lid), solid=False),
    )
    return Body(name, parts, radius, height, 0.25)


def bottle(name: str, material: str, height: float = 0.16) -> Body:
    """A bottle: body, shoulder, neck and cap."""
    radius, body, neck = 0.030, 0.62 * height, 0.30 * height
    parts = (
        Part("cylinder", (radius, body / 2), material, at=(0, 0, body / 2)),
        Part("sphere", (radius * 0.98,), material, at=(0, 0, body), solid=False),
        Part("cylinder", (radius * 0.42, neck / 2), material, at=(0, 0, body + neck / 2)),
        Part("cylinder", (radius * 0.48, 0.04 * height), "white", at=(0, 0, 0.96 * height)),
    )
    return Body(name, parts, radius, height, 0.35)


def open_box(
    name: str,
    material: str,
    half: tuple[float, float] = (0.085, 0.085),
    height: float = 0.06,
    mass: float = 0.8,
) -> Body:
    """An open container with outer ``half`` sizes and 6 mm walls."""
    x, y, wall, floor = *half, 0.003, 0.004
    parts = (
        Part("box", (x, y, floor), material, at=(0, 0, floor)),
        Part("box", (wall, y, height / 2), material, at=(x - wall, 0, height / 2)),
        Part("box", (wall, y, height / 2), material, at=(wall - x, 0, height / 2)),
        Part("box", (x, wall, height / 2), material, at=(0, y - wall, height / 2)),
        Part("box", (x, wall, height / 2), material, at=(0, wall - y, height / 2)),
    )
    return Body(name, parts, math.hypot(x, y), height, mass, friction=0.9)


def book(name: str, material: str, half: tuple[float, float] = (0.065, 0.09)) -> Body:
    """A closed book lying flat, spine towards -x."""
    x, y = half
    thick, cover = 0.032, 0.003
    parts = (
        Part("box", (x, y, thick / 2), material, at=(0, 0, thick / 2), visible=False),
        Part("box", (x, y, cover / 2), material, at=(0, 0, cover / 2), solid=False),
        Part("box", (x, y, cover / 2), material, at=(0, 0, thick - cover / 2), solid=False),
        Part("box", (cover / 2, y, thick / 2), material, at=(-x, 0, thick / 2), solid=False),
        Part(
            "box",
            (x - 0.004, y - 0.004, thick / 2 - cover),
            "paper",
            at=(0.001, 0, thick / 2),
            solid=False,
        ),
    )
    return Body(name, parts, math.hypot(x, y), thick, 0.35, friction=0.45)


def mark(name: str, material: str, half: tuple[float, float]) -> Body:
    """A frame painted on the table: shows a goal and touches nothing."""
    x, y, line = *half, 0.006
    bars = (
        (0.0, y, x, line),
        (0.0, -y, x, line),
        (x, 0.0, line, y + line),
        (-x, 0.0, line, y + line),
    )
    parts = tuple(
        Part("box", (hx, hy, 0.0006), material, at=(cx, cy, 0.0006), solid=False)
        for cx, cy, hx, hy in bars
    )
    return Body(name, parts, math.hypot(x, y), 0.0, kind="mark")


def table(name: str, material: str, legs: str, half: tuple[float, float], height: float) -> Body:
    """A table whose **top** is at the origin: furniture of a scene, with four legs."""
    x, y = half
    top = 0.02
    leg = (height - 2 * top) / 2
    corners = [(sx * (x - 0.05), sy * (y - 0.05)) for sx in (-1, 1) for sy in (-1, 1)]
    parts = (
        Part("box", (x, y, top), material, at=(0, 0, -top)),
        *(
            Part("box", (0.025, 0.025, leg), legs, at=(cx, cy, -2 * top - leg))
            for cx, cy in corners
        ),
    )
    return Body(name, parts, 0.0, 0.0, kind="fixed")
