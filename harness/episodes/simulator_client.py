"""The process around a simulator: JSON lines of requests in, answers and progress out.

Runs in the simulator's own Python as ``python -m harness.episodes.simulator_client --channel FD
...``; the messages are those of DESIGN.md, "Processes and channels". Promises: whatever an episode
does short of ending the process is an answer on the channel; the process ends when the channel
closes. What the simulator prints goes to stdout and stderr, a log file. SIGUSR1 prints every
thread's stack there (asked for before a hung simulator is killed), and so does a crash.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.canonical import episode_line
from harness.episodes import expert
from harness.episodes.channel import Channel, ChannelClosed
from harness.episodes.conformance import PARTS
from harness.episodes.episode import PROGRESS_S, error_result, run_episode
from harness.episodes.model_connection import ModelConnection
from harness.episodes.recycling import Recycling
from harness.errors import EXIT_OK, EXIT_REFUSED, RollpoolError, one_line
from harness.simulators import load
from harness.simulators.contract import DEMO, Episode, Simulator, native


class SimulatorClient:
    """Answers the worker's requests with one simulator, one at a time."""

    def __init__(
        self, sim: Simulator, channel: Channel, ffmpeg: str | None = None, video_camera: str = DEMO,
        recycling: Recycling | None = None,
    ) -> None:  # fmt: skip
        self._sim, self._channel, self._recycling = sim, channel, recycling or Recycling()
        self._ffmpeg, self._video_camera = ffmpeg, video_camera
        self._connection = ModelConnection(lambda: self._progress_now_and_then("await", 0))
        self._reported_at = 0.0
        self._at = ""  # of which seed a refusal speaks

    def serve(self) -> None:
        """Until told to quit, or recycled. Raises ChannelClosed when the worker is gone."""
        answers = {
            "describe": self._describe,
            "seal": self._seal,
            "check": self._check,
            "probe": self._probe,
            "conform": self._conform,
            "run": self._run,
            "listen": self._listen,
            "await": self._await_model,
        }
        self._channel.send({"say": "ready", "versions": dict(self._sim.versions())})
        while True:
            request = self._channel.receive(None)
            if request is None or request.get("do") == "quit":
                return
            self._at = ""
            try:
                answer = answers[request["do"]](request)
            except ChannelClosed:
                raise
            except Exception as error:  # also the simulator's own, outside an episode
                if not isinstance(error, RollpoolError):
                    traceback.print_exc()
                answer = {"say": "refused", "message": f"{self._at}{one_line(error)}"}
            why = self._recycling.due() if request["do"] == "run" else ""
            self._channel.send({**answer, "leaves": True} if why else answer)
            if why:
                print(f"simulator client: ends, to begin anew: {why}", flush=True)
                return

    def _describe(self, request: Mapping[str, Any]) -> dict[str, Any]:
        sim = self._sim
        cells = sim.cells()
        scenes = dict.fromkeys(scene for scene, _ in cells)
        return {
            "say": "described",
            "name": sim.name,
            "action_kinds": {kind: asdict(space) for kind, space in sim.action_kinds.items()},
            "cameras": list(sim.cameras),
            "control_hz": float(sim.control_hz),
            "cells": [list(cell) for cell in cells],
            "task_configs": {scene: list(sim.task_configs(scene)) for scene in scenes},
            "versions": dict(sim.versions()),
        }

    def _seal(self, request: Mapping[str, Any]) -> dict[str, Any]:
        limit = self._sim.step_limit(request["task"], request["task_config"])
        cell, lines, begun = _cell(request), [], time.monotonic()
        for seed in self._seeds(request, "seal"):
            lines.append(episode_line(**self._line(cell, seed)))
            if time.monotonic() - begun >= request["within_s"]:
                break
        return {"say": "sealed", "lines": lines, "step_limit": limit}

    def _check(self, request: Mapping[str, Any]) -> dict[str, Any]:
        cell = _cell(request)
        verdicts = [self._solves(cell, seed) for seed in self._seeds(request, "check")]
        return {"say": "checked", "ok": verdicts}

    def _solves(self, cell: tuple[str, str, str], seed: int) -> bool:
        verdict = self._sim.solvable(Episode(*cell, seed, instruction=""))
        if verdict is not None:
            return bool(verdict)
        try:
            line = self._line(cell, seed)
        except RollpoolError:
            raise
        except Exception:  # as where it raises on the way: it does not have this seed to offer
            traceback.print_exc()
            return False
        return expert.solves(self._sim, Episode(*cell, **line), self._stepped)

    def _seeds(self, request: Mapping[str, Any], phase: str) -> Iterator[int]:
        """Those that are asked for, with a sign of life now and then."""
        for count, seed in enumerate(map(int, request["seeds"]), start=1):
            self._at = f"seed {seed}: "
            yield seed
            self._progress_now_and_then(phase, count)

    def _probe(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The state after some actions with nothing rendered: the expert's, or where there is none
        random ones that are the episode's own."""
        sim, episode = self._sim, Episode(**request["episode"])
        sim.reset(episode)
        actions = expert.own_actions(sim, episode)
        for done, action in zip(range(request["steps"]), actions, strict=False):
            sim.step(action, native(sim))
            self._stepped(done + 1)
        return {"say": "probed", "state_hash": sim.state_hash()}

    def _conform(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One part of the conformance suite; ``hang`` stands for a step that never ends."""
        if request["part"] == "hang":
            self._sim.reset(Episode(**request["episode"]))
            self._progress("step", 0)
            while True:
                signal.pause()
        return {"say": "conformed", "answer": PARTS[request["part"]](self._sim, request)}

    def _line(self, cell: tuple[str, str, str], seed: int) -> dict[str, Any]:
        """What a manifest says of ``seed``, as the fields of an ``Episode``."""
        line = self._sim.seal(*cell, seed)
        fingerprint = dict(line.get("fingerprint", {}))
        return {"seed": seed, "instruction": line["instruction"], "reset": dict(line["reset"]),
                "fingerprint": fingerprint}  # fmt: skip

    def _listen(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Reversed roles: from now on models come to this simulator."""
        host, port = self._connection.listen(request["host"], request["port"], request["token"])
        return {"say": "listening", "host": host, "port": port}

    def _await_model(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"say": "met", "words": self._connection.met(request, request["deadline_s"])}

    def _run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        video = request.get("video")
        episode = Episode(**request["episode"])
        try:
            model = self._connection.model(request["server"])
        except RollpoolError as error:
            result = error_result("protocol", str(error), traceback.format_exc())
            return {"say": "ended", "result": result}
        result = run_episode(
            self._sim,
            model,
            episode,
            video=Path(video) if video else None,
            video_camera=self._video_camera,
            ffmpeg=self._ffmpeg,
            only_failures=bool(request.get("only_failures", False)),
            progress=self._progress,
        )
        if result["error"] and result["error"]["kind"] == "protocol":
            self._connection.close()
        return {"say": "ended", "result": result}

    def _progress(self, phase: str, step: int) -> None:
        self._reported_at = time.monotonic()
        self._channel.send({"say": "progress", "phase": phase, "step": step})

    def _stepped(self, steps: int) -> None:
        self._progress_now_and_then("step", steps)

    def _progress_now_and_then(self, phase: str, step: int) -> None:
        if time.monotonic() - self._reported_at >= PROGRESS_S:
            self._progress(phase, step)


def _cell(request: Mapping[str, Any]) -> tuple[str, str, str]:
    return request["scene"], request["task"], request["task_config"]


def main() -> None:
    """Never returns: a renderer that is destroyed in the wrong order at exit crashes, so the
    process ends by flush and ``os._exit``."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    status = EXIT_REFUSED
    try:
        channel = Channel.inherited(arguments.channel)
        sim = load(arguments.simulator, **json.loads(arguments.options))
        recycling = Recycling(arguments.recycle_episodes, arguments.recycle_mb)
        camera = arguments.video_camera
        SimulatorClient(sim, channel, arguments.ffmpeg, camera, recycling).serve()
        status = EXIT_OK
    except ChannelClosed as closed:
        print(f"simulator client: {closed}", flush=True)
        status = EXIT_OK
    except RollpoolError as error:
        print(f"simulator client: {error}", file=sys.stderr)
    except BaseException:  # the traceback is all that a dying process can leave
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="simulator_client", description=__doc__)
    parser.add_argument("--channel", type=int, required=True, help="an inherited descriptor")
    parser.add_argument("--simulator", required=True, help="tabletop, or package.module:factory")
    parser.add_argument("--options", default="{}", help="the simulator's own, as JSON")
    parser.add_argument("--ffmpeg", help="for videos; without it there are none")
    parser.add_argument("--video-camera", default=DEMO)
    parser.add_argument("--recycle-episodes", type=int, help="end after so many")
    parser.add_argument("--recycle-mb", type=int, help="end after the episode that left so much")
    return parser.parse_args()


if __name__ == "__main__":
    main()
