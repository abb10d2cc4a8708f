"""One episode that every node of a run plays first: equal machines must end in equal states.

Nodes are equal in this where architecture, CPU features and simulator versions are. Promises: a
node whose state differs from that of most nodes like it is told so; of two that differ, the one
that came first stands.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.canonical import canonical_json
from harness.foundations.atomic import publish_once
from harness.leases.filesystem import Filesystem
from harness.nodes.node_checks import Finding
from harness.nodes.node_words import words
from harness.simulators.contract import Episode

#: Actions of the expert: a scene that settles, and a reach towards the first thing.
STEPS = 60


@dataclass(frozen=True)
class Played:
    """What a node found, and what decides whom it is compared with."""

    node: str
    alike: str  # a digest of architecture, CPU features, versions, and the episode
    states: tuple[str, ...]  # of two plays in one process

    @property
    def state(self) -> str:
        return self.states[0]


def played(node: str, versions: Mapping[str, str], episode: Episode, states: list[str]) -> Played:
    """The record of a node that played ``episode`` twice."""
    of = {"machine": platform.machine(), "cpu": cpu_features(), "versions": dict(versions),
          "episode": [episode.manifest, episode.position], "steps": STEPS}  # fmt: skip
    return Played(node, hashlib.sha256(canonical_json(of).encode()).hexdigest(), tuple(states))


def cpu_features(text: str | None = None) -> str:
    """A digest of what the CPU can do: numerical libraries choose their code by it."""
    if text is None:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return hashlib.sha256(" ".join(sorted(value.split())).encode()).hexdigest()
    return platform.processor()


def compare(mine: Played, nodes: Path, fs: Filesystem | None = None) -> Finding:
    """How this node stands among the nodes of the run that are like it."""
    if len(set(mine.states)) > 1:
        return Finding(
            "known episode", "failure", "played twice here, it ended in two different states",
            "drain the node: memory or driver fault; or the simulator is not deterministic",
        )  # fmt: skip
    others = _states(mine, nodes, fs or Filesystem())
    first = _first(mine, nodes)
    votes = Counter(state for states in others.values() for state in states)
    votes[mine.state] += 1
    most = max(votes.values())
    winners = {state for state, count in votes.items() if count == most}
    right = first if first in winners else sorted(winners)[0]
    differing = sorted(node for node, states in others.items() if states != {mine.state})
    if mine.state != right:
        agreed = sorted(node for node, states in others.items() if right in states)
        return Finding(
            "known episode", "failure",
            f"its state is {mine.state[:12]}, that of {', '.join(agreed) or 'the first node'} is "
            f"{right[:12]}, on an equal machine", "drain the node: it computes something else",
        )  # fmt: skip
    if differing:
        return Finding("known episode", "warning", f"{', '.join(differing)} computed another state",
                       "have those nodes looked at")  # fmt: skip
    return Finding("known episode", "ok", f"state {mine.state[:12]}, as on {len(others)} other "
                   "nodes like this one")  # fmt: skip


def _states(mine: Played, nodes: Path, fs: Filesystem) -> dict[str, set[str]]:
    """Other nodes like this one -> the states they ended in."""
    states: dict[str, set[str]] = defaultdict(set)
    for line in words(nodes, fs):
        known = line.get("known_episode")
        if known and known["alike"] == mine.alike and known["node"] != mine.node:
            states[known["node"]].add(known["states"][0])
    return states


def _first(mine: Played, nodes: Path) -> str:
    """The state of the first node of this kind; this one's, if it is the first."""
    nodes.mkdir(exist_ok=True)
    file = nodes / f"first.{mine.alike[:16]}.json"
    publish_once(file, json.dumps(asdict(mine)).encode())
    state: str = json.loads(file.read_bytes())["states"][0]
    return state
