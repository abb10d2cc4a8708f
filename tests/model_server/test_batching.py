"""Many sessions, one call: what each gets is its own, whoever it was answered with."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from harness.inference.batching import Batcher, _Pace
from harness.policies import Session
from harness.policies.adapt import Adapted
from tests.model_server.serving import DECLARED, client, episode, observation, serving

DEADLINE_S = 20.0


class Draws:
    """An action is what is seen, the session's noise and how often it was asked."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def infer(self, seen: Any, session: Session) -> np.ndarray:
        session.memory["asked"] = session.memory.get("asked", 0) + 1
        if seen["proprio"][0] < 0:
            raise FloatingPointError("the model diverged")
        noise = session.rng.random()
        return np.full((2, 20), seen["proprio"][0] + noise + session.memory["asked"])

    def infer_batch(self, seen: Sequence[Any], sessions: Sequence[Session]) -> list[np.ndarray]:
        self.batches.append(len(seen))
        return [self.infer(*each) for each in zip(seen, sessions, strict=True)]


class TakesTime(Draws):
    def infer(self, seen: Any, session: Session) -> np.ndarray:
        time.sleep(0.001)  # so that some come while others are answered
        return super().infer(seen, session)


class TogetherFails(Draws):
    def infer_batch(self, seen: Sequence[Any], sessions: Sequence[Session]) -> list[np.ndarray]:
        chunks = super().infer_batch(seen, sessions)
        if len(seen) > 2:
            raise MemoryError("out of memory")
        return chunks


class Gate:
    """A turn that the test lets each call of the policy have."""

    def __init__(self) -> None:
        self.wanted, self._free = threading.Semaphore(0), threading.Semaphore(0)

    def __enter__(self) -> None:
        self.wanted.release()
        assert self._free.acquire(timeout=DEADLINE_S)

    def __exit__(self, *error: object) -> None:
        pass

    def let_one(self) -> None:
        assert self.wanted.acquire(timeout=DEADLINE_S), "nobody wants to ask the policy"
        self._free.release()


class Table:
    """A batcher, and sessions that ask it at once."""

    def __init__(self, model: Any, limit: int = 8, wait_s: float = 0.0) -> None:
        self.gate, self.policy = Gate(), Adapted(model, DECLARED)
        self.batcher = Batcher(self.policy, self.gate, limit, wait_s)
        self.pool = ThreadPoolExecutor(16)

    def expect(self, session: Session, in_s: float, took_s: float) -> None:
        """As if it had asked before, and the last call had taken ``took_s``."""
        self.batcher._took_s = took_s
        self.batcher._paces[id(session)] = _Pace(time.monotonic(), in_s)

    def ask(self, session: Session, proprio: float = 0.0) -> Any:
        """Begin to; it waits when this returns."""
        waiting = len(self.batcher._waiting)
        seen = {"proprio": np.full(20, proprio, np.float32)}
        asked = self.pool.submit(self.batcher.infer, seen, session)
        until(lambda: len(self.batcher._waiting) > waiting or self.batcher._leading)
        return asked

    def ask_behind(self, *asked: tuple[Session, float]) -> list[Any]:
        """All of them while a call goes on, so that they are answered together."""
        first = self.ask(Session("first"))
        waiting = [self.ask(*each) for each in asked]
        until(lambda: len(self.batcher._waiting) == len(asked))
        self.gate.let_one()
        first.result(DEADLINE_S)
        return waiting


def until(condition: Callable[[], bool]) -> None:
    end = threading.Event()
    for _ in range(int(DEADLINE_S / 0.001)):
        if condition():
            return
        end.wait(0.001)
    raise AssertionError("the deadline passed")


def session(seed: int) -> Session:
    return Session.begin(f"s{seed}", {"task": "t", "seed": seed})


def alone(seed: int, *proprios: float) -> list[float]:
    """What a session gets that shares the policy with nobody."""
    policy, own = Adapted(Draws(), DECLARED), session(seed)
    seen = [{"proprio": np.full(20, proprio, np.float32)} for proprio in proprios]
    return [float(policy.infer(each, own)[0, 0]) for each in seen]


