"""The same actions every time, at no cost, or at ``BENCH_CALL_S`` seconds a call and
``BENCH_EACH_S`` for each simulator that it answers."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.policies.contract import Observation, Session


class Still:
    def __init__(self, chunk: int, call_s: float, each_s: float) -> None:
        self._actions = np.zeros((chunk, 20), np.float32)
        self._call_s, self._each_s = call_s, each_s
        self.concurrent = not call_s

    def infer(self, observation: Observation, session: Session) -> np.ndarray:
        return self.infer_batch([observation], [session])[0]

    def infer_batch(
        self, observations: Sequence[Observation], sessions: Sequence[Session]
    ) -> list[np.ndarray]:
        if self._call_s:
            time.sleep(self._call_s + self._each_s * len(sessions))
        return [self._actions] * len(sessions)


def get_model(usr_args: dict[str, Any]) -> Still:
    call_s, each_s = (float(os.environ.get(f"BENCH_{name}_S", "0")) for name in ("CALL", "EACH"))
    return Still(usr_args["chunk"], call_s, each_s)
