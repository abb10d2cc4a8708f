"""Policies around a policy: what happens between the model's chunk and the robot.

Each changes one thing and passes the rest through. What was executed last is not remembered here
but told by the client (``observation["last_action"]``): it alone knows where a chunk was cut.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.policies.contract import EE6D_DIM, Observation, Policy, PolicyError, Session

#: ee6d without the grippers (9 and 19): xyz and rot6d of both arms, or xyz alone.
POSE = np.r_[0:9, 10:19]
TRANSLATION = np.r_[0:3, 10:13]


class Around:
    """The policy inside, unchanged: a wrapper changes what it sees, or what it gives."""

    def __init__(self, inner: Policy) -> None:
        self._inner = inner
        self.action_kind, self.action_dim = inner.action_kind, inner.action_dim
        self.chunk, self.needs, self.cameras = inner.chunk, inner.needs, inner.cameras
        self.concurrent, self.exclusive = inner.concurrent, inner.exclusive
        self.resets, self.batches = inner.resets, inner.batches

    def reset(self, session: Session) -> None:
        self._inner.reset(session)

    def infer(self, observation: Observation, session: Session) -> np.ndarray:
        actions = self._inner.infer(self.seen(observation), session)
        return self.given(actions, observation, session)

    def infer_batch(
        self, observations: Sequence[Observation], sessions: Sequence[Session]
    ) -> list[np.ndarray]:
        seen = [self.seen(observation) for observation in observations]
        chunks = self._inner.infer_batch(seen, sessions)
        return [self.given(*each) for each in zip(chunks, observations, sessions, strict=True)]

    def seen(self, observation: Observation) -> Observation:
        """What the policy inside sees of ``observation``."""
        return observation

    def given(self, actions: np.ndarray, observation: Observation, session: Session) -> np.ndarray:
        """The chunk that comes of the policy's own."""
        return actions


class ActionSmoothing(Around):
    """``first = alpha * last executed action + (1 - alpha) * raw first action``.

    Chunks of ee6d only: averaging anything else (joint deltas, quaternions) would ruin it.
    """

    def __init__(self, inner: Policy, alpha: float, rotation: bool) -> None:
        super().__init__(inner)
        if inner.action_kind != "ee6d" or inner.action_dim != EE6D_DIM:
            raise RollpoolError(
                "action smoothing",
                f"the policy's actions are {inner.action_kind} of {inner.action_dim} numbers",
                f"smooth ee6d of {EE6D_DIM} alone; set action_smooth to 0",
            )
        self._alpha, self._smoothed = np.float32(alpha), POSE if rotation else TRANSLATION

    def given(self, actions: np.ndarray, observation: Observation, session: Session) -> np.ndarray:
        last = observation["last_action"]
        if last is None:
            return actions
        actions, where = actions.copy(), self._smoothed
        actions[0, where] = self._alpha * last[where] + (1 - self._alpha) * actions[0, where]
        return actions


class ExecActions(Around):
    """The first ``count`` actions of each chunk: look again sooner (receding horizon)."""

    def __init__(self, inner: Policy, count: int) -> None:
        super().__init__(inner)
        if count > inner.chunk:
            raise RollpoolError(
                f"execute {count} actions of each chunk",
                f"the policy's chunk has {inner.chunk}",
                "set exec_actions to that or less (0 = all)",
            )
        self._count = count

    def given(self, actions: np.ndarray, observation: Observation, session: Session) -> np.ndarray:
        return actions[: self._count]


class FakeProprio(Around):
    """The last commanded action in place of what was measured, from the second chunk on."""

    def seen(self, observation: Observation) -> Observation:
        last, measured = observation["last_action"], observation["proprio"]
        if last is None:
            return observation
        if last.shape != measured.shape:
            raise PolicyError(
                "proprio from the last commanded action",
                f"actions have {last.shape} numbers, proprio has {measured.shape}",
                "set fake_proprio to 0",
            )
        return {**observation, "proprio": last}


class Record(Around):
    """Appends every chunk to a JSON-lines file that the policy ``replay`` plays back.

    A line is ``{"task", "task_config", "seed", "chunk": k, "actions": [[...], ...]}``; numbers
    are written so that they read back as the same float32.
    """

    def __init__(self, inner: Policy, path: Path) -> None:
        super().__init__(inner)
        self._path, self._lock = path, threading.Lock()

    def given(self, actions: np.ndarray, observation: Observation, session: Session) -> np.ndarray:
        chunk = session.memory.setdefault("recorded_chunks", 0)
        session.memory["recorded_chunks"] = chunk + 1
        which = {key: getattr(session, key) for key in ("task", "task_config", "seed")}
        line = json.dumps({**which, "chunk": chunk, "actions": actions.tolist()})
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        return actions


KNOBS = ("action_smooth", "smooth_rot", "exec_actions", "fake_proprio", "record")


def wrap(policy: Policy, knobs: Mapping[str, Any]) -> Policy:
    """``policy`` with what ``knobs`` ask for around it; an absent, null or 0 knob asks nothing.

    ``action_smooth`` 0 to 1, ``smooth_rot`` 0 or 1 (default 1), ``exec_actions``,
    ``fake_proprio`` 0 or 1, ``record`` a file's path.
    """
    if unknown := sorted(set(knobs) - set(KNOBS)):
        raise _refused(", ".join(unknown), "no such knob", f"use {', '.join(KNOBS)}")
    if alpha := _number(knobs, "action_smooth", 0, 1):
        rotation = knobs.get("smooth_rot")
        with_rotation = rotation is None or _number(knobs, "smooth_rot", 0, 1) == 1
        policy = ActionSmoothing(policy, alpha, with_rotation)
    if count := _number(knobs, "exec_actions", 0, None):
        policy = ExecActions(policy, int(count))
    if _number(knobs, "fake_proprio", 0, 1):
        policy = FakeProprio(policy)
    if record := knobs.get("record"):
        policy = Record(policy, Path(record))
    return policy


def _number(knobs: Mapping[str, Any], name: str, low: float, high: float | None) -> float:
    value = knobs.get(name)
    try:
        number = float(value or 0)
    except (TypeError, ValueError):
        raise _refused(name, f"{value!r}", "give a number") from None
    if not low <= number or (high is not None and number > high):
        raise _refused(name, f"{value!r}", f"give {low} to {high or 'the chunk length'}")
    whole = name != "action_smooth"
    if whole and number != int(number):
        raise _refused(name, f"{value!r}", "give a whole number")
    return number


def _refused(name: str, found: str, todo: str) -> RollpoolError:
    return RollpoolError(f"policy knob {name}", found, todo)
