#!/usr/bin/env python3
"""Collect what tinyvla is trained on: pictures and proprio, and what the expert would do there.

    collect.py --out DIR/part.npz --first-seed 1000 --decisions 300
    collect.py --out DIR/part.npz --first-seed 3000 --decisions 150 --port 5577 --share 0.7

Runs in the simulator's Python. An episode is a series of stretches of 5 to 15 actions. Before each,
a sample is taken: the expert is stateless, so it labels any state. Then acts, by lot, the policy
served at ``--port`` (a ``share`` of the stretches: DAgger) or the expert, half of the time with a
disturbed hand, so that there are states to recover from. A share of the episodes has obstacles.
Everything is drawn from the episodes' seeds: equal arguments (and policy) give equal samples.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from harness.episodes.rendering import driver_environment
from harness.inference.model_client import ModelClient
from harness.simulators import load, rendering_options
from harness.simulators.contract import Episode, Observation
from harness.simulators.tabletop import instructions
from harness.simulators.tabletop.layout import lay_out
from policy.tinyvla.inputs import CAMERAS, PICTURE, WRIST_PICTURE, shrink

#: Banks for evaluation begin here; nothing is ever collected from them.
EVALUATION_SEEDS = 40000
#: As far ahead as the network looks (``model.PREDICTED``).
HORIZON = 90
#: The clean configuration, and those with obstacles that a quarter of the episodes has.
CLUTTERED, CLUTTERED_SHARE = tuple(f"d{n}" for n in range(6, 13)), 0.25
#: How many stretches are disturbed, and by how much: metres, and of the gripper's opening (sd).
SHOVED, SHOVE_M, SHOVE_GRIP = 0.35, 0.025, 0.2
#: No episode goes on for longer than this share of its step limit.
PATIENCE = 0.5


def main() -> None:
    arguments = _arguments()
    os.environ.update(driver_environment())
    sim = load("tabletop", **rendering_options("tabletop"))
    model = None
    if arguments.port:
        model = ModelClient("127.0.0.1", arguments.port, "", f"collect-{os.getpid()}", 120.0)
    samples = Samples()
    cells = [cell for cell in sim.cells() if not arguments.task or cell[1] in arguments.task]
    started = time.monotonic()
    for number, (scene, task) in enumerate(cells):
        solved: Counter[bool] = Counter()
        seed = arguments.first_seed
        goal = len(samples.rows) + arguments.decisions
        while len(samples.rows) < goal:
            assert seed < EVALUATION_SEEDS
            solved[Run(sim, scene, task, seed, model, arguments.share).play(samples)] += 1
            seed += arguments.stride
        left = (time.monotonic() - started) / (number + 1) * (len(cells) - number - 1)
        print(
            f"collect {arguments.out.stem}: {number + 1}/{len(cells)} {task}:"
            f" {solved[True]} of {solved.total()} episodes solved; {left:.0f} s left",
            flush=True,
        )
    samples.save(arguments.out)
    if model is not None:
        model.close()


class Samples:
    """Rows of equal keys, and the sentences of each episode."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.sentences: list[list[str]] = []

    def save(self, path: Path) -> None:
        """Columns of all rows; ``sentences`` ``(episodes, n)`` repeats those an episode has."""
        columns = {key: np.stack([row[key] for row in self.rows]) for key in self.rows[0]}
        most = max(map(len, self.sentences))
        sentences = np.array([(one * most)[:most] for one in self.sentences])
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("wb") as file:
            np.savez(file, allow_pickle=False, sentences=sentences, **columns)
        unfinished.replace(path)


