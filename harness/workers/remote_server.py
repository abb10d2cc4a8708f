"""Model servers on other nodes (``rollpool serve``), and which of them a simulator plays on.

Promises: the least loaded of those that answer is taken, and one that died, broke a connection or
hung is taken again only after ``SHUNNED_S`` or where no other answers, so that the simulators of a
server that is lost go on with the others. Nothing here makes the worker wait: looking for servers
happens in a thread. A server of another run is never talked to.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.errors import RollpoolError
from harness.inference.model_client import ModelClient
from harness.runs import servers
from harness.runs.run import Run
from harness.runs.servers import Server
from harness.workers.model_link import expected, refuse_more_than_one, server_record
from harness.workers.server_process import START_DEADLINE_S
from harness.workers.simulator_process import SimulatorProcess

SHUNNED_S = 600.0
_CONNECT_S, _GREETING_S, _LOOK_S = 1.0, 5.0, 1.0


@dataclass(frozen=True)
class Place:
    """A server, and the host by which this node reaches it."""

    host: str
    server: Server


class Look(threading.Thread):
    """Greets every server that is published, once.

    Attributes:
        over: when it was, by ``clock``.
        hellos: of each that answers.
        refusals: why the others are not to be used.
    """

    def __init__(self, run: Run, hosts: list[str], clock: Callable[[], float]) -> None:
        super().__init__(name="looking for model servers", daemon=True)
        self._run, self._hosts, self._clock = run, hosts, clock
        self.over = clock()
        self.hellos: dict[Place, dict[str, Any]] = {}
        self.refusals: list[str] = []

    def run(self) -> None:
        for place in self._places():
            try:
                client = ModelClient(
                    place.host, place.server.port, self._run.token, "greeting", _GREETING_S,
                    expect=expected(self._run, place.server.name), connect_s=_CONNECT_S,
                )  # fmt: skip
            except RollpoolError as error:
                self.refusals.append(str(error))
                continue
            client.close()
            self.hellos[place] = client.hello
        self.over = self._clock()

    def _places(self) -> list[Place]:
        everywhere = servers.published(self._run.paths, "model")
        there = [
            Place(host, server)
            for host in self._hosts for server in everywhere if host in (server.host, server.node)
        ]  # fmt: skip
        # A host may be given by an address under which nobody published; the hello decides.
        return there or [Place(host, server) for host in self._hosts for server in everywhere]


class Choice:
    """The servers of ``MODEL_SERVER_HOST``, as the simulators of one worker share them."""

    def __init__(self, run: Run, worker: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.hosts = [host.strip() for host in run.settings["MODEL_SERVER_HOST"].split(",")]
        self._run, self._worker = run, worker
        self._look: Look | None = None
        self._refusals: list[str] | None = None  # of the last look that is over
        self._taken: Counter[Place] = Counter()
        self._shunned: dict[Place, float] = {}

    def take(self) -> Place | None:
        """The best that answers; None while that is not known, or none does.

        Raises:
            RollpoolError: its policy can have one simulator, and this worker has more.
        """
        if self._look is not None and not self._look.is_alive():
            self._refusals = self._look.refusals
        if self._look is None or not self._fresh(self._look):
            self._look = Look(self._run, self.hosts, self.clock)
            self._look.start()
        if self._look.is_alive() or not self._look.hellos:
            return None
        best = min(self._look.hellos, key=self._rank)
        refuse_more_than_one(self._run, self._look.hellos[best])
        self._taken[best] += 1
        return best

    def give_back(self, place: Place, shun: bool) -> None:
        self._taken[place] -= 1
        if shun:
            self._shunned[place] = self.clock()
            self._look = None  # what it found is out of date

    def _fresh(self, look: Look) -> bool:
        return look.is_alive() or self.clock() - look.over < _LOOK_S

    def refusals(self) -> str:
        """Why none is to be used, in words; "" while nobody has been asked."""
        if self._refusals is None:
            return ""
        return "; ".join(self._refusals) or "none is published"

    def _rank(self, place: Place) -> tuple[bool, int, int]:
        """Equal ones in an order that differs between workers, so that those who come at once do
        not all take the same."""
        assert self._look is not None
        shunned = self.clock() - self._shunned.get(place, -SHUNNED_S) < SHUNNED_S
        load = self._look.hellos[place].get("clients", 0) + self._taken[place]
        return shunned, load, hash((self._worker, place.server.name))


class RemoteServer:
    """What plays the model's part for one simulator."""

    def __init__(self, run: Run, choice: Choice, deadline_s: float = START_DEADLINE_S) -> None:
        self._run, self._choice, self._deadline_s = run, choice, deadline_s
        self._place: Place | None = None
        self._waits_since: float | None = None
        self._said = ""

    def alive(self) -> bool:
        return self._place is not None

    def start(self, sim: SimulatorProcess) -> None:
        now = self._choice.clock()
        self._waits_since = now if self._waits_since is None else self._waits_since
        self._place = self._choice.take()
        waited_s = now - self._waits_since
        if self._place is not None:
            self._waits_since, self._said = None, ""
            return
        why = self._choice.refusals()
        if waited_s >= self._deadline_s:
            found = f"none answers for {self._deadline_s:.0f} s ({why})"
            raise RollpoolError(self._what, found, _ADVICE)
        if waited_s >= _LOOK_S and why != self._said:
            self._said = why
            print(
                f"rollpool: waiting up to {self._deadline_s:.0f} s for {self._what} ({why}); "
                f"{_ADVICE}", file=sys.stderr, flush=True,
            )  # fmt: skip

    def address(self) -> dict[str, Any]:
        assert self._place is not None, "start it first"
        server = self._place.server
        return server_record(self._run, self._place.host, server.port, server.name)

    def death(self) -> tuple[str, str] | None:
        return None

    def broken(self) -> None:
        self._leave(shun=True)

    def stalled(self) -> None:
        self._leave(shun=True)

    def close(self) -> None:
        self._leave(shun=False)

    def _leave(self, shun: bool) -> None:
        if self._place is not None:
            self._choice.give_back(self._place, shun)
            self._place = None

    @property
    def _what(self) -> str:
        hosts = " or ".join(self._choice.hosts)
        return f"a model server of run {self._run.paths.name!r} on {hosts}"


_ADVICE = "start one there: MODEL_SERVER_BIND=0.0.0.0 rollpool serve RUN"
