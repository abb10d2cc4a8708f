"""The things that the tasks of the small kitchen are about: a microwave, a plate, a mat."""

from __future__ import annotations

import math

from harness.simulators.tabletop.bodies import Body, Mechanism, Part, Vector


def microwave(button: Vector, travel: float) -> Mechanism:
    """A microwave whose front faces -x; ``button`` is the middle of its button's face, not pressed.

    The button slides on a spring into the front, by ``travel`` metres; the panel is on its side of
    the door.
    """
    x, y, z = 0.085, 0.14, 0.066
    panel = button[1]
    front, middle = -x - 0.004, z + 0.004
    door, handle = math.copysign(0.040, -panel), math.copysign(0.044, panel)
    base = (
        Part("box", (x, y, z - 0.004), "steel", at=(0, 0, middle)),
        *(
            Part("box", (0.012, 0.012, 0.004), "black", at=(sx * 0.06, sy * 0.11, 0.004))
            for sx in (-1, 1)
            for sy in (-1, 1)
        ),
        Part("box", (0.004, 0.094, z - 0.016), "black", at=(front, door, middle), solid=False),
        Part("box", (0.004, 0.034, z - 0.016), "white", at=(front, panel, middle), solid=False),
        Part("box", (0.001, 0.026, 0.010), "teal", at=(-x - 0.009, panel, 0.106), solid=False),
        Part(
            "cylinder", (0.006, 0.045), "aluminium", at=(front - 0.016, handle, middle), solid=False
        ),
    )
    half = 0.5 * (-x - button[0])
    pressed = Part("box", (half, 0.026, 0.020), "red", at=(button[0] + half, button[1], button[2]))
    return Mechanism(
        "microwave", base, (pressed,), joint="slide", pivot=(0, 0, 0), axis=(1, 0, 0),
        travel=(0.0, travel), radius=math.hypot(-button[0], y), height=2 * z,
        mass=0.05, spring=400.0, damping=8.0,
    )  # fmt: skip


def plate(name: str, material: str, radius: float) -> Body:
    """A flat plate: it slides on its foot and is pushed at its rim."""
    height = 0.022
    ring = height + 0.0006
    parts = (
        Part("cylinder", (radius, height / 2), material, at=(0, 0, height / 2), visible=False),
        Part("cylinder", (0.70 * radius, 0.004), material, at=(0, 0, 0.004), solid=False),
        Part("cylinder", (0.88 * radius, 0.004), material, at=(0, 0, 0.011), solid=False),
        Part("cylinder", (radius, 0.004), material, at=(0, 0, height - 0.004), solid=False),
        Part("cylinder", (0.66 * radius, 0.0008), "blue", at=(0, 0, height), solid=False),
        Part("cylinder", (0.60 * radius, 0.0008), material, at=(0, 0, ring), solid=False),
    )
    return Body(name, parts, radius, height, 0.3, friction=0.4)


def mat(name: str, material: str, half: float) -> Body:
    """A square of cloth as thin as paint: it shows the goal and touches nothing."""
    parts = (
        Part("box", (half, half, 0.0006), material, at=(0, 0, 0.0006), solid=False),
        Part("box", (half - 0.012, half - 0.012, 0.0006), "cream", at=(0, 0, 0.0008), solid=False),
        Part("box", (half - 0.018, half - 0.018, 0.0006), material, at=(0, 0, 0.0010), solid=False),
    )
    return Body(name, parts, math.hypot(half, half), 0.0, kind="mark")
