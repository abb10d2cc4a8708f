#!/usr/bin/env python3
"""Train tinyvla on collected samples, from nothing or further from a checkpoint.

    train.py --data DIR --out FILE.safetensors --steps 3000 --polish 3000 [--init EARLIER]

Runs in the model's Python. Reads every ``*.npz`` below ``--data`` (see ``collect.py``), fits the
expert's actions by the absolute error, and writes the running average of the weights, which drives
better than the last. Seeded: equal data, arguments and thread count give equal weights.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from policy.tinyvla.inputs import VOCABULARY, tokenize
from policy.tinyvla.model import CHUNK, METRES, PREDICTED, TinyVLA

BATCH = 32
#: The trunk's own training: disturbed copies of each sample, and how many it takes a step.
POLISH_PASSES, POLISH_BATCH = 4, 128
RATE, WARMUP, AVERAGING = 1e-3, 100, 0.998
#: The first actions are the ones that are executed; the last, beyond the chunk, only guide.
NEAR, WEIGHTS = 15, (1.0, 0.5, 0.3)
#: Chances that a word is left out, and that foreign words are mixed in: sentences differ.
DROPPED_WORD, FOREIGN_WORDS = 0.25, 0.5
MOST_FOREIGN = 5
REPORT = 100  # steps
#: Colours: largest change of each channel's gain and offset.
JITTER = 0.12, 0.06


class Samples:
    """All samples in memory, pictures as bytes; ``batch`` draws and disturbs some."""

    def __init__(self, folder: Path) -> None:
        parts = [dict(np.load(path)) for path in sorted(folder.rglob("*.npz"))]
        if not parts:
            raise SystemExit(f"train: error: no *.npz in {folder}; run collect.py first")
        self.countertop, self.wrists, self.proprio, plan = (
            torch.from_numpy(np.concatenate([part[key] for part in parts]))
            for key in ("countertop", "wrists", "proprio", "plan")
        )
        self.plan = plan[:, list(PREDICTED)].unflatten(2, (2, 10))
        self.sentences, self._first = _sentences(parts)

    def __len__(self) -> int:
        return len(self.proprio)

    def batch(self, rng: torch.Generator) -> tuple[tuple[Tensor, ...], Tensor]:
        """Inputs of the network, and the plan they should lead to."""
        chosen = torch.randint(len(self), (BATCH,), generator=rng)
        gain, offset = (
            amount * (2 * torch.rand(BATCH, 3, 1, 1, generator=rng) - 1) for amount in JITTER
        )
        countertop = self._floats(self.countertop[chosen]) * (1 + gain) + offset
        wrists = self._floats(self.wrists[chosen]) * (1 + gain[:, None]) + offset[:, None]
        return (self._words(chosen, rng), countertop, wrists, self.proprio[chosen]), self.plan[
            chosen
        ]

    @staticmethod
    def _floats(pictures: Tensor) -> Tensor:
        return pictures.float().div_(255).sub_(0.5)

    def _words(self, chosen: Tensor, rng: torch.Generator) -> Tensor:
        """One of the episode's sentences each, words dropped and foreign ones mixed in."""
        choices = self.sentences[self._first[chosen]]
        one = torch.randint(choices.shape[1], (BATCH,), generator=rng)
        words = choices[torch.arange(BATCH), one]
        words = words * (torch.rand(words.shape, generator=rng) > DROPPED_WORD)
        foreign = torch.randint(1, int(1e9), (BATCH, MOST_FOREIGN), generator=rng)
        some = torch.rand(BATCH, MOST_FOREIGN, generator=rng)
        some = some < FOREIGN_WORDS * torch.rand(BATCH, 1, generator=rng)
        return torch.cat([words, some * (foreign % (VOCABULARY - 1) + 1)], dim=1)


def _sentences(parts: list[dict[str, np.ndarray]]) -> tuple[Tensor, Tensor]:
    """Token rows ``(episodes, n, L)`` of all parts, and each sample's episode among them."""
    most = max(part["sentences"].shape[1] for part in parts)
    tokens, episodes, before = [], [], 0
    for part in parts:
        for sentences in part["sentences"]:
            tokens.append([tokenize(str(s)) for s in np.resize(sentences, most)])
        episodes.append(part["episode"] + before)
        before += len(part["sentences"])
    return torch.from_numpy(np.array(tokens)), torch.from_numpy(np.concatenate(episodes))


