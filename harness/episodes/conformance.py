"""What an adapter is asked in its own process before it is trusted: one half of the conformance
suite, the parts that ``harness.workers.conforming`` puts together over several processes.

Promises: a part either returns what it found, in JSON, or raises what the adapter raised. The
global random generators are disturbed before every episode, since an episode that draws from them
is another one each time.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from harness.episodes import breaches
from harness.episodes.expert import CHUNK, bounds, experts_chunk, own_actions
from harness.errors import RollpoolError
from harness.simulators.contract import ActionSpace, Episode, Score, Simulator, native

#: Steps after which an episode is left for another one.
ABANDONED_AFTER = 3
#: Actions between two looks at the state.
LOOK_EVERY = 10
#: Actions between two looks at everything, all cameras included.
LOOK_AROUND_EVERY = 5
_UNKNOWN = "no such name"


def describe(sim: Simulator, request: Mapping[str, Any]) -> list[str]:
    """Complaints about what it says of itself."""
    seal = functools.partial(sim.seal, _UNKNOWN, _UNKNOWN, _UNKNOWN, 0)
    return [*breaches.of_description(sim), *breaches.accepted("sealing no task", seal)]


def trace(sim: Simulator, request: Mapping[str, Any]) -> dict[str, Any]:
    """Play ``episode`` for ``steps`` actions: those of ``actions``, else the expert's, else random
    ones within the bounds. ``nosy``: look at everything again and again, at the state always.

    Returns ``actions``, ``complaints``, and what has to be equal in every replay: ``states`` (a
    hash now and then), ``score``, ``steps`` and ``instruction``.
    """
    episode, nosy = Episode(**request["episode"]), request["nosy"]
    _disturb()
    sim.reset(episode)
    source = _given(request["actions"]) if request["actions"] else own_actions(sim, episode)
    states, times = [sim.state_hash()], [sim.sim_time()]
    actions: list[np.ndarray] = []
    success = False
    while len(actions) < int(request["steps"]) and not success and not sim.ended():
        actions.append(next(source))
        success = sim.step(actions[-1], native(sim))
        times.append(sim.sim_time())
        if nosy and len(actions) % LOOK_AROUND_EVERY == 1:
            _look_at_everything(sim)
        if nosy or len(actions) % LOOK_EVERY == 0:
            states.append(sim.state_hash())
    states = [*states[:: LOOK_EVERY if nosy else 1], sim.state_hash()]
    score = sim.score()
    return {
        "states": states,
        "score": _plain(score),
        "steps": len(actions),
        "instruction": sim.observe(()).instruction,
        "actions": [action.tolist() for action in actions],
        "complaints": [
            *breaches.of_movement(states, times, len(actions)),
            *breaches.of_score(score, success),
        ],
    }


def abandon(sim: Simulator, request: Mapping[str, Any]) -> None:
    """Leave ``episode`` after a few steps."""
    episode = Episode(**request["episode"])
    sim.reset(episode)
    source = own_actions(sim, episode)
    for _ in range(ABANDONED_AFTER):
        sim.step(next(source), native(sim))


def observe(sim: Simulator, request: Mapping[str, Any]) -> list[str]:
    """Complaints about what is seen of ``episode``."""
    episode = Episode(**request["episode"])
    sim.reset(episode)
    seen = sim.observe(sim.cameras)
    complaints = list(breaches.of_observation(seen, sim.cameras))
    if seen.instruction != episode.instruction:
        complaints.append(f"its instruction is {seen.instruction!r}, not the sealed one")
    if abs(sim.sim_time()) > 1e-9:
        complaints.append(f"sim_time() is {sim.sim_time()} after reset")
    if dict(sim.fingerprint()) != dict(episode.fingerprint):
        complaints.append("fingerprint() after reset is not the sealed one")
    message = {**seen.images, **seen.state, "proprio": seen.proprio}
    before = {name: np.array(array) for name, array in message.items()}
    complaints += breaches.on_the_wire(message)
    source = own_actions(sim, episode)
    for _ in range(ABANDONED_AFTER):
        sim.step(next(source), native(sim))
    sim.observe(sim.cameras)
    for name, array in message.items():
        if not np.array_equal(array, before[name]):
            complaints.append(f"{name} of an observation changes afterwards: give a copy")
    return complaints


def pictures(sim: Simulator, request: Mapping[str, Any]) -> list[str]:
    """Complaints about the pictures of ``episode``; none where there are no cameras."""
    sim.reset(Episode(**request["episode"]))
    complaints = []
    shown = sim.observe(list(sim.cameras)[:1]).images
    if list(shown) != list(sim.cameras)[:1]:
        complaints.append(f"asked for {list(sim.cameras)[:1]}, got the pictures {list(shown)}")
    for camera in sim.cameras:
        frame = sim.frame(camera)
        complaints += breaches.of_picture(f"frame({camera!r})", frame)
    complaints += breaches.accepted("a picture of no camera", lambda: sim.frame(_UNKNOWN))
    complaints += breaches.accepted("observing no camera", lambda: sim.observe([_UNKNOWN]))
    return complaints


def act(sim: Simulator, request: Mapping[str, Any]) -> list[str]:
    """Complaints about how actions are taken: shapes, bounds, clipping, whose array it is."""
    episode, kind = Episode(**request["episode"]), native(sim)
    sim.reset(episode)
    action = next(own_actions(sim, episode))
    action.setflags(write=False)
    complaints = []
    done: Any = sim.step(action, kind)  # raises where the adapter writes into what it is given
    if not isinstance(done, bool | np.bool_):
        complaints.append(f"step() returned {type(done).__name__}, not a bool")
    for wrong in (action[:-1], action[None]):
        step = functools.partial(sim.step, wrong, kind)
        complaints += breaches.accepted(f"an action of shape {wrong.shape}", step)
    complaints += breaches.accepted("an action of no kind", lambda: sim.step(action, _UNKNOWN))
    for name, space in sim.action_kinds.items():
        complaints += _clips(sim, episode, name, space)
    return complaints


def expert(sim: Simulator, request: Mapping[str, Any]) -> dict[str, Any]:
    """``{"there": bool, "complaints": [...]}``."""
    episode, complaints = Episode(**request["episode"]), []
    sim.reset(episode)
    before = sim.state_hash()
    try:
        chunks = [experts_chunk(sim, length) for length in (CHUNK, 1)]
    except RollpoolError:
        return {"there": False, "complaints": []}
    if sim.state_hash() != before:
        complaints.append("asking the expert changes the state")
    if not all(np.isfinite(chunk).all() for chunk in chunks):
        complaints.append("its actions are not finite")
    return {"there": True, "complaints": complaints}


def close(sim: Simulator, request: Mapping[str, Any]) -> None:
    """Close it twice, with an episode begun."""
    sim.reset(Episode(**request["episode"]))
    sim.close()
    sim.close()


#: A part's name -> the function that answers it.
PARTS: dict[str, Callable[[Simulator, Mapping[str, Any]], Any]] = {
    part.__name__: part
    for part in (describe, trace, abandon, observe, pictures, act, expert, close)
}


def _given(actions: Sequence[Sequence[float]]) -> Iterator[np.ndarray]:
    return (np.array(action, np.float32) for action in actions)


def _disturb() -> None:
    random.seed()
    np.random.seed()


def _look_at_everything(sim: Simulator) -> None:
    sim.observe(sim.cameras)
    for camera in sim.cameras:
        sim.frame(camera)
    sim.score()
    sim.versions()
    sim.fingerprint()


def _plain(score: Score) -> list[Any]:
    hard, names = score.hard_success, [str(name) for name in score.collision_names]
    hard = hard if hard is None else bool(hard)
    return [bool(score.success), hard, repr(score.collision_count), names]


def _clips(sim: Simulator, episode: Episode, kind: str, space: ActionSpace) -> Iterator[str]:
    """Of a bounded kind: its bounds are accepted, and what lies outside is taken as the bound."""
    if space.low is None or space.high is None:
        return
    low, high = bounds(space)
    for name, bound, outside in (("low", low, 2 * low - high), ("high", high, 2 * high - low)):
        states = []
        for action in (bound, outside):
            sim.reset(episode)
            sim.step(action.astype(np.float32), kind)
            states.append(sim.state_hash())
        if states[0] != states[1]:
            yield f"{kind}: an action beyond {name} is not clipped to it"
