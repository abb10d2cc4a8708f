"""The protocol as a state machine under hypothesis: a failing history comes out shrunk."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from harness.leases.decisions import RESET, RETRY, SKIP
from tests.lease.worker import TTL, Worker, clean
from tests.lease.world import World


class Calm(RuleBasedStateMachine):
    """Workers of any minibatch in any order; nothing goes wrong, so nothing runs twice."""

    world: World

    @initialize(errors=st.dictionaries(st.integers(0, 5), st.integers(1, 9), max_size=2))
    def begin(self, errors: dict[int, int]) -> None:
        self.world = World(scripted_errors=errors)

    @precondition(lambda self: len(self.living()) < 4)
    @rule(host=st.sampled_from(["h1", "h2"]), minibatch=st.sampled_from([1, 2, 3, 0]))
    def start(self, host: str, minibatch: int) -> None:
        self.world.start(host, minibatch)

    @precondition(lambda self: len(self.living()) < 4)
    @rule()
    def clean(self) -> None:
        self.world.start(program=clean)

    @precondition(lambda self: self.living())
    @rule(data=st.data(), count=st.integers(1, 12))
    def step(self, data: st.DataObject, count: int) -> None:
        worker = self.pick(data)
        for _ in range(count):
            self.world.step(worker)

    @rule(count=st.integers(1, 12))
    def advance(self, count: int) -> None:
        for _ in range(count):
            self.world.advance()

    @rule(seconds=st.sampled_from([TTL / 3, 3 * TTL]))
    def everyone_sleeps(self, seconds: float) -> None:
        self.world.everyone_sleeps(seconds)

    def living(self) -> list[Worker]:
        return [worker for worker in self.world.workers if worker.living]

    def pick(self, data: st.DataObject) -> Worker:
        living = self.living()
        return living[data.draw(st.integers(0, len(living) - 1))]

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            self.world.settle_down()
        finally:
            self.world.close()


class Disturbed(Calm):
    """The same with everything that goes wrong on a cluster."""

    @precondition(lambda self: self.living())
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        self.world.kill(self.pick(data))

    @precondition(lambda self: self.living())
    @rule(data=st.data())
    def freeze(self, data: st.DataObject) -> None:
        self.world.freeze(self.pick(data))

    @precondition(lambda self: self.living())
    @rule(data=st.data())
    def thaw(self, data: st.DataObject) -> None:
        self.pick(data).frozen = False

    @precondition(lambda self: self.living())
    @rule(data=st.data(), how=st.sampled_from(["error", "exists"]))
    def lose_answer(self, data: st.DataObject, how: str) -> None:
        self.world.lose_answer(self.pick(data), how)

    @rule(do=st.sampled_from([RETRY, SKIP, RESET]), position=st.integers(0, 2), of=st.booleans())
    def decide(self, do: str, position: int, of: bool) -> None:
        self.world.decide(do, self.world.manifests[of], position)

    @rule(seed=st.integers(0, 99))
    def hide(self, seed: int) -> None:
        self.world.hide(random.Random(seed))

    @rule()
    def remove_leases(self) -> None:
        self.world.remove_leases()


_BOUNDED = settings(
    max_examples=40, stateful_step_count=40, deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip

TestCalm = Calm.TestCase
TestCalm.settings = _BOUNDED
TestDisturbed = Disturbed.TestCase
TestDisturbed.settings = _BOUNDED
