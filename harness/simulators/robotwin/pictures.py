"""The pictures of one episode.

Promises: they are a function of the episode and the step: however often pictures were taken before,
the lights (which upstream draws anew each time) are the same, and nothing that comes later changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.simulators.robotwin.checkout import Checkout
from harness.simulators.robotwin.hermetic import borrowed, derived, guarded


class Pictures:
    """Of ``env``, an episode with this seed."""

    def __init__(self, checkout: Checkout, env: Any, seed: int) -> None:
        self._checkout, self._env, self._seed = checkout, env, seed
        self._step = 0
        self._rendered: Mapping[str, Any] | None = None

    def moved(self) -> None:
        """The next step: what was rendered is of the past."""
        self._step += 1
        self._rendered = None

    def camera(self, name: str, instead: Sequence[str] = ()) -> Mapping[str, Any]:
        """The entry of ``get_obs`` of the profile's camera ``name``, or of the first of the others
        that there is. Raises ``RollpoolError`` where the scene has none of them."""
        rendered, own = self._get_obs(), self._checkout.profile.cameras[name]
        for candidate in (own, *instead):
            if "rgb" in rendered.get(candidate, {}):
                found: Mapping[str, Any] = rendered[candidate]
                return found
        raise RollpoolError(
            f"camera {name!r} ({own})",
            f"this scene has {', '.join(rendered)}",
            "use one of these, or turn the camera on in the task configuration",
        )

    def _get_obs(self) -> Mapping[str, Any]:
        if self._rendered is None:
            scene = self._env.scene
            ambient = getattr(scene, "ambient_light", None)
            number = derived("lights", self._seed, self._step)
            with self._checkout.inside(), guarded("rendering"), borrowed(number):
                self._rendered = self._env.get_obs()["observation"]
            if ambient is not None and getattr(self._env, "crazy_random_light", False):
                scene.set_ambient_light(ambient)
        assert self._rendered is not None
        return self._rendered


def rgb(camera: Mapping[str, Any]) -> np.ndarray:
    """``(H, W, 3)`` uint8 of an entry of ``get_obs``."""
    return np.ascontiguousarray(camera["rgb"][..., :3], np.uint8)
