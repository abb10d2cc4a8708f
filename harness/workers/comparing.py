"""A few episodes, each played alone and then in company: whether sharing batches changes them.

Promises: nothing of the run is touched; an episode that goes wrong is an error, not a difference.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import RollpoolError
from harness.paths import RunPaths
from harness.runs.run import Run
from harness.simulators.contract import Episode
from harness.workers import chosen_model
from harness.workers.model_link import OwnServer
from harness.workers.rig import Rig
from harness.workers.server_process import START_DEADLINE_S

#: Asking everything again, alone and in batches, may take so many times what it took at first.
_SLOWER = 4
#: Names the logs, and the server to its clients.
_NAME = "batch-check"


@dataclass(frozen=True)
class Compared:
    """What was found.

    Attributes:
        actions: see ``harness.inference.invariance.Keeping.compare``; None where the policy answers
            one simulator after the other.
        ends: each episode with its results alone and in company; none where there is nothing to
            compare.
    """

    actions: dict[str, Any] | None
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
    with _folder() as folder:
        apart = replace(run, paths=RunPaths(folder), settings=settings)
        process = chosen_model.process(apart, _NAME, keeps=True)
        rig = Rig(apart, _NAME, [OwnServer(apart, _NAME, process)])
        played = functools.partial(_played, rig, apart.paths.logs, say)
        try:
            rig.ready()
            if not process.identity["batches"]:
                return Compared(None, ())
            alone = [played(episode, "alone") for episode in episodes]
            asked_s = sum(result["policy_s"] for result in alone)
            actions = process.compare(len(episodes), START_DEADLINE_S + _SLOWER * asked_s)
            shared = [played(episode, "in company") for episode in episodes]
        finally:
            rig.close()
    return Compared(actions, tuple(zip(episodes, alone, shared, strict=True)))


def _played(
    rig: Rig, logs: Path, say: Callable[[str], None], episode: Episode, how: str
) -> dict[str, Any]:
    """Its result."""
    which = f"{episode.scene}/{episode.task} seed {episode.seed} {how}"
    say(f"playing {which}")
    result = rig.play(episode, 1, None, lambda steps: None)
    if error := result["error"]:
        raise RollpoolError(f"play {which}", error["message"], f"see to it first; logs: {logs}")
    return result


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """One that is gone afterwards, but where an error names the logs in it."""
    folder, stays = Path(tempfile.mkdtemp(prefix="rollpool-")), False
    try:
        yield folder
    except RollpoolError:
        stays = True
        raise
    finally:
        if not stays:
            shutil.rmtree(folder, ignore_errors=True)
