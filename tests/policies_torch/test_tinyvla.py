"""tinyvla: its checkpoint, its contract, its training (needs torch)."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from harness.errors import RollpoolError
from harness.policies import Policy, PolicyError, Session, fix_threads, load_policy
from harness.policies.wrappers import KNOBS
from policy.tinyvla import inputs, model
from policy.tinyvla.training import train as training

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "policy" / "tinyvla"
torch.set_num_threads(1)  # threads that wait for each other starve on a busy machine
SETTINGS: dict[str, Any] = yaml.safe_load((HERE / "deploy_policy.yml").read_text())
CHECKPOINT = HERE / "checkpoints" / SETTINGS["checkpoint"]


def served(checkpoint: Path | None = CHECKPOINT) -> Policy:
    """As a model server loads it, one thread included."""
    usr_args = {key: value for key, value in SETTINGS.items() if key not in KNOBS}
    policy = load_policy(HERE, {**usr_args, "checkpoint": checkpoint and str(checkpoint)}, {})
    fix_threads(1)
    return policy


def observation(seed: int = 0, sentence: str = "press the bell") -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    arm = [0.1, 0.2, 0.9, 1, 0, 0, 1, 0, 0, 0.5]
    return {
        "images": {name: rng.integers(0, 256, (240, 320, 3), np.uint8) for name in inputs.CAMERAS},
        "proprio": np.array(arm * 2, np.float32),
        "instruction": sentence,
    }


def chunk_of(policy: Policy, seed: int = 0) -> np.ndarray:
    session = Session.begin("s", {"task": "t", "seed": seed})
    policy.reset(session)
    return policy.infer(observation(seed), session)


def digest() -> str:
    return hashlib.sha256(chunk_of(served()).tobytes()).hexdigest()


def test_the_checkpoint_is_small_and_loads() -> None:
    assert CHECKPOINT.stat().st_size <= 5_000_000
    policy = served()
    assert (policy.action_kind, policy.action_dim, policy.chunk) == ("ee6d", 20, 30)


def test_a_chunk_is_thirty_reachable_targets() -> None:
    chunk = chunk_of(served())
    assert chunk.shape == (30, 20) and chunk.dtype == np.float32
    arms = chunk.reshape(30, 2, 10)
    assert ((arms[..., 9] >= 0) & (arms[..., 9] <= 1)).all()
    columns = arms[..., 3:9].reshape(30, 2, 3, 2)
    gram = np.einsum("taij,taik->tajk", columns, columns)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(2), gram.shape), atol=1e-5)


def test_equal_observations_give_equal_chunks_in_any_process() -> None:
    first = digest()
    assert digest() == first
    code = f"import runpy; print(runpy.run_path({str(Path(__file__))!r})['digest']())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == [first], done.stderr


def test_it_looks_and_listens() -> None:
    policy, session = served(), Session.begin("s", {})
    base = policy.infer(observation(0), session)
    assert np.abs(policy.infer(observation(1), session) - base).max() > 1e-4
    other = observation(0, "put the cup in the box")
    assert np.abs(policy.infer(other, session) - base).max() > 1e-4


def test_a_batch_of_two_is_two_of_one() -> None:
    net = model.TinyVLA().eval()
    ones = [net.preprocess(observation(seed)) for seed in (1, 2)]
    ones = [{key: torch.from_numpy(np.asarray(v)[None]) for key, v in one.items()} for one in ones]
    both = {key: torch.cat([one[key] for one in ones]) for key in ones[0]}
    with torch.inference_mode():
        separate = torch.cat([net.generate_actions(**one) for one in ones])
        torch.testing.assert_close(net.generate_actions(**both), separate, atol=1e-5, rtol=1e-5)
    assert not torch.equal(separate[0], separate[1])


def test_many_sessions_are_answered_at_once() -> None:
    policy = served()
    assert policy.batches
    seen = [observation(seed, text) for seed, text in enumerate(("press it", "cup", "push it"))]
    sessions = [Session.begin(str(k), {"seed": k}) for k in range(3)]
    for alone, together in zip(seen, policy.infer_batch(seen, sessions), strict=True):
        np.testing.assert_allclose(policy.infer(alone, Session("s")), together, atol=1e-5)


@given(st.text(max_size=300))
def test_every_sentence_has_words(sentence: str) -> None:
    tokens = inputs.tokenize(sentence)
    assert tokens.shape == (inputs.SENTENCE,) and tokens.dtype == np.int64
    assert tokens[0] > 0 and tokens.min() >= 0 and tokens.max() < inputs.VOCABULARY


def test_case_and_punctuation_do_not_matter() -> None:
    assert (inputs.tokenize("Press the bell!") == inputs.tokenize("press, the BELL")).all()
    assert inputs.tokenize("press the bell").tolist() != inputs.tokenize("ring the bell").tolist()


def test_shrinking_averages_blocks_of_pixels() -> None:
    picture = np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 4, 3)
    expected = [[[7.5, 13.5]], [[8.5, 14.5]], [[9.5, 15.5]]]
    np.testing.assert_array_equal(inputs.shrink(picture, (1, 2)), expected)


def test_pictures_of_another_shape_are_refused() -> None:
    seen = observation()
    seen["images"]["countertop"] = np.zeros((100, 100, 3), np.uint8)
    with pytest.raises(ValueError, match="100x100"):
        served().infer(seen, Session.begin("s", {}))
    assert not issubclass(PolicyError, ValueError)  # so the episode's error is the policy's own


def test_a_missing_or_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RollpoolError, match="no checkpoint"):
        served(None)
    foreign = tmp_path / "foreign.safetensors"
    save_file({"weight": torch.zeros(3)}, foreign)
    with pytest.raises(RollpoolError, match="train it with this code"):
        served(foreign)


def test_training_lowers_the_loss_and_is_seeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, count = np.random.default_rng(0), 12
    proprio = np.array(observation()["proprio"])[None].repeat(count, 0)
    np.savez(
        tmp_path / "part.npz",
        countertop=rng.integers(0, 256, (count, 3, 120, 160), np.uint8),
        wrists=rng.integers(0, 256, (count, 2, 3, 60, 80), np.uint8),
        proprio=proprio,
        plan=(proprio + 0.1).astype(np.float32)[:, None].repeat(90, 1),
        episode=np.arange(count) % 2,
        sentences=np.array([["press the bell", "ring it"], ["push the book", "slide it"]]),
    )
    monkeypatch.setattr(training, "BATCH", 8)
    monkeypatch.setattr(training, "WARMUP", 1)
    samples = training.Samples(tmp_path)
    inputs_, plan = samples.batch(torch.Generator().manual_seed(9))

    def after(steps: int) -> tuple[float, dict[str, torch.Tensor]]:
        torch.manual_seed(0)
        net = model.TinyVLA()
        training.train(net, samples, steps, seed=3)
        training.polish(net, samples, steps, seed=3)
        with torch.no_grad():
            return float(training.loss_of(net(*inputs_), plan, inputs_[-1])[0]), net.state_dict()

    untrained, (trained, weights) = after(0)[0], after(4)
    assert trained < 0.9 * untrained
    assert all(torch.equal(value, weights[name]) for name, value in after(4)[1].items())
