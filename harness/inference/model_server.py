"""The process around a policy: one model, loaded once, answering many simulators.

``python -m harness.inference.model_server --settings FILE [--channel FD]``, FILE being one JSON
object of ``Settings``.

Promises: sessions share the model and nothing else; a policy's exception is an
answer, with its traceback, and leaves the connection usable; a stranger (no token, another
protocol) learns nothing and costs little; the process ends when the channel closes, at once on
SIGTERM, and a connection whose client is silent too long is closed. Not promised: fairness
between simulators, or privacy of what crosses a network (the token keeps runs apart).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from harness.episodes.channel import Channel, ChannelClosed
from harness.errors import RollpoolError, one_line
from harness.inference.invariance import Keeping
from harness.inference.model_client import PROTOCOL
from harness.inference.serving import Conversation, Service
from harness.policies import Policy, fix_threads, load_policy
from harness.wire import Connection, connect

LOOPBACK = "127.0.0.1"
#: For a simulator that listens to take up a connection: it may be in the middle of an episode.
JOIN_DEADLINE_S = 20.0
#: Connections served at once; each simulator client has one.
MAX_CONNECTIONS = 256


@dataclass(frozen=True)
class Settings:
    """What a model server is told."""

    policy_dir: str
    usr_args: dict[str, Any] = field(default_factory=dict)  # see policies.load_policy
    knobs: dict[str, Any] = field(default_factory=dict)  # see policies.wrappers.wrap
    token: str = ""  # "" asks for none: on loopback alone
    host: str = LOOPBACK  # the address to listen on
    port: int = 0  # 0 = any free one
    threads: int = 1  # of torch
    policy: str = ""  # the policy's name; default: that of its folder
    checkpoint: Any = None  # told to clients as they stand
    settings_hash: str = ""
    code_hash: str = ""
    run: str = ""  # the run's id
    server: str = ""  # the name under which the run directory knows it
    max_batch: int = 1  # sessions answered in one call, where the policy can
    max_wait_ms: float = 0.0  # the longest that one of them waits for the others
    keeps: bool = False  # what it is asked, to be compared (``invariance``)
    connects: bool = False  # reversed roles: it listens nowhere, and is told where simulators do

    @classmethod
    def read(cls, path: Path) -> Settings:
        values = json.loads(path.read_text(encoding="utf-8"))
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise RollpoolError(
                f"model server settings {path}",
                f"unknown keys {', '.join(unknown)}",
                f"use {', '.join(sorted(known))}",
            )
        return cls(**values)


class ModelServer:
    """Listens from the start; serves after ``serve``."""

    def __init__(self, policy: Policy, settings: Settings) -> None:
        identity = _identity(policy, settings)
        batch = settings.max_batch, settings.max_wait_ms / 1000
        self._service = Service(policy, identity, settings.token, *batch)
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self.identity = identity
        self.host, self.port = "", 0
        if not settings.connects:
            self._listener = _listen(settings)
            self.host, self.port = self._listener.getsockname()[:2]

    def serve(self) -> None:
        """Accept until the process ends, or ``close``; one thread a connection."""
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return  # closed
            if self._free.acquire(blocking=False):
                threading.Thread(target=self._converse, args=(sock,), daemon=True).start()
            else:
                sock.close()

    def join(self, host: str, port: int, patience_s: float = JOIN_DEADLINE_S) -> None:
        """Reversed roles: serve the simulator that listens at ``host:port`` until it leaves.

        Raises:
            RollpoolError: nobody is there within ``patience_s``, or it refuses this run's token.
        """
        with connect(host, port, patience_s) as connection:
            greeting = {"type": "join", "protocol": PROTOCOL, "token": self._service.token}
            connection.ask(greeting, "ok")
            connection.deadline_s = Conversation.FRAME_DEADLINE_S
            Conversation(self._service, connection).run()

    def compare(self, batch: int) -> dict[str, Any]:
        """See ``invariance``; of a server that keeps what it is asked."""
        assert isinstance(self._service.policy, Keeping), "it keeps nothing"
        return self._service.policy.compare(batch)

    def close(self) -> None:
        # Closing alone would leave a thread that waits in accept waiting.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _converse(self, sock: socket.socket) -> None:
        try:
            with Connection(sock, Conversation.FRAME_DEADLINE_S) as connection:
                Conversation(self._service, connection).run()
        except Exception:  # a defect here ends one conversation, not the others
            traceback.print_exc()
        finally:
            self._free.release()


def say_so(server: ModelServer) -> None:
    print(f"serving {server.identity['policy']} on {server.host}:{server.port}", flush=True)


def run(
    settings: Settings,
    channel: Channel | None,
    listening: Callable[[ModelServer], None] = say_so,
) -> None:
    """Load, listen, say so on ``channel`` (else call ``listening``), and serve to the end. One that
    connects without a channel ends when ``listening`` returns, which has it ``join``."""
    policy = load_policy(Path(settings.policy_dir), settings.usr_args, settings.knobs)
    policy = Keeping(policy) if settings.keeps else policy
    fix_threads(settings.threads)
    # What a model's libraries did to SIGTERM must not delay the end.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    server = ModelServer(policy, settings)
    if channel is None:
        listening(server)
    else:
        ready = {"host": server.host, "port": server.port, "identity": server.identity}
        channel.send({"say": "ready", **ready})
        threading.Thread(target=_end_with, args=(channel, server), daemon=True).start()
    if not settings.connects:
        server.serve()
    elif channel is not None:
        threading.Event().wait()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="model_server", description=__doc__.split("\n")[0])
    parser.add_argument("--settings", type=Path, required=True, help="JSON file of the settings")
    parser.add_argument("--channel", type=int, help="inherited socket to the worker")
    given = parser.parse_args(arguments)
    channel = None if given.channel is None else Channel.inherited(given.channel)
    try:
        run(Settings.read(given.settings), channel)
    except RollpoolError as error:
        return refuse(error, channel)
    return 0


def refuse(error: RollpoolError, channel: Channel | None) -> int:
    """Say why there is no server; the exit code."""
    if error.__cause__ is not None:
        traceback.print_exception(error.__cause__)
    print(f"model server: error: {error}", file=sys.stderr, flush=True)
    if channel is not None:
        channel.send({"say": "refused", "message": str(error)})
    return error.exit_code


def _identity(policy: Policy, settings: Settings) -> dict[str, Any]:
    return {
        "protocol": PROTOCOL,
        "run": settings.run,
        "server": settings.server,
        "policy": settings.policy or Path(settings.policy_dir).name,
        "checkpoint": settings.checkpoint,
        "settings_hash": settings.settings_hash,
        "code_hash": settings.code_hash,
        "action_kind": policy.action_kind,
        "action_dim": policy.action_dim,
        "chunk": policy.chunk,
        "needs": list(policy.needs),
        "cameras": list(policy.cameras),
        "exclusive": policy.exclusive,
        "batches": policy.batches,
    }


def _listen(settings: Settings) -> socket.socket:
    host, port = settings.host, settings.port
    address = f"{host}:{port}"
    try:
        # SO_REUSEADDR (set by create_server): a port is free as soon as its last server ended.
        listener = socket.create_server((host, port), backlog=MAX_CONNECTIONS)
    except OSError as error:
        raise RollpoolError(
            f"listen on {address}", str(error), "choose another port, or 0 for any free one"
        ) from None
    if not settings.token and not listener.getsockname()[0].startswith("127."):
        listener.close()
        raise RollpoolError(
            f"listen on {address}", "no token was given", "give one, or listen on 127.0.0.1"
        )
    return listener


def _end_with(channel: Channel, server: ModelServer) -> None:
    """End the process when the worker is gone, whatever its threads are doing; until then join the
    simulators that it names, and compare what it asks."""
    speaking = threading.Lock()

    def join(host: str, port: int) -> None:
        words = "it left"
        try:
            server.join(host, port)
        except RollpoolError as error:
            words = str(error)
        with speaking, contextlib.suppress(ChannelClosed):
            channel.send({"say": "left", "host": host, "port": port, "words": words})

    try:
        while True:
            message = channel.receive(None)
            if message and message["do"] == "join":
                address = (message["host"], message["port"])
                threading.Thread(target=join, args=address, daemon=True).start()
            elif message and message["do"] == "compare":
                channel.send(_compared(server, message["batch"]))
    except ChannelClosed:
        os._exit(0)


def _compared(server: ModelServer, batch: int) -> dict[str, Any]:
    try:
        return {"say": "compared", "found": server.compare(batch)}
    except BaseException as error:  # the policy's: it may raise anything
        traceback.print_exc()
        return {"say": "refused", "message": one_line(error)}


if __name__ == "__main__":
    sys.exit(main())
