"""From a raw observation to ``generate_actions`` and back.

The inputs of one observation, without the batch dimension, come from the model's own
``preprocess(observation) -> dict`` where it has one; else they are

=============  ==============================================================================
input_ids      ``(L,)`` int64, from the model's ``tokenize(instruction)``
image_input    ``(V, 3, S, S)`` float32, the policy's cameras in order, resized to
               ``model.image_size`` (224), ImageNet mean and deviation removed
image_mask     ``(V,)`` bool, all true
domain_id      ``()`` int64, ``domain_id`` of the policy's settings (0)
proprio        ``(D,)`` float32
=============  ==============================================================================

The inputs of all sessions that are answered together are stacked, one call for each set of shapes
and types, and a torch model (one with ``parameters()``) gets tensors on its own device. A model
whose ``generate_actions`` takes ``noise_seeds`` gets one number a row, to draw that row's noise
from.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.policies.contract import Observation, PolicyError

DEFAULT_IMAGE_SIZE = 224
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


class GenerateActions:
    """``infer`` for a model that has ``generate_actions``.

    ``generate_args`` of the policy's settings are passed on as further keyword arguments.
    """

    def __init__(self, model: Any, usr_args: Mapping[str, Any], cameras: Sequence[str]) -> None:
        self._model, self._cameras = model, cameras
        self._domain_id = int(usr_args.get("domain_id") or 0)
        self._extra = dict(usr_args.get("generate_args") or {})
        self._torch = _torch_of(model)
        self._seeded = "noise_seeds" in inspect.signature(model.generate_actions).parameters
        own = getattr(model, "preprocess", None)
        if own is None and not callable(getattr(model, "tokenize", None)):
            raise RollpoolError(
                "a model with generate_actions",
                f"{type(model).__name__} has neither preprocess nor tokenize",
                "give it tokenize(text) -> ids, or preprocess(observation) -> inputs",
            )
        self._preprocess = own or self._default_inputs

    def infer(self, observations: Sequence[Observation], seeds: Sequence[int]) -> list[np.ndarray]:
        """``(T, D)`` for each observation, of the model's ``[B, T, D]``."""
        inputs = [
            {key: np.asarray(value) for key, value in self._preprocess(observation).items()}
            for observation in observations
        ]
        alike: dict[Any, list[int]] = {}
        for row, arrays in enumerate(inputs):
            kinds = tuple((key, array.shape, array.dtype) for key, array in arrays.items())
            alike.setdefault(kinds, []).append(row)
        chunks: dict[int, np.ndarray] = {}
        for rows in alike.values():
            # Received arrays are read-only and torch shares memory: stacking copies them.
            batch = {key: np.stack([inputs[row][key] for row in rows]) for key in inputs[rows[0]]}
            actions = self._generate(batch, [seeds[row] for row in rows])
            chunks.update(zip(rows, actions, strict=True))
        return [chunks[row] for row in range(len(inputs))]

    def _generate(self, inputs: dict[str, np.ndarray], seeds: list[int]) -> np.ndarray:
        """``(B, T, D)``, checked."""
        extra = {**self._extra, "noise_seeds": seeds} if self._seeded else self._extra
        if self._torch is None:
            actions = self._model.generate_actions(**inputs, **extra)
        else:
            actions = self._generate_with_torch(inputs, extra)
        if getattr(actions, "ndim", None) != 3 or len(actions) != len(seeds):
            raise PolicyError(
                f"generate_actions for a batch of {len(seeds)}",
                f"it returned {tuple(getattr(actions, 'shape', ()))}",
                "return [B, num_actions, action_dim]",
            )
        return np.asarray(actions)

    def _generate_with_torch(self, inputs: dict[str, np.ndarray], extra: dict[str, Any]) -> Any:
        torch = self._torch
        device = next((p.device for p in self._model.parameters()), torch.device("cpu"))
        tensors = {key: torch.from_numpy(array).to(device) for key, array in inputs.items()}
        with torch.inference_mode():
            actions = self._model.generate_actions(**tensors, **extra)
        return actions.float().cpu().numpy()

    def _default_inputs(self, observation: Observation) -> dict[str, np.ndarray]:
        size = int(getattr(self._model, "image_size", DEFAULT_IMAGE_SIZE))
        images = [normalized(observation["images"][name], size) for name in self._cameras]
        return {
            "input_ids": np.asarray(self._model.tokenize(observation["instruction"]), np.int64),
            "image_input": np.stack(images),
            "image_mask": np.ones(len(images), bool),
            "domain_id": np.asarray(self._domain_id, np.int64),
            "proprio": np.asarray(observation["proprio"], np.float32),
        }


def seed_torch(seed: int) -> None:
    """Seed torch's global noise, where the policy has loaded torch."""
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def fix_threads(count: int) -> None:
    """Let torch, where the policy has loaded it, use ``count`` threads: sums depend on it."""
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)


def normalized(image: np.ndarray, size: int) -> np.ndarray:
    """``(H, W, 3)`` uint8 -> ``(3, size, size)`` float32, ImageNet mean and deviation removed."""
    pixels = resize(image, size, size) / np.float32(255)
    return np.ascontiguousarray(((pixels - _MEAN) / _DEVIATION).transpose(2, 0, 1))


def resize(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """``(H, W, C)`` -> ``(height, width, C)`` float32, bilinear and antialiased."""
    rows = _weights(image.shape[0], height)
    columns = _weights(image.shape[1], width)
    return np.einsum("hH,HWc,wW->hwc", rows, image.astype(np.float32), columns, optimize="greedy")


@functools.cache
def _weights(old: int, new: int) -> np.ndarray:
    """``(new, old)``: how much of each old pixel goes into each new one, rows summing to 1."""
    scale = old / new
    reach = max(scale, 1.0)  # shrinking averages over all the pixels that become one
    centers = (np.arange(new)[:, None] + 0.5) * scale
    distance = np.abs(np.arange(old)[None, :] + 0.5 - centers)
    weights = np.clip(1 - distance / reach, 0, None)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


def _torch_of(model: Any) -> Any:
    """torch where ``model`` takes tensors, else None; never imported for this."""
    return sys.modules.get("torch") if callable(getattr(model, "parameters", None)) else None
