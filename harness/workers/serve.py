"""A model server without a simulator: a node's model, for simulators on other nodes.

Promises: it serves until nothing of the run is left or a signal comes, starts again after a death,
and gives up after several in a row; where it listens is published in the run and withdrawn at the
end. With ``MODEL_AS_CLIENT=1`` it goes to every simulator that the run publishes, or to the one
named by ``SIM_SERVER_HOST`` and ``SIM_SERVER_PORT``, and comes back when a connection broke.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import FrameType

from harness.errors import EXIT_OK, RollpoolError
from harness.leases.heartbeat import WorkerId
from harness.leases.joining import anything_left
from harness.runs import servers
from harness.runs.run import Run
from harness.workers import chosen_model
from harness.workers.children import ProcessDied
from harness.workers.stopping import handled

_POLL_S = 0.25
#: Between two looks at who listens, and for a simulator that left to be there again.
_LOOK_S = 1.0
#: A server that dies this often before it served for a minute will do so again.
_DEATHS, _SERVED_S = 3, 60.0

Say = Callable[[str], None]


def serve(run: Run, say: Say) -> int:
    """Serve the run's policy; returns the exit code: 0, or 128 + n after signal n.

    Raises:
        RollpoolError: the server cannot start, or dies again and again.
    """
    server = ServingNode(run, say)
    with handled(server.stop):
        try:
            return server.loop()
        finally:
            server.close()


class ServingNode:
    """One model server process, published under a name of its own."""

    def __init__(self, run: Run, say: Say) -> None:
        self.name = WorkerId.new()
        self._run, self._say = run, say
        self._process = chosen_model.process(run, self.name)
        self._connects = bool(run.settings["MODEL_AS_CLIENT"])
        self._joined: set[tuple[str, int]] = set()
        self._signal: int | None = None
        self._deaths, self._started = 0, time.monotonic()
        self._looked = time.monotonic()

    def loop(self) -> int:
        """Until nothing is left or a signal."""
        interval, asked = self._run.settings["LEASE_TTL"], time.monotonic()
        if not anything_left(self._run):
            self._say("nothing was left to run")
            return EXIT_OK
        while self._signal is None:
            if not self._process.alive():
                self._start()
            if time.monotonic() - asked >= interval:
                if not anything_left(self._run):
                    self._say("nothing is left to run")
                    return EXIT_OK
                asked = time.monotonic()
            self._wait()
        return 128 + self._signal

    def stop(self, number: int, frame: FrameType | None) -> None:
        self._signal = number

    def close(self) -> None:
        """Withdraw and end."""
        if not self._connects and self._process.port:
            servers.withdraw(self._run.paths, self.name)
        self._process.close()

    def _start(self) -> None:
        now = time.monotonic()
        self._deaths = 0 if now - self._started > _SERVED_S else self._deaths + 1
        if self._deaths > _DEATHS:
            raise RollpoolError(
                f"model server {self.name}", f"it died {_DEATHS} times in a row",
                f"see {self._run.paths.log(self.name, 'model')}",
            )  # fmt: skip
        self._process.start()
        self._started, self._joined = time.monotonic(), set()
        where = (self._process.host, self._process.port)
        if self._connects:
            self._say(f"{self.name} goes to simulators")
        else:
            servers.publish(self._run.paths, self.name, "model", *where, self._run.id)
            self._say(f"{self.name} serves on {where[0]}:{where[1]}")

    def _wait(self) -> None:
        try:
            self._look()
        except ProcessDied as died:
            self._say(str(died))

    def _look(self) -> None:
        """What the server says for a while, and who is there for it to go to."""
        if left := self._process.left(_POLL_S):
            address, words = left
            self._joined.discard(address)
            self._say(f"simulator {address[0]}:{address[1]}: {words}")
        if self._connects and time.monotonic() - self._looked >= _LOOK_S:
            self._looked = time.monotonic()
            for address in self._simulators() - self._joined:
                self._process.join(*address)
                self._joined.add(address)

    def _simulators(self) -> set[tuple[str, int]]:
        host, port = (self._run.settings[f"SIM_SERVER_{part}"] for part in ("HOST", "PORT"))
        if host and port:
            return {(host, port)}
        found = servers.published(self._run.paths, "simulator")
        there = [s for s in found if not host or host in (s.host, s.node)] or found
        return {(host or server.host, server.port) for server in there}
