"""Smoothing, receding horizon and fake proprio, with numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import RollpoolError
from harness.policies import PolicyError, Session
from harness.policies.wrappers import wrap


class Fixed:
    """Gives one chunk, and remembers the proprio it was shown."""

    action_kind, action_dim, chunk = "ee6d", 20, 3
    needs: Sequence[str] = ()
    cameras: Sequence[str] = ()
    concurrent = exclusive = False
    resets = batches = True

    def __init__(self, chunk: np.ndarray) -> None:
        self.given, self.saw = chunk, np.empty(0)

    def reset(self, session: Session) -> None:
        pass

    def infer(self, observation: Any, session: Session) -> np.ndarray:
        self.saw = observation["proprio"]
        return self.given

    def infer_batch(self, seen: Sequence[Any], sessions: Sequence[Session]) -> list[np.ndarray]:
        return [self.infer(*each) for each in zip(seen, sessions, strict=True)]


def observation(last: np.ndarray | None, proprio: np.ndarray | None = None) -> dict[str, Any]:
    return {
        "last_action": last,
        "proprio": np.zeros(20, np.float32) if proprio is None else proprio,
    }


def chunk() -> np.ndarray:
    """Three actions: all 1, all 2, all 3."""
    return np.arange(1, 4, dtype=np.float32)[:, None].repeat(20, axis=1)


def ask(policy: Any, *args: Any) -> np.ndarray:
    return policy.infer(observation(*args), Session("s"))


def test_smoothing_pulls_the_first_pose_towards_the_last_executed_action() -> None:
    policy = wrap(Fixed(chunk()), {"action_smooth": 0.75, "smooth_rot": 1})
    last = np.full(20, 5, np.float32)
    actions = ask(policy, last)
    # 0.75 * 5 + 0.25 * 1 = 4; the grippers, 9 and 19, stay at 1.
    assert actions[0].tolist() == [4] * 9 + [1] + [4] * 9 + [1]
    assert (actions[1:] == chunk()[1:]).all()


def test_smoothing_translation_alone() -> None:
    policy = wrap(Fixed(chunk()), {"action_smooth": 0.75, "smooth_rot": 0})
    actions = ask(policy, np.full(20, 5, np.float32))
    assert actions[0].tolist() == [4] * 3 + [1] * 7 + [4] * 3 + [1] * 7


def test_smoothing_uses_each_dimensions_own_last_value() -> None:
    policy = wrap(Fixed(chunk()), {"action_smooth": 0.5})
    last = np.arange(20, dtype=np.float32)
    # 0.5 * k + 0.5 * 1 for pose dimension k
    expected = [0.5 * k + 0.5 for k in range(20)]
    expected[9] = expected[19] = 1
    assert ask(policy, last)[0].tolist() == expected


def test_the_first_chunk_of_an_episode_is_raw_and_the_model_keeps_its_own_array() -> None:
    inner = Fixed(chunk())
    policy = wrap(inner, {"action_smooth": 0.75})
    assert (ask(policy, None) == chunk()).all()
    ask(policy, np.full(20, 5, np.float32))
    assert (inner.given == chunk()).all()


def test_smoothing_is_carried_over_a_chunk_cut_short() -> None:
    """Receding horizon of 2: the last executed action is the second of the chunk, not its third."""
    policy = wrap(Fixed(chunk()), {"action_smooth": 0.5, "exec_actions": 2})
    first = ask(policy, None)
    assert first[:, 0].tolist() == [1, 2]
    assert ask(policy, first[-1])[:, 0].tolist() == [1.5, 2]  # 0.5 * 2 + 0.5 * 1


@pytest.mark.parametrize(("kind", "dim"), [("qpos", 16), ("ee", 16), ("ee6d", 7), ("qpos", 20)])
def test_smoothing_what_is_not_ee6d_is_refused(kind: str, dim: int) -> None:
    inner = Fixed(chunk())
    inner.action_kind, inner.action_dim = kind, dim
    with pytest.raises(RollpoolError, match="ee6d"):
        wrap(inner, {"action_smooth": 0.7})
    assert wrap(inner, {"action_smooth": 0}) is inner


@pytest.mark.parametrize(("count", "left"), [(0, 3), (1, 1), (2, 2), (3, 3)])
def test_exec_actions_takes_the_first_ones(count: int, left: int) -> None:
    assert (
        ask(wrap(Fixed(chunk()), {"exec_actions": count}), None)[:, 0].tolist() == [1, 2, 3][:left]
    )


def test_exec_actions_beyond_the_chunk_is_refused() -> None:
    with pytest.raises(RollpoolError, match="chunk has 3"):
        wrap(Fixed(chunk()), {"exec_actions": 4})


def test_fake_proprio_is_the_true_one_first_and_then_the_last_command() -> None:
    inner = Fixed(chunk())
    policy = wrap(inner, {"fake_proprio": 1})
    measured, commanded = np.full(20, 7, np.float32), np.full(20, 5, np.float32)
    ask(policy, None, measured)
    assert (inner.saw == 7).all()
    ask(policy, commanded, measured)
    assert (inner.saw == 5).all()
    wrap(inner, {"fake_proprio": 0}).infer(observation(commanded, measured), Session("s"))
    assert (inner.saw == 7).all()


def test_fake_proprio_of_another_layout_is_refused() -> None:
    policy = wrap(Fixed(chunk()), {"fake_proprio": 1})
    with pytest.raises(PolicyError, match="fake_proprio"):
        ask(policy, np.zeros(7, np.float32), np.zeros(20, np.float32))


@pytest.mark.parametrize(
    "knobs",
    [
        {"action_smooth": 1.5},
        {"action_smooth": -0.1},
        {"action_smooth": "much"},
        {"action_smooth": float("nan")},
        {"exec_actions": 2.5},
        {"exec_actions": -1},
        {"fake_proprio": 2},
        {"action_smooth": 0.7, "smooth_rot": 3},
        {"smooth": 0.7},
    ],
    ids=str,
)
def test_nonsense_knobs_are_refused(knobs: dict[str, Any]) -> None:
    with pytest.raises(RollpoolError, match="policy knob"):
        wrap(Fixed(chunk()), knobs)


def test_no_knob_wraps_nothing() -> None:
    inner = Fixed(chunk())
    knobs = {"action_smooth": 0.0, "smooth_rot": 1, "exec_actions": None, "fake_proprio": False}
    assert wrap(inner, knobs) is inner


def test_a_wrapped_policy_says_what_the_inner_one_is(tmp_path: Path) -> None:
    inner = Fixed(chunk())
    record = str(tmp_path / "r.jsonl")
    knobs = {"action_smooth": 0.7, "exec_actions": 2, "fake_proprio": 1, "record": record}
    policy = wrap(inner, knobs)
    for name in ("action_kind", "action_dim", "chunk", "needs", "cameras", "batches", "concurrent"):
        assert getattr(policy, name) == getattr(inner, name)


def test_in_a_batch_each_gets_what_it_would_get_alone(tmp_path: Path) -> None:
    knobs = {"action_smooth": 0.7, "exec_actions": 2, "fake_proprio": 1}
    policy = wrap(Fixed(chunk()), {**knobs, "record": str(tmp_path / "r.jsonl")})
    lasts = [None, np.full(20, 5, np.float32), np.full(20, 7, np.float32)]
    sessions = [Session(str(k)) for k in range(3)]
    batch = policy.infer_batch([observation(last) for last in lasts], sessions)
    for last, together in zip(lasts, batch, strict=True):
        assert np.array_equal(ask(policy, last), together) and together.shape == (2, 20)
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 6
