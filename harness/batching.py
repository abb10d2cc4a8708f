"""Several sessions answered by one call of the policy.

Whoever waits first takes the others that wait along; while a batch runs, the next one gathers.
Promises: a session gets what it would have got alone, as far as the policy's numerics allow; where
a batch raises, each of its sessions is asked alone from where it stood, so an error is the answer
of its own session and of no other; nobody waits for others longer than ``wait_s``, nor longer than
a call has just taken, nor when all that have begun an episode wait already.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harness.policies.contract import Policy, Session


class _Request:
    """One session's question; ``actions`` or ``error`` is the answer."""

    def __init__(self, observation: Mapping[str, Any], session: Session) -> None:
        self.observation, self.session = observation, session
        self.actions: np.ndarray | None = None
        self.error: BaseException | None = None
        self.took_s: float | None = None  # its batch, once that is over
        self._before = (dict(session.memory), session.rng.bit_generator.state)

    def answer(self) -> np.ndarray:
        if self.error is not None:
            raise self.error
        assert self.actions is not None
        return self.actions

    def ask_alone(self, policy: Policy) -> None:
        try:
            self.actions = policy.infer(self.observation, self.session)
        except (Exception, SystemExit) as error:  # a policy may raise anything
            self.error = error

    def take_back(self) -> None:
        """What a call that failed has drawn or kept is undone."""
        memory, self.session.rng.bit_generator.state = self._before
        self.session.memory.clear()
        self.session.memory.update(memory)


class Batcher:
    """One policy's sessions.

    Args:
        turn: held while the policy is asked.
        limit: the largest batch; it becomes half of what failed where each of it succeeded alone.
        clock: monotonic seconds.
    """

    def __init__(
        self, policy: Policy, turn: contextlib.AbstractContextManager[Any], limit: int,
        wait_s: float, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._policy, self._turn, self._clock = policy, turn, clock
        self._limit, self._wait_s, self._took_s = limit, wait_s, 0.0
        self._changed = threading.Condition()
        self._waiting: deque[_Request] = deque()
        self._sessions = 0
        self._leading = False

    def count(self, change: int) -> None:
        """So many sessions more, or less, are worth waiting for."""
        with self._changed:
            self._sessions += change
            self._changed.notify_all()

    def infer(self, observation: Mapping[str, Any], session: Session) -> tuple[np.ndarray, float]:
        """What ``Policy.infer`` answers or raises, and the seconds that its batch took."""
        request = _Request(observation, session)
        with self._changed:
            self._waiting.append(request)
            self._changed.notify_all()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: request.took_s is not None or not self._leading)
                if request.took_s is not None:
                    return request.answer(), request.took_s
                self._leading = True
                batch = self._gather()
            try:
                self._answer(batch)
            finally:
                with self._changed:
                    self._leading = False
                    self._changed.notify_all()

    def _gather(self) -> list[_Request]:
        """Those to be answered now, in the order in which they came."""

        def enough() -> bool:
            return len(self._waiting) >= min(self._limit, self._sessions)

        self._changed.wait_for(enough, min(self._wait_s, self._took_s))
        return [self._waiting.popleft() for _ in range(min(self._limit, len(self._waiting)))]

    def _answer(self, batch: list[_Request]) -> None:
        with self._turn:
            began = self._clock()
            if len(batch) == 1:
                batch[0].ask_alone(self._policy)
            elif (failure := self._ask_together(batch)) is not None:
                self._ask_each(batch, failure)
            self._took_s = self._clock() - began
        for request in batch:
            request.took_s = self._took_s

    def _ask_together(self, batch: list[_Request]) -> BaseException | None:
        """What it raised, with everything as it was before."""
        asked = [request.observation for request in batch], [request.session for request in batch]
        try:
            chunks = self._policy.infer_batch(*asked)
        except (Exception, SystemExit) as error:
            for request in batch:
                request.take_back()
            return error
        for request, chunk in zip(batch, chunks, strict=True):
            request.actions = chunk
        return None

    def _ask_each(self, batch: list[_Request], failure: BaseException) -> None:
        said = f"a batch of {len(batch)} failed ({type(failure).__name__}: {failure})"
        for request in batch:
            request.ask_alone(self._policy)
        if all(request.error is None for request in batch):
            self._limit = len(batch) // 2
            said += f"; alone each succeeds, so batches have at most {self._limit} from now on"
        print(said, flush=True)
