"""Frames and connections: exact reads, caps, deadlines, and memory that stays valid."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import weakref
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
    classic,
    connect,
)
from harness.wire.calls import ClassicCalls
from harness.wire.frames import FRAME_LIMIT, Deadline, Inbox, Memory, send_frame

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
    server.sock.sendall((100).to_bytes(4, "big") + b"RPB4")
    with pytest.raises(DeadlinePassed):
        client.receive(idle_s=5)


def test_a_frame_that_trickles_ends_at_the_deadline(pair: Pair) -> None:
    """Each byte is in time, and all together are not."""
    client, server = pair
    client.deadline_s = 0.05
    server.sock.sendall((2**30 // 8).to_bytes(4, "big"))

    def trickle() -> None:
        with contextlib.suppress(OSError):
            while True:
                server.sock.sendall(b"R")

    thread = threading.Thread(target=trickle)
    thread.start()
    with pytest.raises(DeadlinePassed):
        client.receive(idle_s=5)
    client.close()
    thread.join()


def test_a_peer_that_does_not_read_ends_at_the_deadline(pair: Pair) -> None:
    client, _ = pair
    client.deadline_s = 0.05
    with pytest.raises(DeadlinePassed, match="send infer"):
        client.send({"type": "infer", "image": np.zeros(64 * 2**20, np.uint8)})


@pytest.mark.parametrize("sent", [b"", b"\0\0", (100).to_bytes(4, "big") + b"RPB4"])
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
    junk = size.to_bytes(4, "big") + b"RPB4" + bytes([0, 0, 0, 2, 0, 0, 0, 2]) + b"[][]"
    thread = threading.Thread(target=client.sock.sendall, args=(junk.ljust(4 + size, b"x"),))
    thread.start()
    with pytest.raises(ProtocolError, match="malformed"):
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


def send_in_pieces(sock: socket.socket, sent: bytes, piece: int) -> None:
    for start in range(0, len(sent), piece):
        sock.sendall(sent[start : start + piece])


def test_within_one_machine_no_congestion_is_seen(tcp_pair: Pair) -> None:
    """Else a process that waits may be taken for a slow network, and stay slow."""
    for connection in tcp_pair:
        used = connection.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert used.rstrip(b"\0") == b"reno"


@pytest.mark.parametrize("piece", [997, 300_000, 2**20])
def test_large_frames_are_whole_in_whatever_pieces_they_come(tcp_pair: Pair, piece: int) -> None:
    client, server = tcp_pair
    image = np.arange(700_001, dtype=np.uint32)
    sent = b"".join(binary.encode({"type": "infer", "image": image}))
    sent = len(sent).to_bytes(4, "big") + sent

    for _ in range(2):
        thread = threading.Thread(target=send_in_pieces, args=(client.sock, sent, piece))
        thread.start()
        assert (server.receive()["image"] == image).all()
        thread.join()
        client.send({"type": "close"})
        assert server.receive() == {"type": "close"}


class Ticking:
    """A socket on which every other call comes to nothing in time, and the others do little."""

    def __init__(self, coming: bytes = b"") -> None:
        self.coming, self.sent, self._odd = coming, b"", False
        self._timeout: float | None = None

    def gettimeout(self) -> float | None:
        return self._timeout

    def settimeout(self, seconds: float) -> None:
        self._timeout = seconds

    def _tick(self) -> None:
        self._odd = not self._odd
        if self._odd:
            raise TimeoutError

    def recv_into(self, into: memoryview) -> int:
        self._tick()
        count = min(len(into), 1000)
        into[:count], self.coming = self.coming[:count], self.coming[count:]
        return count

    def sendmsg(self, parts: list[memoryview]) -> int:
        self._tick()
        some = b"".join(parts)[:1000]
        self.sent += some
        return len(some)


def test_a_wait_is_over_at_its_deadline_and_not_when_the_kernel_was_asked_to_look() -> None:
    payload = bytes(range(256)) * 400
    sender: Any = Ticking()
    receiver: Any = Ticking(len(payload).to_bytes(4, "big") + payload)
    send_frame(sender, [memoryview(payload)], Deadline(60, "send"))
    assert sender.sent == receiver.coming
    inbox = Inbox(receiver)
    came = inbox.frame(FRAME_LIMIT, Deadline(60, "a frame"), 60)
    inbox.rest()
    assert came == payload
    with pytest.raises(DeadlinePassed):
        inbox.frame(FRAME_LIMIT, Deadline(0, "a frame"), 60)


class Broken(Ticking):
    """A socket whose network is gone: the kernel has given up, which is no tick."""

    def _tick(self) -> None:
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")


def test_a_network_that_is_gone_is_no_tick() -> None:
    broken: Any = Broken()
    with pytest.raises(ConnectionLost, match="Connection timed out"):
        send_frame(broken, [memoryview(b"x")], Deadline(60, "send"))
    with pytest.raises(ConnectionLost, match="Connection timed out"):
        Inbox(broken).frame(FRAME_LIMIT, Deadline(60, "a frame"))


class Trickling(Ticking):
    """A socket and its clock: a second passes with each thing that is received."""

    family = None
    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sendmsg(self, parts: list[memoryview]) -> int:
        return sum(map(len, parts))

    def recv_into(self, into: memoryview) -> int:
        self.now += 1
        into[:3], self.coming = self.coming[:3], self.coming[3:]
        return 3


def test_an_answer_that_trickles_has_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one until its length is there, and another from then on."""
    sock: Any = Trickling((100).to_bytes(4, "big") + bytes(100))
    monkeypatch.setattr("harness.wire.frames.time", sock)
    monkeypatch.setattr("harness.wire.calls.connect", lambda *_: Connection(sock, 10))
    with pytest.raises(DeadlinePassed, match="within 10 s"):
        ClassicCalls("host", 1, 10, 10).call("infer")
    assert sock.now == 10


