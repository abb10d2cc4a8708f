"""The large kitchen: a marble counter with a sink, a hob under a hood, cupboards hung over its far
right, and a tall oven that closes it off on that side."""

from __future__ import annotations

import math
from functools import partial

from harness.simulators.tabletop.bodies import Body, Part, Placed
from harness.simulators.tabletop.scenes import Scene
from harness.simulators.tabletop.things import block, bottle, can

_HEIGHT = 0.90
#: The slab: x from, x to, and half its length; and the hole that the sink hangs in.
_NEAR, _FAR, _SIDE = -0.41, 0.56, 0.74
_SINK = (0.26, 0.47, 0.20, 0.54)  # x from, x to, y from, y to


def _box(
    x: tuple[float, float],
    y: tuple[float, float],
    z: tuple[float, float],
    material: str,
    solid: bool = True,
) -> Part:
    """The box between two corners."""
    sides = (x, y, z)
    half, middle = [(b - a) / 2 for a, b in sides], [(a + b) / 2 for a, b in sides]
    return Part(
        "box", (half[0], half[1], half[2]), material, (middle[0], middle[1], middle[2]), solid=solid
    )


def _counter() -> Body:
    """A slab about the hole of the sink, cupboards below it."""
    x0, x1, y0, y1 = _SINK
    slab, under, floor = (-0.04, 0.0), (-0.82, -0.04), (-_HEIGHT, -0.82)
    parts = [
        _box((_NEAR, x0), (-_SIDE, _SIDE), slab, "marble"),
        _box((x1, _FAR), (-_SIDE, _SIDE), slab, "marble"),
        _box((x0, x1), (-_SIDE, y0), slab, "marble"),
        _box((x0, x1), (y1, _SIDE), slab, "marble"),
        _box((_NEAR + 0.03, _FAR - 0.03), (0.03 - _SIDE, _SIDE - 0.03), (-0.82, -0.16), "white"),
        _box((_NEAR + 0.03, x0 - 0.01), (0.03 - _SIDE, _SIDE - 0.03), (-0.16, -0.04), "white"),
        _box((_NEAR + 0.08, _FAR - 0.08), (0.08 - _SIDE, _SIDE - 0.08), floor, "graphite"),
    ]
    for y in (-0.54, -0.18, 0.18, 0.54):  # fronts and their handles, towards the room
        front, handle = _FAR - 0.03, _FAR - 0.012
        parts.append(
            _box(
                (front - 0.004, front + 0.006),
                (y - 0.174, y + 0.174),
                (under[0] + 0.01, -0.05),
                "wall_cream",
                False,
            )
        )
        parts.append(
            _box(
                (handle - 0.006, handle + 0.006),
                (y - 0.07, y + 0.07),
                (-0.13, -0.118),
                "brass",
                False,
            )
        )
    return Body("counter", tuple(parts), 0.0, 0.0, kind="fixed")


def _sink() -> Body:
    """A steel basin that hangs in the slab, and its tap."""
    x0, x1, y0, y1 = _SINK
    deep, wall = -0.13, 0.006
    tap_x, tap_y = x1 + 0.045, (y0 + y1) / 2
    lying = (math.cos(math.pi / 4), 0.0, math.sin(math.pi / 4), 0.0)
    parts = (
        _box((x0, x1), (y0, y1), (deep - wall, deep), "steel"),
        _box((x0, x0 + wall), (y0, y1), (deep, 0.001), "steel"),
        _box((x1 - wall, x1), (y0, y1), (deep, 0.001), "steel"),
        _box((x0, x1), (y0, y0 + wall), (deep, 0.001), "steel"),
        _box((x0, x1), (y1 - wall, y1), (deep, 0.001), "steel"),
        Part(
            "cylinder",
            (0.020, 0.002),
            "graphite",
            at=((x0 + x1) / 2, tap_y, deep + 0.001),
            solid=False,
        ),
        Part("cylinder", (0.020, 0.010), "aluminium", at=(tap_x, tap_y, 0.010)),
        Part("cylinder", (0.010, 0.12), "aluminium", at=(tap_x, tap_y, 0.12)),
        Part("capsule", (0.010, 0.07), "aluminium", at=(tap_x - 0.07, tap_y, 0.24), turn=lying),
        Part("capsule", (0.009, 0.010), "aluminium", at=(tap_x - 0.14, tap_y, 0.225)),
    )
    return Body("sink", parts, 0.0, 0.0, kind="fixed")


