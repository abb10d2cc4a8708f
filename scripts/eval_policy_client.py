#!/usr/bin/env python3
"""Run one episode by hand against a model server.

Runs in the simulator's Python, in this one process, and prints progress, the result as JSON, and
the traceback of an error. With the server of the example in another terminal:

    $XVLA_PY scripts/policy_model_server.py --policy_name tinyvla --port 5555
    $ROBOTWIN_PY scripts/eval_policy_client.py --port 5555 --scene study --task put_cup_in_box \
        --task_config bench_demo_study_clean --seed 40000 --video out.mp4

Reversed roles, the simulator listens (beyond this host only with a token) and the model comes:

    $ROBOTWIN_PY scripts/eval_policy_client.py --listen 10.0.0.7:5577 --token-file FILE ...
    $XVLA_PY scripts/policy_model_server.py --policy_name tinyvla --token-file FILE \
        --connect 10.0.0.7:5577

Exit code: 0 success or fail, 1 an error in the episode, 2 it could not be run at all.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.episodes.episode import run_episode
from harness.episodes.rendering import driver_environment
from harness.episodes.video import find_ffmpeg
from harness.errors import EXIT_OK, EXIT_PARTIAL, RollpoolError
from harness.inference.model_client import ModelClient
from harness.inference.model_listener import ModelListener
from harness.simulators import load, rendering_options
from harness.simulators.contract import DEMO, Episode, Simulator

#: To connect to a server that may still be loading its model, and for each of its answers.
SERVER_DEADLINE_S = 180.0


def main() -> int:
    arguments = _arguments()
    os.environ.update(driver_environment())
    try:
        sim = _simulator(arguments)
        result = _run(sim, arguments)
    except RollpoolError as error:
        print(f"eval_policy_client: error: {error}", file=sys.stderr)
        return error.exit_code
    fault = result["error"]
    trace = fault.pop("traceback") if fault else ""
    print(json.dumps(result, indent=2))
    if fault is None:
        return EXIT_OK
    print(f"\n{trace}{fault['kind']} error: {fault['message']}", file=sys.stderr)
    return EXIT_PARTIAL


def _simulator(arguments: argparse.Namespace) -> Simulator:
    if arguments.options is not None:
        options = json.loads(arguments.options)
    else:
        print("looking for a renderer ...", flush=True)
        options = rendering_options(arguments.simulator)
    print(f"loading simulator {arguments.simulator} {options or ''}", flush=True)
    return load(arguments.simulator, **options)


def _run(sim: Simulator, arguments: argparse.Namespace) -> dict[str, Any]:
    cell = (arguments.scene, arguments.task, arguments.task_config)
    line = sim.seal(*cell, arguments.seed)
    episode = Episode(
        *(*cell, arguments.seed, line["instruction"], line["reset"]),
        fingerprint=line.get("fingerprint", {}),
    )
    token = arguments.token_file.read_text().strip() if arguments.token_file else ""
    model = _awaited(arguments.listen, token) if arguments.listen else _connected(arguments, token)
    print(f"policy {model.hello['policy']}, instruction: {episode.instruction}", flush=True)
    try:
        return run_episode(
            sim,
            model,
            episode,
            video=arguments.video,
            video_camera=arguments.video_camera,
            ffmpeg=arguments.ffmpeg or find_ffmpeg(),
            progress=_Progress(sim.step_limit(*cell[1:])),
        )
    finally:
        model.close()


def _connected(arguments: argparse.Namespace, token: str) -> ModelClient:
    host, port = arguments.host, arguments.port
    print(f"connecting to {host}:{port} for up to {SERVER_DEADLINE_S:.0f} s", flush=True)
    return ModelClient(host, port, token, "by-hand", SERVER_DEADLINE_S)


def _awaited(where: tuple[str, int], token: str) -> ModelClient:
    listener = ModelListener(*where, token)
    try:
        here = f"{listener.host}:{listener.port}"
        print(f"listening on {here} for up to {SERVER_DEADLINE_S:.0f} s", flush=True)
        found = listener.accept(SERVER_DEADLINE_S, SERVER_DEADLINE_S, lambda: None)
    finally:
        listener.close()
    connection, host, port = found
    return ModelClient(host, port, token, "by-hand", SERVER_DEADLINE_S, connection=connection)


class _Progress:
    """One line that is written over on a terminal; a line a chunk elsewhere."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def __call__(self, phase: str, step: int) -> None:
        line = f"step {step} of at most {self._limit}: {phase}"
        if sys.stdout.isatty():
            print(f"\r{line:<60}", end="" if phase != "video" else "\n", flush=True)
        elif phase in ("reset", "infer", "video"):
            print(line, flush=True)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host or "127.0.0.1", int(port)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--host", default="127.0.0.1", help="of the model server (%(default)s)")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--port", type=int)
    where.add_argument(
        "--listen",
        type=_address,
        metavar="[HOST:]PORT",
        help="reversed roles: a model comes here",
    )
    parser.add_argument("--token-file", type=Path, help="the run's token, if the server has one")
    parser.add_argument("--simulator", default="tabletop", help="or package.module:factory")
    parser.add_argument("--options", help="the simulator's own, as JSON (default: as it renders)")
    for name in ("scene", "task", "task_config"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--video", type=Path, help="write an mp4 there")
    parser.add_argument("--video-camera", default=DEMO, help="(%(default)s)")
    parser.add_argument("--ffmpeg", help="(default: imageio-ffmpeg's, else the one on PATH)")
    return parser.parse_args()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a renderer may crash in an orderly exit
