"""What things look like: a palette of named materials, and the light and room of each scene.

A look changes pictures and nothing else: the room is visual only, so the physics of an episode is
the same with and without a renderer. Nothing is cached between scenes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import sapien

from harness.errors import RollpoolError

#: Kinds of procedural pattern, as numbered in ``shaders/patterns.glsl``.
PLAIN, WOOD, TILES, STONE, CLOTH, PLANKS = range(6)


@dataclass(frozen=True)
class Finish:
    """A material of the palette. ``colour`` is sRGB as ``#rrggbb``; the rest is 0 to 1."""

    colour: str
    roughness: float = 0.5
    metallic: float = 0.0
    pattern: int = PLAIN


PALETTE: Mapping[str, Finish] = MappingProxyType(
    {
        # woods
        "birch": Finish("#e3cfa4", 0.55, pattern=WOOD),
        "oak": Finish("#c99a5f", 0.55, pattern=WOOD),
        "walnut": Finish("#7d5438", 0.45, pattern=WOOD),
        # metals
        "aluminium": Finish("#d5d8dc", 0.42, 1.0),
        "steel": Finish("#a9aeb5", 0.35, 1.0),
        "gunmetal": Finish("#5b6068", 0.45, 0.8),
        "brass": Finish("#d8b25c", 0.30, 1.0),
        # stone, ceramics, cloth, paper
        "ceramic_white": Finish("#f1efe9", 0.15),
        "ceramic_blue": Finish("#3f6fa8", 0.15),
        "marble": Finish("#e9e6e1", 0.25, pattern=STONE),
        "slate": Finish("#4d555e", 0.60, pattern=STONE),
        "concrete": Finish("#a5a6a4", 0.85, pattern=STONE),
        "terracotta": Finish("#c4704c", 0.75, pattern=STONE),
        "felt_green": Finish("#3f7a54", 0.95, pattern=CLOTH),
        "felt_grey": Finish("#84888f", 0.95, pattern=CLOTH),
        "linen": Finish("#dcd0b8", 0.95, pattern=CLOTH),
        "cork": Finish("#bd9363", 0.90, pattern=STONE),
        "paper": Finish("#f3f0e8", 0.90),
        # lacquers and plastics
        "white": Finish("#eeeeee", 0.40),
        "grey": Finish("#8c9096", 0.45),
        "graphite": Finish("#3c4046", 0.40),
        "black": Finish("#1e2023", 0.35),
        "red": Finish("#c8372f", 0.35),
        "orange": Finish("#e8812c", 0.35),
        "yellow": Finish("#eebf33", 0.35),
        "green": Finish("#4c9a4a", 0.35),
        "teal": Finish("#1f8f8a", 0.35),
        "blue": Finish("#2f66c0", 0.35),
        "navy": Finish("#26385f", 0.40),
        "purple": Finish("#7a4fa3", 0.35),
        "pink": Finish("#e08aa0", 0.35),
        "cream": Finish("#f2e6c9", 0.50),
        # the arms
        "robot_white": Finish("#eceef0", 0.35),
        "robot_grey": Finish("#4a4f57", 0.40),
        "robot_dark": Finish("#2b2e33", 0.40),
        "robot_pad": Finish("#d9772e", 0.80),
        # floors and walls
        "floor_oak": Finish("#b78a5c", 0.50, pattern=PLANKS),
        "floor_walnut": Finish("#75513a", 0.45, pattern=PLANKS),
        "floor_carpet": Finish("#70757c", 0.95, pattern=CLOTH),
        "floor_terracotta": Finish("#c27a57", 0.60, pattern=TILES),
        "floor_slate": Finish("#5d656d", 0.45, pattern=TILES),
        "wall_sage": Finish("#8a9c86", 0.95),
        "wall_mist": Finish("#c9d3dd", 0.95),
        "wall_cream": Finish("#f0e6d0", 0.95),
        "wall_teal_tiles": Finish("#3f7f86", 0.25, pattern=TILES),
    }
)


