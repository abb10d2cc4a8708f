"""Answer clients of RoboTwin's classic policy server with any of our policies.

A client calls methods by name. Which ones exist, what their arguments are and which one answers
with actions stands in the form, a ``deploy_policy.yml`` of the policy ``robotwin_tcp``: nothing
else can be called. Every client has a session of its own; an error is an answer, with its
traceback, and leaves the connection usable.
"""

from __future__ import annotations

import socket
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import RollpoolError, one_line
from harness.fronts.backend import Backend, Settings, leave, refuse_strangers, settings_of
from harness.policies import mapping
from harness.wire import ConnectionLost, DeadlinePassed, ProtocolError, RemoteError, classic
from harness.wire.calls import unpacked
from harness.wire.frames import FRAME_LIMIT, Deadline, Inbox, send_frame

#: A frame that has begun is whole within this; silence between calls is longer, a scene is built.
FRAME_S, IDLE_S = 60.0, 3600.0


class Methods:
    """What one client may call."""

    def __init__(self, backend: Backend, form: Mapping[str, Any]) -> None:
        self._backend = backend
        self._resets = names(form["reset"])
        calls = [*form.get("begin", []), *form["infer"]]
        self._templates = {call["method"]: call.get("arguments", []) for call in calls}
        self._last = form["infer"][-1]["method"]
        self._seen: dict[str, Any] = {"images": {}, "state": {}}

    def call(self, method: Any, arguments: Sequence[Any]) -> Any:
        """``(n, D)`` actions of the method that infers, None of another.

        Raises:
            RollpoolError: no such method, or arguments that are not the form's.
        """
        if not isinstance(method, str):
            method = ""
        if method in self._resets:
            self._backend.begin()
            self._seen = {"images": {}, "state": {}}
            return None
        if method not in self._templates:
            known = ", ".join([*self._resets, *self._templates])
            raise RollpoolError(f"method {method[:80]!r}", "no such method", f"call {known}")
        template = self._templates[method]
        if len(arguments) != len(template):
            raise RollpoolError(
                f"{method} of {len(template)} arguments", f"{len(arguments)} came", "see the form"
            )
        found = mapping.read(template, arguments)
        for part in ("images", "state"):
            self._seen[part] |= found.pop(part)
        self._seen |= found
        return self._backend.infer(self._seen)[0] if method == self._last else None


def converse(sock: socket.socket, settings: Settings) -> None:
    """Answer one client until it leaves or sends what is no message."""
    with sock:
        try:
            backend = Backend(settings)
        except RollpoolError as error:
            print(f"robotwin-tcp front: {error}", file=sys.stderr, flush=True)
            return
        methods, inbox = Methods(backend, settings.form), Inbox(sock)
        try:
            while True:
                idle = Deadline(IDLE_S, "the next call")
                # No name for the payload: its memory would not be free for the next one.
                reply = classic.dump(answer(methods, inbox.whole(FRAME_LIMIT, idle, FRAME_S)))
                send_frame(sock, reply, Deadline(FRAME_S, "the answer"))
        except (ConnectionLost, DeadlinePassed):
            pass  # it left
        except ProtocolError as error:
            print(f"robotwin-tcp front: {error}", file=sys.stderr, flush=True)
        finally:
            backend.close()


def answer(methods: Methods, payload: Any) -> dict[str, Any]:
    """The reply to one frame, an error included."""
    try:
        request = classic.load(payload)
        if not isinstance(request, dict) or "cmd" not in request:
            raise RollpoolError("a call", "no 'cmd' in it", "send {cmd, obs}")
        return {"res": methods.call(request["cmd"], unpacked(request.get("obs")))}
    except RemoteError as error:
        return {"error": error.message, "traceback": error.traceback}
    except Exception as error:  # of arguments that are a client's: they may be anything
        return {"error": one_line(error), "traceback": traceback.format_exc()}


def names(value: Any) -> list[str]:
    """``reset`` of a form: one method's name or several."""
    return [value] if isinstance(value, str) else list(value)


def main(arguments: Sequence[str] | None = None) -> int:
    settings = settings_of(arguments)
    try:
        if settings.key:
            raise RollpoolError("a key", "the classic wire has none", "leave --token-file out")
        for call in [*settings.form.get("begin", []), *settings.form["infer"]]:
            mapping.check(call.get("arguments", []))
        refuse_strangers(settings)
        # SO_REUSEADDR is set: a port is free as soon as its last server has ended.
        listener = socket.create_server((settings.host, settings.port))
    except (RollpoolError, OSError) as error:
        print(f"robotwin-tcp front: error: {error}", file=sys.stderr, flush=True)
        return 2
    host, port = listener.getsockname()[:2]
    print(f"serving {settings.policy} to classic clients on {host}:{port}", flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=converse, args=(sock, settings), daemon=True).start()


if __name__ == "__main__":
    leave(main())
