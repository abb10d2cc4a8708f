"""Whether policy, simulator and sealed episode fit together, chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.policies.contract import NATIVE
from harness.simulators.contract import ActionSpace, Episode, Simulator, differing, native


class Fault(Exception):
    """An error that is known to be the policy's or the connection's."""

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(message)
        self.record = {"kind": kind, "message": message, "traceback": trace}


def cameras_of(hello: Mapping[str, Any]) -> list[str]:
    return list(hello["cameras"]) if "images" in hello["needs"] else []


def refuse_other_scene(sim: Simulator, episode: Episode) -> None:
    if episode.fingerprint and (parts := differing(episode.fingerprint, sim.fingerprint())):
        raise RollpoolError(
            f"episode {episode}",
            f"the simulator builds another one than was sealed ({'; '.join(parts)})",
            "run it with the packages and assets it was sealed with, or seal a new STUDY_RUN",
        )


def fitting_kind(sim: Simulator, hello: Mapping[str, Any]) -> str:
    """The action kind of the simulator by which the policy acts."""
    asked = f"policy {hello.get('policy')!r} on simulator {sim.name!r}"
    kind, dim = str(hello["action_kind"]), hello["action_dim"]
    kind = native(sim) if kind == NATIVE else kind
    if kind not in sim.action_kinds:
        raise RollpoolError(
            asked,
            f"it acts by {kind!r}, the simulator by {list(sim.action_kinds)}",
            "choose a policy whose action_kind the simulator knows",
        )
    if dim is not None and dim != sim.action_kinds[kind].dim:
        raise RollpoolError(
            asked,
            f"its {kind!r} has {dim} numbers, the simulator's {sim.action_kinds[kind].dim}",
            "correct action_dim in deploy_policy.yml, or choose another policy",
        )
    missing = sorted(set(cameras_of(hello)) - set(sim.cameras))
    if missing:
        raise RollpoolError(
            asked,
            f"it needs the cameras {missing}, the simulator has {list(sim.cameras)}",
            "use a machine that can render, or a policy that needs no images",
        )
    return kind


def checked_chunk(actions: np.ndarray, space: ActionSpace) -> np.ndarray:
    """The chunk, or a policy error: a simulator would take NaN silently."""
    actions = np.asarray(actions)
    if actions.ndim != 2 or len(actions) == 0 or actions.shape[1] != space.dim:
        found = f"shape {actions.shape}, expected (n > 0, {space.dim})"
    elif actions.dtype.kind not in "fiu":
        found = f"no numbers ({actions.dtype})"
    else:
        with np.errstate(over="ignore"):  # finite float64 may be infinite here
            own = np.array(actions, np.float32)  # the simulator's own, and writeable
        if np.isfinite(own).all():
            return own
        found = f"numbers that are not finite ({actions.dtype})"
    raise Fault("policy", f"the policy's chunk has {found}", "")
