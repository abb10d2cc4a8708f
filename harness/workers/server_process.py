"""The worker's handle on its model server process.

Promises: ``start`` returns with the server listening, or raises within its deadline with the
server's own words; no process of its group outlives ``close``. The run's token reaches the server
in a private file that is gone once it has been read, never on a command line.
"""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.episodes.channel import Channel, ChannelClosed
from harness.errors import RollpoolError
from harness.workers import children

#: Reading the weights of a large model from a shared filesystem.
START_DEADLINE_S = 1800.0


class ModelServerProcess:
    """One model server at a time; ``start`` again after it died.

    Args:
        python: the model's interpreter.
        policy_dir: the folder with ``deploy_policy.py``.
        usr_args, knobs: as ``harness.policies.load_policy`` takes them.
        token: the run's secret.
        log: where everything it prints is appended.
        threads: of its numerical libraries; results may differ between counts.
        identity: ``run server policy checkpoint settings_hash code_hash``, as it will tell its
            clients.
        host: the address it listens on; default: loopback.
        max_batch, max_wait_ms: of simulators that are answered together.
        keeps: it keeps what it is asked, for ``compare``.
        connects: reversed roles: it listens nowhere and goes where ``join`` sends it.
        env: the base of its environment (default: this process's).

    Attributes:
        host, port: where it listens, after ``start``.
        identity: what it says it serves (the ``hello`` of DESIGN.md), after ``start``.
    """

    def __init__(
        self,
        python: str | Path,
        policy_dir: Path,
        usr_args: Mapping[str, Any],
        knobs: Mapping[str, Any],
        token: str,
        log: Path,
        *,
        threads: int = 1,
        identity: Mapping[str, Any] | None = None,
        host: str = "",
        max_batch: int = 1,
        max_wait_ms: float = 0.0,
        keeps: bool = False,
        connects: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._python, self._log, self._env = str(python), log, children.environment(env, threads)
        self._what = f"model server of policy {policy_dir.name!r}"
        self._settings: dict[str, Any] = {
            **(identity or {}),
            "policy_dir": str(policy_dir),
            "usr_args": dict(usr_args),
            "knobs": dict(knobs),
            "token": token,
            "threads": threads,
            "max_batch": max_batch,
            "max_wait_ms": max_wait_ms,
            "keeps": keeps,
            "connects": connects,
        }
        if host:
            self._settings["host"] = host
        self._proc: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self.host, self.port = "", 0
        self.identity: dict[str, Any] = {}

    def start(self, deadline_s: float = START_DEADLINE_S) -> dict[str, Any]:
        """Start, wait until it listens, and return its identity.

        Raises:
            ProcessDied: it ended by itself.
            RollpoolError: it refused (no such policy, port in use, ...), or took too long.
        """
        self.kill()
        with tempfile.TemporaryDirectory(prefix="rollpool-") as private:
            settings = Path(private) / "model_server.json"
            settings.touch(mode=0o600)
            settings.write_text(json.dumps(self._settings))
            self._spawn(settings)
            ready = self._await_ready(deadline_s)
        self.host, self.port, self.identity = ready["host"], ready["port"], ready["identity"]
        return self.identity

    def join(self, host: str, port: int) -> None:
        """Send it to a simulator that listens there; ``left`` tells when it is back. Raises
        ``ProcessDied``."""
        self._send({"do": "join", "host": host, "port": port})

    def compare(self, batch: int, deadline_s: float) -> dict[str, Any]:
        """See ``inference.invariance.Keeping.compare``. Raises ``RollpoolError``."""
        self._send({"do": "compare", "batch": batch})
        message = self._receive(deadline_s)
        if message is None:
            found = f"no answer within {deadline_s:.0f} s"
        elif message["say"] == "compared":
            compared: dict[str, Any] = message["found"]
            return compared
        else:
            found = f"asked in batches of {batch}, it raised {message['message']}"
        raise RollpoolError(self._what, found, f"its log is {self._log}")

    def left(self, timeout_s: float) -> tuple[tuple[str, int], str] | None:
        """The address of a simulator that it has left, and why; None if none within the time.

        Raises:
            ProcessDied: it has ended.
        """
        message = self._receive(timeout_s)
        if message is None:
            return None
        return (message["host"], message["port"]), message["words"]

    def alive(self) -> bool:
        return self._proc is not None and not children.exited(self._proc)

    def ends(self, within_s: float) -> bool:
        """Whether it does, or has done so."""
        return self._proc is not None and children.wait_exited(self._proc, within_s)

    def died(self) -> children.ProcessDied:
        """The error for a server that is not alive any more; nothing of it is left."""
        assert self._proc is not None, "it was never started"
        error = children.death(self._proc, self._what, self._log)
        self.kill()
        return error

    def kill(self) -> None:
        """End it now. Harmless when it has ended, or was never started."""
        self._end(0)

    def close(self, grace_s: float = 5.0) -> None:
        """Let it end, and kill it if it does not."""
        self._end(grace_s)

    def __enter__(self) -> ModelServerProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _spawn(self, settings: Path) -> None:
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        with theirs:
            argv = children.module(self._python, "harness.inference.model_server")
            argv += ["--settings", str(settings), "--channel", str(theirs.fileno())]
            self._proc = children.spawn(argv, self._log, self._env, [theirs.fileno()])

    def _await_ready(self, deadline_s: float) -> dict[str, Any]:
        message = self._receive(deadline_s)
        if message is not None and message["say"] == "ready":
            return message
        self.kill()
        if message is None:
            found = f"not ready within {deadline_s:.0f} s, so it was killed"
        else:
            found = message["message"]
        raise RollpoolError(self._what, found, f"its log is {self._log}")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._channel is not None, "start it first"
        try:
            self._channel.send(message)
        except ChannelClosed as closed:
            raise self.died() from closed

    def _receive(self, timeout_s: float) -> dict[str, Any] | None:
        assert self._channel is not None and self._proc is not None, "start it first"
        try:
            return children.receive(self._channel, self._proc, timeout_s)
        except ChannelClosed as closed:
            raise self.died() from closed

    def _end(self, grace_s: float) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._proc is not None:
            children.end(self._proc, grace_s)
