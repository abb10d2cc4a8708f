"""How a worker's simulators come to a model: a server of the worker's own, or one that comes by
itself; ``remote_server`` has those on other nodes.

Promises: a model of another run is never talked to; ``start`` returns with a model that answers, or
raises within its deadline; whatever of it is this worker's ends with ``close``.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from harness.errors import RollpoolError
from harness.runs import servers
from harness.runs.run import Run
from harness.workers.server_process import START_DEADLINE_S, ModelServerProcess
from harness.workers.simulator_process import SimulatorProcess

#: A simulator waits this much longer for an answer than the worker: who watches decides, and says
#: that it was a stall.
_LONGER_S = 30.0
#: Who waits for a model that comes by itself looks round this often: the run may end meanwhile.
_LOOK_S = 2.0
#: A process that dies closes its connections first.
_DYING_S = 0.5


class ModelLink(Protocol):
    """What plays the model's part for one simulator."""

    def alive(self) -> bool:
        """Whether an episode may begin; False before ``start``."""
        ...

    def start(self, sim: SimulatorProcess) -> None:
        """Make it so, or go on with it: call it until ``alive``. Raises ``RollpoolError``."""
        ...

    def address(self) -> dict[str, Any]:
        """Where the simulator finds it, with a session of its own for one episode."""
        ...

    def death(self) -> tuple[str, str] | None:
        """Of a process of ours that died: the kind of error that this is for an episode that was
        played on it, and its last words."""
        ...

    def broken(self) -> tuple[str, str] | None:
        """An episode ended in an error of the wire; as ``death``, where that turns out to be it."""
        ...

    def stalled(self) -> None:
        """It did not answer for too long."""
        ...

    def close(self) -> None: ...


def refuse_more_than_one(run: Run, served: Mapping[str, Any]) -> None:
    """A policy that says in its hello that it keeps one episode's state gets one simulator."""
    seats = run.settings["SIMS_PER_WORKER"]
    if seats > 1 and served["exclusive"]:
        raise RollpoolError(
            f"SIMS_PER_WORKER={seats}",
            f"policy {served['policy']!r} keeps one episode's state in itself",
            "set it to 1, or give the model infer(observation, session)",
        )


class OwnServer:
    """A model server process of this worker's own, on this node."""

    def __init__(self, run: Run, name: str, process: ModelServerProcess) -> None:
        self._run, self._name, self._process = run, name, process
        self._ended: tuple[str, str] | None = None  # why it was ended from here

    def alive(self) -> bool:
        return self._process.alive()

    def start(self, sim: SimulatorProcess) -> None:
        if not self._process.alive():
            self._ended = None
            served = self._process.start()
            where = (self._process.host, self._process.port)
            servers.publish(self._run.paths, self._name, "model", *where, self._run.id)
            refuse_more_than_one(self._run, served)

    def address(self) -> dict[str, Any]:
        everywhere = self._process.host in servers.EVERYWHERE
        host = "127.0.0.1" if everywhere else self._process.host
        return server_record(self._run, host, self._process.port, self._name)

    def death(self) -> tuple[str, str] | None:
        if self._process.alive():
            return None
        return self._ended or ("crash", str(self._process.died()))

    def broken(self) -> tuple[str, str] | None:
        if self._process.ends(_DYING_S):
            return self.death()
        # A policy that never returns holds it for ever, and the next episode would hang as well.
        self._end("crash", "another simulator's connection broke")
        return None

    def stalled(self) -> None:
        # Who waits with it, in one batch or for its turn, stalls as well.
        self._end("stall", "it did not answer another simulator")

    def _end(self, kind: str, why: str) -> None:
        self._ended = kind, f"the model server was ended: {why}"
        self._process.kill()

    def close(self) -> None:
        if self._process.port:
            servers.withdraw(self._run.paths, self._name)
        self._process.close()


class ComingModel:
    """Reversed roles: the simulator listens and the model comes, from another node
    (``MODEL_AS_CLIENT=1 rollpool serve``), or from a process of this worker's own."""

    def __init__(
        self, run: Run, name: str, own: ModelServerProcess | None,
        deadline_s: float = START_DEADLINE_S, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._run, self._name, self._own, self._deadline_s = run, name, own, deadline_s
        self._clock = clock
        self._met: SimulatorProcess | None = None
        self._waiting: SimulatorProcess | None = None  # for a model, since then
        self._since = 0.0

    def alive(self) -> bool:
        own = self._own is None or self._own.alive()
        return own and self._met is not None and self._met.alive()

    def start(self, sim: SimulatorProcess) -> None:
        if self._waiting is not sim:
            self._call(sim)
            self._waiting, self._since = sim, self._clock()
        words = sim.await_model(self.address(), _LOOK_S)
        if not words:
            self._met, self._waiting = sim, None
        elif self._own is not None and not self._own.alive():
            raise self._own.died()
        elif self._clock() - self._since > self._deadline_s:
            raise RollpoolError(
                f"a model for {self._name}", f"none for {self._deadline_s:.0f} s; at last: {words}",
                "see to the model server's log",
            )  # fmt: skip

    def _call(self, sim: SimulatorProcess) -> None:
        """Listen, and let models know where."""
        settings = self._run.settings
        where = sim.listen(
            settings["SIM_SERVER_HOST"] or "127.0.0.1", settings["SIM_SERVER_PORT"] or 0,
            self._run.token,
        )  # fmt: skip
        servers.publish(self._run.paths, self._name, "simulator", *where, self._run.id)
        if self._own is not None:
            if not self._own.alive():
                self._own.start()
            self._own.join(*where)

    def address(self) -> dict[str, Any]:
        """No address: a connection is there. Any model server of the run will do."""
        return server_record(self._run, "", 0, "")

    def death(self) -> tuple[str, str] | None:
        if self._own is None or self._own.alive():
            return None
        return "crash", str(self._own.died())

    def broken(self) -> None:
        self._met = None

    def stalled(self) -> None:
        self._met = None
        if self._own is not None:
            self._own.kill()

    def close(self) -> None:
        servers.withdraw(self._run.paths, self._name)
        if self._own is not None:
            self._own.close()


def server_record(run: Run, host: str, port: int, server: str) -> dict[str, Any]:
    """The ``server`` of ``SimulatorProcess.start_episode``, with a session of its own."""
    session = secrets.token_hex(8)
    return {
        "host": host, "port": port, "token": run.token, "session": session,
        "expect": expected(run, server), "answer_s": run.settings["STALL_TIMEOUT"] + _LONGER_S,
    }  # fmt: skip


def expected(run: Run, server: str) -> dict[str, Any]:
    """What the hello of a server of this run says: the run, what it evaluates, by which code (rows
    name one), and, where it is known, the name."""
    parts = ("policy", "checkpoint", "settings_hash", "code_hash")
    evaluated = {part: run.identity[part] for part in parts}
    return {"run": run.id, **evaluated, **({"server": server} if server else {})}