def results(asked: Sequence[Any]) -> list[float]:
    return [float(each.result(DEADLINE_S)[0][0, 0]) for each in asked]


def test_those_that_wait_are_answered_in_one_call() -> None:
    model = Draws()
    table = Table(model)
    waiting = table.ask_behind(*((session(seed), float(seed)) for seed in range(5)))
    table.gate.let_one()
    assert results(waiting) == [alone(seed, float(seed))[0] for seed in range(5)]
    assert model.batches == [5]


def test_no_more_than_the_limit_in_the_order_they_came() -> None:
    model = Draws()
    table = Table(model, limit=2)
    waiting = table.ask_behind(*((session(seed), 0.0) for seed in range(5)))
    for done in (2, 4, 5):
        table.gate.let_one()
        results(waiting[:done])
        assert not any(each.done() for each in waiting[done:])
    assert model.batches == [2, 2]  # and one alone


def test_the_error_of_one_is_nobody_elses(capfd: pytest.CaptureFixture[str]) -> None:
    table = Table(Draws())
    sessions = [session(seed) for seed in range(3)]
    waiting = table.ask_behind(*zip(sessions, (1.0, -1.0, 2.0), strict=True))
    table.gate.let_one()
    with pytest.raises(FloatingPointError, match="diverged"):
        waiting[1].result(DEADLINE_S)
    # Though they were asked twice, their noise is that of a session asked once.
    assert results([waiting[0], waiting[2]]) == [alone(0, 1.0)[0], alone(2, 2.0)[0]]
    waiting = table.ask_behind((sessions[0], 3.0), (sessions[2], 4.0))
    table.gate.let_one()
    assert results(waiting) == [alone(0, 1.0, 3.0)[1], alone(2, 2.0, 4.0)[1]]
    assert "a batch of 3 failed (FloatingPointError" in capfd.readouterr().out


@pytest.mark.parametrize("together", [True, False])
def test_what_is_no_exception_is_an_answer_too(together: bool) -> None:
    """As a panic of a library in Rust is, which tokenizers are."""

    class Panic(BaseException):
        pass

    class Panics(Draws):
        def infer_batch(self, seen: Any, sessions: Any) -> list[np.ndarray]:
            raise Panic

        def infer(self, seen: Any, session: Session) -> np.ndarray:
            if seen["proprio"][0] < 0:
                raise Panic
            return super().infer(seen, session)

    table = Table(Panics())
    waiting = table.ask_behind((session(1), 1.0 if together else -1.0), (session(2), 2.0))
    table.gate.let_one()
    assert results(waiting[1:]) == [alone(2, 2.0)[0]]
    if together:
        assert results(waiting[:1]) == [alone(1, 1.0)[0]]
    else:
        with pytest.raises(Panic):
            waiting[0].result(DEADLINE_S)


def test_a_batch_that_is_too_large_becomes_smaller(capfd: pytest.CaptureFixture[str]) -> None:
    model = TogetherFails()
    table = Table(model)
    sessions = [session(seed) for seed in range(4)]
    for calls in (1, 2):
        waiting = table.ask_behind(*((each, 0.0) for each in sessions))
        for _ in range(calls):
            table.gate.let_one()
        results(waiting)
    assert "at most 2" in capfd.readouterr().out and model.batches == [4, 2, 2]


def test_what_a_failed_batch_computed_is_gone_before_each_is_asked_alone() -> None:
    class Activations:
        pass

    class RunsOut(Draws):
        held: weakref.ref[Activations] | None = None

        def infer(self, seen: Any, session: Session) -> np.ndarray:
            assert self.held is None or self.held() is None, "the memory is still taken"
            return super().infer(seen, session)

        def infer_batch(self, seen: Any, sessions: Any) -> list[np.ndarray]:
            activations = Activations()
            self.held = weakref.ref(activations)
            raise MemoryError

    table = Table(RunsOut())
    waiting = table.ask_behind((session(1), 1.0), (session(2), 2.0))
    table.gate.let_one()
    assert results(waiting) == [alone(1, 1.0)[0], alone(2, 2.0)[0]]


