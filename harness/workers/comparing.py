"""A few episodes, each played alone and then in company: whether sharing batches changes them.

Promises: nothing of the run is touched; an episode that goes wrong is an error, not a difference.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import RollpoolError
from harness.paths import RunPaths
from harness.runs.run import Run
from harness.simulators.contract import Episode
from harness.workers.model_link import OwnServer
from harness.workers.rig import Rig, model_process

#: Names the logs, and the server to its clients.
_NAME = "batch-check"


@dataclass(frozen=True)
class Compared:
    """What was found.

    Attributes:
        actions: see ``harness.inference.invariance.Keeping.compare``.
        ends: each episode with its results alone and in company; none where the policy answers one
            simulator after the other.
    """

    actions: dict[str, Any]
    ends: tuple[tuple[Episode, dict[str, Any], dict[str, Any]], ...]

    @property
    def outcomes_differ(self) -> bool:
        return any(alone["outcome"] != shared["outcome"] for _, alone, shared in self.ends)


def compare(run: Run, episodes: Sequence[Episode], say: Callable[[str], None]) -> Compared:
    """Play ``episodes``; ask all that the policy then has seen again, alone and in batches of as
    many; play them once more, each answered in such batches. Raises ``RollpoolError``."""
    settings = run.settings.having(
        EVAL_VIDEO="none", MODEL_SERVER_BIND="127.0.0.1", MODEL_AS_CLIENT=False, SIMS_PER_WORKER=1
    )
    with tempfile.TemporaryDirectory(prefix="rollpool-") as folder:
        apart = replace(run, paths=RunPaths(Path(folder)), settings=settings)
        process = model_process(apart, _NAME, keeps=True)
        rig = Rig(apart, _NAME, [OwnServer(apart, _NAME, process)])
        try:
            alone = [_played(rig, episode, "alone", say) for episode in episodes]
            actions = process.compare(len(episodes))
            if not actions["batches"]:
                return Compared(actions, ())
            shared = [_played(rig, episode, "in company", say) for episode in episodes]
        finally:
            rig.close()
    return Compared(actions, tuple(zip(episodes, alone, shared, strict=True)))


def _played(rig: Rig, episode: Episode, how: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Its result."""
    say(f"playing {episode.scene}/{episode.task} seed {episode.seed} {how}")
    result = rig.play(episode, 1, None, lambda steps: None)
    if error := result["error"]:
        raise RollpoolError("batch-check", error["message"], "see to that episode first")
    return result
