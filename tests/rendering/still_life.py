"""A small scene to take pictures of: a table, a falling box, one of each primitive, two wrists.

Run as a program, it prints the digest of every camera's picture after some physics, so that a test
can compare two processes:

    python still_life.py study office
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.episodes import rendering

os.environ.update(rendering.driver_environment())

import sapien

from harness.simulators.contract import LEFT_WRIST, RIGHT_WRIST
from harness.simulators.tabletop import cameras, looks, shapes
from harness.simulators.tabletop.bodies import Part

HEIGHT = 0.75
SIZE = (96, 72)


class StillLife:
    """The scene and its cameras."""

    def __init__(self, device: str, look: str) -> None:
        renderer = sapien.render.RenderSystem(sapien.Device(device))
        self.scene = sapien.Scene([sapien.physx.PhysxCpuSystem(), renderer])
        self._add(Part("box", (0.35, 0.6, 0.02), "oak"), (0.0, 0.0, HEIGHT - 0.02))
        self._add(Part("sphere", (0.05,), "steel"), (0.1, 0.2, HEIGHT + 0.05))
        self._add(Part("cylinder", (0.04, 0.05), "ceramic_white"), (0.1, -0.2, HEIGHT + 0.05))
        self._add(Part("capsule", (0.03, 0.05), "green"), (-0.1, -0.1, HEIGHT + 0.08))
        self._add(Part("box", (0.03, 0.03, 0.03), "red"), (0.0, 0.05, HEIGHT + 0.12), falls=True)
        wrists = {}
        for name, y in ((LEFT_WRIST, 0.2), (RIGHT_WRIST, -0.2)):
            wrists[name] = sapien.Entity()
            wrists[name].set_pose(sapien.Pose([0.0, y, HEIGHT + 0.4], [0.0, 1.0, 0.0, 0.0]))
            self.scene.add_entity(wrists[name])
        self.rig = cameras.CameraRig(self.scene, looks.LOOKS[look], wrists, SIZE, HEIGHT)

    def _add(self, part: Part, at: tuple[float, float, float], falls: bool = False) -> None:
        builder = self.scene.create_actor_builder()
        if part.shape == "box":
            builder.add_box_collision(half_size=list(part.size))
        builder.set_initial_pose(sapien.Pose(at))
        builder.set_physx_body_type("dynamic" if falls else "static")
        builder.build().add_component(shapes.visible([part]))

    def step(self, steps: int = 1) -> None:
        """Advance the physics."""
        for _ in range(steps):
            self.scene.step()
        self.rig.moved()

    def physics(self) -> str:
        """A digest of the whole physical state."""
        return hashlib.sha256(bytes(self.scene.physx_system.pack())).hexdigest()

    def digests(self) -> dict[str, str]:
        """A digest of the picture of every camera."""
        return {
            name: hashlib.sha256(self.rig.picture(name).tobytes()).hexdigest()
            for name in self.rig.names
        }


if __name__ == "__main__":
    found = rendering.probe()
    assert found is not None
    for look in sys.argv[1:]:
        life = StillLife(found.device, look)
        life.step(20)
        for camera, digest in life.digests().items():
            print(look, camera, digest)
    sys.stdout.flush()
    os._exit(0)
