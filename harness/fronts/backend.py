"""One foreign client's conversation with our model server, and how a front is started and ended."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.inference.model_client import ModelClient, Served
from harness.simulators.contract import Episode, Observation


@dataclass(frozen=True)
class Settings:
    """What a front is told, as one JSON object."""

    model: tuple[str, int]  # our model server
    token: str
    policy: str
    form: Mapping[str, Any]  # a deploy_policy.yml of the policy that is this wire's client
    host: str
    port: int
    key: str  # what a client must know, "" for nothing
    open: bool  # anybody who reaches the address may ask
    deadline_s: float  # of one inference

    @classmethod
    def read(cls, file: Path) -> Settings:
        values = json.loads(file.read_text(encoding="utf-8"))
        return cls(**{**values, "model": tuple(values["model"])})


class Backend:
    """Sessions of one client: what it says of an observation goes in, actions come out."""

    def __init__(self, settings: Settings) -> None:
        host, port = settings.model
        self._model = ModelClient(host, port, settings.token, "front", settings.deadline_s)
        self.hello = self._model.hello
        self._begun, self._calls = False, 0

    def begin(self) -> None:
        """The next inference is the first of an episode."""
        self._begun = False

    def infer(self, seen: Mapping[str, Any]) -> tuple[np.ndarray, Served]:
        """``((n, D) float32, what they took)`` for what ``policies.mapping.read`` found.

        The client does not say what it executed, so ``last_action`` is None.

        Raises:
            RemoteError: the policy raised, or another client has it for itself.
        """
        instruction = seen.get("instruction", "")
        if not self._begun:
            self._model.reset(Episode("", "", "", 0, instruction))
            self._begun, self._calls = True, 0
        proprio = seen.get("proprio", np.zeros(0, np.float32))
        observation = Observation(seen["images"], proprio, instruction, seen["state"])
        self._calls += 1
        return self._model.infer(self._calls - 1, observation, None, None)

    def close(self) -> None:
        self._model.close()


def settings_of(arguments: Sequence[str] | None) -> Settings:
    """``--settings FILE``, which is gone afterwards; the process now ends with its standard
    input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings", type=Path, required=True, help="JSON file of the settings")
    file = parser.parse_args(arguments).settings
    settings = Settings.read(file)
    file.unlink()  # the token in it is nobody else's
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    return settings


def refuse_strangers(settings: Settings) -> None:
    """A front listens on loopback, unless strangers are kept out or welcome."""
    if not (settings.host.startswith("127.") or settings.key or settings.open):
        raise RollpoolError(
            f"listen on {settings.host}",
            "anybody who reaches it could use the policy",
            "give --token-file where the wire has a key, --open, or listen on 127.0.0.1",
        )


def leave(code: int) -> None:
    """End the process, whatever thread still reads its standard input."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end_with_stdin() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)
