"""Make a ``Policy`` of whatever ``get_model`` returned, and check every chunk it gives."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.policies.contract import NATIVE, Observation, PolicyError, Session
from harness.policies.generate import GenerateActions, seed_torch

_CALLS = "calls"
_NEEDS = ("images", "expert")
_DECLARED: dict[str, Any] = {
    "action_kind": "ee6d",
    "action_dim": 20,
    "chunk": 30,
    "needs": ["images"],
    "cameras": [],
}


class Adapted:
    """A model with a contract's attributes around it: the innermost policy.

    Each attribute comes from the model, else from ``usr_args`` (``deploy_policy.yml``), else it
    has the default of a 30-step ee6d policy; a policy of another kind says its ``action_dim``, and
    a ``native`` one has none. Where model and file disagree, nothing is guessed.
    """

    action_kind: str
    action_dim: int | None
    chunk: int
    needs: Sequence[str]
    cameras: Sequence[str]

    def __init__(self, model: Any, usr_args: Mapping[str, Any]) -> None:
        for name, default in _DECLARED.items():
            setattr(self, name, _declared(name, model, usr_args, default))
        if self.action_kind == NATIVE and _declared("action_dim", model, usr_args, None) is None:
            self.action_dim = None
        _check_declaration(self)
        self.concurrent = bool(getattr(model, "concurrent", False))
        self._model = model
        self._generate: GenerateActions | None = None
        self._wants_session = False
        if callable(getattr(model, "generate_actions", None)):
            self._generate = GenerateActions(model, usr_args, self.cameras)
            batches = bool(getattr(model, "batched", False))
        elif callable(getattr(model, "infer", None)):
            self._wants_session = _takes_two(model.infer)
            batches = callable(getattr(model, "infer_batch", None))
        else:
            raise _no_contract(model)
        self._reset = getattr(model, "reset", None)
        self.resets = self._reset is not None
        # A model that is told of an episode's start, but not whose observation it then gets,
        # keeps that episode's state in itself. One that is told neither has nothing to keep.
        self.exclusive = self.resets and not self._wants_session
        self.batches = batches and not self.exclusive

    def reset(self, session: Session) -> None:
        if self._reset is not None:
            self._reset(session)

    def infer(self, observation: Observation, session: Session) -> np.ndarray:
        """The model's chunk as float32, or PolicyError where it is no chunk."""
        seed = _next_seed(session)
        seed_torch(seed)
        if self._generate:
            return self._checked(*self._generate.infer([observation], [seed]))
        arguments = (observation, session) if self._wants_session else (observation,)
        return self._checked(self._model.infer(*arguments))

    def infer_batch(
        self, observations: Sequence[Observation], sessions: Sequence[Session]
    ) -> list[np.ndarray]:
        """The same for several sessions; PolicyError where any of the chunks is none."""
        seeds = [_next_seed(session) for session in sessions]
        seed_torch(seeds[0])  # each row has its own seed: a model that batches draws from that
        if self._generate:
            chunks = self._generate.infer(observations, seeds)
        else:
            chunks = self._model.infer_batch(observations, sessions)
        if len(chunks) != len(sessions):
            raise PolicyError(
                f"infer_batch of {len(sessions)} observations", f"it gave {len(chunks)} chunks",
                "give one for each, in their order",
            )  # fmt: skip
        return [self._checked(chunk) for chunk in chunks]

    def _checked(self, chunk: Any) -> np.ndarray:
        try:
            actions = np.asarray(chunk, dtype=np.float32).copy()  # the model may write there again
        except (TypeError, ValueError) as error:
            raise _bad_chunk(f"{type(chunk).__name__}: {error}", self.action_dim) from error
        dim = self.action_dim
        if actions.ndim != 2 or len(actions) < 1 or dim not in (None, actions.shape[1]):
            raise _bad_chunk(f"shape {actions.shape}", self.action_dim)
        finite = np.isfinite(actions)
        if not finite.all():
            row, column = (int(index) for index in np.argwhere(~finite)[0])
            found = f"{actions[row, column]} at action {row}, dimension {column}"
            raise _bad_chunk(found, self.action_dim)
        return actions


def _next_seed(session: Session) -> int:
    """Every call of an episode draws its own noise, and the same when it is run again."""
    calls: int = session.memory.get(_CALLS, 0) + 1
    session.memory[_CALLS] = calls
    return (session.noise_seed + calls) % 2**63


def _declared(name: str, model: Any, usr_args: Mapping[str, Any], default: Any) -> Any:
    of_model, of_file = getattr(model, name, None), usr_args.get(name)
    if isinstance(default, list):
        of_model = None if of_model is None else list(of_model)
        of_file = None if of_file is None else list(of_file)
    if of_model is not None and of_file is not None and of_model != of_file:
        raise RollpoolError(
            f"{name} of the policy",
            f"the model says {of_model!r}, deploy_policy.yml says {of_file!r}",
            "correct deploy_policy.yml, or leave it out there",
        )
    if of_model is not None:
        return of_model
    return default if of_file is None else of_file


def _check_declaration(policy: Adapted) -> None:
    if unknown := [value for value in policy.needs if value not in _NEEDS]:
        raise _bad_declaration("needs", unknown, f"choose of {', '.join(_NEEDS)}")
    if not isinstance(policy.action_kind, str) or not policy.action_kind:
        raise _bad_declaration("action_kind", policy.action_kind, "name one of the simulator's")
    for name, value in (("action_dim", policy.action_dim), ("chunk", policy.chunk)):
        native = name == "action_dim" and value is None
        if not native and (not isinstance(value, int) or value < 1):
            raise _bad_declaration(name, value, "give a whole number above 0")
    if "images" in policy.needs and not policy.cameras:
        raise _bad_declaration("cameras", "none, but it needs images", "name its cameras")


def _takes_two(infer: Any) -> bool:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(infer).parameters.values()
    return sum(p.kind in positional for p in parameters) >= 2


def _bad_declaration(name: str, found: Any, todo: str) -> RollpoolError:
    return RollpoolError(f"{name} of the policy", f"{found}", f"{todo} in deploy_policy.yml")


def _bad_chunk(found: str, action_dim: int | None) -> PolicyError:
    wanted = f"(n >= 1, {action_dim or 'D'}), finite"
    return PolicyError("a chunk of actions", f"the policy gave {found}", f"give {wanted}")


def _no_contract(model: Any) -> RollpoolError:
    return RollpoolError(
        "a model from get_model",
        f"{type(model).__name__} has neither generate_actions nor infer",
        "give it one of them (policy/README.md shows both)",
    )
