"""What an episode's noise depends on, and the resizing of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.policies import Session
from harness.policies.generate import resize

EPISODE: dict[str, Any] = {
    "scene": "study",
    "task": "put_cup_in_box",
    "task_config": "bench_demo_study_clean",
    "seed": 40000,
    "instruction": "put the cup in the box",
    "reset": {"trial": 3, "qpos": [0.1, 0.2]},
    "manifest": "ab" * 32,
    "position": 5,
}


def test_the_same_episode_draws_the_same_noise() -> None:
    one, other = Session.begin("a", EPISODE), Session.begin("b", dict(reversed(EPISODE.items())))
    assert one.noise_seed == other.noise_seed
    assert (one.rng.random(5) == other.rng.random(5)).all()
    assert (one.seed, one.position, one.manifest) == (40000, 5, "ab" * 32)


def test_the_noise_of_an_episode_is_pinned() -> None:
    """Changing it would change the numbers of every run ever made: say so in the changelog."""
    assert Session.begin("a", EPISODE).noise_seed == 3202397999207640674


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scene", "office"),
        ("task", "press_bell"),
        ("task_config", "bench_demo_study_d6"),
        ("seed", 40001),
        ("instruction", "cup, box, go"),
        ("reset", {"trial": 4, "qpos": [0.1, 0.2]}),
    ],
)
def test_another_episode_draws_other_noise(key: str, value: Any) -> None:
    other = Session.begin("a", {**EPISODE, key: value})
    assert other.noise_seed != Session.begin("a", EPISODE).noise_seed


def test_by_hand_or_in_a_longer_bank_it_is_the_same_episode() -> None:
    by_hand = {key: EPISODE[key] for key in EPISODE if key not in ("manifest", "position")}
    assert Session.begin("a", by_hand).noise_seed == Session.begin("a", EPISODE).noise_seed


@settings(derandomize=True)
@given(seed=st.integers(0, 2**80))
def test_noise_seeds_fit_a_signed_64_bit_number(seed: int) -> None:
    assert 0 <= Session.begin("a", {**EPISODE, "seed": seed}).noise_seed < 2**63


def test_resize_keeps_constants_and_averages_what_it_shrinks() -> None:
    constant = np.full((48, 64, 3), 9, np.uint8)
    np.testing.assert_allclose(resize(constant, 7, 11), np.full((7, 11, 3), 9), rtol=1e-6)
    same = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    np.testing.assert_allclose(resize(same, 4, 4), same, rtol=1e-6)
    # Stripes of one pixel: shrinking by 4 sees grey, not one of the two colours.
    stripes = np.zeros((8, 8, 1), np.uint8)
    stripes[:, ::2] = 200
    assert np.ptp(resize(stripes, 2, 2)) < 30 and abs(resize(stripes, 2, 2).mean() - 100) < 15


def test_resize_by_two_by_hand() -> None:
    # A triangle of reach 2 around x = 1 of pixels at 0.5, 1.5, 2.5: weights 3/4, 3/4, 1/4.
    row = np.array([[[10], [20], [30], [40]]], np.uint8)
    expected = (0.75 * 10 + 0.75 * 20 + 0.25 * 30) / 1.75
    assert resize(row, 1, 2)[0, 0, 0] == pytest.approx(expected)
