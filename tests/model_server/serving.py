"""What the tests of the model server share: a server in a thread, and observations for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from harness.inference.model_client import ModelClient
from harness.inference.model_server import ModelServer, Settings
from harness.policies.adapt import Adapted
from harness.policies.contract import Policy
from harness.simulators.contract import Episode, Observation

DECLARED: dict[str, Any] = {"needs": [], "action_dim": 20, "chunk": 30}


def episode(seed: int = 1, **more: Any) -> Episode:
    fields = {"scene": "study", "task": "t", "task_config": "c", "instruction": "go", **more}
    return Episode(seed=seed, **fields)


def observation(proprio: float = 0.0) -> Observation:
    images = {"countertop": np.full((4, 6, 3), 7, np.uint8)}
    return Observation(images, np.full(20, proprio, np.float32), "go")


@contextmanager
def serving(model: Any, token: str = "secret", **settings: Any) -> Iterator[ModelServer]:
    """A server of ``model`` (or of a Policy) on a free port."""
    policy: Policy = model if hasattr(model, "exclusive") else Adapted(model, DECLARED)
    server = ModelServer(policy, Settings("policy/test", token=token, **settings))
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(10)
        assert not thread.is_alive()


def client(
    server: ModelServer, session: str = "s", token: str = "secret", **more: Any
) -> ModelClient:
    return ModelClient(server.host, server.port, token, session, 10, **more)
