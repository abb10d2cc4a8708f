"""The small kitchen: a narrow counter between two tiled walls close to the arms."""

from __future__ import annotations

from functools import partial

from harness.simulators.tabletop.bodies import Body, Part, Placed
from harness.simulators.tabletop.scenes import Scene
from harness.simulators.tabletop.things import block, bottle, can

#: The height of the counter, where it ends towards the arms and away from them, and half its width.
HEIGHT = 0.85
_NEAR, _FAR, _ASIDE = -0.41, 0.27, 0.58


def _counter() -> Body:
    """A slate top on cupboards, its **top** at the origin; the fronts face away from the arms."""
    middle, depth, plinth = (_FAR + _NEAR) / 2, (_FAR - _NEAR) / 2, 0.10
    tall = (HEIGHT - 0.04 - plinth) / 2
    cupboard = -0.04 - tall
    foot = plinth / 2 - HEIGHT
    doors = [-0.39, -0.13, 0.13, 0.39]
    parts = (
        Part("box", (depth, _ASIDE, 0.02), "slate", at=(middle, 0, -0.02)),
        Part("box", (depth - 0.03, _ASIDE, tall), "navy", at=(middle, 0, cupboard)),
        Part("box", (depth - 0.06, _ASIDE, plinth / 2), "black", at=(middle, 0, foot)),
        Part("box", (0.09, 0.40, 0.02), "walnut", at=(_NEAR - 0.09, 0, -0.032)),  # under the arms
        *(
            Part("box", (0.008, 0.122, tall - 0.02), "navy", at=(_FAR - 0.022, y, cupboard))
            for y in doors
        ),
        *(
            Part("box", (0.008, 0.05, 0.006), "brass", at=(_FAR - 0.008, y, cupboard + tall - 0.06))
            for y in doors
        ),
    )
    return Body("counter", parts, 0.0, 0.0, kind="fixed")


def _wall(name: str) -> Body:
    """A tiled wall from the floor to above the hands, with a wooden rail on it."""
    length, above = 0.33, 0.40
    parts = (
        Part(
            "box",
            (length, 0.02, (HEIGHT + above) / 2),
            "wall_teal_tiles",
            at=(0, 0, (above - HEIGHT) / 2),
        ),
        Part("box", (length + 0.004, 0.026, 0.008), "walnut", at=(0, 0, above + 0.008)),
    )
    return Body(name, parts, 0.0, above, kind="fixed")


def _shelf() -> Body:
    """A board on the left wall with spice jars on it."""
    jars = (("green", -0.11), ("pink", -0.04), ("blue", 0.03), ("green", 0.10))
    parts = [Part("box", (0.16, 0.035, 0.008), "walnut", at=(0, 0, 0.008))]
    for lid, x in jars:
        parts += [
            Part("cylinder", (0.022, 0.030), "ceramic_white", at=(x, 0, 0.046)),
            Part("cylinder", (0.023, 0.008), lid, at=(x, 0, 0.084)),
        ]
    return Body("shelf", tuple(parts), 0.0, 0.09, kind="fixed")


SCENE = Scene(
    name="kitchens",
    table_height=HEIGHT,
    furniture=(
        Placed(_counter(), (0.0, 0.0)),
        Placed(_wall("left_wall"), (-0.08, _ASIDE + 0.02)),
        Placed(_wall("right_wall"), (-0.08, -_ASIDE - 0.02)),
        Placed(_shelf(), (0.05, _ASIDE - 0.035), lift=0.28),
    ),
    work_area=(-0.32, 0.20, -0.46, 0.46),
    obstacles=(
        partial(bottle, material="ceramic_blue", height=0.19),
        partial(can, material="teal", height=0.17),
        partial(block, material="birch", half=(0.026, 0.026, 0.090)),
        partial(can, material="purple", radius=0.032, height=0.16),
    ),
)
