"""Frames and connections: exact reads, caps, deadlines, and memory that stays valid."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.wire import (
    Connection,
    ConnectionLost,
    DeadlinePassed,
    ProtocolError,
    RemoteError,
    binary,
    connect,
    frames,
)
from harness.wire.frames import FRAME_LIMIT, Deadline, Memory, begin_frame, send_frame

Pair = tuple[Connection, Connection]


@pytest.fixture
def pair() -> Iterator[Pair]:
    left, right = socket.socketpair()
    with Connection(left, 5) as client, Connection(right, 5) as server:
        yield client, server


def answer(server: Connection, reply: dict) -> threading.Thread:
    def once() -> None:
        server.receive()
        server.reply(reply)

    thread = threading.Thread(target=once)
    thread.start()
    return thread


@pytest.mark.parametrize("codec", ["binary", "classic"])
def test_a_reply_comes_in_the_codec_of_its_request(pair: Pair, codec: str) -> None:
    client, server = pair
    client.codec = codec
    image = np.arange(480 * 640 * 3, dtype=np.uint8).reshape(480, 640, 3)
    actions = np.ones((30, 20), np.float32)
    thread = threading.Thread(target=client.send, args=({"type": "infer", "image": image},))
    thread.start()
    got = server.receive()
    thread.join()
    assert got["type"] == "infer" and (got["image"] == image).all()
    server.reply({"type": "actions", "actions": actions})
    assert server.codec == codec
    assert (client.receive()["actions"] == actions).all()


def test_ask_raises_what_the_peer_answers(pair: Pair) -> None:
    client, server = pair
    error = {"type": "error", "kind": "policy", "message": "NaN", "traceback": "Traceback ..."}
    thread = answer(server, error)
    with pytest.raises(RemoteError, match="NaN") as raised:
        client.ask({"type": "infer"}, "actions")
    assert (raised.value.kind, raised.value.traceback) == ("policy", "Traceback ...")
    thread.join()
    thread = answer(server, {"type": "ok"})
    with pytest.raises(ProtocolError, match="reply 'ok' to 'infer'"):
        client.ask({"type": "infer"}, "actions")
    thread.join()


def test_silence_ends_at_the_deadline(pair: Pair) -> None:
    client, _ = pair
    with pytest.raises(DeadlinePassed, match=r"within 0\.02 s"):
        client.receive(idle_s=0.02)


def test_a_frame_that_stops_halfway_ends_at_the_deadline(pair: Pair) -> None:
    client, server = pair
    client.deadline_s = 0.02
    server.sock.sendall((100).to_bytes(4, "big") + b"RPB3")
    with pytest.raises(DeadlinePassed):
        client.receive(idle_s=5)


def test_a_peer_that_does_not_read_ends_at_the_deadline(pair: Pair) -> None:
    client, _ = pair
    client.deadline_s = 0.05
    with pytest.raises(DeadlinePassed, match="send infer"):
        client.send({"type": "infer", "image": np.zeros(64 * 2**20, np.uint8)})


@pytest.mark.parametrize("sent", [b"", b"\0\0", (100).to_bytes(4, "big") + b"RPB3"])
def test_a_peer_that_goes_away_is_noticed(pair: Pair, sent: bytes) -> None:
    client, server = pair
    server.sock.sendall(sent)
    server.close()
    with pytest.raises(ConnectionLost, match="closed"):
        client.receive()


def test_a_frame_that_makes_no_sense_is_read_to_its_end(pair: Pair) -> None:
    """Else closing would cut off the answer that says so."""
    client, server = pair
    size = 2**20
    junk = size.to_bytes(4, "big") + b"RPB3" + (2).to_bytes(4, "big") + b"[]"
    thread = threading.Thread(target=client.sock.sendall, args=(junk.ljust(4 + size, b"x"),))
    thread.start()
    with pytest.raises(ProtocolError, match="no object"):
        server.receive()
    thread.join()
    with pytest.raises(DeadlinePassed):
        server.receive(idle_s=0.01)


@pytest.fixture
def tcp_pair() -> Iterator[Pair]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        left = socket.create_connection(listener.getsockname(), timeout=5)
        right, _ = listener.accept()
    with Connection(left, 5) as client, Connection(right, 5) as server:
        yield client, server


@pytest.mark.parametrize("piece", [997, 300_000, 2**20])
def test_large_frames_are_whole_in_whatever_pieces_they_come(tcp_pair: Pair, piece: int) -> None:
    """A large frame is awaited in large pieces; its end, and the small frame after it, are none."""
    client, server = tcp_pair
    image = np.arange(700_001, dtype=np.uint32)
    sent = b"".join(binary.encode({"type": "infer", "image": image}))
    sent = len(sent).to_bytes(4, "big") + sent

    def in_pieces() -> None:
        for start in range(0, len(sent), piece):
            client.sock.sendall(sent[start : start + piece])

    for _ in range(2):
        thread = threading.Thread(target=in_pieces)
        thread.start()
        assert (server.receive()["image"] == image).all()
        thread.join()
        assert server.sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
        client.send({"type": "close"})
        assert server.receive() == {"type": "close"}


class Stubborn:
    """A socket whose kernel never holds more than ``held`` bytes, and does not say so."""

    def __init__(self, sent: bytes, held: int) -> None:
        self._sent, self._held, self._awaited = sent, held, 1

    def settimeout(self, seconds: float) -> None:
        pass

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self._awaited = value

    def recv_into(self, into: memoryview) -> int:
        if self._awaited > self._held:
            raise TimeoutError
        count = min(len(into), self._held)
        into[:count], self._sent = self._sent[:count], self._sent[count:]
        return count


def test_a_large_frame_comes_in_small_pieces_where_no_large_ones_do() -> None:
    payload = bytes(range(256)) * 4096
    sock: Any = Stubborn(len(payload).to_bytes(4, "big") + payload, held=1000)
    frame = begin_frame(sock, Memory(), FRAME_LIMIT, Deadline(5, "a frame"), 5)
    assert frame.whole().tobytes() == payload
    assert sock._awaited == 1


def test_a_peer_that_goes_away_within_a_large_frame_is_noticed(tcp_pair: Pair) -> None:
    client, server = tcp_pair
    client.sock.sendall((2**20).to_bytes(4, "big") + b"RPB3".ljust(1000, b"\0"))
    client.close()
    with pytest.raises(ConnectionLost, match="closed"):
        server.receive()


@pytest.mark.parametrize(
    ("system", "release", "one"),
    [("Linux", "4.18.0-553.el8", False), ("Linux", "6.1", False), ("Linux", "4.4.0", True),
     ("Linux", "", True), ("Darwin", "23.1.0", True)],
)  # fmt: skip
def test_old_kernels_wake_for_each_segment(system: str, release: str, one: bool) -> None:
    assert (frames._bytes_a_wake(system, release) == 1) is one


def test_a_giant_frame_is_refused_before_memory_is_taken(pair: Pair) -> None:
    client, server = pair
    server.sock.sendall((FRAME_LIMIT + 1).to_bytes(4, "big"))
    with pytest.raises(ProtocolError, match="limit"):
        client.receive()


def test_the_sender_refuses_a_giant_frame() -> None:
    left, right = socket.socketpair()
    giant = np.zeros(FRAME_LIMIT + 1, np.uint8).data
    with left, right, pytest.raises(ProtocolError, match="limit"):
        send_frame(left, [giant], Deadline(1, "send"))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(payload=st.binary(max_size=64), cuts=st.lists(st.integers(1, 8), max_size=20))
def test_bytes_of_any_kind_in_any_pieces_never_hang(payload: bytes, cuts: list[int]) -> None:
    left, right = socket.socketpair()
    with Connection(left, 5) as client, right:
        for size in cuts:
            right.sendall(payload[:size])
            payload = payload[size:]
        right.sendall(payload)
        right.close()
        with pytest.raises(ProtocolError):
            while True:
                client.receive()


def test_a_thousand_arrays_in_one_message(pair: Pair) -> None:
    client, server = pair
    arrays = [np.full(3, n, np.int32) for n in range(1500)]
    thread = threading.Thread(target=client.send, args=({"type": "infer", "arrays": arrays},))
    thread.start()
    got = server.receive()["arrays"]
    thread.join()
    assert [int(array[2]) for array in got] == list(range(1500))


def test_arrays_outlive_the_next_message(pair: Pair) -> None:
    client, server = pair
    client.send({"type": "infer", "image": np.full(1000, 1, np.uint8)})
    first = server.receive()["image"][10:20]
    client.send({"type": "infer", "image": np.full(1000, 2, np.uint8)})
    second = server.receive()["image"]
    assert (first == 1).all() and (second == 2).all()


def test_memory_is_used_again_once_nobody_looks_at_it() -> None:
    memory = Memory()
    address = memory.take(1000).ctypes.data
    again = memory.take(900)
    assert again.ctypes.data == address
    assert memory.take(900).ctypes.data != address


def test_connect_says_who_does_not_answer() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(ConnectionLost, match=f"127.0.0.1:{port}"):
            connect("127.0.0.1", port, 0.05)
