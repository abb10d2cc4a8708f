"""An environment object of the checkout's for each episode: made, set up, and closed.

Promises: it begins with the episode's own generators, and default arguments as they were imported;
one that cannot be set up is closed, and what was wrong with it is an error that says so.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from harness.errors import RollpoolError
from harness.simulators.contract import Episode
from harness.simulators.robotwin.arguments import task_arguments
from harness.simulators.robotwin.checkout import Checkout
from harness.simulators.robotwin.default_arguments import restore_defaults
from harness.simulators.robotwin.hermetic import guarded, seeded

#: Environments after which the renderer's caches are emptied, as upstream does it.
_CLEAR_EVERY = 5


class Environments:
    """Those of one checkout; one is open at a time."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._closed = 0

    def set_up(self, asked: str, episode: Episode, measure: bool) -> tuple[Any, bool]:
        """A fresh environment after ``setup_demo``, and whether it measures collisions: not in a
        task that names no targets, and where ``measure`` is False.

        Raises:
            RollpoolError: an unstable seed, a missing file, a machine that cannot render, ...
        """
        checkout = self._checkout
        made = task_arguments(checkout, episode.task, episode.task_config)
        task_class = self._task_class(asked, episode)
        measure = measure and checkout.profile.measures_collisions
        if checkout.profile.measures_collisions:
            made["enable_collision_metrics"] = measure
        try:
            return self._set_up(asked, task_class, made, episode.seed), measure
        except NotImplementedError:  # the task does not say what its targets are
            if not measure:
                raise
            made["enable_collision_metrics"] = False
            return self._set_up(asked, task_class, made, episode.seed), False

    def close(self, env: Any) -> None:
        """``close_env`` frees the scene; ``close`` is gymnasium's, and does nothing."""
        self._closed += 1
        try:
            with self._checkout.inside():
                env.close_env(clear_cache=self._closed % _CLEAR_EVERY == 0)
        except Exception:  # half a scene; the object is dropped either way
            traceback.print_exc()

    def _set_up(self, asked: str, task_class: type, made: dict[str, Any], seed: int) -> Any:
        restore_defaults()
        seeded(made["task_name"], made["task_config"], seed)
        env: Any = task_class()
        try:
            with self._checkout.inside(), guarded(asked):
                env.setup_demo(now_ep_num=0, seed=seed, is_test=True, **made)
        except BaseException:
            self.close(env)
            raise
        return env

    def _task_class(self, asked: str, episode: Episode) -> type:
        try:
            with self._checkout.inside(), guarded(asked):
                return self._checkout.task_class(episode.scene, episode.task)
        except ModuleNotFoundError as error:
            raise RollpoolError(
                asked, f"the checkout's code needs the module '{error.name}'",
                "name the Python that the checkout was installed in by SIM_PY",
            ) from error  # fmt: skip


def physics_clock(env: Any) -> Callable[[], int]:
    """Counts the scene's physics steps from now on."""
    scene, count = env.scene, 0
    step = scene.step

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        return step(*args, **kwargs)

    scene.step = counted
    return lambda: count
