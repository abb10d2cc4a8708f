"""What breaks the simulator contract, as complaints in words: of what an adapter says of itself,
shows and scores, and of what it accepts.

Nothing here plays an episode: ``harness.episodes.conformance`` does, and asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from harness.episodes.expert import bounds
from harness.errors import RollpoolError
from harness.simulators.contract import ActionSpace, Observation, Score, Simulator
from harness.wire import binary


def of_description(sim: Simulator) -> list[str]:
    """Of what the adapter says of itself."""
    return [
        *_kinds(sim),
        *([] if sim.name else ["name is empty"]),
        *([] if _positive(sim.control_hz) else [f"control_hz is {sim.control_hz!r}"]),
        *_twice("cameras", list(sim.cameras)),
        *_cells(sim),
        *_texts("versions()", sim.versions()),
        *([] if "simulator" in sim.versions() else ["versions() has no 'simulator'"]),
    ]


def of_observation(seen: Observation, cameras: Sequence[str]) -> Iterator[str]:
    """Of its arrays and pictures; ``cameras``: those that were asked for."""
    proprio = seen.proprio
    if not isinstance(proprio, np.ndarray) or proprio.ndim != 1 or proprio.dtype != np.float32:
        yield f"proprio is {_kind_of(proprio)}, not (D,) float32"
    elif not np.isfinite(proprio).all():
        yield "proprio is not finite"
    if set(seen.images) != set(cameras):
        yield f"asked for {list(cameras)}, got the pictures {list(seen.images)}"
    for camera, image in seen.images.items():
        yield from of_picture(f"images[{camera!r}]", image)
    state: Mapping[str, Any] = seen.state
    for name, array in state.items():
        if not isinstance(array, np.ndarray):
            yield f"state[{name!r}] is {_kind_of(array)}, not an array"


def of_picture(what: str, image: Any) -> Iterator[str]:
    """Of one picture; ``what`` it is called."""
    fine = isinstance(image, np.ndarray) and image.dtype == np.uint8
    if not fine or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        yield f"{what} is {_kind_of(image)}, not (H, W, 3) uint8"
    elif image.min() == image.max():
        yield f"{what} shows nothing: every pixel is {image.min()}"


def on_the_wire(message: dict[str, Any]) -> Iterator[str]:
    """What a policy on the other end of the wire would not get as it was."""
    try:
        payload = b"".join(binary.encode(message))
    except RollpoolError as error:
        yield f"it cannot be sent: {error}"
        return
    received = binary.decode(memoryview(payload))
    for name, array in message.items():
        if received[name].dtype != array.dtype or not np.array_equal(received[name], array):
            yield f"{name} is not the same on the other end of the wire"


def of_movement(states: Sequence[str], times: Sequence[float], actions: int) -> Iterator[str]:
    """Of the state hashes seen over ``actions``, and of the simulated seconds after each."""
    if len(set(states)) < 2:
        yield f"state_hash() is the same after {actions} actions"
    if not all(math.isfinite(t) for t in times) or np.any(np.diff(times) <= 0):
        yield "sim_time() does not grow with every action"


def of_score(score: Score, success: bool) -> Iterator[str]:
    """Of a score, where the last step returned ``success``."""
    hard, count = score.hard_success, score.collision_count
    if not isinstance(score.success, bool | np.bool_) or bool(score.success) != bool(success):
        yield f"score().success is {score.success!r}, step() returned {success!r}"
    if not (hard is None or isinstance(hard, bool | np.bool_)) or (hard and not score.success):
        yield f"score().hard_success is {hard!r}"
    if count is not None and (not isinstance(count, int | np.integer) or count < 0):
        yield f"score().collision_count is {count!r}"


def accepted(what: str, call: Callable[[], Any]) -> list[str]:
    """A complaint if ``call`` does not raise."""
    try:
        call()
    except Exception:  # whichever it is: refused is refused
        return []
    return [f"{what} is accepted; raise"]


def _kinds(sim: Simulator) -> Iterator[str]:
    if not sim.action_kinds:
        yield "there are no action_kinds"
    for kind, space in sim.action_kinds.items():
        if not isinstance(space, ActionSpace) or space.dim < 1:
            yield f"action_kinds[{kind!r}] is {space!r}"
            continue
        low, high = bounds(space)
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


def _kind_of(array: Any) -> str:
    if isinstance(array, np.ndarray):
        return f"{array.shape} {array.dtype}"
    return type(array).__name__
