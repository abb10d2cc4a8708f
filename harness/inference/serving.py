"""What a model server answers: one conversation per connection, sessions kept apart.

A conversation begins with ``hello`` where the server has a token; until then frames are small. A
session belongs to its connection, begins at ``reset`` and ends at ``close``, at the next ``reset``
of its name, or with the connection.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harness.errors import RollpoolError
from harness.inference.batching import Batcher
from harness.inference.greeting import STRANGER_LIMIT, knows, refusal
from harness.policies.contract import Policy, Session
from harness.wire import Connection, ConnectionLost, DeadlinePassed, ProtocolError
from harness.wire.frames import FRAME_LIMIT

_SESSIONS_A_CONNECTION = 64


class Refused(RollpoolError):
    """A request that cannot be served; ``ends`` closes the conversation."""

    def __init__(self, asked: str, found: str, todo: str, ends: bool = False) -> None:
        super().__init__(asked, found, todo)
        self.ends = ends


class Service:
    """The policy, its lock and what all conversations share.

    Args:
        max_batch: sessions answered in one call, where the policy can.
        max_wait_s: the longest that one waits for others to be answered with.
    """

    #: A session whose client was killed ends when its conversation notices, which takes a moment.
    HANDOVER_S = 5.0

    def __init__(
        self, policy: Policy, identity: Mapping[str, Any], token: str,
        max_batch: int = 1, max_wait_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.policy, self.identity, self.token = policy, dict(identity), token
        self.clients = 0  # conversations that have said hello
        self._counting = threading.Lock()
        self._turn = threading.Condition(threading.Lock())
        self._owner: Session | None = None  # of a policy that keeps one episode's state itself
        self._batcher: Batcher | None = None
        if max_batch > 1 and policy.batches:
            self._batcher = Batcher(policy, self._turn, max_batch, max_wait_s)
        elif max_batch > 1:
            print(
                f"MODEL_MAX_BATCH={max_batch}: this policy answers one after the other", flush=True
            )

    def reset(self, session: Session) -> None:
        if not self.policy.resets:
            return  # nothing to wait for a turn for
        with self._turn:
            if not self._turn.wait_for(self._available, self.HANDOVER_S):
                raise Refused(
                    f"begin session {session.name!r}",
                    "this policy keeps one episode's state in itself and is in use",
                    "serve one simulator, or give the model infer(observation, session)",
                )
            self.policy.reset(session)
            self._owner = session if self.policy.exclusive else None

    def infer(self, observation: Mapping[str, Any], session: Session) -> tuple[np.ndarray, float]:
        """The actions, and the seconds that the policy took; the rest was a wait for others."""
        if self._batcher:
            return self._batcher.infer(observation, session)
        if self.policy.concurrent:
            return self._ask(observation, session)
        with self._turn:
            return self._ask(observation, session)

    def _ask(self, observation: Mapping[str, Any], session: Session) -> tuple[np.ndarray, float]:
        began = time.perf_counter()
        actions = self.policy.infer(observation, session)
        return actions, time.perf_counter() - began

    def count(self, change: int) -> int:
        """How many clients there were before this one came or went."""
        with self._counting:
            before, self.clients = self.clients, self.clients + change
        return before

    def end(self, session: Session | None) -> None:
        if self._batcher and session is not None:
            self._batcher.end(session)
        if not self.policy.exclusive:
            return  # nobody waits for it, and it waits for nobody's call
        with self._turn:
            if session is self._owner:
                self._owner = None
                self._turn.notify_all()

    def _available(self) -> bool:
        return self._owner is None


class Conversation:
    """One connection, from its first message to its end."""

    #: A client says hello within this, or goes.
    HELLO_DEADLINE_S = 20.0
    #: A message that has begun is whole within this.
    FRAME_DEADLINE_S = 60.0
    #: Silence between requests, in which a simulator executes a chunk or builds a scene.
    IDLE_S = 3600.0

    def __init__(self, service: Service, connection: Connection) -> None:
        self._service, self._connection = service, connection
        self._sessions: dict[str, Session] = {}
        self._handlers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "hello": self._hello, "reset": self._reset, "infer": self._infer, "close": self._close,
        }  # fmt: skip
        self._greeted = False
        self._known = not service.token
        if not self._known:
            connection.limit = STRANGER_LIMIT

    def run(self) -> None:
        """Answer until the client leaves, is silent too long, or sends what is no message."""
        try:
            while self._answer():
                pass
        except (ConnectionLost, DeadlinePassed):
            pass  # it left; its episode, if any, is the client's to report
        finally:
            self._service.count(-int(self._greeted))
            for session in self._sessions.values():
                self._service.end(session)

    def _answer(self) -> bool:
        """Serve one request; whether to go on."""
        try:
            request = self._connection.receive(
                self.IDLE_S if self._known else self.HELLO_DEADLINE_S
            )
        except (ConnectionLost, DeadlinePassed):
            raise
        except ProtocolError as error:
            self._connection.reply(refusal(error))
            return False
        try:
            reply = self._handle(request)
        except (Refused, ProtocolError) as error:
            self._connection.reply(refusal(error))
            return not getattr(error, "ends", False)
        except KeyboardInterrupt:
            raise  # of whoever started the server by hand
        except BaseException as error:  # a policy may raise anything; the row says what
            traceback.print_exc()
            self._connection.reply(refusal(error, "policy", traceback.format_exc()))
            return True
        self._connection.reply(reply)
        return True

    def _handle(self, request: Mapping[str, Any]) -> dict[str, Any]:
        kind, asked = request["type"], f"request {request['type'][:80]!r}"
        if kind != "hello" and not self._known:
            raise Refused(asked, "no hello came first", "say hello", ends=True)
        if kind not in self._handlers:
            raise Refused(asked, "unknown", f"use {', '.join(self._handlers)}")
        return self._handlers[kind](request)

    def _hello(self, request: Mapping[str, Any]) -> dict[str, Any]:
        identity, token = self._service.identity, self._service.token
        given = request.get("protocol")
        protocol = given if isinstance(given, int) else None  # a stranger's: it may be anything
        if protocol != identity["protocol"]:
            raise Refused(
                f"protocol {protocol}",
                f"this server speaks {identity['protocol']}",
                "use the same version of the toolkit on both sides",
                ends=True,
            )
        if token and not knows(token, request):
            raise Refused(
                "hello", "the token is not this run's", "check the host, port and run", ends=True
            )
        self._known, self._connection.limit = True, FRAME_LIMIT
        clients = self._service.count(int(not self._greeted))
        self._greeted = True
        return {"type": "hello", **identity, "clients": clients}

    def _reset(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name, episode = str(request.get("session", "")), request.get("episode") or {}
        if not isinstance(episode, dict):
            raise Refused("reset", "'episode' is no object", "send the episode's fields")
        self._service.end(self._sessions.pop(name, None))
        if len(self._sessions) >= _SESSIONS_A_CONNECTION:
            raise Refused(
                f"begin session {name!r}",
                f"{len(self._sessions)} are open on this connection",
                "close those that are done",
            )
        session = Session.begin(name, episode)
        self._service.reset(session)
        self._sessions[name] = session
        return {"type": "ok"}

    def _infer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = str(request.get("session", ""))
        if name not in self._sessions:
            raise Refused(f"infer in session {name!r}", "it was never begun", "send reset first")
        observation, asked = _observation(request.get("observation")), time.perf_counter()
        actions, infer_s = self._service.infer(observation, self._sessions[name])
        wait_s = time.perf_counter() - asked - infer_s
        return {"type": "actions", "actions": actions, "infer_s": infer_s, "wait_s": wait_s}

    def _close(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._service.end(self._sessions.pop(str(request.get("session", "")), None))
        return {"type": "ok"}


def _observation(sent: Any) -> dict[str, Any]:
    """With every key the contract names, or Refused."""
    if not isinstance(sent, dict) or not isinstance(sent.get("proprio"), np.ndarray):
        raise Refused(
            "infer", "an observation without proprio", "send images, proprio and instruction"
        )
    return {
        "images": {}, "state": {}, "instruction": "", "last_action": None, "expert": None, **sent,
    }  # fmt: skip
