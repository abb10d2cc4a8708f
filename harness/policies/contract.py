"""The published contract of policies: all that ``policy/<name>/`` may import of the toolkit.

Standard library and numpy only. A policy folder offers ``get_model(usr_args)``, which returns an
object of one of two kinds (``policy/README.md`` shows both):

* ``generate_actions(input_ids, image_input, image_mask, domain_id, proprio, ...)`` on batched,
  preprocessed inputs, as vision-language-action models have it;
* ``infer(observation)`` or ``infer(observation, session)`` on raw observations.

Either may answer several simulators in one call: it says ``batched = True``, or has
``infer_batch(observations, sessions)``. The toolkit makes a ``Policy`` of either. An observation
is a mapping with ``images`` (camera name -> ``(H, W, 3)`` uint8), ``proprio`` ``(D,)`` float32,
``state`` (named extra arrays), ``instruction``, ``last_action`` (the last executed action, None
before the first) and ``expert`` (the privileged expert's chunk where ``needs`` asks for it, else
None). Its arrays are read-only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from harness.errors import RollpoolError

Observation = Mapping[str, Any]

#: ee6d, the toolkit's first action kind: per arm xyz, rot6d, gripper; left arm first.
EE6D_DIM = 20
#: The action kind of a policy that acts by whatever kind is the simulator's own.
NATIVE = "native"


class PolicyError(RollpoolError):
    """The policy broke its contract: recorded as an ``error``, never as a ``fail``."""


@dataclass(frozen=True)
class Session:
    """One episode as a policy sees it: begun at reset, forgotten at the next.

    Whatever a policy remembers belongs in ``memory`` and whatever it draws comes from ``rng`` or
    ``noise_seed``, never from itself or from a global: then episodes may share the policy, and a
    rerun gives the same actions.
    """

    name: str
    scene: str = ""
    task: str = ""
    task_config: str = ""
    seed: int = 0
    instruction: str = ""
    manifest: str = ""
    position: int = 0
    noise_seed: int = 0  # 0 <= noise_seed < 2**63
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    memory: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def begin(cls, name: str, episode: Mapping[str, Any]) -> Session:
        """The session of ``episode`` (the fields of the simulator contract's ``Episode``)."""
        seed = noise_seed(episode)
        known: dict[str, Any] = {key: str(episode.get(key, "")) for key in _TEXTS}
        known |= {key: int(episode.get(key, 0)) for key in ("seed", "position")}
        return cls(name, **known, noise_seed=seed, rng=np.random.default_rng(seed))


class Policy(Protocol):
    """What the model server serves; see ``harness.policies.load_policy``."""

    action_kind: str  # of the simulator's kinds, e.g. "ee6d", or "native" for its own
    action_dim: int | None  # None where the simulator's kind says it
    chunk: int  # actions of a full chunk
    needs: Sequence[str]  # of "images", "expert"
    cameras: Sequence[str]  # the images it looks at, in this order
    concurrent: bool  # infer may be called from several threads at once
    exclusive: bool  # keeps the state of one episode itself: one session at a time
    resets: bool  # something happens at reset
    batches: bool  # has infer_batch; an exclusive policy has none

    def reset(self, session: Session) -> None:
        """An episode begins."""
        ...

    def infer(self, observation: Observation, session: Session) -> np.ndarray:
        """``(n >= 1, D)`` float32, finite; ``D`` is ``action_dim`` where that is given."""
        ...

    def infer_batch(
        self, observations: Sequence[Observation], sessions: Sequence[Session]
    ) -> list[np.ndarray]:
        """What ``infer`` gives for each of several sessions, all at once."""
        ...


_TEXTS = ("scene", "task", "task_config", "instruction", "manifest")


def noise_seed(episode: Mapping[str, Any]) -> int:
    """A number below 2**63 that depends on what the episode *is*, all of it and nothing else.

    Not on its manifest's hash and position: those name the same episode differently when it is
    run by hand, or sealed again as part of a longer bank.
    """
    what = {key: episode.get(key) for key in ("scene", "task", "task_config", "seed")}
    what |= {key: episode.get(key) for key in ("instruction", "reset")}
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
