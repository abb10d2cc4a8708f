"""Adapters that break the contract, each in one way that real simulators have: the point simulator
with a fault. The conformance suite has to find every one. ``FAULTS`` says where it does.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from harness.simulators.contract import ActionSpace, Episode, Observation, Score
from tests.fakes.pointsim import PointSim

TWICE, LOOKING = "an episode twice in a process", "looking changes nothing"
ORDER = "in another process and order, first and last"
PLAYED, SEEN, ACTIONS = "its episodes can be played", "observations", "actions: shapes, bounds"


class Drifts(PointSim):
    """A mutable default argument that every reset adds to."""

    def reset(self, episode: Episode, clutter: list[float] = []) -> None:  # noqa: B006
        super().reset(episode)
        clutter.append(0.01)
        self._arms[1] += sum(clutter)


class DependsOnOrder(PointSim):
    """The first episode of a process decides where the arm of all others begins."""

    home: float | None = None

    def reset(self, episode: Episode) -> None:
        super().reset(episode)
        type(self).home = self._arms[0] if self.home is None else self.home
        self._arms[0] = self.home


class KeepsTheScene(PointSim):
    """What an abandoned episode left is still there in the next one."""

    left = 0.0

    def reset(self, episode: Episode) -> None:
        super().reset(episode)
        self._arms[1] += self.left
        self.left = 0.05

    def step(self, action: np.ndarray, kind: str) -> bool:
        done = super().step(action, kind)
        self.left = 0.0 if self._steps > 3 else 0.05
        return done


class RandomReset(PointSim):
    """Draws from numpy's global generator."""

    def reset(self, episode: Episode) -> None:
        super().reset(episode)
        self._arms[:2] += np.random.uniform(0, 0.01, 2)


class UnseededInstruction(PointSim):
    """Chooses its sentence from the global generator."""

    def seal(self, scene: str, task: str, task_config: str, seed: int) -> Mapping[str, Any]:
        sentence = f"move to the mark, {random.random()}"
        return {**super().seal(scene, task, task_config, seed), "instruction": sentence}


class NumberedObjects(PointSim):
    """Seals by number what a manifest says by text, in another order."""

    def seal(self, scene: str, task: str, task_config: str, seed: int) -> Mapping[str, Any]:
        line = super().seal(scene, task, task_config, seed)
        return {**line, "reset": {**line["reset"], "places": {9: 0.1, 10: 0.2}}}


class OtherInstruction(PointSim):
    """Shows another sentence than the sealed one."""

    def observe(self, cameras: Collection[str]) -> Observation:
        return replace(super().observe(cameras), instruction="go")


class LookingMoves(PointSim):
    """Taking a picture is a step of the physics."""

    def frame(self, camera: str) -> np.ndarray:
        self._arms[2] += 1e-9
        return super().frame(camera)


class MovesWithoutRenderer(PointSim):
    """Its physics depends on whether it renders."""

    def reset(self, episode: Episode) -> None:
        super().reset(episode)
        self._arms[2] += 0.0 if self.cameras else 1e-9


class AskingMoves(PointSim):
    """The expert plans on the real state and leaves it changed."""

    def expert_chunk(self, length: int) -> np.ndarray:
        self._arms[2] += 1e-9
        return super().expert_chunk(length)


class WrongShape(PointSim):
    def observe(self, cameras: Collection[str]) -> Observation:
        return replace(super().observe(cameras), proprio=self._arms[None])


class SharedArray(PointSim):
    """Hands out its own memory."""

    def reset(self, episode: Episode) -> None:
        super().reset(episode)
        self._seen = np.zeros(20, np.float32)

    def observe(self, cameras: Collection[str]) -> Observation:
        self._seen[:] = self._arms
        return replace(super().observe(cameras), proprio=self._seen)


class BlackPictures(PointSim):
    def frame(self, camera: str) -> np.ndarray:
        return np.zeros_like(super().frame(camera))