def _linear(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red**2.2, green**2.2, blue**2.2


def material(name: str) -> sapien.render.RenderMaterial:
    """A new material with the finish ``name`` of the palette.

    Raises:
        RollpoolError: no such name.
    """
    if name not in PALETTE:
        raise RollpoolError(
            f"material '{name}'", "not in the palette", f"pick one of: {', '.join(sorted(PALETTE))}"
        )
    finish = PALETTE[name]
    made = sapien.render.RenderMaterial(
        base_color=[*_linear(finish.colour), 1.0],
        roughness=finish.roughness,
        metallic=finish.metallic,
    )
    # A rasteriser has no use for this field; the shaders read the pattern from it.
    made.transmission_roughness = float(finish.pattern)
    return made


@dataclass(frozen=True)
class Light:
    """Light from infinitely far: the direction it travels in, and its linear RGB intensity."""

    direction: tuple[float, float, float]
    colour: tuple[float, float, float]


@dataclass(frozen=True)
class Look:
    """The mood of a scene. ``key`` casts the shadows, ``fill`` softens them, ``ambient`` is the
    linear RGB of light from all around; ``wall`` and ``floor`` name materials of the palette."""

    key: Light
    fill: Light
    ambient: tuple[float, float, float]
    wall: str
    floor: str


LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        # a desk lamp in the evening: warm, from the left
        "study": Look(
            key=Light((-0.45, 0.60, -1.0), (0.86, 0.66, 0.44)),
            fill=Light((-0.6, -0.8, -0.5), (0.10, 0.12, 0.20)),
            ambient=(0.25, 0.24, 0.25),
            wall="wall_sage",
            floor="floor_walnut",
        ),
        # daylight through a large window: cool and even, from the right
        "office": Look(
            key=Light((-0.50, -0.55, -1.0), (0.62, 0.68, 0.76)),
            fill=Light((-0.4, 0.9, -0.5), (0.14, 0.14, 0.13)),
            ambient=(0.36, 0.39, 0.43),
            wall="wall_mist",
            floor="floor_carpet",
        ),
        # a bright morning: strong sun with a clear shadow
        "kitchenl": Look(
            key=Light((-0.62, -0.34, -0.95), (0.88, 0.81, 0.67)),
            fill=Light((-0.3, 0.9, -0.6), (0.12, 0.14, 0.17)),
            ambient=(0.32, 0.33, 0.34),
            wall="wall_cream",
            floor="floor_terracotta",
        ),
        # a galley at dusk: dark tiles, a ceiling lamp overhead, blue from the window
        "kitchens": Look(
            key=Light((-0.22, -0.28, -1.0), (1.05, 0.92, 0.70)),
            fill=Light((-0.5, 0.9, -0.4), (0.10, 0.20, 0.32)),
            ambient=(0.21, 0.25, 0.31),
            wall="wall_teal_tiles",
            floor="floor_slate",
        ),
    }
)

#: The room, metres from the middle of the work surface: behind the arms, in front, aside, up.
_BEHIND, _BEFORE, _ASIDE, _CEILING = 1.3, 4.0, 3.0, 3.6
#: Half the side of what the shadow map covers, its distance from the light, and its texels.
_SHADOW_HALF, _SHADOW_REACH, _SHADOW_TEXELS = 0.95, 2.2, 512


def dress(scene: sapien.Scene, look: Look, height: float) -> None:
    """Give ``scene`` the lights and the room of ``look``.

    Args:
        scene: a scene with a render system; its physics is not touched.
        look: one of ``LOOKS``.
        height: z of the work surface, metres; its middle is above the world's origin.
    """
    scene.set_ambient_light(list(look.ambient))
    length = sum(part * part for part in look.key.direction) ** 0.5
    back = [-part / length * _SHADOW_REACH for part in look.key.direction]
    scene.add_directional_light(
        list(look.key.direction),
        list(look.key.colour),
        position=[back[0], back[1], height + back[2]],
        shadow=True,
        shadow_scale=_SHADOW_HALF,
        shadow_near=0.05,
        shadow_far=2 * _SHADOW_REACH,
        shadow_map_size=_SHADOW_TEXELS,
    )
    scene.add_directional_light(list(look.fill.direction), list(look.fill.colour))
    _panel(scene, look.floor, (1.35, 0.0, -0.05), (2.65, _ASIDE, 0.05), "floor")
    _panel(scene, look.wall, (-_BEHIND - 0.05, 0.0, 1.8), (0.05, _ASIDE, 1.8), "wall_back")
    _panel(scene, look.wall, (_BEFORE + 0.05, 0.0, 1.8), (0.05, _ASIDE, 1.8), "wall_front")
    _panel(scene, look.wall, (1.35, -_ASIDE - 0.05, 1.8), (2.65, 0.05, 1.8), "wall_right")
    _panel(scene, look.wall, (1.35, _ASIDE + 0.05, 1.8), (2.65, 0.05, 1.8), "wall_left")
    _panel(scene, "white", (1.35, 0.0, _CEILING + 0.05), (2.65, _ASIDE, 0.05), "ceiling")


def _panel(
    scene: sapien.Scene,
    finish: str,
    middle: tuple[float, float, float],
    half_size: tuple[float, float, float],
    name: str,
) -> None:
    body = sapien.render.RenderBodyComponent()
    body.attach(sapien.render.RenderShapeBox(half_size, material(finish)))
    entity = sapien.Entity()
    entity.name = name
    entity.add_component(body)
    entity.set_pose(sapien.Pose(middle))
    scene.add_entity(entity)
