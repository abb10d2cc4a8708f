"""PyPI's openpi server around a policy whose prompt says how it shall misbehave.

upstream_server.py PORT
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from openpi_client.base_policy import BasePolicy
from openpi_server.websocket_policy_server import WebsocketPolicyServer


class Policy(BasePolicy):
    """Five actions, each the state's first four numbers, the sizes and the brightest pixels."""

    def infer(self, obs: dict[str, Any]) -> dict[str, Any]:
        image, wrist = obs["observation/image"], obs["observation/wrist_image"]
        assert image.dtype == wrist.dtype == np.uint8
        verb, _, rest = obs["prompt"].partition(" ")
        if verb == "raise":
            raise ValueError(rest)
        while verb == "await" and not Path(rest).exists():
            time.sleep(0.01)
        if verb == "forget":
            return {"states": np.zeros(1)}
        row = [*obs["observation/state"][:4], *image.shape[:2], image.max()]
        return {"actions": np.tile(np.array(row, np.float64), (5, 1))}


if __name__ == "__main__":
    WebsocketPolicyServer(
        Policy(), "127.0.0.1", int(sys.argv[1]), {"trained": "on nothing"}
    ).serve_forever()
