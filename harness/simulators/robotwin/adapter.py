"""A RoboTwin or RoboPRO checkout behind the simulator contract.

Promises: every episode has an environment object of its own, and generators and default arguments
as they were when the code was imported, so that it depends on its ``Episode`` alone; collisions are
measured while a policy plays and never while the expert is asked (the flag changes the planner's
world); an unstable seed, a prompt, a missing asset or a machine that cannot render is an error that
says so. Not promised: that two machines, two SAPIEN versions or two runs of CuRobo agree; the
fingerprint tells where they do not.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.simulators import contract
from harness.simulators.robotwin import hermetic, instructions, observing
from harness.simulators.robotwin.actions import action_spaces
from harness.simulators.robotwin.checkout import Checkout
from harness.simulators.robotwin.environments import Environments, physics_clock
from harness.simulators.robotwin.fingerprint import Fingerprints
from harness.simulators.robotwin.hermetic import UnstableSeed, guarded
from harness.simulators.robotwin.pictures import Pictures, rgb

#: Raised when equal seeds no longer give equal episodes through this adapter.
ADAPTER_VERSION = 1
#: The rate of upstream's videos, which have one picture an action.
_CONTROL_HZ = 10.0
_TIMESTEP = 1 / 250


@dataclass
class _Running:
    """The episode in progress."""

    env: Any
    episode: contract.Episode
    measured: bool
    fingerprint: Mapping[str, str]
    physics_steps: Callable[[], int]
    pictures: Pictures
    steps: int = 0


class RoboTwin(contract.Simulator):
    """See the module, ``contract.Simulator`` and ``docs/robotwin.md``.

    Args:
        render: False for states alone. (The checkout builds its renderer all the same.)
        config: the content of ``SIM_CONFIG``; see ``Checkout``.
    """

    name = "robotwin"

    def __init__(self, render: bool = True, config: Mapping[str, Any] | None = None) -> None:
        config = config or {}
        hermetic.close_stdin()
        self._checkout = Checkout(config)
        self._profile = self._checkout.profile
        self._kind = str(config.get("instruction_type", "unseen"))
        self.control_hz = float(config.get("control_hz", _CONTROL_HZ))
        self.cameras: Sequence[str] = tuple(self._profile.cameras) if render else ()
        native = str(config.get("native", self._profile.native))
        self.action_kinds = action_spaces(self._checkout, native)
        self._fingerprints = Fingerprints(self._checkout, config)
        self._environments = Environments(self._checkout)
        self._running: _Running | None = None

    def cells(self) -> Sequence[tuple[str, str]]:
        """All ``(scene, task)`` pairs; a plain RoboTwin checkout is one scene, ``robotwin``."""
        return self._checkout.cells()

    def task_configs(self, scene: str) -> Sequence[str]:
        """The YAML files of the checkout that fit the scene."""
        return self._checkout.task_configs(scene)

    def step_limit(self, task: str, task_config: str) -> int:
        """Of the checkout's step-limit file, 1000 where it does not know the task."""
        return self._checkout.step_limit(task)

    def seal(self, scene: str, task: str, task_config: str, seed: int) -> Mapping[str, Any]:
        """Builds the scene to take its fingerprint. Where instructions come from templates, the
        expert plays it too: they name what it used.

        Raises:
            RollpoolError: an unstable seed, one that the expert cannot play, no description.
        """
        self._release()
        asked = f"seal {scene}/{task}/{task_config} seed {seed}"
        episode = contract.Episode(scene, task, task_config, seed, instruction="")
        env, measured = self._set_up(asked, episode, measure=True)
        try:
            found = self._fingerprints.of(env, task, task_config)
            with self._checkout.inside(), guarded(asked):
                sentence = instructions.sentence(self._checkout, self._kind, env, episode)
        finally:
            self._environments.close(env)
        return {
            "instruction": sentence,
            "reset": {"adapter": ADAPTER_VERSION, "collisions": measured},
            "fingerprint": found,
        }

    def solvable(self, episode: contract.Episode) -> bool:
        """Whether the expert plays this (unsealed) episode to success, as upstream's scan asks.

        Raises:
            RollpoolError: what is wrong is the machine or the checkout, not the seed.
        """
        self._release()
        asked = f"expert check of {episode.task} seed {episode.seed}"
        env = None
        try:
            env, _ = self._set_up(asked, episode, measure=False)
            with self._checkout.inside(), guarded(asked):
                env.play_once()
                return bool(env.plan_success and env.check_success())
        except UnstableSeed as unstable:
            print(unstable, flush=True)
        except RollpoolError:
            raise
        except Exception as error:  # upstream raises anything where a scene cannot be solved
            traceback.print_exc()
            if hermetic.of_the_machine(error):
                raise
        finally:
            if env is not None:
                self._environments.close(env)
        return False

    def reset(self, episode: contract.Episode) -> None:
        """Builds the episode's scene, in an environment object of its own."""
        self._release()
        version = episode.reset.get("adapter", ADAPTER_VERSION)
        if version != ADAPTER_VERSION:
            raise RollpoolError(
                f"an episode sealed by robotwin adapter {version}", f"this is {ADAPTER_VERSION}",
                "seal the population again, for a new run",
            )  # fmt: skip
        asked = f"reset {episode.task}/{episode.task_config} seed {episode.seed}"
        env, measured = self._set_up(asked, episode, measure=True)
        env.set_instruction(instruction=episode.instruction)
        found = self._fingerprints.of(env, episode.task, episode.task_config)
        pictures = Pictures(self._checkout, env, episode.seed)
        self._running = _Running(env, episode, measured, found, physics_clock(env), pictures)

    def fingerprint(self) -> Mapping[str, str]:
        """``code assets settings sapien``, and ``scene``: the state after the set-up."""
        return self._now.fingerprint

    def observe(self, cameras: Collection[str]) -> contract.Observation:
        """See ``observing`` for ``proprio`` and ``state``."""
        now = self._now
        state = observing.robot_state(now.env)
        images = {}
        for name in cameras:
            camera = self._camera(name)
            images[name] = rgb(camera)
            state |= observing.camera_poses(name, camera)
        return contract.Observation(
            images, state[contract.native(self)], now.episode.instruction, state
        )

    def step(self, action: np.ndarray, kind: str) -> bool:
        """One ``take_action``: success is tried at every physics step of it and ends it.

        Raises:
            RollpoolError: an action of another kind or shape, or not finite.
        """
        now = self._now
        action = contract.taken(self, action, kind)
        if kind == "ee6d":
            action, kind = observing.ee_from_ee6d(action), "ee"
        now.steps += 1
        now.pictures.moved()
        with self._checkout.inside(), guarded(f"action {now.steps} of {now.episode.task}"):
            now.env.take_action(action, action_type=kind)
        return bool(now.env.eval_success)

    def score(self) -> contract.Score:
        """Without a collision metric (plain RoboTwin, or a task that names no targets) hard
        success is unknown."""
        env = self._now.env
        success = bool(env.eval_success)
        if not self._now.measured:
            return contract.Score(success, None, None)
        found = env.get_collision_metrics()
        names = [
            str(name) for key, value in found.items() if key.endswith("_names") for name in value
        ]
        count = int(found["total_collision_count"])
        return contract.Score(success, success and not found["is_collision"], count, tuple(names))

    def frame(self, camera: str) -> np.ndarray:
        """One picture; a camera that this scene has not gives way in upstream's order."""
        return rgb(self._camera(camera, self._profile.video_order))

    def sim_time(self) -> float:
        """Physics steps since the set-up, in seconds: an action takes as many as its way is
        long."""
        return self._now.physics_steps() * _TIMESTEP

    def state_hash(self) -> str:
        """See ``observing.state_digest``."""
        return observing.state_digest(self._now.env)

    def versions(self) -> Mapping[str, str]:
        """The dialect, the checkout's code and SAPIEN."""
        return {
            "simulator": f"robotwin {self._profile.name}",
            "checkout": self._fingerprints.fixed["code"],
            "sapien": self._fingerprints.fixed["sapien"],
        }

    def close(self) -> None:
        """Frees the scene."""
        self._release()

    @property
    def _now(self) -> _Running:
        if self._running is None:
            raise RollpoolError("an episode of robotwin", "none is running", "call reset first")
        return self._running

    def _set_up(self, asked: str, episode: contract.Episode, measure: bool) -> tuple[Any, bool]:
        contract.require_cell(self, episode.scene, episode.task, episode.task_config)
        return self._environments.set_up(asked, episode, measure)

    def _camera(self, name: str, instead: Sequence[str] = ()) -> Mapping[str, Any]:
        if name not in self.cameras:
            known = ", ".join(self.cameras) or "none: states alone were asked for"
            raise RollpoolError(f"camera {name!r}", f"there is {known}", "use one of these")
        return self._now.pictures.camera(name, instead)

    def _release(self) -> None:
        if self._running is not None:
            running, self._running = self._running, None
            self._environments.close(running.env)
