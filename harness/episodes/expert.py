"""Actions that need no policy: the expert's, or ones drawn for the episode.

Promises: ``own_actions`` of an episode are the same whenever it is played; a seed that the expert
cannot play, for whatever reason, is one that it does not solve.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator

import numpy as np

from harness.episodes.channel import ChannelClosed
from harness.errors import RollpoolError
from harness.simulators.contract import ActionSpace, Episode, Simulator, native

#: Actions that the expert is asked for at once, and of one that plays to the end.
CHUNK, _LONG_CHUNK = 10, 30


def experts_chunk(sim: Simulator, length: int) -> np.ndarray:
    """``(1 to length, D)`` of the simulator's expert; what is none is the simulator's fault."""
    chunk = np.asarray(sim.expert_chunk(length))
    dim = sim.action_kinds[native(sim)].dim
    if chunk.ndim != 2 or not 1 <= len(chunk) <= length or chunk.shape[1] != dim:
        raise ValueError(f"expert_chunk({length}) has shape {chunk.shape}, not (1.., {dim})")
    return chunk


def own_actions(sim: Simulator, episode: Episode) -> Iterator[np.ndarray]:
    """The expert's actions, or random ones that are the episode's own: ``(D,)`` float32 each."""
    try:
        while True:
            yield from np.array(experts_chunk(sim, CHUNK), np.float32)
    except RollpoolError:
        rng = np.random.default_rng(episode.seed)
        low, high = bounds(sim.action_kinds[native(sim)])
        while True:
            yield rng.uniform(low, high).astype(np.float32)


def bounds(space: ActionSpace) -> tuple[np.ndarray, np.ndarray]:
    """``(dim,)`` each; what is unbounded is -1 to 1, for want of anything else."""
    low = -1.0 if space.low is None else space.low
    high = 1.0 if space.high is None else space.high
    return _each(low, space.dim), _each(high, space.dim)


def solves(sim: Simulator, episode: Episode, moved: Callable[[int], None]) -> bool:
    """Whether the expert succeeds within the step limit, with nothing rendered. A simulator that
    raises does not have this seed to offer. ``moved`` is told the actions so far, chunk by chunk;
    what it raises, where nobody listens any more, ends the play."""
    steps, limit = 0, sim.step_limit(episode.task, episode.task_config)
    try:
        sim.reset(episode)
        while steps < limit:
            for action in experts_chunk(sim, _LONG_CHUNK)[: limit - steps]:
                steps += 1
                if sim.step(action, native(sim)):
                    return True
                if sim.ended():
                    return False
            moved(steps)
    except ChannelClosed:
        raise
    except Exception:  # an unstable scene, a plan that is not found
        traceback.print_exc()
    return False


def _each(bound: float | tuple[float, ...], dim: int) -> np.ndarray:
    return np.full(dim, bound, np.float64) if np.ndim(bound) == 0 else np.array(bound, np.float64)
