"""One observation (3 pictures of 640 x 480, proprio, text) out, a chunk of 30 x 20 actions back.

Every subject has a client here and a server in a process of its own, over TCP on loopback. The raw
socket sends and receives as many bytes as the toolkit's own wire does, with the same options, from
and into memory that is there already: the least that crossing costs. ``classic`` is JSON with
base64, as RoboTwin's tools speak it. All pictures have been written to: zeros that the kernel has
promised are one page of memory, whatever their number.
"""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.measuring import Effort, Figure, Goal, Series, interleaved, ratios
from bench.peers import environment
from bench.subject import Subject, seconds
from harness.inference.model_client import ModelClient
from harness.policies.contract import EE6D_DIM
from harness.simulators.contract import Episode, Observation
from harness.wire import binary
from harness.wire.connection import prepare
from harness.workers.server_process import ModelServerProcess

TITLE = "one observation out, one chunk back"
CHUNK = 30
#: What a trip takes hangs on where the kernel puts the two ends, which it keeps for a while: many
#: short turns meet more of its moods.
TURNS = 4
POLICY = Path(__file__).parent / "zero" / "policy"


def measure(effort: Effort) -> Figure:
    trips = effort.of(200 / TURNS, least=3)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="bench-")))
        raw = RawSocket(*sizes())
        stack.callback(raw.close)
        server = stack.enter_context(server_process(folder))
        subjects: dict[str, Callable[[], float]] = {
            "raw socket": lambda: median(raw.trip, trips),
            "rollpool": turn(server, "binary", trips),
            "classic": turn(server, "classic", 3),
        }
        python = environment.python() if effort.peers else None
        if python:
            openpi = stack.enter_context(Subject(python, "bench.peers.openpi", folder))
            subjects["openpi"] = lambda: float(openpi.ask("median", count=max(3, trips // 4)))
        for warm in subjects.values():
            warm()
        took = interleaved(subjects, TURNS * effort.rounds)
    goals = [
        Goal("rollpool / raw socket", ratios(took["rollpool"], took["raw socket"]), 1.3),
        Goal("classic / rollpool", ratios(took["classic"], took["rollpool"]), 30, at_most=False),
    ]
    if python:
        faster = ratios(took["openpi"], took["rollpool"])
        goals.append(Goal("openpi / rollpool", faster, 5, at_most=False))
    series = tuple(Series(n, "ms", tuple(1e3 * v for v in of)) for n, of in took.items())
    return Figure(TITLE, series, tuple(goals), () if python else (environment.MISSING,))


def observation() -> Observation:
    pictures = np.ones((3, 480, 640, 3), np.uint8)
    names = ("countertop", "left_wrist", "right_wrist")
    return Observation(
        dict(zip(names, pictures, strict=True)), np.zeros(EE6D_DIM, np.float32), "put the cup in"
    )


def sizes() -> tuple[int, int]:
    """Bytes of the request and of the reply as the toolkit sends them."""
    seen = observation()
    request = {"images": seen.images, "proprio": seen.proprio, "instruction": seen.instruction}
    reply = {"actions": np.zeros((CHUNK, EE6D_DIM), np.float32)}
    told, said = (sum(len(part) for part in binary.encode(m)) for m in (request, reply))
    return told, said


def server_process(folder: Path) -> ModelServerProcess:
    """The toolkit's model server, with a policy that costs nothing."""
    usr_args = {"policy_name": "zero", "chunk": CHUNK, "action_kind": "ee6d",
                "action_dim": EE6D_DIM, "needs": [], "cameras": []}  # fmt: skip
    server = ModelServerProcess(sys.executable, POLICY, usr_args, {}, "", folder / "model.log")
    server.start()
    return server


def turn(server: ModelServerProcess, codec: str, trips: int) -> Callable[[], float]:
    client = ModelClient(server.host, server.port, "", f"bench {codec}", 60.0, codec)
    client.reset(Episode("scene", "task", "config", 0, ""))
    seen = observation()
    return lambda: median(lambda: client.infer(0, seen, None, None), trips)


def median(call: Callable[[], object], count: int) -> float:
    return statistics.median(seconds(call) for _ in range(count))


class RawSocket:
    """Ping-pong of so many bytes with a process that does nothing else."""

    def __init__(self, request: int, reply: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            child = multiprocessing.get_context("fork").Process(
                target=_echo, args=(listener, request, reply), daemon=True
            )
            child.start()
            self._process = child
            self._socket = socket.create_connection(listener.getsockname(), timeout=60)
        prepare(self._socket)
        self._sent, self._received = b"\1" * request, memoryview(bytearray(reply))

    def trip(self) -> None:
        self._socket.sendall(self._sent)
        _fill(self._socket, self._received)

    def close(self) -> None:
        self._socket.close()
        self._process.join(10)


def _echo(listener: socket.socket, request: int, reply: int) -> None:
    peer, _ = listener.accept()
    prepare(peer)
    received, sent = memoryview(bytearray(request)), b"\1" * reply
    while _fill(peer, received):
        peer.sendall(sent)


def _fill(peer: socket.socket, memory: memoryview) -> bool:
    got = 0
    while got < len(memory):
        count = peer.recv_into(memory[got:])
        if not count:
            return False
        got += count
    return True
