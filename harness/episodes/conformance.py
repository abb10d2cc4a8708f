"""What an adapter is asked in its own process before it is trusted: one half of the conformance
suite, the parts that ``harness.workers.conforming`` puts together over several processes.

Promises: a part either returns what it found, in JSON, or raises what the adapter raised. The
global random generators are disturbed before every episode, since an episode that draws from them
is another one each time.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from harness.episodes.fitting import experts_chunk
from harness.errors import RollpoolError
from harness.simulators.contract import ActionSpace, Episode, Observation, Score, Simulator, native
from harness.wire import binary

#: Steps after which an episode is left for another one.
ABANDONED_AFTER = 3
#: Actions between two looks at the state, and of the chunks that the expert is asked for.
LOOK_EVERY = 10
#: Actions between two looks at everything, all cameras included.
LOOK_AROUND_EVERY = 5
_UNKNOWN = "no such name"


def describe(sim: Simulator, request: Mapping[str, Any]) -> list[str]:
    """Complaints about what it says of itself."""
    return [
        *_kinds(sim),
        *([] if sim.name else ["name is empty"]),
        *([] if _positive(sim.control_hz) else [f"control_hz is {sim.control_hz!r}"]),
        *_twice("cameras", list(sim.cameras)),
        *_cells(sim),
        *_texts("versions()", sim.versions()),
        *([] if "simulator" in sim.versions() else ["versions() has no 'simulator'"]),
        *_accepted("sealing no task", lambda: sim.seal(_UNKNOWN, _UNKNOWN, _UNKNOWN, 0)),
    ]


def trace(sim: Simulator, request: Mapping[str, Any]) -> dict[str, Any]:
    """Play ``episode`` for ``steps`` actions: those of ``actions``, else the expert's, else random
    ones within the bounds. ``nosy``: look at everything again and again, at the state always.

    Returns ``actions``, ``complaints``, and what has to be equal in every replay: ``states`` (a
    hash now and then), ``score``, ``steps`` and ``instruction``.
    """
    episode, steps = Episode(**request["episode"]), int(request["steps"])
    _disturb()
    sim.reset(episode)
    source = _given(request["actions"]) if request["actions"] else own_actions(sim, episode)
    states, times = [sim.state_hash()], [sim.sim_time()]
    actions: list[np.ndarray] = []
    complaints: list[str] = []
    success = False
    while len(actions) < steps and not success and not sim.ended():
        actions.append(next(source))
        success = sim.step(actions[-1], native(sim))
        times.append(sim.sim_time())
        if request["nosy"] and len(actions) % LOOK_AROUND_EVERY == 1:
            _look_at_everything(sim)
        if request["nosy"] or len(actions) % LOOK_EVERY == 0:
            states.append(sim.state_hash())
    states = [*states[:: LOOK_EVERY if request["nosy"] else 1], sim.state_hash()]
    if len(set(states)) < 2:
        complaints.append(f"state_hash() is the same after {len(actions)} actions")
    if not all(math.isfinite(t) for t in times) or np.any(np.diff(times) <= 0):
        complaints.append("sim_time() does not grow with every action")
    return {
        "states": states,
        "score": _score(sim.score(), success, complaints),
        "steps": len(actions),
        "instruction": sim.observe(()).instruction,
        "actions": [action.tolist() for action in actions],
        "complaints": complaints,
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
    complaints = list(_shapes(seen, sim.cameras))
    if seen.instruction != episode.instruction:
        complaints.append(f"its instruction is {seen.instruction!r}, not the sealed one")
    if abs(sim.sim_time()) > 1e-9:
        complaints.append(f"sim_time() is {sim.sim_time()} after reset")
    if dict(sim.fingerprint()) != dict(episode.fingerprint):
        complaints.append("fingerprint() after reset is not the sealed one")
    message = {**seen.images, **seen.state, "proprio": seen.proprio}
    before = {name: np.array(array) for name, array in message.items()}
    complaints += _read_back(message)
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
        complaints += _picture(f"frame({camera!r})", frame)
    complaints += _accepted("a picture of no camera", lambda: sim.frame(_UNKNOWN))
    complaints += _accepted("observing no camera", lambda: sim.observe([_UNKNOWN]))
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
        complaints += _accepted(f"an action of shape {wrong.shape}", step)
    complaints += _accepted("an action of no kind", lambda: sim.step(action, _UNKNOWN))
    for name, space in sim.action_kinds.items():
        complaints += _clips(sim, episode, name, space)
    return complaints


def expert(sim: Simulator, request: Mapping[str, Any]) -> dict[str, Any]:
    """``{"there": bool, "complaints": [...]}``."""
    episode, complaints = Episode(**request["episode"]), []
    sim.reset(episode)
    before = sim.state_hash()
    try:
        chunks = [experts_chunk(sim, length) for length in (LOOK_EVERY, 1)]
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


def _kinds(sim: Simulator) -> Iterator[str]:
    if not sim.action_kinds:
        yield "there are no action_kinds"
    for kind, space in sim.action_kinds.items():
        if not isinstance(space, ActionSpace) or space.dim < 1:
            yield f"action_kinds[{kind!r}] is {space!r}"
            continue
        low, high = _bounds(space)
        if low.shape != (space.dim,) or high.shape != (space.dim,) or np.any(low >= high):
            yield f"action_kinds[{kind!r}]: its bounds are not {space.dim} intervals"


def _cells(sim: Simulator) -> Iterator[str]:
    cells = list(sim.cells())
    if not cells:
        yield "there are no cells()"
    yield from _twice("cells()", cells)
    for scene in dict.fromkeys(scene for scene, _ in cells):
        configs = list(sim.task_configs(scene))
        if not configs:
            yield f"scene {scene!r} has no task_configs"
        yield from _twice(f"task_configs({scene!r})", configs)
        for name in (scene, *configs, *(task for s, task in cells if s == scene)):
            if not name or set(name) & set("/\\ \t\n#") or name.startswith("."):
                yield f"the name {name!r} cannot stand in a queue and name a folder"
        for task in (task for s, task in cells if s == scene):
            for config in configs:
                limit = sim.step_limit(task, config)
                if not isinstance(limit, int) or limit < 1:
                    yield f"step_limit({task!r}, {config!r}) is {limit!r}"


def _twice(what: str, names: Sequence[Any]) -> list[str]:
    return [f"{what} has an entry twice"] if len(set(names)) < len(names) else []


def _texts(what: str, mapping: Mapping[str, str]) -> list[str]:
    fine = all(isinstance(text, str) for item in mapping.items() for text in item)
    return [] if fine else [f"{what} is not text to text"]


def _positive(number: Any) -> bool:
    return isinstance(number, int | float) and math.isfinite(number) and number > 0


def _accepted(what: str, call: Callable[[], Any]) -> list[str]:
    """A complaint if ``call`` does not raise."""
    try:
        call()
    except Exception:  # whichever it is: refused is refused
        return []
    return [f"{what} is accepted; raise"]


def _shapes(seen: Observation, cameras: Sequence[str]) -> Iterator[str]:
    proprio = seen.proprio
    if not isinstance(proprio, np.ndarray) or proprio.ndim != 1 or proprio.dtype != np.float32:
        yield f"proprio is {_kind_of(proprio)}, not (D,) float32"
    elif not np.isfinite(proprio).all():
        yield "proprio is not finite"
    if set(seen.images) != set(cameras):
        yield f"asked for {list(cameras)}, got the pictures {list(seen.images)}"
    for camera, image in seen.images.items():
        yield from _picture(f"images[{camera!r}]", image)
    state: Mapping[str, Any] = seen.state
    for name, array in state.items():
        if not isinstance(array, np.ndarray):
            yield f"state[{name!r}] is {_kind_of(array)}, not an array"


def _picture(what: str, image: Any) -> Iterator[str]:
    fine = isinstance(image, np.ndarray) and image.dtype == np.uint8
    if not fine or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        yield f"{what} is {_kind_of(image)}, not (H, W, 3) uint8"
    elif image.min() == image.max():
        yield f"{what} shows nothing: every pixel is {image.min()}"


def _kind_of(array: Any) -> str:
    if isinstance(array, np.ndarray):
        return f"{array.shape} {array.dtype}"
    return type(array).__name__


def _read_back(message: dict[str, Any]) -> Iterator[str]:
    """What a policy on the other end of the wire would not get as it was."""
    try:
        payload = b"".join(binary.encode(message))
    except RollpoolError as error:
        yield f"it cannot be sent: {error}"
        return
    received = binary.decode(np.frombuffer(payload, np.uint8))
    for name, array in message.items():
        if received[name].dtype != array.dtype or not np.array_equal(received[name], array):
            yield f"{name} is not the same on the other end of the wire"


def _clips(sim: Simulator, episode: Episode, kind: str, space: ActionSpace) -> Iterator[str]:
    """Of a bounded kind: its bounds are accepted, and what lies outside is taken as the bound."""
    if space.low is None or space.high is None:
        return
    low, high = _bounds(space)
    for name, bound, outside in (("low", low, 2 * low - high), ("high", high, 2 * high - low)):
        states = []
        for action in (bound, outside):
            sim.reset(episode)
            sim.step(action.astype(np.float32), kind)
            states.append(sim.state_hash())
        if states[0] != states[1]:
            yield f"{kind}: an action beyond {name} is not clipped to it"


def _bounds(space: ActionSpace) -> tuple[np.ndarray, np.ndarray]:
    """``(dim,)`` each; what is unbounded is -1 to 1, for want of anything else."""
    low, high = (
        np.full(space.dim, default, np.float64) if bound is None or np.ndim(bound) == 0
        else np.array(bound, np.float64)
        for bound, default in (
            (space.low, -1.0 if space.low is None else space.low),
            (space.high, 1.0 if space.high is None else space.high),
        )
    )  # fmt: skip
    return low, high


def own_actions(sim: Simulator, episode: Episode) -> Iterator[np.ndarray]:
    """The expert's actions, or random ones that are the episode's own."""
    try:
        while True:
            yield from np.array(experts_chunk(sim, LOOK_EVERY), np.float32)
    except RollpoolError:
        rng = np.random.default_rng(episode.seed)
        low, high = _bounds(sim.action_kinds[native(sim)])
        while True:
            yield rng.uniform(low, high).astype(np.float32)


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


def _score(score: Score, success: bool, complaints: list[str]) -> list[Any]:
    hard, count = score.hard_success, score.collision_count
    if not isinstance(score.success, bool | np.bool_) or bool(score.success) != bool(success):
        complaints.append(f"score().success is {score.success!r}, step() returned {success!r}")
    if not (hard is None or isinstance(hard, bool | np.bool_)) or (hard and not score.success):
        complaints.append(f"score().hard_success is {hard!r}")
    if count is not None and (not isinstance(count, int | np.integer) or count < 0):
        complaints.append(f"score().collision_count is {count!r}")
    names = [str(name) for name in score.collision_names]
    return [bool(score.success), hard if hard is None else bool(hard), repr(count), names]
