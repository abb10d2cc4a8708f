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

from harness.episodes.video import FPS, VideoWriter
from harness.errors import RollpoolError
from harness.inference.model_client import Served
from harness.policies.contract import NATIVE
from harness.simulators.contract import (
    DEMO,
    ActionSpace,
    Episode,
    Observation,
    Simulator,
    differing,
    native,
)
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


class _Fault(Exception):
    """An error that is known to be the policy's or the connection's."""

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(message)
        self.record = {"kind": kind, "message": message, "traceback": trace}


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
    kind = _fitting_kind(sim, model.hello)
    started, watch = time.monotonic(), Stopwatch()
    recorder = _Recorder(sim, watch, video, video_camera, ffmpeg)
    run = _Run(sim, model, episode, kind, recorder, watch, progress)
    try:
        result = run.finish(run.play(), only_failures)
    except _Fault as fault:
        result = error_result(**fault.record)
    except Exception as error:  # a simulator may raise anything; the row says what it was
        result = error_result("simulator", _one_line(error), traceback.format_exc())
    finally:
        recorder.discard()
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
        recorder: _Recorder,
        watch: Stopwatch,
        progress: Progress,
    ) -> None:
        self._sim, self._model, self._episode = sim, model, episode
        self._recorder, self._watch, self._progress = recorder, watch, progress
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
            _refuse_other_scene(self._sim, episode)
        self._report("infer")  # whoever waits for the policy says so, in its reset too
        with self._watch.part("reset"):
            self._ask(lambda: self._model.reset(episode))
        self._recorder.record(self.steps)
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
        video = None if success and only_failures else self._recorder.finish(self.steps)
        return {**end, "video": video, "error": None}

    def _next_chunk(self) -> np.ndarray:
        hello = self._model.hello
        self._report("observe")
        with self._watch.part("render"):
            observation = self._sim.observe(_cameras(hello))
        expert = None
        if "expert" in hello["needs"]:
            with self._watch.part("expert"):
                expert = experts_chunk(self._sim, int(hello["chunk"]))
        self._report("infer")
        actions = self._inferred(observation, expert)
        self._report("step")
        return _checked(actions, self._space)

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
        self._recorder.record(self.steps)
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
            raise _Fault(kind, error.message, error.traceback) from error
        except Exception as error:  # whatever else the client raises, no answer came
            raise _Fault("protocol", _one_line(error), traceback.format_exc()) from error


class _Recorder:
    """Takes a picture every so many steps, where there is something to take it with."""

    def __init__(
        self,
        sim: Simulator,
        watch: Stopwatch,
        path: Path | None,
        camera: str,
        ffmpeg: str | None,
    ) -> None:
        self._sim, self._watch, self._camera = sim, watch, camera
        self._every = max(1, round(sim.control_hz / FPS))
        self._recorded_at = -1
        self._writer: VideoWriter | None = None
        if path is None:
            return
        if ffmpeg is None or camera not in sim.cameras:
            lack = "no ffmpeg was found" if ffmpeg is None else f"no camera {camera!r} here"
            print(f"video {path.name}: not made: {lack}", flush=True)
        else:
            self._writer = VideoWriter(path, ffmpeg)

    def record(self, step: int, due: bool = False) -> None:
        if self._writer and step != self._recorded_at and (due or step % self._every == 0):
            self._recorded_at = step
            with self._watch.part("render"):
                frame = self._sim.frame(self._camera)
            with self._watch.part("encode"):
                self._writer.add(frame)

    def finish(self, step: int) -> str | None:
        """With the moment the episode ended as the last picture."""
        self.record(step, due=True)
        with self._watch.part("encode"):
            path = self._writer.finish() if self._writer else None
        self._writer = None
        return None if path is None else str(path)

    def discard(self) -> None:
        with self._watch.part("encode"):
            if self._writer:
                self._writer.discard()


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


def _cameras(hello: Mapping[str, Any]) -> list[str]:
    return list(hello["cameras"]) if "images" in hello["needs"] else []


def experts_chunk(sim: Simulator, length: int) -> np.ndarray:
    """``(1 to length, D)`` of the simulator's expert; what is none is the simulator's fault."""
    chunk = np.asarray(sim.expert_chunk(length))
    dim = sim.action_kinds[native(sim)].dim
    if chunk.ndim != 2 or not 1 <= len(chunk) <= length or chunk.shape[1] != dim:
        raise ValueError(f"expert_chunk({length}) has shape {chunk.shape}, not (1.., {dim})")
    return chunk


def _refuse_other_scene(sim: Simulator, episode: Episode) -> None:
    if episode.fingerprint and (parts := differing(episode.fingerprint, sim.fingerprint())):
        raise RollpoolError(
            f"episode {episode.scene}/{episode.task}/{episode.task_config} seed {episode.seed}",
            f"the simulator builds another one than was sealed ({'; '.join(parts)})",
            "run it with the packages and assets it was sealed with, or seal a new STUDY_RUN",
        )


def _fitting_kind(sim: Simulator, hello: Mapping[str, Any]) -> str:
    """The action kind of the simulator by which the policy acts."""
    asked = f"policy {hello.get('policy')!r} on simulator {sim.name!r}"
    kind, dim = str(hello["action_kind"]), hello["action_dim"]
    kind = native(sim) if kind == NATIVE else kind
    if kind not in sim.action_kinds:
        raise RollpoolError(
            asked,
            f"it acts by {kind!r}, the simulator by {list(sim.action_kinds)}",
            "choose a policy whose action_kind the simulator knows",
        )
    if dim is not None and dim != sim.action_kinds[kind].dim:
        raise RollpoolError(
            asked,
            f"its {kind!r} has {dim} numbers, the simulator's {sim.action_kinds[kind].dim}",
            "correct action_dim in deploy_policy.yml, or choose another policy",
        )
    missing = sorted(set(_cameras(hello)) - set(sim.cameras))
    if missing:
        raise RollpoolError(
            asked,
            f"it needs the cameras {missing}, the simulator has {list(sim.cameras)}",
            "use a machine that can render, or a policy that needs no images",
        )
    return kind


def _checked(actions: np.ndarray, space: ActionSpace) -> np.ndarray:
    """The chunk, or a policy error: a simulator would take NaN silently."""
    actions = np.asarray(actions)
    if actions.ndim != 2 or len(actions) == 0 or actions.shape[1] != space.dim:
        found = f"shape {actions.shape}, expected (n > 0, {space.dim})"
    elif actions.dtype.kind not in "fiu":
        found = f"no numbers ({actions.dtype})"
    else:
        with np.errstate(over="ignore"):  # finite float64 may be infinite here
            own = np.array(actions, np.float32)  # the simulator's own, and writeable
        if np.isfinite(own).all():
            return own
        found = f"numbers that are not finite ({actions.dtype})"
    raise _Fault("policy", f"the policy's chunk has {found}", "")


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
