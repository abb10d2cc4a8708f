"""The office: a desk between two privacy screens, a monitor and paper trays at its far edge."""

from __future__ import annotations

from functools import partial

from harness.simulators.tabletop.bodies import Body, Part, Placed
from harness.simulators.tabletop.scenes import Scene
from harness.simulators.tabletop.things import block, bottle, can, table


def _monitor() -> Body:
    """A screen that faces the arms."""
    parts = (
        Part("box", (0.055, 0.10, 0.006), "graphite", at=(0, 0, 0.006)),
        Part("box", (0.012, 0.025, 0.08), "graphite", at=(0.012, 0, 0.09)),
        Part("box", (0.010, 0.21, 0.125), "black", at=(-0.010, 0, 0.235)),
        Part("box", (0.001, 0.20, 0.115), "navy", at=(-0.021, 0, 0.235), solid=False),
        Part("box", (0.001, 0.09, 0.06), "paper", at=(-0.022, 0.07, 0.25), solid=False),
    )
    return Body("monitor", parts, 0.12, 0.36, kind="fixed")


def _paper_trays() -> Body:
    """Three trays one above the other, some paper in them."""
    parts = []
    for level in range(3):
        z = 0.006 + 0.055 * level
        parts += [
            Part("box", (0.085, 0.115, 0.004), "graphite", at=(0, 0, z)),
            Part("box", (0.004, 0.115, 0.018), "graphite", at=(0.081, 0, z + 0.018)),
            Part("box", (0.075, 0.105, 0.006), "paper", at=(0, 0, z + 0.010), solid=False),
        ]
    parts += [
        Part("box", (0.070, 0.005, 0.065), "graphite", at=(0.010, y, 0.065))
        for y in (-0.112, 0.112)
    ]
    return Body("paper_trays", tuple(parts), 0.14, 0.15, kind="fixed")


def _screen(name: str) -> Body:
    """A felt-covered panel along the side of the desk, higher than a hand at work."""
    parts = (
        Part("box", (0.38, 0.010, 0.14), "felt_green", at=(0, 0, 0.145)),
        Part("box", (0.385, 0.012, 0.005), "aluminium", at=(0, 0, 0.290)),
        Part("box", (0.030, 0.022, 0.005), "aluminium", at=(-0.25, 0, 0.005)),
        Part("box", (0.030, 0.022, 0.005), "aluminium", at=(0.25, 0, 0.005)),
    )
    return Body(name, parts, 0.0, 0.295, kind="fixed")


SCENE = Scene(
    name="office",
    table_height=0.72,
    furniture=(
        Placed(table("desk", "birch", "aluminium", (0.41, 0.70), 0.72), (0.0, 0.0)),
        Placed(_monitor(), (0.345, -0.40)),
        Placed(_paper_trays(), (0.322, 0.535)),
        Placed(_screen("left_screen"), (0.02, 0.66)),
        Placed(_screen("right_screen"), (0.02, -0.66)),
    ),
    work_area=(-0.32, 0.20, -0.50, 0.50),
    obstacles=(
        partial(bottle, material="graphite", height=0.19),
        partial(can, material="green", height=0.15),
        partial(block, material="cream", half=(0.026, 0.026, 0.085)),
        partial(can, material="purple", radius=0.032, height=0.13),
    ),
)
