"""A torch model behind the contract: tensors in, seeded noise, fixed threads (needs torch)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from harness.policies import Session, fix_threads
from harness.policies.adapt import Adapted

SETTINGS: dict[str, Any] = {"cameras": ["countertop"]}


class Diffuses(torch.nn.Module):
    """Adds noise to proprio, as a flow-matching head starts from noise."""

    image_size = 16

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(20, 20)

    def tokenize(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def generate_actions(self, **inputs: torch.Tensor) -> torch.Tensor:
        self.inputs, self.grad = inputs, torch.is_grad_enabled()
        hidden = self.layer(inputs["proprio"])[:, None].expand(-1, 30, -1)
        return (hidden + torch.randn(1, 30, 20)).to(torch.bfloat16)


def observation() -> dict[str, Any]:
    proprio = np.arange(20, dtype=np.float32)
    proprio.flags.writeable = False  # as received
    picture = np.zeros((24, 32, 3), np.uint8)
    return {"images": {"countertop": picture}, "proprio": proprio, "instruction": "go"}


def session(seed: int) -> Session:
    return Session.begin("s", {"task": "t", "seed": seed})


def test_tensors_go_in_and_float32_comes_out() -> None:
    model = Diffuses()
    chunk = Adapted(model, SETTINGS).infer(observation(), session(1))
    assert chunk.shape == (30, 20) and chunk.dtype == np.float32
    shapes = {name: tuple(value.shape) for name, value in model.inputs.items()}
    assert shapes == {
        "input_ids": (1, 2),
        "image_input": (1, 1, 3, 16, 16),
        "image_mask": (1, 1),
        "domain_id": (1,),
        "proprio": (1, 20),
    }
    assert model.inputs["input_ids"].dtype == torch.int64 and not model.grad


def test_an_episodes_noise_is_its_own_whoever_comes_between() -> None:
    policy = Adapted(Diffuses(), SETTINGS)
    alone = session(1)
    expected = [policy.infer(observation(), alone) for _ in range(3)]
    assert not np.array_equal(expected[0], expected[1])
    again, other = session(1), session(2)
    for chunk in expected:
        torch.manual_seed(99)
        assert np.array_equal(policy.infer(observation(), again), chunk)
        assert not np.array_equal(policy.infer(observation(), other), chunk)


class DiffusesInRows(Diffuses):
    """Draws each row's noise from the row's own number."""

    batched = True

    def generate_actions(self, noise_seeds: Any = (), **inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.layer(inputs["proprio"])[:, None].expand(-1, 30, -1)
        own = [torch.Generator().manual_seed(seed) for seed in noise_seeds]
        return hidden + torch.stack([torch.randn(30, 20, generator=each) for each in own])


def test_in_a_batch_each_row_has_its_own_noise_whatever_the_shapes() -> None:
    torch.manual_seed(1)
    policy = Adapted(DiffusesInRows(), SETTINGS)
    assert policy.batches and not Adapted(Diffuses(), SETTINGS).batches
    seen = [{**observation(), "instruction": text} for text in ("go", "stop", "up")]
    ones, both = ([session(k) for k in range(3)] for _ in range(2))
    for _ in range(2):
        single = [policy.infer(*each) for each in zip(seen, ones, strict=True)]
        batch = policy.infer_batch(seen, both)
        np.testing.assert_allclose(batch, single, rtol=1e-5, atol=1e-5)
        assert not np.allclose(single[0], single[2])


def test_a_model_that_infers_is_seeded_too() -> None:
    class Infers:
        def infer(self, seen: Any) -> torch.Tensor:
            return torch.randn(2, 20)

    policy = Adapted(Infers(), SETTINGS)
    assert np.array_equal(
        policy.infer(observation(), session(1)), policy.infer(observation(), session(1))
    )


def test_threads_are_fixed() -> None:
    before = torch.get_num_threads()
    try:
        fix_threads(1)
        assert torch.get_num_threads() == 1
        fix_threads(2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