class Run:
    """One episode of collecting."""

    def __init__(
        self, sim: Any, scene: str, task: str, seed: int, model: ModelClient | None, share: float
    ) -> None:
        self._sim, self._model, self._share = sim, model, share
        self._rng = np.random.default_rng([seed, len(task), *task.encode()])
        cluttered = self._rng.random() < CLUTTERED_SHARE
        config = str(self._rng.choice(CLUTTERED)) if cluttered else "clean"
        cell = (scene, task, f"bench_demo_{scene}_{config}")
        self._sentences = _sentences(scene, task, seed)
        sentence = str(self._rng.choice(self._sentences))
        reset = sim.seal(*cell, seed)["reset"]
        self._episode = Episode(*cell, seed, sentence, reset)

    def play(self, samples: Samples) -> bool:
        """Adds its samples; whether the task was solved."""
        sim, episode, rng = self._sim, self._episode, self._rng
        sim.reset(episode)
        if self._model is not None:
            self._model.reset(episode)
        samples.sentences.append(self._sentences)
        limit = round(PATIENCE * sim.step_limit(episode.task, episode.task_config))
        steps, last = 0, None
        while steps < limit:
            seen, plan = sim.observe(CAMERAS), sim.expert_chunk(HORIZON)
            samples.rows.append(_sample(seen, plan, len(samples.sentences) - 1))
            stretch = int(rng.integers(5, 16))
            for action in self._actions(steps, seen, plan, last)[:stretch]:
                steps, last = steps + 1, action
                if sim.step(action, "ee6d"):
                    return True
        return False

    def _actions(
        self, steps: int, seen: Observation, plan: np.ndarray, last: np.ndarray | None
    ) -> np.ndarray:
        policy_acts, shoved = self._rng.random() < self._share, self._rng.random() < SHOVED
        shove = self._rng.normal(0, 1, (2, 4))
        if self._model is not None and policy_acts:
            return self._model.infer(steps, seen, last, None)[0]
        return _shoved(plan, shove) if shoved else plan


def _sample(seen: Observation, plan: np.ndarray, episode: int) -> dict[str, Any]:
    """A plan that ends early is prolonged by its last action."""
    ahead = np.minimum(np.arange(HORIZON), len(plan) - 1)
    wrists = [shrink(seen.images[name], WRIST_PICTURE) for name in CAMERAS[1:]]
    return {
        "countertop": _rounded(shrink(seen.images[CAMERAS[0]], PICTURE)),
        "wrists": _rounded(np.stack(wrists)),
        "proprio": seen.proprio,
        "plan": plan[ahead].astype(np.float32),
        "episode": np.int64(episode),
    }


def _rounded(picture: np.ndarray) -> np.ndarray:
    return np.rint(picture).astype(np.uint8)


def _shoved(plan: np.ndarray, shove: np.ndarray) -> np.ndarray:
    """The plan with each hand led astray, more and more over ten actions."""
    actions = plan.copy()
    growing = np.minimum(np.arange(1, len(plan) + 1) / 10, 1.0)[:, None]
    for arm, numbers in enumerate(shove):
        first = 10 * arm
        actions[:, first : first + 3] += growing * numbers[:3] * SHOVE_M
        grip = actions[:, first + 9] + growing[:, 0] * numbers[3] * SHOVE_GRIP
        actions[:, first + 9] = grip.clip(0, 1)
    return actions


def _sentences(scene: str, task: str, seed: int) -> list[str]:
    """The ways to say the task of a seed, of those meant for training."""
    words = lay_out(scene, task, 0, seed).task.words()
    draws: Iterator[np.random.Generator] = (np.random.default_rng(n) for n in range(24))
    return sorted({instructions.instruction(scene, task, "seen", words, rng) for rng in draws})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--first-seed", type=int, required=True)
    parser.add_argument("--stride", type=int, default=1, help="to the next episode's seed")
    parser.add_argument("--decisions", type=int, required=True, help="samples a task, at least")
    parser.add_argument("--port", type=int, default=0, help="of a model server; 0 = expert alone")
    parser.add_argument("--share", type=float, default=0.0, help="of the stretches: the policy's")
    parser.add_argument("--task", nargs="*", help="these tasks alone")
    return parser.parse_args()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # a renderer that is destroyed in the wrong order crashes
