"""Answer clients of openpi: websocket, msgpack, arrays as openpi packs them.

Runs where ``websockets``, ``msgpack`` and ``openpi_client`` are. Promises: the same bytes as
openpi's own server for metadata, answers, errors (a traceback as text, then close 1011) and
``GET /healthz``, which answers while the policy thinks; every client has a session of its own. The
wire has no word for the start of an episode: one begins with a connection, with another prompt, and
where an observation has ``reset: true``.
"""

from __future__ import annotations

import functools
import http
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from openpi_client import msgpack_numpy
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from harness.errors import RollpoolError
from harness.fronts.backend import Backend, Settings, leave, refuse_strangers, settings_of
from harness.policies import mapping
from harness.wire import RemoteError
from harness.wire.frames import FRAME_LIMIT

_RESET = "reset"
#: websocket's "internal error", which openpi's clients know.
INTERNAL_ERROR = 1011


def main(arguments: Sequence[str] | None = None) -> int:
    settings = settings_of(arguments)
    try:
        mapping.check(settings.form.get("observation"))
        refuse_strangers(settings)
        server = serve(
            functools.partial(converse, settings=settings),
            settings.host,
            settings.port,
            compression=None,
            max_size=FRAME_LIMIT,
            process_request=functools.partial(before_upgrade, settings=settings),
            # A client that computes answers no pings; its connection tells when it is gone.
            ping_interval=None,
        )
    except (RollpoolError, OSError) as error:
        print(f"openpi front: error: {error}", file=sys.stderr, flush=True)
        return 2
    host, port = server.socket.getsockname()[:2]
    print(f"serving {settings.policy} to openpi clients on {host}:{port}", flush=True)
    server.serve_forever()
    return 0


def before_upgrade(
    connection: ServerConnection, request: Request, settings: Settings
) -> Response | None:
    """``/healthz`` for anybody; a websocket for who knows the key."""
    if request.path == "/healthz":
        return connection.respond(http.HTTPStatus.OK, "OK\n")
    if settings.key and request.headers.get("Authorization") != f"Api-Key {settings.key}":
        return connection.respond(http.HTTPStatus.UNAUTHORIZED, "another Api-Key\n")
    return None


def converse(connection: ServerConnection, settings: Settings) -> None:
    """Answer one client until it leaves, or something went wrong."""
    backend = None
    try:
        backend = Backend(settings)
        connection.send(msgpack_numpy.packb(metadata(backend.hello)))
        answer(connection, backend, settings.form["observation"])
    except ConnectionClosed:
        pass  # it left
    except Exception as error:  # openpi's client raises what this text says
        text = error.traceback if isinstance(error, RemoteError) else ""
        connection.send(text or traceback.format_exc())
        connection.close(INTERNAL_ERROR, "see the traceback in the frame before")
    finally:
        if backend is not None:
            backend.close()


def answer(connection: ServerConnection, backend: Backend, template: Any) -> None:
    """One observation after the other, for ever."""
    prompt, before_s = None, None
    while True:
        received = connection.recv()
        started = time.monotonic()
        observation = msgpack_numpy.unpackb(received)
        seen = mapping.read(template, observation)
        if observation.get(_RESET) or seen.get("instruction") != prompt:
            backend.begin()
            prompt = seen.get("instruction")
        actions, served = backend.infer(seen)
        timing = {"infer_ms": served.infer_s * 1000}
        if before_s is not None:
            timing["prev_total_ms"] = before_s * 1000
        connection.send(msgpack_numpy.packb({"actions": actions, "server_timing": timing}))
        before_s = time.monotonic() - started


def metadata(hello: Mapping[str, Any]) -> dict[str, Any]:
    """What a client is told of the policy."""
    told = ("policy", "checkpoint", "action_kind", "action_dim", "chunk", "cameras")
    return {name: hello[name] for name in told}


if __name__ == "__main__":
    leave(main())
