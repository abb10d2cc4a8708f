"""The things that the tasks of the office are about: a cabinet, a marker pen, a stapler."""

from __future__ import annotations

from harness.simulators.tabletop.bodies import Body, Mechanism, Part, Vector


def cabinet(handle: Vector) -> Mechanism:
    """A low cabinet with one drawer, whose front and handle face -x."""
    x, y, wall, top, floor = 0.09, 0.085, 0.004, 0.112, 0.028
    bar, level = handle[0], handle[2]
    base = (
        Part("box", (x, wall, top / 2), "white", at=(0, y - wall, top / 2)),
        Part("box", (x, wall, top / 2), "white", at=(0, wall - y, top / 2)),
        Part("box", (x, y, wall), "white", at=(0, 0, top - wall)),
        Part("box", (x, y, floor / 2), "white", at=(0, 0, floor / 2)),
        Part("box", (wall, y, top / 2), "white", at=(x - wall, 0, top / 2)),
    )
    width, depth, sides = y - 0.011, x - 0.007, 0.020
    bottom = floor + 0.006
    moving = (
        Part("box", (0.005, y - 0.005, 0.037), "blue", at=(-x - 0.005, 0, level)),
        Part("box", (depth, width, 0.003), "birch", at=(0, 0, bottom)),
        Part("box", (depth, 0.003, sides), "birch", at=(0, width - 0.003, bottom + sides)),
        Part("box", (depth, 0.003, sides), "birch", at=(0, 0.003 - width, bottom + sides)),
        Part("box", (0.003, width, sides), "birch", at=(depth - 0.003, 0, bottom + sides)),
        Part("box", (0.006, 0.050, 0.008), "red", at=(bar, 0, level)),
        *(
            Part("box", (0.021, 0.005, 0.006), "red", at=(-x - 0.031, end, level))
            for end in (-0.045, 0.045)
        ),
    )
    return Mechanism(
        "drawer",
        base,
        moving,
        joint="slide",
        pivot=(0, 0, 0),
        axis=(-1, 0, 0),
        travel=(0.0, 0.13),
        radius=0.128,
        height=top,
        mass=0.4,
        damping=4.0,
        friction=0.3,
    )


def pen() -> Body:
    """A whiteboard marker that stands on its cap."""
    radius, height = 0.012, 0.14
    parts = (
        Part("cylinder", (radius, height / 2), "red", at=(0, 0, height / 2)),
        Part("cylinder", (radius + 0.001, 0.020), "black", at=(0, 0, 0.020), solid=False),
        Part("cylinder", (radius * 0.9, 0.002), "white", at=(0, 0, height + 0.002), solid=False),
    )
    return Body("pen", parts, 0.014, height, 0.06, friction=0.9)


def stapler() -> Body:
    """A long stapler along y: base, arm and hinge; it is gripped across either half."""
    x, y, top = 0.017, 0.10, 0.048
    parts = (
        Part("box", (x, y, top / 2), "red", at=(0, 0, top / 2), visible=False),
        Part("box", (x, y, 0.006), "black", at=(0, 0, 0.006), solid=False),
        Part("box", (x * 0.9, y * 0.98, 0.013), "red", at=(0, 0, top - 0.013), solid=False),
        Part("box", (x * 0.6, y * 0.92, 0.006), "steel", at=(0, 0, 0.018), solid=False),
        Part("box", (x, 0.014, top / 2), "black", at=(0, y - 0.014, top / 2), solid=False),
    )
    return Body("stapler", parts, 0.102, top, 0.2, friction=0.9)
