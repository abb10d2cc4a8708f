"""The conformance suite: does an adapter keep the contract, in any process and in any order?

Three processes of the simulator are started. The first plays the episodes in order, one of them
again, once more after another was abandoned, and once more while everything is looked at on the
way; it is asked what ``harness.episodes.conformance`` asks. The second plays them the other way
round. The third renders nothing, plays the last one alone, and is killed in the middle of it.
Promises: every wait has a deadline, and no process is left whatever the adapter does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.canonical import canonical_json, seed_of
from harness.episodes.conformance import LOOK_EVERY
from harness.errors import RollpoolError
from harness.runs.population import Cell, read_line
from harness.simulators.contract import Episode
from harness.workers.children import ProcessDied
from harness.workers.descendants import Descendants
from harness.workers.simulator_process import QUIT_DEADLINE_S, SimulatorProcess

#: Starts a process of the simulator, with a renderer or without.
Start = Callable[[bool], SimulatorProcess]


@dataclass(frozen=True)
class Finding:
    """One check. ``complaints`` are empty where it is kept; ``note`` says what was seen."""

    check: str
    complaints: tuple[str, ...] = ()
    note: str = ""
    asked: bool = True

    @property
    def word(self) -> str:
        """``ok``, ``FAILED``, or ``-`` where it does not apply."""
        return "FAILED" if self.complaints else "ok" if self.asked else "-"


@dataclass(frozen=True)
class Slice:
    """What is played: the first seeds of some cells, a number of actions each."""

    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    steps: int
    deadline_s: float


def choose_cells(described: Mapping[str, Any], count: int) -> list[Cell]:
    """``count`` cells, evenly over all that there are, in each scene's first configuration."""
    pairs = described["cells"]
    number = min(count, len(pairs))
    chosen = [pairs[i * len(pairs) // number] for i in range(number)]
    configs = described["task_configs"]
    return [Cell(scene, task, configs[scene][0]) for scene, task in chosen]


def examine(start: Start, part: Slice) -> Iterator[Finding]:
    """The findings, one after the other as they are made."""
    suite = _Suite(start, part)
    try:
        yield from suite.findings()
    finally:
        suite.end()


class _Suite:
    def __init__(self, start: Start, part: Slice) -> None:
        self._start, self._part = start, part
        self._sim: SimulatorProcess | None = None
        self._render = True
        self._sealed: dict[Cell, list[Episode]] = {}
        self._traces: dict[Any, dict[str, Any]] = {}

    def findings(self) -> Iterator[Finding]:
        yield self._check("it says what it is", self._describe)
        yield self._check("sealing again gives the same", self._seal)
        episodes = self._episodes()
        if not episodes:
            return
        first, last = episodes[0], episodes[-1]
        yield self._check("its episodes can be played", lambda: self._play(episodes))
        yield self._check("an expert acts from the current state", lambda: self._expert(first))
        yield self._check("an episode twice in a process", lambda: self._replay([first]))
        yield self._check("after an abandoned episode", lambda: self._abandoned(last, first))
        yield self._check("looking changes nothing", lambda: self._replay([first], nosy=True))
        yield self._check("observations", lambda: self._ask("observe", first))
        yield self._check("pictures", lambda: self._pictures(first))
        yield self._check("actions: shapes, bounds, clipping", lambda: self._ask("act", first))
        yield self._check("closing", lambda: self._close(first))
        self._renew(render=True)
        yield self._check("sealing in another process and order", lambda: self._seal(back=True))
        backwards = episodes[::-1]
        yield self._check(
            "in another process and order, first and last", lambda: self._replay(backwards)
        )
        self._renew(render=False)
        yield self._check("alone, without a renderer", lambda: self._replay([last]))
        yield self._check("a step that hangs is ended", lambda: self._hang(last))

    def end(self) -> None:
        if self._sim is not None:
            self._ended(self._sim.kill)

    def _renew(self, render: bool) -> None:
        if self._sim is not None:
            self._ended(self._sim.close)
        self._render = render

    def _ended(self, end: Callable[[], None]) -> list[str]:
        """End the process that runs, and what it has started; complaints if that went on."""
        assert self._sim is not None
        started = Descendants(self._sim.proc.pid)
        end()
        self._sim = None
        left = started.end()
        return [f"processes {left} that it started went on: end them with it"] if left else []

    def _process(self) -> SimulatorProcess:
        if self._sim is None or not self._sim.alive():
            self.end()
            self._sim = self._start(self._render)
        return self._sim

    def _check(self, name: str, ask: Callable[[], tuple[list[str], str] | None]) -> Finding:
        try:
            answer = ask()
        except (RollpoolError, ProcessDied) as error:
            return Finding(name, (str(error),))
        if answer is None:
            return Finding(name, note="does not apply", asked=False)
        complaints, note = answer
        return Finding(name, tuple(complaints), note)

    def _describe(self) -> tuple[list[str], str]:
        complaints = self._conform("describe")
        said = self._process().describe()
        kinds = ", ".join(
            f"{kind} ({space['dim']})" for kind, space in said["action_kinds"].items()
        )
        cameras = ", ".join(said["cameras"]) or "none"
        return complaints, f"{len(said['cells'])} cells; actions {kinds}; cameras {cameras}"

    def _seal(self, back: bool = False) -> tuple[list[str], str]:
        """In order and twice, or in the other order, against what was sealed before."""
        complaints = []
        cells = self._part.cells[::-1] if back else self._part.cells
        seeds = self._part.seeds[::-1] if back else self._part.seeds
        for _ in range(1 if back else 2):
            for cell in cells:
                lines = self._process().seal(cell, seeds).lines
                complaints += [
                    f"{cell.name} seed {seed_of(line)}: keys that are numbers, not text"
                    for line in lines
                    if canonical_json(json.loads(line)) != line
                ]
                now = [read_line(cell, line) for line in lines][:: -1 if back else 1]
                known = self._sealed.setdefault(cell, now)
                complaints += [
                    f"{cell.name} seed {episode.seed}: {name} {before} then {then}"
                    for episode, was in zip(now, known, strict=True)
                    for name in ("instruction", "reset", "fingerprint")
                    if (before := getattr(was, name)) != (then := getattr(episode, name))
                ]
        return complaints, f"{len(self._episodes())} episodes"

    def _episodes(self) -> list[Episode]:
        return [episode for episodes in self._sealed.values() for episode in episodes]

    def _play(self, episodes: Sequence[Episode]) -> tuple[list[str], str]:
        complaints, steps, solved = [], 0, 0
        for episode in episodes:
            trace = self._trace(episode)
            self._traces[_key(episode)] = trace
            complaints += [f"{episode}: {words}" for words in trace["complaints"]]
            steps, solved = steps + trace["steps"], solved + trace["score"][0]
        return complaints, f"{len(episodes)} episodes, {steps} actions, {solved} solved by then"

    def _replay(self, episodes: Sequence[Episode], nosy: bool = False) -> tuple[list[str], str]:
        """The actions of before once more: everything has to be as it was."""
        complaints = []
        for episode in episodes:
            was = self._traces.get(_key(episode))
            if was is None:
                complaints.append(f"{episode}: it could not be played the first time")
                continue
            now = self._trace(episode, was["actions"], nosy)
            if (found := _difference(was, now)) is not None:
                complaints.append(f"{episode}: {found}")
        return complaints, f"{len(episodes)} episodes, equal states and scores"

    def _abandoned(self, other: Episode, episode: Episode) -> tuple[list[str], str]:
        self._conform("abandon", episode=asdict(other))
        return self._replay([episode])

    def _trace(
        self, episode: Episode, actions: Sequence[Any] = (), nosy: bool = False
    ) -> dict[str, Any]:
        request = {"episode": asdict(episode), "steps": self._part.steps, "nosy": nosy}
        trace: dict[str, Any] = self._conform("trace", **request, actions=list(actions))
        return trace

    def _expert(self, episode: Episode) -> tuple[list[str], str] | None:
        answer = self._conform("expert", episode=asdict(episode))
        return (answer["complaints"], "") if answer["there"] else None

    def _ask(self, part: str, episode: Episode) -> tuple[list[str], str]:
        return self._conform(part, episode=asdict(episode)), ""

    def _pictures(self, episode: Episode) -> tuple[list[str], str] | None:
        cameras = self._process().describe()["cameras"]
        return self._ask("pictures", episode) if cameras else None

    def _close(self, episode: Episode) -> tuple[list[str], str]:
        self._conform("close", episode=asdict(episode))
        process, began = self._process(), time.monotonic()
        complaints, took = self._ended(process.close), time.monotonic() - began
        if took >= QUIT_DEADLINE_S:
            complaints += [f"its process did not end within {QUIT_DEADLINE_S:g} s and was killed"]
        return complaints, f"ended within {took:.1f} s"

    def _hang(self, episode: Episode) -> tuple[list[str], str]:
        process = self._process()
        process.hang(episode, self._part.deadline_s)
        return self._ended(process.kill), "killed, nothing is left"

    def _conform(self, part: str, **arguments: Any) -> Any:
        return self._process().conform(part, self._part.deadline_s, **arguments)


def _key(episode: Episode) -> Any:
    return (episode.scene, episode.task, episode.task_config, episode.seed)


def _difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first thing that differs between two plays of the same actions."""
    pairs = zip(was["states"], now["states"], strict=False)
    for number, (one, other) in enumerate(pairs):
        if one != other:
            last = number == len(was["states"]) - 1
            after = was["steps"] if last else number * LOOK_EVERY
            where = f"after {after} actions" if number else "right after reset"
            return f"another state {where}: {one[:12]} then {other[:12]}"
    for what in ("steps", "score", "instruction"):
        if was[what] != now[what]:
            return f"{what} {was[what]} then {now[what]}"
    return None