def test_a_peer_that_goes_away_within_a_large_frame_is_noticed(tcp_pair: Pair) -> None:
    client, server = tcp_pair
    client.sock.sendall((2**20).to_bytes(4, "big") + b"RPB4".ljust(1000, b"\0"))
    client.close()
    with pytest.raises(ConnectionLost, match="closed"):
        server.receive()


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


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=8),
    codecs=st.lists(st.sampled_from(["binary", "classic"]), min_size=8, max_size=8),
    piece=st.integers(1, 2000),
)
def test_frames_that_come_together_are_told_apart(
    sizes: list[int], codecs: list[str], piece: int
) -> None:
    left, right = socket.socketpair()
    with Connection(left, 5) as client, Connection(right, 5) as server:
        stream = b""
        for size, codec in zip(sizes, codecs, strict=False):
            message = {"type": "infer", "numbers": np.arange(size)}
            encode = binary.encode if codec == "binary" else classic.encode_request
            payload = b"".join(encode(message))
            stream += len(payload).to_bytes(4, "big") + payload
        thread = threading.Thread(target=send_in_pieces, args=(client.sock, stream, piece))
        thread.start()
        for size, codec in zip(sizes, codecs, strict=False):
            assert server.receive()["numbers"].tolist() == list(range(size))
            assert server.codec == codec
        thread.join()


def test_small_frames_behind_a_large_one(pair: Pair) -> None:
    """What was read too far is the beginning of the next one, whatever its size."""
    client, server = pair
    image = np.arange(40_000, dtype=np.uint16)

    def send_all() -> None:
        for n in range(5):
            client.send({"type": "infer", "image": image, "n": n})
            client.send({"type": "close", "n": n})

    thread = threading.Thread(target=send_all)
    thread.start()
    for n in range(5):
        got = server.receive()
        assert (got["image"] == image).all() and got["n"] == n
        assert server.receive() == {"type": "close", "n": n}
    thread.join()


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


@pytest.mark.parametrize("codec", ["binary", "classic"])
def test_a_large_message_is_freed_with_its_last_array(
    pair: Pair, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, server = pair
    client.codec = codec
    blocks: list[weakref.ref[np.ndarray]] = []
    taken = Memory.at_least

    def noted(memory: Memory, size: int) -> memoryview:
        block = taken(memory, size)
        blocks.append(weakref.ref(block.obj))
        return block

    monkeypatch.setattr(Memory, "at_least", noted)
    monkeypatch.setattr("harness.wire.frames._REUSE_LIMIT", 0)
    client.send({"type": "infer", "image": np.ones(50_000, np.uint8)})
    got = server.receive()
    assert got["image"].all()
    del got
    assert blocks and not any(block() is not None for block in blocks)


def test_memory_is_used_again_once_nobody_looks_at_it() -> None:
    def address(block: memoryview) -> int:
        return np.frombuffer(block, np.uint8).ctypes.data

    memory = Memory()
    first = address(memory.at_least(1000))
    again = memory.at_least(900)
    assert address(again) == first
    assert address(memory.at_least(900)) != first


def test_connect_says_who_does_not_answer() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(ConnectionLost, match=f"127.0.0.1:{port}"):
            connect("127.0.0.1", port, 0.05)
