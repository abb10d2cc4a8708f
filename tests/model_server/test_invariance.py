"""What the check of batches finds, and what it does not."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from harness.commands.batch_check import words
from harness.inference.invariance import Keeping
from harness.inference.spool import Observations, Spool
from harness.policies import Session
from harness.policies.adapt import Adapted
from harness.policies.wrappers import wrap
from harness.simulators.contract import Episode
from harness.workers.comparing import Compared
from tests.model_server.serving import DECLARED


class Noisy:
    """Adds the session's noise and the number of the call to what it sees."""

    def infer(self, seen: Any, session: Session) -> np.ndarray:
        session.memory["asked"] = session.memory.get("asked", 0) + 1
        return np.full((3, 20), seen["proprio"][0] + session.rng.random() + session.memory["asked"])

    def infer_batch(self, seen: Sequence[Any], sessions: Sequence[Session]) -> list[np.ndarray]:
        return [self.infer(*each) for each in zip(seen, sessions, strict=True)]


class SumsTheBatch(Noisy):
    """A normalisation over the batch, say: one row depends on the others."""

    def infer_batch(self, seen: Sequence[Any], sessions: Sequence[Session]) -> list[np.ndarray]:
        chunks = super().infer_batch(seen, sessions)
        for chunk in chunks:
            chunk[2, 7] += 1e-3 * sum(each["proprio"][0] for each in seen[1:])
        return chunks


class FirstOnesNoise(Noisy):
    def infer_batch(self, seen: Sequence[Any], sessions: Sequence[Session]) -> list[np.ndarray]:
        return [self.infer(each, sessions[0]) for each in seen]


def played(model: Any, sessions: int = 3, **knobs: Any) -> Keeping:
    """After episodes of different lengths, one after the other."""
    policy = Keeping(wrap(Adapted(model, DECLARED), knobs))
    for seed in range(sessions):
        episode(policy, seed, 4 + seed)
    return policy


def episode(policy: Keeping, seed: int, calls: int, **more: str) -> np.ndarray:
    """All actions of it."""
    session, chunks = Session.begin("same name", {"task": "t", "seed": seed, **more}), []
    policy.reset(session)
    for call in range(calls):
        last = np.full(20, call, np.float32) if call else None
        proprio = np.full(20, 10 * seed + call, np.float32)
        chunks.append(policy.infer({"proprio": proprio, "last_action": last}, session))
    return np.concatenate(chunks)


@pytest.mark.parametrize("knobs", [{}, {"action_smooth": 0.7, "exec_actions": 2}])
def test_a_policy_of_independent_rows_is_equal_bit_by_bit(knobs: dict[str, Any]) -> None:
    policy = played(Noisy(), **knobs)
    for batch in (2, 3, 8):
        found = policy.compare(batch)
        assert found == {"chunks": 15, "equal": 15, "largest": []}


def test_a_row_that_depends_on_the_others_is_named() -> None:
    found = played(SumsTheBatch()).compare(3)
    assert found["chunks"] == 15 and found["equal"] < 15 and len(found["largest"]) <= 10
    worst = found["largest"][0]
    assert (worst["action"], worst["dimension"], worst["batch"]) == (2, 7, 3)
    assert worst["difference"] == pytest.approx(1e-3 * (13 + 23), rel=0.2)
    assert worst["together"] > worst["alone"]
    result = {"outcome": "fail", "steps": 9, "state_hash": "a"}
    ends = [(Episode("s", "t", "c", 4, ""), result, result | {"outcome": "success"})] * 2
    ends += [(Episode("s", "t", "c", 5, ""), result, result | {"state_hash": "b", "steps": 8})]
    compared = Compared(found, tuple(ends))
    assert compared.outcomes_differ and not Compared(found, tuple(ends[2:])).outcomes_differ
    said = words(compared, "sums")
    assert said[-1] == "  s/t seed 5: fail after 9 steps alone, fail after 8 steps in company"
    assert "3 episodes, alone and in company: 2 end in the same state, 1 not" in said[-2]
    assert "15 chunks of policy sums" in said[0] and "action 2, dimension 7" in said[1]


def test_noise_of_another_session_is_found() -> None:
    assert played(FirstOnesNoise()).compare(2)["largest"][0]["difference"] > 0.01


@pytest.mark.parametrize(("model", "equal"), [(Noisy, True), (SumsTheBatch, False)])
def test_what_is_played_after_that_is_answered_in_company(model: Any, equal: bool) -> None:
    """Longer than anything that was kept, too, and in every place of a batch."""
    asked: list[tuple[int, ...]] = []

    class Watched(model):  # type: ignore[misc]
        def infer_batch(self, seen: Sequence[Any], sessions: Sequence[Session]) -> list[np.ndarray]:
            asked.append(tuple(session.seed for session in sessions))
            return super().infer_batch(seen, sessions)

    policy = played(Watched(), action_smooth=0.7)
    policy.compare(3)
    asked.clear()
    again = [episode(policy, seed, 9) for seed in (0, 2, 0)]
    lone = Keeping(wrap(Adapted(model(), DECLARED), {"action_smooth": 0.7}))
    alone = [episode(lone, seed, 9) for seed in (0, 2, 0)]
    assert [np.array_equal(*pair) for pair in zip(again, alone, strict=True)] == [equal] * 3
    assert asked[:4] == [(0, 1, 2), (1, 0, 2), (1, 2, 0), (0, 1, 2)]
    assert {len(group) for group in asked} == {3} and asked[9:12][0] == (2, 0, 1)


def test_the_same_seed_told_something_else_is_company() -> None:
    policy = played(SumsTheBatch(), 1)
    alone = episode(policy, 0, 4, instruction="slowly")
    policy.compare(2)
    assert not np.array_equal(episode(policy, 0, 4, instruction="slowly"), alone)


def test_what_was_asked_is_on_disk_and_not_in_memory() -> None:
    spool, added = Spool(), list[weakref.ref[np.ndarray]]()
    kept = [Observations(spool), Observations(spool)]

    def asked(number: int) -> dict[str, Any]:
        picture = np.full((4, 5, 3), number, np.uint8)
        proprio = np.array([number, np.nan, -0.0], np.float32)
        return {"images": {"top": picture}, "proprio": proprio, "expert": None, "text": "ü"}

    for number in range(3):
        observation = asked(number)
        added.append(weakref.ref(observation["proprio"]))
        kept[number % 2].append(observation)
    del observation
    assert [len(each) for each in kept] == [2, 1]
    assert not any(array() is not None for array in added)
    for number in range(3):
        found, told = kept[number % 2][number // 2], asked(number)
        for one, other in (
            (found["images"]["top"], told["images"]["top"]), (found["proprio"], told["proprio"]),
        ):  # fmt: skip
            assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
            assert one.ctypes.data % 64 == 0
        assert (found["expert"], found["text"]) == (None, "ü")


def test_company_is_forgotten_when_the_next_episode_begins() -> None:
    """A session's memory may hold much of a GPU's."""

    class Cache:
        pass

    kept: weakref.WeakSet[Cache] = weakref.WeakSet()

    class Caches(Noisy):
        def infer(self, seen: Any, session: Session) -> np.ndarray:
            kept.add(session.memory.setdefault("cache", Cache()))
            return super().infer(seen, session)

    policy = played(Caches())
    policy.compare(3)
    for seed in range(3):
        episode(policy, seed, 2)
        assert len(kept) == 3 + 3, "of what was kept, and of one company"