class AnyShape(PointSim):
    def step(self, action: np.ndarray, kind: str) -> bool:
        return super().step(np.resize(action, 20), "ee6d")


class WritesIntoTheAction(PointSim):
    def step(self, action: np.ndarray, kind: str) -> bool:
        action[2] = 0.0
        return super().step(action, kind)


class NeverClips(PointSim):
    action_kinds: Mapping[str, ActionSpace] = {"ee6d": ActionSpace(20, -2.0, 2.0)}

    def step(self, action: np.ndarray, kind: str) -> bool:
        done = super().step(action, kind)
        self._arms[2] = action[2]
        return done


class ConstantHash(PointSim):
    def state_hash(self) -> str:
        return "0" * 64


class StandingClock(PointSim):
    def sim_time(self) -> float:
        return 0.0


class ForgetsSuccess(PointSim):
    def score(self) -> Score:
        return replace(super().score(), success=False, hard_success=False)


class OtherScene(PointSim):
    def fingerprint(self) -> Mapping[str, str]:
        return {"world": "another"}


class ClosesOnce(PointSim):
    def close(self) -> None:
        del self._arms


class LeavesAServer(PointSim):
    """Starts a process in a session of its own, which nobody ends."""

    server: subprocess.Popen[bytes] | None = None

    def reset(self, episode: Episode) -> None:
        super().reset(episode)
        if self.server is None:
            type(self).server = subprocess.Popen(["sleep", "600"], start_new_session=True)


class DiesInTheSecond(PointSim):
    """A renderer that survives one scene."""

    scenes = 0

    def reset(self, episode: Episode) -> None:
        type(self).scenes += 1
        if self.scenes == 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        super().reset(episode)


class Hangs(PointSim):
    def step(self, action: np.ndarray, kind: str) -> bool:
        while True:
            signal.pause()


class EmptyExpert(PointSim):
    def expert_chunk(self, length: int) -> np.ndarray:
        return np.zeros((0, 20), np.float32)


#: Fault -> the check that finds it, and a word of what it says.
FAULTS: dict[type[PointSim], tuple[str, str]] = {
    Drifts: (TWICE, "another state right after reset"),
    DependsOnOrder: (ORDER, "another state right after reset"),
    KeepsTheScene: ("after an abandoned episode", "another state"),
    RandomReset: (TWICE, "another state right after reset"),
    UnseededInstruction: ("sealing again gives the same", "instruction move to the mark, 0."),
    NumberedObjects: ("sealing again gives the same", "keys that are numbers, not text"),
    OtherInstruction: (SEEN, "its instruction is 'go'"),
    LookingMoves: (LOOKING, "another state after"),
    MovesWithoutRenderer: ("alone, without a renderer", "another state right after reset"),
    AskingMoves: ("an expert acts from the current state", "changes the state"),
    WrongShape: (SEEN, "proprio is (1, 20) float64, not (D,) float32"),
    SharedArray: (SEEN, "proprio of an observation changes afterwards"),
    BlackPictures: ("pictures", "shows nothing"),
    AnyShape: (ACTIONS, "shape (19,) is accepted"),
    WritesIntoTheAction: (ACTIONS, "read-only"),
    NeverClips: (ACTIONS, "beyond low is not clipped"),
    ConstantHash: (PLAYED, "state_hash() is the same"),
    StandingClock: (PLAYED, "sim_time() does not grow"),
    ForgetsSuccess: (PLAYED, "score().success is False, step() returned True"),
    OtherScene: (SEEN, "fingerprint() after reset is not the sealed one"),
    ClosesOnce: ("closing", "AttributeError"),
    LeavesAServer: ("closing", "that it started went on"),
    DiesInTheSecond: (PLAYED, "SIGSEGV"),
    Hangs: (PLAYED, "no sign of life for 1 s, so it was killed"),
    EmptyExpert: (PLAYED, "expert_chunk(10) has shape (0, 20)"),
}


def make_none() -> PointSim:
    raise RuntimeError("the assets are not there")
