"""The four cameras of a scene, rendered one at a time and only when asked.

Promises: a picture is a function of the physical state and the look alone; taking more or fewer
pictures never changes the physics; every picture taken is fetched (destroying a scene with an
unfetched picture ends the process).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import sapien

from harness.errors import RollpoolError
from harness.simulators.contract import COUNTERTOP, DEMO, LEFT_WRIST, RIGHT_WRIST
from harness.simulators.tabletop import looks
from harness.simulators.tabletop.arm_body import TCP_DISTANCE

SHADERS = Path(__file__).resolve().parent / "shaders"
_COLOUR = "Color"  # the shaders' one output

#: Half of the width that the overhead camera sees at the height of the work surface, metres.
_OVERHEAD_HALF_WIDTH = 0.74
#: Where a wrist camera sits in its link, and the point that it looks at, metres: a little beyond
#: the fingertips, since what they come to matters most.
_WRIST = (0.09, 0.0, 0.10), (0.0, 0.0, TCP_DISTANCE + 0.04)
#: Cameras whose pictures are rendered so many times larger and averaged down, which makes edges
#: smooth; it costs about the square of it.
_SMOOTH = {DEMO: 2}


def looking_at(
    eye: tuple[float, float, float],
    target: tuple[float, float, float],
    up: tuple[float, float, float] = (0.0, 0.0, 1.0),
) -> sapien.Pose:
    """The pose of a camera (x forward, y left, z up) at ``eye`` that looks at ``target``."""
    forward = np.subtract(target, eye)
    forward = forward / np.linalg.norm(forward)
    left = np.cross(up, forward)
    left = left / np.linalg.norm(left)
    matrix = np.eye(4)
    matrix[:3, :3] = np.stack([forward, left, np.cross(forward, left)], axis=1)
    matrix[:3, 3] = eye
    return sapien.Pose(matrix)


class CameraRig:
    """The lights, the room and the cameras of one scene.

    Args:
        scene: a scene with a render system, furnished or not.
        look: what ``looks.LOOKS`` holds for it.
        wrist_links: the entities that ``left_wrist`` and ``right_wrist`` are mounted on, by these
            names.
        size: ``(width, height)`` of the pictures, pixels.
        table_height: z of the work surface, metres; its middle is above the world's origin.
    """

    def __init__(
        self,
        scene: sapien.Scene,
        look: looks.Look,
        wrist_links: Mapping[str, sapien.Entity],
        size: tuple[int, int],
        table_height: float,
    ) -> None:
        # Bytes straight from the renderer: a quarter of the memory to read back.
        sapien.render.set_picture_format(_COLOUR, "r8g8b8a8unorm")
        self._scene = scene
        self._stale = True
        self._cameras: dict[str, sapien.render.RenderCameraComponent] = {}
        looks.dress(scene, look, table_height)
        self._add_fixed(size, table_height)
        for name in (LEFT_WRIST, RIGHT_WRIST):
            camera = self._camera(name, size, fov_x=1.25, near=0.01)
            camera.local_pose = looking_at(*_WRIST, up=(1.0, 0.0, 0.0))
            wrist_links[name].add_component(camera)

    def _add_fixed(self, size: tuple[int, int], height: float) -> None:
        above = 1.30
        overhead = self._camera(
            COUNTERTOP, size, fov_x=2 * float(np.arctan2(_OVERHEAD_HALF_WIDTH, above)), near=0.1
        )
        # From a little in front of the table: the arms hide less of it, and sides can be seen.
        self._stand(overhead, looking_at((0.22, 0.0, height + above), (0.0, 0.0, height)))
        demo = self._camera(DEMO, size, fov_x=1.0, near=0.1)
        eye, target = (1.35, 0.90, height + 0.95), (-0.12, -0.02, height + 0.16)
        self._stand(demo, looking_at(eye, target))

    def _camera(
        self, name: str, size: tuple[int, int], fov_x: float, near: float
    ) -> sapien.render.RenderCameraComponent:
        width, height = (side * _SMOOTH.get(name, 1) for side in size)
        camera = sapien.render.RenderCameraComponent(width, height, shader_dir=str(SHADERS))
        camera.set_fovx(fov_x, compute_y=True)
        camera.near, camera.far = near, 10.0
        camera.name = name
        self._cameras[name] = camera
        return camera

    def _stand(self, camera: sapien.render.RenderCameraComponent, pose: sapien.Pose) -> None:
        entity = sapien.Entity()
        entity.name = camera.name
        entity.add_component(camera)
        entity.set_pose(pose)
        self._scene.add_entity(entity)

    @property
    def names(self) -> tuple[str, ...]:
        """The cameras there are."""
        return tuple(self._cameras)

    def moved(self) -> None:
        """Say that the physical state has changed since the last picture."""
        self._stale = True

    def picture(self, name: str) -> np.ndarray:
        """The ``(height, width, 3)`` uint8 sRGB picture of one camera; no other is rendered.

        Raises:
            RollpoolError: no such camera.
        """
        camera = self._find(name)
        if self._stale:
            self._scene.update_render()
            self._stale = False
        camera.take_picture()
        taken = camera.get_picture(_COLOUR)[..., :3]
        return _averaged(taken, _SMOOTH.get(name, 1))

    def intrinsics(self, name: str) -> np.ndarray:
        """The ``(3, 3)`` float64 pinhole matrix of a camera, pixels."""
        matrix = self._find(name).get_intrinsic_matrix().astype(np.float64)
        matrix[:2] /= _SMOOTH.get(name, 1)
        return matrix

    def extrinsics(self, name: str) -> np.ndarray:
        """The ``(4, 4)`` float64 transform from world to camera (x right, y down, z forward),
        metres, for the current physical state."""
        matrix = np.eye(4)
        matrix[:3] = self._find(name).get_extrinsic_matrix()
        return matrix

    def _find(self, name: str) -> sapien.render.RenderCameraComponent:
        if name not in self._cameras:
            raise RollpoolError(
                f"camera '{name}'", "no such camera", f"pick one of: {', '.join(self._cameras)}"
            )
        return self._cameras[name]


def _averaged(picture: np.ndarray, factor: int) -> np.ndarray:
    """Squares of ``factor`` x ``factor`` pixels averaged into one, rounded."""
    if factor == 1:
        return np.ascontiguousarray(picture)
    wide = picture.astype(np.uint32)
    rows = wide[::factor].copy()
    for k in range(1, factor):
        rows += wide[k::factor]
    total = rows[:, ::factor].copy()
    for k in range(1, factor):
        total += rows[:, k::factor]
    return ((total + factor * factor // 2) // (factor * factor)).astype(np.uint8)
