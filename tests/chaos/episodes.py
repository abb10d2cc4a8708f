"""Episodes that need no simulator: how long each takes and what it comes to is known beforehand."""

from __future__ import annotations

import os
import random
from typing import Any

from harness.simulators.contract import Episode

#: Seconds of the median episode; a few take ten times as long.
MEDIAN_S = float(os.environ.get("SCRIPTED_MEDIAN_S", "0.03"))


def duration(seed: int) -> float:
    """Seconds of an episode: log-normal, so that there are long ones."""
    return min(20 * MEDIAN_S, random.Random(seed).lognormvariate(0.0, 1.0) * MEDIAN_S)


def succeeds(seed: int) -> bool:
    return random.Random(-seed).random() < 0.6


def result(episode: Episode) -> dict[str, Any]:
    """As of ``harness.episodes.episode.run_episode``."""
    success, hits = succeeds(episode.seed), episode.seed % 3
    return {
        "outcome": "success" if success else "fail",
        "success": success,
        "hard_success": success and not hits,
        "collision_count": hits,
        "collision_names": ["post"] * bool(hits),
        "steps": episode.seed % 100,
        "sim_s": 1.0,
        "wall_s": duration(episode.seed),
        "policy_s": 0.0,
        "profile": {},
        "state_hash": f"{episode.seed:064x}",
        "video": None,
        "versions": {},
        "error": None,
    }
