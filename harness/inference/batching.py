"""Several sessions answered by one call of the policy.

Whoever waits first takes the others that wait along; while a batch runs, the next one gathers.
Promises: a session gets what it would have got alone, as far as the policy's numerics allow; where
a batch raises, each of its sessions is asked alone from where it stood, so an error is the answer
of its own session and of no other; nobody waits for others longer than ``wait_s``, and only while
one is expected, by its own pace, so soon that all together gain by it.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.errors import one_line
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
        except BaseException as error:  # it may raise anything: a panic of Rust is no Exception
            self.error = error

    def take_back(self) -> None:
        """What a call that failed has drawn or kept is undone."""
        memory, self.session.rng.bit_generator.state = self._before
        self.session.memory.clear()
        self.session.memory.update(memory)


@dataclass
class _Pace:
    """When a session asks: some seconds after it was answered, about as long as before."""

    answered: float
    thinks_s: float = math.inf

    def asks(self, now: float) -> None:
        took = now - self.answered
        self.thinks_s = took if math.isinf(self.thinks_s) else (self.thinks_s + took) / 2

    @property
    def due(self) -> float:
        return self.answered + self.thinks_s


class Batcher:
    """One policy's sessions.

    Args:
        turn: held while the policy is asked.
        limit: the largest batch; it becomes half of what failed where each of it succeeded alone.
    """

    def __init__(
        self, policy: Policy, turn: contextlib.AbstractContextManager[Any], limit: int,
        wait_s: float,
    ) -> None:  # fmt: skip
        self._policy, self._turn = policy, turn
        self._limit, self._wait_s, self._took_s = limit, wait_s, 0.0
        self._changed = threading.Condition()
        self._waiting: deque[_Request] = deque()
        self._paces: dict[int, _Pace] = {}  # by the session's id
        self._leading = False

    def end(self, session: Session) -> None:
        """It will not ask again."""
        with self._changed:
            self._paces.pop(id(session), None)
            self._changed.notify_all()

    def infer(self, observation: Mapping[str, Any], session: Session) -> tuple[np.ndarray, float]:
        """What ``Policy.infer`` answers or raises, and the seconds that its batch took."""
        request = _Request(observation, session)
        with self._changed:
            if pace := self._paces.get(id(session)):
                pace.asks(time.monotonic())
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
                    self._note(batch)
                    self._leading = False
                    self._changed.notify_all()

    def _gather(self) -> list[_Request]:
        """Those to be answered now, in the order in which they came."""
        end = time.monotonic() + self._wait_s
        while patience := self._patience():
            if not self._changed.wait(min(patience, end - time.monotonic())):
                break
        return [self._waiting.popleft() for _ in range(min(self._limit, len(self._waiting)))]

    def _patience(self) -> float:
        """Seconds to wait for whoever is expected next. Who comes just too late waits for a whole
        call; so long may all those together wait that are here."""
        if len(self._waiting) >= self._limit:
            return 0.0
        now, here = time.monotonic(), {id(request.session) for request in self._waiting}
        due = (pace.due for key, pace in self._paces.items() if key not in here)
        gain_s = self._took_s / (len(self._waiting) + 1)
        return gain_s if any(now <= at < now + gain_s for at in due) else 0.0

    def _note(self, batch: list[_Request]) -> None:
        now = time.monotonic()
        for request in batch:
            pace = self._paces.setdefault(id(request.session), _Pace(now))
            pace.answered = now

    def _answer(self, batch: list[_Request]) -> None:
        with self._turn:
            began = time.monotonic()
            if len(batch) == 1:
                batch[0].ask_alone(self._policy)
            elif failure := self._ask_together(batch):
                self._ask_each(batch, failure)
            self._took_s = time.monotonic() - began
        for request in batch:
            request.took_s = self._took_s

    def _ask_together(self, batch: list[_Request]) -> str:
        """What it raised, in words, with everything as it was before; "" where it raised nothing.
        The error itself would keep what the call had computed so far in memory."""
        asked = [request.observation for request in batch], [request.session for request in batch]
        try:
            chunks = self._policy.infer_batch(*asked)
        except BaseException as error:
            for request in batch:
                request.take_back()
            return one_line(error)
        for request, chunk in zip(batch, chunks, strict=True):
            request.actions = chunk
        return ""

    def _ask_each(self, batch: list[_Request], failure: str) -> None:
        said = f"a batch of {len(batch)} failed ({failure})"
        for request in batch:
            request.ask_alone(self._policy)
        if all(request.error is None for request in batch):
            self._limit = len(batch) // 2
            said += f"; alone each succeeds, so batches have at most {self._limit} from now on"
        with contextlib.suppress(OSError):  # a full disk must not cost an answer
            print(said, flush=True)
