"""A real episode with three rendered cameras, beside a plain loop with nothing around it.

The same episodes of ``tabletop`` with the policy ``tinyvla``: by a worker of ``rollpool run``
(claims, rows, heartbeats, two processes and a socket between them), and by a loop in one process
that resets, observes, infers and steps. The first episode of each turn, on which renderer and model
warm up, is left out of the time. Both end in the same states, bit for bit, or nothing is measured.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict
from pathlib import Path

from bench.measuring import Effort, Figure, Goal, Series, interleaved, ratios
from bench.peers import environment
from bench.scratch import Scratch
from bench.subject import Subject
from harness.errors import RollpoolError
from harness.foundations.yaml_files import policy_config
from harness.paths import CODE, Root
from harness.runs import population
from harness.runs.population import Cell

TITLE = "a real episode with cameras, beside a plain loop in one process"
CELL = Cell("study", "press_bell", "bench_demo_study_clean")
POLICY, THREADS = "tinyvla", 1
EPISODES = 20


def measure(effort: Effort) -> Figure:
    pythons = {name: environment.envs() / name / "bin" / "python" for name in ("tabletop", "model")}
    if absent := [name for name, python in pythons.items() if not python.exists()]:
        return Figure(TITLE, notes=(f"not measured: bash scripts/setup.sh {' '.join(absent)}",))
    with Scratch() as scratch:
        subject = Both(scratch, pythons, effort.of(EPISODES, least=3))
        took = interleaved({"rollpool": subject.pool, "plain loop": subject.plain},
                           max(1, effort.rounds - 2))  # fmt: skip
        subject.compare()
    series = tuple(Series(name, "s an episode", values) for name, values in took.items())
    beside = ratios(took["rollpool"], took["plain loop"])
    return Figure(TITLE, series, (Goal("rollpool / plain loop", beside, 1.05),))


class Both:
    """The two ways to play the same episodes."""

    def __init__(self, scratch: Scratch, pythons: dict[str, Path], count: int) -> None:
        self._scratch, self._pythons, self._count = scratch, pythons, count
        (scratch.path / "policy" / POLICY).symlink_to(CODE / "policy" / POLICY)
        queue = scratch.path / "queue.txt"
        queue.write_text(f"{CELL.scene} {CELL.task}\n")
        self._wanted = ["--queue", str(queue), "--seeds", str(CODE / "seeds" / "tabletop"),
                        "--test-num", str(count)]  # fmt: skip
        self._env = {
            "SIMULATOR": "tabletop", "POLICY_NAME": POLICY, "EVAL_THREADS": str(THREADS),
            "SIM_PY": str(pythons["tabletop"]), "MODEL_PY": str(pythons["model"]),
        }  # fmt: skip
        self._numbers = itertools.count()
        self._states: dict[str, list[str | None]] = {}
        # Sealing, which both need, is in nobody's time.
        scratch.rollpool("prepare", "sealed", *self._wanted, **self._env)

    def pool(self) -> float:
        """Seconds of wall time an episode, between the ends of the first and the last."""
        name = f"overhead_{next(self._numbers)}"
        self._scratch.rollpool("run", name, *self._wanted, EVAL_MANIFESTS="sealed", **self._env)
        rows = sorted(self._scratch.rows(name), key=lambda row: row.finished)
        by_position = sorted(rows, key=lambda row: row.position)
        self._states["rollpool"] = [row.state_hash for row in by_position]
        return (rows[-1].finished - rows[0].finished) / (len(rows) - 1)

    def plain(self) -> float:
        (manifest,) = population.load(Root(self._scratch.path).run("sealed"), CELL)
        config = policy_config(Root(CODE), POLICY)
        checkpoint = Root(CODE).find_checkpoint(config["checkpoint"], POLICY)
        (packages,) = self._pythons["model"].parents[1].glob("lib/python3*/site-packages")
        with Subject(self._pythons["tabletop"], "bench.plain_loop", self._scratch.path,
                     BENCH_PACKAGES=str(packages)) as loop:  # fmt: skip
            loop.ask("load", policy=str(CODE / "policy" / POLICY), threads=THREADS,
                     usr_args={**config, "checkpoint": str(checkpoint)})  # fmt: skip
            episodes = [asdict(episode) for episode in manifest.episodes[: self._count]]
            played = [loop.ask("play", episode=episode) for episode in episodes]
        self._states["plain loop"] = [state for _, state in played]
        return float(played[-1][0] - played[0][0]) / (len(played) - 1)

    def compare(self) -> None:
        """Raises ``RollpoolError`` where the two did not play the same."""
        pool, plain = self._states["rollpool"], self._states["plain loop"]
        if pool != plain:
            raise RollpoolError("the same final states", f"{pool} and {plain}", "see the logs")
