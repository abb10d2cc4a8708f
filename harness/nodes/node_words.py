"""What the nodes of a run have said of themselves, in ``runs/<RUN>/nodes/``.

Promises: a word is one file that its node makes once, under a name of its own; what is there is
found by listing. The last word of a node counts, by that node's own clock.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.foundations.atomic import publish_once
from harness.leases.filesystem import Filesystem


@dataclass(frozen=True)
class KeptOut:
    """A node that takes no work; ``words``: why. ``time``: seconds since the epoch."""

    node: str
    words: str
    time: float


def leave(
    nodes: Path, node: str, findings: Sequence[Mapping[str, str]],
    known_episode: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Say how ``node`` stands. Raises ``RollpoolError``.

    Args:
        findings: ``check level words todo`` each; a level ``failure`` keeps it out.
        known_episode: what it played, for other nodes to compare with.
    """
    failed = any(finding["level"] == "failure" for finding in findings)
    word = {
        "node": node, "level": "failure" if failed else "ok", "findings": list(findings),
        "time": time.time(), "known_episode": known_episode,
    }  # fmt: skip
    nodes.mkdir(exist_ok=True)
    name = f"{re.sub(r'[^A-Za-z0-9_.-]', '-', node)}-{os.getpid()}-{secrets.token_hex(8)}.json"
    publish_once(nodes / name, (json.dumps(word, indent=1) + "\n").encode())


def words(nodes: Path, fs: Filesystem | None = None) -> list[dict[str, Any]]:
    """All that was said; half-visible files are left out."""
    fs, found = fs or Filesystem(), []
    for name in sorted(fs.names(nodes)):
        if name.endswith(".json") and not name.startswith((".", "first.")):
            try:
                found.append(json.loads(fs.read(nodes / name)))
            except (OSError, ValueError):
                continue
    return found


def kept_out(nodes: Path) -> list[KeptOut]:
    """The nodes whose last word is that they take no work, by name."""
    last = {word["node"]: word for word in sorted(words(nodes), key=lambda word: word["time"])}
    return [KeptOut(node, _why(word), word["time"])
            for node, word in sorted(last.items()) if word["level"] == "failure"]  # fmt: skip


def _why(word: Mapping[str, Any]) -> str:
    failures = (finding for finding in word["findings"] if finding["level"] == "failure")
    return "; ".join(f"{finding['check']}: {finding['words']}" for finding in failures)
