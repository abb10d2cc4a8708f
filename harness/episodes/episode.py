"""The episode loop: one simulator, one policy behind a client, one result.

Reset, then observe, ask for a chunk, and execute it action by action until the task has succeeded,
the step limit is reached or the simulator ends the episode. An episode whose fingerprint is not the
sealed one is an error before its first action. Promises: whatever the simulator, the policy or the
connection does (short of ending the process), the caller gets a result whose outcome is
``success``, ``fail`` or ``error``, and an error is never a fail. A video changes nothing but the
wall time.
"""

from __future__ import annotations

import math
import operator
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from harness.episodes.expert import experts_chunk
from harness.episodes.filming import Filming
from harness.episodes.fitting import (
    Fault,
    cameras_of,
    checked_chunk,
    fitting_kind,
    refuse_other_scene,
)
from harness.errors import one_line
from harness.inference.model_client import Served
from harness.simulators.contract import DEMO, Episode, Observation, Simulator
from harness.stopwatch import Stopwatch
from harness.wire import RemoteError

#: Called with the phase (reset, observe, infer, step, video) and the steps executed so far.
Progress = Callable[[str, int], None]
#: While an episode steps, progress is reported this often; each phase is reported as it begins.
PROGRESS_S = 0.5

_T = TypeVar("_T")


class Model(Protocol):
    """What the loop needs of ``harness.inference.model_client.ModelClient``."""

    @property
    def hello(self) -> Mapping[str, Any]: ...

    def reset(self, episode: Episode) -> None: ...

    def infer(
        self,
        step: int,
        observation: Observation,
        last_action: np.ndarray | None,
        expert: np.ndarray | None,
    ) -> tuple[np.ndarray, Served]: ...


def run_episode(
    sim: Simulator,
    model: Model,
    episode: Episode,
    *,
    video: Path | None = None,
    video_camera: str = DEMO,
    ffmpeg: str | None = None,
    only_failures: bool = False,
    progress: Progress = lambda phase, step: None,
) -> dict[str, Any]:
    """Run ``episode`` and return its result.

    Args:
        video: where the mp4 goes; None for none. No video is kept of an episode in error.
        only_failures: drop the video of a success.

    Returns:
        ``outcome success hard_success collision_count collision_names steps sim_s wall_s policy_s
        profile state_hash video versions error``, as in the metrics row; ``sim_s`` is simulated
        time, ``policy_s`` the time spent waiting for actions, ``profile`` the wall time by
        ``stopwatch.PARTS``; ``video`` is ``str(video)`` or None;
        ``error`` is None or ``{"kind": "policy" | "simulator" | "protocol", "message",
        "traceback"}``.

    Raises:
        RollpoolError: before anything ran, when policy and simulator do not fit together.
    """
    kind = fitting_kind(sim, model.hello)
    started, watch = time.monotonic(), Stopwatch()
    film = Filming(sim, watch, video, video_camera, ffmpeg)
    run = _Run(sim, model, episode, kind, film, watch, progress)
    try:
        result = run.finish(run.play(), only_failures)
    except Fault as fault:
        result = error_result(**fault.record)
    except Exception as error:  # a simulator may raise anything; the row says what it was
        result = error_result("simulator", one_line(error), traceback.format_exc())
    finally:
        film.discard()
    wall_s = time.monotonic() - started
    measured = {"wall_s": wall_s, "policy_s": run.policy_s, "profile": watch.lap()}
    return {**result, "steps": run.steps, **measured}


def error_result(kind: str, message: str, traceback: str) -> dict[str, Any]:
    """The result of an episode that ended in an error, for the caller to complete."""
    return {
        "outcome": "error",
        "success": None,
        "hard_success": None,
        "collision_count": None,
        "collision_names": [],
        "steps": 0,
        "sim_s": None,
        "wall_s": 0.0,
        "policy_s": 0.0,
        "profile": {},
        "state_hash": None,
        "video": None,
        "versions": {},
        "error": {"kind": kind, "message": message, "traceback": traceback},
    }


