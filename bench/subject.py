"""A process that is measured from outside: it answers requests, one at a time.

``Subject`` is the side that measures; ``answer`` the side that is asked, which may run in any
Python: standard library alone. Promises: a subject ends with the process that started it; every
wait has a deadline.
"""

from __future__ import annotations

import argparse
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.episodes.channel import Channel, ChannelClosed
from harness.errors import RollpoolError
from harness.workers import children

DEADLINE_S = 600.0


class Subject:
    """``python -m module`` until ``close``; its log and its temporary files are in ``folder``."""

    def __init__(
        self, python: str | Path, module: str, folder: Path, *arguments: str, **env: str
    ) -> None:
        self._log, self._module = folder / f"{module}.log", module
        ours, theirs = socket.socketpair()
        descriptor = theirs.fileno()
        command = children.module(python, module, "--channel", str(descriptor), *arguments)
        self._process = children.spawn(
            command,
            self._log,
            children.environment({**os.environ, "TMPDIR": str(folder), **env}),
            (descriptor,),
        )
        theirs.close()
        self._channel = Channel(ours)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, do: str, deadline_s: float = DEADLINE_S, **request: Any) -> Any:
        """What the subject's ``do`` returned. Raises ``RollpoolError`` where nothing came."""
        self.begin(do, **request)
        return self.await_answer(deadline_s)

    def begin(self, do: str, **request: Any) -> None:
        """Ask, and go on with something else."""
        self._channel.send({"do": do, **request})

    def await_answer(self, deadline_s: float = DEADLINE_S) -> Any:
        try:
            reply = children.receive(self._channel, self._process, deadline_s)
        except ChannelClosed:
            raise children.death(self._process, self._module, self._log) from None
        if reply is None:
            raise RollpoolError(
                self._module, f"no answer within {deadline_s:.0f} s", f"see {self._log}"
            )
        return reply["answer"]

    def close(self) -> None:
        children.end(self._process, grace_s=0)
        self._channel.close()

    def __enter__(self) -> Subject:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def answer(
    requests: Mapping[str, Callable[..., Any]], parser: argparse.ArgumentParser | None = None
) -> None:
    """Be a subject: call what is asked for, say what it returned, until nobody asks any more."""
    channel = Channel.inherited(arguments(parser).channel)
    try:
        while (request := channel.receive(None)) is not None:
            channel.send({"answer": requests[request.pop("do")](**request)})
    except ChannelClosed:
        return


def arguments(parser: argparse.ArgumentParser | None = None) -> argparse.Namespace:
    parser = parser or argparse.ArgumentParser()
    parser.add_argument("--channel", type=int, required=True)
    return parser.parse_args()


def seconds(call: Callable[[], object]) -> float:
    """How long ``call`` takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
