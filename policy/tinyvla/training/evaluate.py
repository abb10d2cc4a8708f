#!/usr/bin/env python3
"""How often a served policy solves each task on seeds it never saw: a quick look while training.

    evaluate.py --port 5577 --config clean --first-seed 30000 --episodes 20

Runs in the simulator's Python, through the same episode loop as a worker. For numbers to publish,
use a run: those are kept, retried, resumed and counted once.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from harness.episodes.episode import run_episode
from harness.episodes.rendering import driver_environment
from harness.inference.model_client import ModelClient
from harness.reports.report import wilson
from harness.simulators import load, rendering_options
from harness.simulators.contract import Episode


def main() -> None:
    arguments = _arguments()
    os.environ.update(driver_environment())
    sim = load("tabletop", **rendering_options("tabletop"))
    model = ModelClient("127.0.0.1", arguments.port, "", f"evaluate-{os.getpid()}", 120.0)
    cells = [cell for cell in sim.cells() if not arguments.task or cell[1] in arguments.task]
    started = time.monotonic()
    for number, (scene, task) in enumerate(cells):
        config = f"bench_demo_{scene}_{arguments.config}"
        results = []
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.episodes):
            line = sim.seal(scene, task, config, seed)
            episode = Episode(scene, task, config, seed, line["instruction"], line["reset"])
            results.append(run_episode(sim, model, episode))
        left = (time.monotonic() - started) / (number + 1) * (len(cells) - number - 1)
        print(f"{_line(task, arguments.config, results)}; {left:.0f} s left", flush=True)
    model.close()


def _line(task: str, config: str, results: list[dict[str, Any]]) -> str:
    failed = [result["error"]["message"] for result in results if result["error"]]
    if failed:
        raise SystemExit(f"evaluate: error: {task}: {failed[0]}")
    total = {
        key: sum(result[key] for result in results)
        for key in ("success", "hard_success", "steps", "policy_s")
    }
    rates = "".join(
        f"  {name} {total[key]}/{len(results)} ({low:.2f} to {high:.2f})"
        for name, key in (("SR", "success"), ("HSR", "hard_success"))
        for low, high in [wilson(total[key], len(results))]
    )
    wait = 1000 * total["policy_s"] / total["steps"]
    return f"{task:24} {config:5}{rates}  {wait:.1f} ms of policy an action"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="of the model server")
    parser.add_argument("--config", default="clean", help="clean, d6, ... d15")
    parser.add_argument("--first-seed", type=int, default=30000)
    parser.add_argument("--episodes", type=int, default=20, help="of each task")
    parser.add_argument("--task", nargs="*", help="these tasks alone")
    return parser.parse_args()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # a renderer that is destroyed in the wrong order crashes