class _Run:
    """One episode on its way: what was executed so far, and what it cost."""

    def __init__(
        self,
        sim: Simulator,
        model: Model,
        episode: Episode,
        kind: str,
        film: Filming,
        watch: Stopwatch,
        progress: Progress,
    ) -> None:
        self._sim, self._model, self._episode = sim, model, episode
        self._film, self._watch, self._progress = film, watch, progress
        self._kind, self._space = kind, sim.action_kinds[kind]
        self._last_action: np.ndarray | None = None
        self._reported_at = 0.0
        self.steps, self.policy_s = 0, 0.0

    def play(self) -> bool:
        """Until success (True), or the step limit or the simulator's own end (False)."""
        episode = self._episode
        self._report("reset")
        with self._watch.part("reset"):
            limit = self._sim.step_limit(episode.task, episode.task_config)
            self._sim.reset(episode)
            refuse_other_scene(self._sim, episode)
        self._report("infer")  # whoever waits for the policy says so, in its reset too
        with self._watch.part("reset"):
            self._ask(lambda: self._model.reset(episode))
        self._film.record(self.steps)
        while self.steps < limit:
            for action in self._next_chunk()[: limit - self.steps]:
                over = self._execute(action)
                if over is not None:
                    return over
        return False

    def finish(self, success: bool, only_failures: bool) -> dict[str, Any]:
        with self._watch.part("score"):
            end = _end(self._sim, success)  # before the video: an episode in error keeps none
        self._report("video")
        video = None if success and only_failures else self._film.finish(self.steps)
        return {**end, "video": video, "error": None}

    def _next_chunk(self) -> np.ndarray:
        hello = self._model.hello
        self._report("observe")
        with self._watch.part("render"):
            observation = self._sim.observe(cameras_of(hello))
        expert = None
        if "expert" in hello["needs"]:
            with self._watch.part("expert"):
                expert = experts_chunk(self._sim, int(hello["chunk"]))
        self._report("infer")
        actions = self._inferred(observation, expert)
        self._report("step")
        return checked_chunk(actions, self._space)

    def _inferred(self, observation: Observation, expert: np.ndarray | None) -> np.ndarray:
        asked, served = self._watch.now(), Served()
        try:
            actions, served = self._ask(
                lambda: self._model.infer(self.steps, observation, self._last_action, expert)
            )
            return actions
        finally:
            trip_s = self._watch.now() - asked
            self.policy_s += trip_s
            for part, seconds in served.of(trip_s).items():
                self._watch.add(part, seconds)

    def _execute(self, action: np.ndarray) -> bool | None:
        """None where the episode goes on; else whether the task has succeeded."""
        began = self._watch.now()  # a part at every step would take twice as long to measure
        try:
            success = self._sim.step(action, self._kind)
            ended = not success and self._sim.ended()
        finally:
            self._watch.add("simulate", self._watch.now() - began)
        self.steps += 1
        self._last_action = action
        self._film.record(self.steps)
        if time.monotonic() - self._reported_at >= PROGRESS_S:
            self._report("step")
        return bool(success) if success or ended else None

    def _report(self, phase: str) -> None:
        self._reported_at = time.monotonic()
        with self._watch.part("report"):
            self._progress(phase, self.steps)

    @staticmethod
    def _ask(call: Callable[[], _T]) -> _T:
        """What the model client answers; its errors are never the simulator's."""
        try:
            return call()
        except RemoteError as error:
            kind = "policy" if error.kind == "policy" else "protocol"
            raise Fault(kind, error.message, error.traceback) from error
        except Exception as error:  # whatever else the client raises, no answer came
            raise Fault("protocol", one_line(error), traceback.format_exc()) from error


def _end(sim: Simulator, success: bool) -> dict[str, Any]:
    """What the simulator says at the end, in the types of a row. It raises where no row could hold
    that, so that it is this simulator's error and not the end of whoever writes the row."""
    score, sim_s = sim.score(), float(sim.sim_time())
    if not math.isfinite(sim_s):
        raise ValueError(f"sim_time() is {sim_s}")
    hard, count = score.hard_success, score.collision_count
    # Unknown stays unknown in a failed episode too: a rate of those that failed alone would be 0.
    hard = None if hard is None else success and bool(hard)
    return {
        "outcome": "success" if success else "fail",
        "success": success,
        "hard_success": hard,
        "collision_count": None if count is None else operator.index(count),
        "collision_names": [str(name) for name in score.collision_names],
        "sim_s": sim_s,
        "state_hash": str(sim.state_hash()),
        "versions": {str(name): str(version) for name, version in sim.versions().items()},
    }
