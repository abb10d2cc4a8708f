"""openpi's own server and client: one observation out, one chunk of actions back."""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import time
from typing import Any

import numpy as np
from openpi_client.base_policy import BasePolicy
from openpi_client.websocket_client_policy import WebsocketClientPolicy
from openpi_server import WebsocketPolicyServer

from bench.subject import answer, seconds


class Still(BasePolicy):
    def infer(self, obs: dict[str, Any]) -> dict[str, Any]:
        return {"actions": np.zeros((30, 20), np.float32)}


def serve(port: int) -> None:
    WebsocketPolicyServer(Still(), "127.0.0.1", port).serve_forever()


class RoundTrips:
    """A server in a process of its own, and a client here."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        fork = multiprocessing.get_context("fork")
        fork.Process(target=serve, args=(port,), daemon=True).start()
        self._client = connected(port)
        pictures = np.ones((3, 480, 640, 3), np.uint8)
        self._seen: dict[str, Any] = {
            f"observation/image_{k}": picture for k, picture in enumerate(pictures)
        }
        self._seen |= {"observation/state": np.zeros(20, np.float32), "prompt": "put the cup in"}

    def median(self, count: int) -> float:
        """Seconds of a round trip, the median of so many."""
        return statistics.median(
            seconds(lambda: self._client.infer(self._seen)) for _ in range(count)
        )


def connected(port: int) -> WebsocketClientPolicy:
    """The client refuses to wait for a server that does not listen yet."""
    for _ in range(200):
        try:
            return WebsocketClientPolicy("127.0.0.1", port)
        except OSError:
            time.sleep(0.05)
    raise TimeoutError("openpi's server does not listen")


if __name__ == "__main__":
    trips = RoundTrips()
    answer({"median": trips.median})