def test_a_log_that_takes_no_more_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*words: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    table = Table(TogetherFails())
    monkeypatch.setattr("builtins.print", full)
    waiting = table.ask_behind(*((session(seed), 0.0) for seed in range(3)))
    table.gate.let_one()
    assert results(waiting) == [alone(seed, 0.0)[0] for seed in range(3)]


def test_it_waits_for_a_session_that_is_expected_soon() -> None:
    model = Draws()
    table = Table(model, wait_s=DEADLINE_S)
    first, second = session(1), session(2)
    table.expect(second, in_s=DEADLINE_S / 4, took_s=DEADLINE_S)
    asked = [table.ask(first)]
    assert not table.gate.wanted.acquire(timeout=0.05), "the other has not come yet"
    asked.append(table.ask(second))
    table.gate.let_one()
    assert results(asked) == [alone(1, 0.0)[0], alone(2, 0.0)[0]] and model.batches == [2]


@pytest.mark.parametrize("in_s", [-1.0, DEADLINE_S * 60, None])
def test_it_does_not_wait_for_one_that_is_late_or_far_or_has_ended(in_s: float | None) -> None:
    table, other = Table(Draws(), wait_s=DEADLINE_S * 100), session(2)
    table.expect(other, in_s=in_s or 1.0, took_s=DEADLINE_S * 100)
    if in_s is None:
        table.batcher.end(other)
    asked = table.ask(session(1))
    table.gate.let_one()
    assert results([asked]) == alone(1, 0.0)


def test_who_is_expected_and_does_not_come_is_not_waited_for_longer_than_allowed() -> None:
    table = Table(Draws(), wait_s=0.02)
    table.expect(session(2), in_s=DEADLINE_S / 4, took_s=DEADLINE_S)
    asked = table.ask(session(1))
    table.gate.let_one()
    assert results([asked]) == alone(1, 0.0)


def test_a_session_is_expected_by_its_own_pace() -> None:
    table, own = Table(Draws()), session(1)
    clock = iter([*range(100, 200)])
    table.batcher._clock = lambda: float(next(clock))
    for _ in range(3):
        asked = table.ask(own)
        table.gate.let_one()
        results([asked])
    pace = table.batcher._paces[id(own)]
    assert 0 < pace.thinks_s < 10 and pace.due == pace.answered + pace.thinks_s
    table.batcher.end(own)
    assert not table.batcher._paces


def test_many_simulators_over_the_wire_get_what_one_would() -> None:
    def play(server: Any, seed: int) -> list[float]:
        model = client(server, f"s{seed}")
        model.reset(episode(seed))
        steps = range(6)
        found = [model.infer(k, observation(seed + k / 8), None, None)[0] for k in steps]
        model.close()
        return [float(chunk[0, 0]) for chunk in found]

    together, model = TakesTime(), Draws()
    with serving(together, max_batch=4, max_wait_ms=5) as server, ThreadPoolExecutor(8) as pool:
        shared = list(pool.map(lambda seed: play(server, seed), range(8)))
    with serving(model) as server:
        assert shared == [play(server, seed) for seed in range(8)]
    assert 1 < max(together.batches) <= 4 and model.batches == []


def test_what_keeps_one_episodes_state_is_never_batched() -> None:
    class Keeps:
        def reset(self, session: Session) -> None: ...

        def infer(self, seen: Any) -> np.ndarray:
            return np.zeros((1, 20))

        def infer_batch(self, seen: Any, sessions: Any) -> list[np.ndarray]:
            raise AssertionError

    assert Adapted(Draws(), DECLARED).batches and not Adapted(Keeps(), DECLARED).batches


@pytest.mark.parametrize("given", [[], [np.zeros((1, 20))] * 3, [np.zeros((1, 20)), np.ones(3)]])
def test_chunks_that_are_none_are_refused(given: list[np.ndarray]) -> None:
    class Gives(Draws):
        def infer_batch(self, seen: Any, sessions: Any) -> list[np.ndarray]:
            return given

    seen = {"proprio": np.zeros(20, np.float32)}
    with pytest.raises(Exception, match=r"infer_batch of 2|a chunk of actions"):
        Adapted(Gives(), DECLARED).infer_batch([seen] * 2, [session(1), session(2)])
