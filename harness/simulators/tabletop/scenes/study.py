"""The study: an oak desk with a lamp, a row of books and a pen holder at its far edge."""

from __future__ import annotations

from functools import partial

from harness.simulators.tabletop.bodies import Body, Part, Placed
from harness.simulators.tabletop.scenes import Scene
from harness.simulators.tabletop.things import block, bottle, can, table


def _lamp() -> Body:
    parts = (
        Part("cylinder", (0.065, 0.010), "brass", at=(0, 0, 0.010)),
        Part("cylinder", (0.009, 0.17), "brass", at=(0, 0, 0.19)),
        Part("box", (0.055, 0.009, 0.009), "brass", at=(-0.045, 0, 0.36)),
        Part("cylinder", (0.062, 0.045), "cream", at=(-0.10, 0, 0.335)),
    )
    return Body("lamp", parts, 0.17, 0.38, kind="fixed")


def _books() -> Body:
    """A shelf board on two supports, books standing on it."""
    spines = (
        ("navy", 0.020, 0.11),
        ("red", 0.016, 0.10),
        ("green", 0.022, 0.12),
        ("cream", 0.014, 0.095),
        ("purple", 0.019, 0.115),
        ("teal", 0.024, 0.105),
        ("orange", 0.015, 0.12),
    )
    parts = [
        Part("box", (0.075, 0.20, 0.008), "walnut", at=(0, 0, 0.072)),
        Part("box", (0.070, 0.010, 0.032), "walnut", at=(0, 0.17, 0.032)),
        Part("box", (0.070, 0.010, 0.032), "walnut", at=(0, -0.17, 0.032)),
    ]
    left = -0.17
    for material, half, tall in spines:
        parts.append(
            Part("box", (0.055, half, tall / 2), material, at=(0, left + half, 0.08 + tall / 2))
        )
        left += 2 * half + 0.002
    return Body("bookshelf", tuple(parts), 0.21, 0.20, kind="fixed")


SCENE = Scene(
    name="study",
    table_height=0.75,
    furniture=(
        Placed(table("desk", "oak", "walnut", (0.41, 0.70), 0.75), (0.0, 0.0)),
        Placed(_lamp(), (0.33, 0.60)),
        Placed(_books(), (0.32, -0.30)),
    ),
    work_area=(-0.32, 0.20, -0.45, 0.45),
    obstacles=(
        partial(bottle, material="teal", height=0.19),
        partial(can, material="orange", height=0.16),
        partial(block, material="walnut", half=(0.026, 0.026, 0.085)),
        partial(can, material="navy", radius=0.032, height=0.15),
    ),
)
