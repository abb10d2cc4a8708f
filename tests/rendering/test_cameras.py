"""Pictures show something, the same thing everywhere, and looking changes nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from harness.errors import RollpoolError
from harness.simulators.contract import COUNTERTOP, DEMO, LEFT_WRIST, RIGHT_WRIST
from harness.simulators.tabletop.looks import LOOKS

SCENES = ("study", "office", "kitchenl", "kitchens")


def test_every_camera_shows_something(still_life):
    life = still_life("study")
    assert set(life.rig.names) == {COUNTERTOP, LEFT_WRIST, RIGHT_WRIST, DEMO}
    began = time.perf_counter()
    for name in life.rig.names:
        picture = life.rig.picture(name)
        assert picture.shape == (72, 96, 3) and picture.dtype == np.uint8
        assert picture.mean() > 20 and picture.std() > 8, name
    print(f"first four pictures: {time.perf_counter() - began:.3f} s")


def test_the_four_scenes_look_different(still_life):
    pictures = {look: still_life(look).rig.picture(DEMO).astype(float) for look in SCENES}
    for first in SCENES:
        for second in SCENES:
            if first < second:
                apart = np.abs(pictures[first] - pictures[second]).mean()
                assert apart > 15, (first, second)


def test_the_key_light_casts_a_shadow_that_begins_at_the_contact(still_life):
    life = still_life("kitchenl")
    life.step(240)
    x, y, _ = LOOKS["kitchenl"].key.direction
    away = 0.06 / np.hypot(x, y)  # the box at (0, 0.05) is 6 cm wide and high
    brightness = []
    for position in ((-0.25, 0.3), (away * x, 0.05 + away * y)):
        u, v = _pixel(life.rig, COUNTERTOP, (*position, 0.75))
        brightness.append(life.rig.picture(COUNTERTOP)[v, u].astype(float).mean())
    lit, shaded = brightness
    assert shaded < 0.85 * lit


def test_a_point_of_the_scene_is_where_the_matrices_say(still_life):
    life = still_life("office")
    life.step(240)
    for camera in (COUNTERTOP, DEMO):
        u, v = _pixel(life.rig, camera, (0.0, 0.05, 0.75 + 0.06))  # the top of the red box
        red, green, blue = life.rig.picture(camera)[v, u].astype(int)
        assert red > green + 60 and red > blue + 60, camera


def test_a_picture_follows_the_physics_when_told(still_life):
    life = still_life("study")
    before = life.rig.picture(COUNTERTOP)
    life.scene.step()
    life.scene.step()
    assert np.array_equal(life.rig.picture(COUNTERTOP), before)
    life.step(60)
    assert not np.array_equal(life.rig.picture(COUNTERTOP), before)


def test_looking_more_or_less_leaves_the_physics_equal(still_life):
    watched, ignored = still_life("study"), still_life("study")
    for step in range(60):
        watched.step()
        ignored.step()
        watched.rig.picture((COUNTERTOP, DEMO, LEFT_WRIST)[step % 3])
    assert watched.physics() == ignored.physics()


def test_pictures_do_not_depend_on_which_were_taken_before(still_life):
    first, second = still_life("office"), still_life("office")
    first.step(20)
    for _ in range(3):
        second.step(5)
        second.rig.picture(DEMO)
    second.step(5)
    assert first.digests() == dict(reversed(second.digests().items()))


def test_another_process_gives_the_same_bytes(still_life, still_life_program: Path):
    answer = subprocess.run(
        [sys.executable, str(still_life_program), *SCENES],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    elsewhere = {tuple(words[:2]): words[2] for words in map(str.split, answer.splitlines())}
    here = {}
    for look in reversed(SCENES):
        life = still_life(look)
        life.step(20)
        here.update({(look, camera): digest for camera, digest in life.digests().items()})
    assert elsewhere == here


def test_an_unknown_camera_is_refused_by_name(still_life):
    with pytest.raises(RollpoolError, match=r"camera 'side'.*countertop"):
        still_life("study").rig.picture("side")


def _pixel(rig, camera: str, point: tuple[float, float, float]) -> tuple[int, int]:
    """Where a camera sees a point."""
    seen = rig.intrinsics(camera) @ (rig.extrinsics(camera) @ [*point, 1.0])[:3]
    return int(seen[0] / seen[2]), int(seen[1] / seen[2])