def _hob() -> Body:
    """Black glass, flush with the slab."""
    rings = [
        Part(
            "cylinder",
            (radius - inset, 0.0008 + 0.0002 * inset / 0.004),
            material,
            (x, y, 0.0008),
            solid=False,
        )
        for x, y, radius in (
            (-0.06, -0.12, 0.055),
            (-0.06, 0.12, 0.045),
            (0.07, -0.12, 0.045),
            (0.07, 0.12, 0.055),
        )
        for inset, material in ((0.0, "grey"), (0.004, "black"))
    ]
    glass = Part("box", (0.14, 0.21, 0.0006), "black", at=(0, 0, 0.0006), solid=False)
    return Body("hob", (glass, *rings), 0.0, 0.0, kind="mark")


def _hood() -> Body:
    """An extractor over the hob, its flue rising to the ceiling."""
    parts = (
        _box((0.28, 0.54), (-0.44, -0.18), (0.40, 0.46), "steel"),
        _box((0.33, 0.51), (-0.40, -0.22), (0.46, 0.54), "aluminium"),
        _box((0.37, 0.49), (-0.36, -0.26), (0.54, 2.6), "aluminium"),
        _box((0.279, 0.281), (-0.40, -0.22), (0.42, 0.435), "graphite", False),
    )
    return Body("hood", parts, 0.0, 0.0, kind="fixed")


def _cupboard() -> Body:
    """A wall cupboard between the hood and the oven."""
    parts = (
        _box((0.30, 0.54), (-0.73, -0.45), (0.40, 0.78), "white"),
        _box((0.294, 0.300), (-0.725, -0.595), (0.405, 0.775), "teal", False),
        _box((0.294, 0.300), (-0.585, -0.455), (0.405, 0.775), "teal", False),
        _box((0.540, 0.546), (-0.725, -0.455), (0.405, 0.775), "teal", False),
        _box((0.282, 0.294), (-0.606, -0.600), (0.43, 0.53), "brass", False),
        _box((0.282, 0.294), (-0.580, -0.574), (0.43, 0.53), "brass", False),
    )
    return Body("cupboard", parts, 0.0, 0.0, kind="fixed")


def _oven() -> Body:
    """A tall unit at the right end, an oven at eye height in its side that faces the counter."""
    face = -_SIDE
    parts = (
        _box((-0.06, 0.56), (face - 0.45, face), (-_HEIGHT, 0.80), "white"),
        _box((0.00, 0.26), (face, face + 0.012), (0.10, 0.42), "black"),
        _box((0.03, 0.23), (face + 0.012, face + 0.014), (0.15, 0.32), "graphite", False),
        _box((0.03, 0.23), (face + 0.014, face + 0.030), (0.345, 0.357), "steel", False),
        *(
            Part("sphere", (0.010,), "brass", at=(x, face + 0.016, 0.39), solid=False)
            for x in (0.06, 0.13, 0.20)
        ),
    )
    return Body("oven", parts, 0.0, 0.0, kind="fixed")


SCENE = Scene(
    name="kitchenl",
    table_height=_HEIGHT,
    furniture=(
        Placed(_counter(), (0.0, 0.0)),
        Placed(_sink(), (0.0, 0.0)),
        Placed(_hob(), (0.40, -0.31)),
        Placed(_hood(), (0.0, 0.0)),
        Placed(_cupboard(), (0.0, 0.0)),
        Placed(_oven(), (0.0, 0.0)),
    ),
    work_area=(-0.32, 0.20, -0.48, 0.48),
    obstacles=(
        partial(bottle, material="walnut", height=0.19),
        partial(can, material="purple", height=0.15),
        partial(block, material="cork", half=(0.026, 0.026, 0.085)),
        partial(can, material="graphite", radius=0.032, height=0.14),
    ),
)
