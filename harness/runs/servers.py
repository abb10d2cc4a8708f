"""Where the model servers of a run listen, and, with reversed roles, its simulators.

One file each in ``runs/<RUN>/servers/``, written by its owner alone and replaced as a whole; a
marker ``<name>.ended`` beside it when it is over. Discovery is a listing. What stands in a file is
a hint: its owner may be dead and another process may have its port, so a client compares what the
hello says (``expect``) with what the file says.
"""

from __future__ import annotations

import json
import socket
from dataclasses import asdict, dataclass
from typing import Literal

from harness.foundations.atomic import write_atomic
from harness.leases.filesystem import Filesystem
from harness.paths import RunPaths

Role = Literal["model", "simulator"]
EVERYWHERE = ("0.0.0.0", "::")
LOOPBACK = ("", "127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Server:
    """``name``: of the worker that owns it; ``host``: as other nodes reach it."""

    name: str
    role: Role
    host: str
    port: int
    node: str
    run: str


def publish(paths: RunPaths, name: str, role: Role, host: str, port: int, run: str) -> Server:
    """Say where ``name`` listens. Raises ``RollpoolError``."""
    node = socket.gethostname()
    server = Server(name, role, node if host in EVERYWHERE else host, port, node, run)
    Filesystem().mkdir(paths.servers)
    write_atomic(paths.servers / f"{name}.json", json.dumps(asdict(server)).encode())
    return server


def withdraw(paths: RunPaths, name: str) -> None:
    """Say that ``name`` listens no more."""
    Filesystem().create(paths.servers / f"{name}.ended")


def published(paths: RunPaths, role: Role) -> list[Server]:
    """Those that have not ended."""
    fs = Filesystem()
    names = set(fs.names(paths.servers))
    found = []
    for name in sorted(names):
        if not name.endswith(".json") or f"{name.removesuffix('.json')}.ended" in names:
            continue
        try:
            server = Server(**json.loads(fs.read(paths.servers / name)))
        except (OSError, ValueError, TypeError):
            continue  # half visible, or a newer toolkit's
        if server.role == role:
            found.append(server)
    return found


def is_loopback(host: str | None) -> bool:
    """Whether nobody asked for another address."""
    return host is None or host in LOOPBACK or host.startswith("127.")
