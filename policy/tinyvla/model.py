"""The network: three pictures, a sentence and proprio in, a chunk of ``ee6d`` targets out.

Pictures become keypoints (a spatial softmax: where in the picture does each feature lie?), which
needs few examples for reaching; the sentence chooses the features (FiLM) and steers the trunk.
It predicts moves relative to the hands as they are now; ``generate_actions`` returns absolute
targets with orthonormal rotations. No state between calls, no randomness: the same observation
gives the same chunk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from policy.tinyvla.inputs import CAMERAS, PICTURE, VOCABULARY, shrink, tokenize

CHUNK = 30
#: Beyond the chunk, coarsely: learning where the hands go later makes the network look there.
LOOKAHEAD = (44, 59, 74, 89)
#: Of the expert's plan, the actions that the network is trained to predict.
PREDICTED = (*range(CHUNK), *LOOKAHEAD)
ARM = 10  # xyz, rot6d, gripper
METRES = 0.1  # what 1 at the output means
_WORD, _TRUNK = 64, 320


class Film(nn.Module):
    """Scales and shifts ``channels`` of a feature map or vector as the sentence says."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layer = nn.Linear(_WORD, 2 * channels)
        nn.init.zeros_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)

    def forward(self, features: Tensor, sentence: Tensor) -> Tensor:
        gain, shift = self.layer(sentence).chunk(2, dim=1)
        if features.ndim == 4:
            gain, shift = gain[..., None, None], shift[..., None, None]
        return torch.addcmul(shift, features, 1 + gain)


class Keypoints(nn.Module):
    """``(B, 3, h, w)`` -> ``(B, 3 * points)``: where each feature lies, and how clearly."""

    def __init__(self, points: int) -> None:
        super().__init__()
        self.early = nn.Sequential(  # large strides first: the time goes into large maps
            nn.Conv2d(3, 24, 8, stride=4, padding=2), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1)
        )
        self.film = Film(24)
        self.late = nn.Conv2d(24, points, 1)

    def forward(self, pictures: Tensor, sentence: Tensor) -> Tensor:
        maps = self.late(functional.relu(self.film(self.early(pictures), sentence)))
        height, width = maps.shape[2:]
        logits = maps.flatten(2)
        weights = logits.softmax(dim=2)
        rows = torch.linspace(-1, 1, height).repeat_interleave(width)
        columns = torch.linspace(-1, 1, width).repeat(height)
        places = weights @ torch.stack([columns, rows], dim=1).to(maps)
        clarity = torch.tanh(0.2 * logits.amax(dim=2))
        return torch.cat([places.flatten(1), clarity], dim=1)