def loss_of(moves: Tensor, plan: Tensor, proprio: Tensor) -> tuple[Tensor, Tensor]:
    """The loss, and the mean error of the hands' positions over the chunk in metres."""
    here = proprio.unflatten(1, (1, 2, 10))
    xyz = moves[..., :3] - (plan[..., :3] - here[..., :3]) / METRES
    turn = moves[..., 3:9] - (plan[..., 3:9] - here[..., 3:9])
    grip = functional.binary_cross_entropy_with_logits(
        moves[..., 9], plan[..., 9].clamp(0, 1), reduction="none"
    )
    error = _soft(xyz).mean(-1) + _soft(turn).mean(-1) + 0.3 * grip
    weights = torch.tensor(WEIGHTS).repeat_interleave(
        torch.tensor([NEAR, CHUNK - NEAR, len(PREDICTED) - CHUNK])
    )
    loss = (error.mean(2) * weights).sum(1).mean() / weights.sum()
    return loss, xyz[:, :CHUNK].abs().mean() * METRES


def _soft(error: Tensor) -> Tensor:
    """The absolute error, smooth within half a centimetre."""
    return functional.smooth_l1_loss(error, torch.zeros_like(error), reduction="none", beta=0.05)


def train(model: TinyVLA, samples: Samples, steps: int, seed: int) -> None:
    """All of the network: it learns where to look."""
    rng = torch.Generator().manual_seed(seed)

    def loss() -> tuple[Tensor, Tensor]:
        inputs, plan = samples.batch(rng)
        return loss_of(model(*inputs), plan, inputs[-1])

    fit(model, model, loss, steps, "train")


def polish(model: TinyVLA, samples: Samples, steps: int, seed: int) -> None:
    """The trunk alone, on what the encoders see: a step costs a tenth, and there are many."""
    rng = torch.Generator().manual_seed(seed)
    remembered = _remember(model, samples, rng)

    def loss() -> tuple[Tensor, Tensor]:
        chosen = torch.randint(len(remembered[0]), (POLISH_BATCH,), generator=rng)
        seen, sentence, proprio, plan = (values[chosen] for values in remembered)
        return loss_of(model.decide(seen, sentence), plan, proprio)

    fit(model, model.trunk, loss, steps, "polish")


def _remember(model: TinyVLA, samples: Samples, rng: torch.Generator) -> list[Tensor]:
    """What the encoders make of ``POLISH_PASSES`` disturbed copies of every sample: features,
    sentence, proprio, plan."""
    rows = []
    with torch.no_grad():
        for _ in range(POLISH_PASSES * len(samples) // BATCH):
            inputs, plan = samples.batch(rng)
            rows.append((*model.look(*inputs), inputs[-1], plan))
    return [torch.cat(column) for column in zip(*rows, strict=True)]


def fit(
    model: nn.Module,
    part: nn.Module,
    loss_of_batch: Callable[[], tuple[Tensor, Tensor]],
    steps: int,
    what: str,
) -> None:
    """Fits the parameters of ``part``, and leaves the running average of them in place."""
    optimizer = torch.optim.AdamW(part.parameters(), lr=RATE, weight_decay=1e-4, fused=True)
    average = {name: value.clone() for name, value in part.state_dict().items()}
    started, recent = time.monotonic(), []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, steps)
        loss, metres = loss_of_batch()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(part.parameters(), 1.0)
        optimizer.step()
        keep = min(AVERAGING, (step + 1) / (step + 10))
        for name, value in part.state_dict().items():
            average[name].lerp_(value, 1 - keep)
        recent.append((loss.item(), metres.item()))
        if (step + 1) % REPORT == 0 or step + 1 == steps:
            _report(what, step + 1, steps, recent, started)
            recent.clear()
    part.load_state_dict(average)


def rate(step: int, steps: int) -> float:
    """Up for ``WARMUP`` steps, then down along a cosine."""
    falling = 0.5 + 0.5 * math.cos(math.pi * step / steps)
    return RATE * min((step + 1) / WARMUP, falling)


def _report(
    what: str, done: int, steps: int, recent: list[tuple[float, float]], started: float
) -> None:
    loss, metres = np.mean(recent, axis=0)
    left = (time.monotonic() - started) / done * (steps - done)
    print(
        f"{what}: {done}/{steps} loss {loss:.4f}, {100 * metres:.2f} cm off; {left:.0f} s left",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--polish", type=int, required=True, help="further steps of the trunk")
    parser.add_argument("--init", type=Path, help="weights to begin with")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    samples = Samples(arguments.data)
    model = TinyVLA().to(memory_format=torch.channels_last)
    if arguments.init:
        model.load_state_dict(load_file(arguments.init))
    else:
        model.proprio_mean.copy_(samples.proprio.mean(0))
        model.proprio_scale.copy_(samples.proprio.std(0).clamp(min=0.05))
    size = sum(value.numel() for value in model.parameters())
    print(f"train: {len(samples)} samples, {size / 1e6:.2f} million parameters", flush=True)
    train(model, samples, arguments.steps, arguments.seed)
    polish(model, samples, arguments.polish, arguments.seed)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    weights = {name: value.contiguous() for name, value in model.state_dict().items()}
    unfinished = arguments.out.with_suffix(".unfinished")
    save_file(weights, unfinished)
    unfinished.replace(arguments.out)


if __name__ == "__main__":
    main()