class Block(nn.Module):
    """A residual layer of the trunk, steered by the sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.film = nn.LayerNorm(_TRUNK), Film(_TRUNK)
        self.layers = nn.Sequential(nn.Linear(_TRUNK, _TRUNK), nn.ReLU(), nn.Linear(_TRUNK, _TRUNK))

    def forward(self, features: Tensor, sentence: Tensor) -> Tensor:
        changed: Tensor = self.layers(self.film(self.norm(features), sentence))
        return features + changed


class Trunk(nn.Module):
    """What was seen, and the sentence -> moves."""

    def __init__(self, seen: int) -> None:
        super().__init__()
        self.enter = nn.Linear(seen + _WORD, _TRUNK)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.leave = nn.Sequential(
            nn.LayerNorm(_TRUNK), nn.Linear(_TRUNK, len(PREDICTED) * 2 * ARM)
        )

    def forward(self, seen: Tensor, sentence: Tensor) -> Tensor:
        features = self.enter(torch.cat([seen, sentence], dim=1))
        for block in self.blocks:
            features = block(features, sentence)
        moves: Tensor = self.leave(features)
        return moves.unflatten(1, (len(PREDICTED), 2, ARM))


class TinyVLA(nn.Module):
    """See the module. Its parameters and buffers are all that a checkpoint holds."""

    batched = True  # rows of a batch do not see each other
    proprio_mean: Tensor
    proprio_scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, _WORD, padding_idx=0)
        self.sentence = nn.Sequential(nn.Linear(_WORD, _WORD), nn.ReLU(), nn.Linear(_WORD, _WORD))
        self.countertop, self.wrist = Keypoints(32), Keypoints(24)
        self.trunk = Trunk(3 * (32 + 2 * 24) + 2 * ARM)
        self.register_buffer("proprio_mean", torch.zeros(2 * ARM))
        self.register_buffer("proprio_scale", torch.ones(2 * ARM))

    def forward(
        self, input_ids: Tensor, countertop: Tensor, wrists: Tensor, proprio: Tensor
    ) -> Tensor:
        """Moves relative to ``proprio``.

        Args:
            input_ids: ``(B, L)``; countertop: ``(B, 3, 120, 160)``; wrists: ``(B, 2, 3, 60, 80)``,
                both about -0.5 to 0.5; proprio: ``(B, 20)``.

        Returns:
            ``(B, len(PREDICTED), 2, 10)``: per arm the move in units of ``METRES``, the change of
            rot6d, and the logit of the gripper's opening.
        """
        return self.decide(*self.look(input_ids, countertop, wrists, proprio))

    def look(
        self, input_ids: Tensor, countertop: Tensor, wrists: Tensor, proprio: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The inputs of ``forward`` -> what is seen and felt ``(B, N)``, sentence ``(B, M)``."""
        sentence = self._read(input_ids)
        hands = self.wrist(wrists.flatten(0, 1), sentence.repeat_interleave(2, dim=0))
        state = (proprio - self.proprio_mean) / self.proprio_scale
        places = self.countertop(countertop, sentence)
        return torch.cat([places, hands.unflatten(0, (-1, 2)).flatten(1), state], dim=1), sentence

    def decide(self, seen: Tensor, sentence: Tensor) -> Tensor:
        """What ``look`` returned -> moves, as ``forward`` returns them."""
        moves: Tensor = self.trunk(seen, sentence)
        return moves

    def _read(self, input_ids: Tensor) -> Tensor:
        words = (input_ids != 0).sum(dim=1, keepdim=True).clamp(min=1)
        meaning: Tensor = self.sentence(self.words(input_ids).sum(dim=1) / words.sqrt())
        return meaning

    def generate_actions(
        self,
        input_ids: Tensor,
        image_input: Tensor,
        image_mask: Tensor,
        domain_id: Tensor,
        proprio: Tensor,
    ) -> Tensor:
        """``(B, 30, 20)`` absolute ``ee6d`` targets for inputs as ``preprocess`` gives them.

        A masked picture is seen as grey; there is one robot, whatever ``domain_id``.
        """
        pictures = image_input * image_mask[..., None, None, None]
        wrists = functional.avg_pool2d(pictures[:, 1:].flatten(0, 1), 2).unflatten(0, (-1, 2))
        moves = self(input_ids, pictures[:, 0], wrists, proprio)[:, :CHUNK]
        here = proprio.unflatten(1, (1, 2, ARM))
        xyz = here[..., :3] + METRES * moves[..., :3]
        rot6d = orthonormal(here[..., 3:9] + moves[..., 3:9])
        grip = moves[..., 9:].sigmoid()
        return torch.cat([xyz, rot6d, grip], dim=-1).flatten(2)

    def preprocess(self, observation: Any) -> dict[str, np.ndarray]:
        """The inputs of ``generate_actions`` for one observation, without the batch dimension."""
        pictures = [shrink(observation["images"][name], PICTURE) for name in CAMERAS]
        return {
            "input_ids": tokenize(observation["instruction"]),
            "image_input": np.stack(pictures) / np.float32(255) - np.float32(0.5),
            "image_mask": np.ones(len(CAMERAS), bool),
            "domain_id": np.zeros((), np.int64),
            "proprio": np.asarray(observation["proprio"], np.float32),
        }


def orthonormal(rot6d: Tensor) -> Tensor:
    """``(..., 6)`` interleaved: the nearest rotation by Gram-Schmidt on the two columns."""
    columns = rot6d.unflatten(-1, (3, 2))
    x = functional.normalize(columns[..., 0], dim=-1)
    y = columns[..., 1]
    y = functional.normalize(y - (x * y).sum(dim=-1, keepdim=True) * x, dim=-1)
    return torch.stack([x, y], dim=-1).flatten(-2)
